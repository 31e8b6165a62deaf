"""Figures and tables of papers: what is declared of them, and the results of their reproductions."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from importlib.metadata import version
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fmviz.checked import checked
from fmviz.engine.blas import each_on_one_thread
from fmviz.engine.drive import never
from fmviz.engine.errors import one_of
from fmviz.lab.background.workers import checked_jobs
from fmviz.lab.datasets.drawn import rated_items
from fmviz.lab.papers.courses import cut_short
from fmviz.lab.papers.judging import Finding, Row, Said, Tables, Verdict, rows_where, verdict
from fmviz.lab.papers.reproduction import Reproduction, Settings, Stopped, Work
from fmviz.lab.runner import load_dataset
from fmviz.lab.runs.provenance import versions
from fmviz.lab.values import plain

State = Literal["running", "complete", "stopped"]
Judge = Callable[[Tables, Settings], Iterable[Finding]]

# Seconds from one result of a run to the next; a chart that is drawn more often flickers.
PAUSE = 3.0
BUDGETS = ("quick", "full")


@dataclass(frozen=True)
class Statement:
    """Something that the paper says, which our run puts to the test.

    Attributes
    ----------
    key : str
        Its name in the artefact.
    text, where : str
        What is said, and the place in the paper.
    measured : str
        The sentence of a check, in which numbers stand by their names in braces.
    ranges : mapping of str to (low, high)
        Settings of several values, with the range that they have in the paper: a run over another range
        settles nothing.
    at_rest : {"", "lowest", "all"}
        Which objectives must have come to rest before their runs end, as `cut_short` has it.
    """

    key: str
    text: str
    where: str
    measured: str = ""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    at_rest: str = ""


@dataclass(frozen=True)
class Check:
    """What our run says to a statement, in one case of it, with a sentence of numbers."""

    statement: str
    case: str
    verdict: Verdict
    measured: str


@dataclass(frozen=True)
class Result:
    """A run of an artefact, finished or growing; all of it plain data.

    Attributes
    ----------
    artefact, budget, settings
        What was run, with all settings in force.
    tables : mapping of str to list of dict
        The numbers.
    checks : tuple of Check
        What they say to the statements.
    data, versions : mapping of str to str
        Digests of the data sets; versions of Python and of packages.
    differences : tuple of str
        What differs from the paper: as declared, and as noticed in this run.
    seconds : float
        Wall time; after a break, with that of the runs before.
    state, message : {"running", "complete", "stopped"}, str
        Whether there is more to come, and what is being done.
    done, total : int
        Pieces of work.
    """

    artefact: str
    budget: str
    settings: Mapping[str, Any]
    tables: Tables
    checks: tuple[Check, ...]
    data: Mapping[str, str]
    differences: tuple[str, ...]
    versions: Mapping[str, str]
    seconds: float
    state: State
    message: str
    done: int
    total: int

    def to_dict(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return plain(asdict(self))

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Result:
        """Read what `to_dict` wrote; raise ValueError if something is missing or unknown."""
        return checked(cls, given)


@dataclass(frozen=True)
class Artefact:
    """A figure or table of a paper, with everything that is needed to make it again.

    Attributes
    ----------
    name : str
        ``<paper>_<figure>``.
    paper, title : str
        Reference, and what is shown.
    statements : tuple of Statement
        What the paper says about it.
    differences : tuple of str
        What our protocol does otherwise, or had to decide.
    settings : mapping
        The protocol.
    budgets : mapping of str to mapping
        For "quick" and "full" the settings that make the difference.
    minutes : mapping of str to float
        How long they take, roughly, on two cores.
    runner : callable
        ``runner(repro)`` fills the tables of a reproduction, and yields what it has done after every part.
    judging : callable
        ``judging(tables, settings)`` yields what tables, full or not, say; `settings` are with thresholds.
    picture : mapping
        How the tables are drawn: the keywords of `fmviz.figures.papers.draw`.
    published : tuple of mapping
        Numbers printed in the paper: each with ``value`` and ``source``, the ``table`` of the result, the
        values ``where`` that single out its row, and the ``column`` of ours; with ``tolerance`` or
        ``absolute``, the relative deviation or the difference up to which the two are called equal, or
        ``spread``, the column of our standard deviation, two of which are tolerated.
    sets : mapping
        The data sets of the paper: what each is loaded by, a name with parameters.
    thresholds : mapping
        What is large, near or equal, by which statements are judged.
    summary : mapping of str to callable
        Tables that follow from others: ``summary[name](tables)`` returns the rows.
    """

    name: str
    paper: str
    title: str
    statements: tuple[Statement, ...]
    differences: tuple[str, ...]
    settings: Mapping[str, Any]
    budgets: Mapping[str, Mapping[str, Any]]
    minutes: Mapping[str, float]
    runner: Callable[[Reproduction], Generator[str]]
    judging: Judge
    picture: Mapping[str, Any]
    published: tuple[Mapping[str, Any], ...] = ()
    sets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Callable[[Tables], Iterable[Row]]] = field(default_factory=dict)

    def judge(self, tables: Tables, settings: Settings, *, complete: bool = True) -> list[Check]:
        """Return what the tables of a run say to every statement.

        Nothing is settled by a part of a run, by stand-ins, of which the paper says nothing, over a range
        that is not the paper's, or where runs ended before their objectives came to rest.
        """
        settings = {**settings, **self.thresholds}
        used = {row["data"] for row in tables.get("data", ())}
        stand_in = bool(used) and "data" in settings and not used & set(settings["data"])
        doubt = "On data in place of the paper's: " if stand_in else "" if complete else "So far: "
        findings: dict[str, list[tuple[str, Said | None]]] = {}
        for key, case, said in self.judging(tables, settings):
            findings.setdefault(key, []).append((case, said))
        checks = []
        for statement in self.statements:
            for case, said in findings.get(statement.key, [("all", None)]):
                holds, words = said or (None, "No numbers yet.")
                if not isinstance(words, str):
                    words = statement.measured.format_map({**settings, **words})
                if said and (reason := doubt or self._doubt(statement, case, tables, settings)):
                    holds, words = None, f"{reason}{words}"
                checks.append(Check(statement.key, case, verdict(holds), words))
        return checks

    def _doubt(self, statement: Statement, case: str, tables: Tables, settings: Settings) -> str:
        """Return why a run settles nothing in a case, as the beginning of a sentence, or ``""``."""
        for name, (low, high) in statement.ranges.items():
            if (min(settings[name]), max(settings[name])) != (low, high):
                return f"Not over the paper's range of {name}, {low:,} to {high:,}: "
        if statement.at_rest and cut_short(tables, case, statement.at_rest):
            return "Runs ended before their objectives came to rest: "
        return ""

    def configured(self, budget: str = "quick", **changes: Any) -> Mapping[str, Any]:
        """Return the settings of a budget, some changed; raise ValueError for one that is unknown."""
        one_of("budget", budget, self.budgets)
        settings = {**self.settings, **self.budgets[budget]}
        for name in changes:
            one_of(f"The setting of {self.name}", name, settings)
        return settings | changes

    def run(
        self,
        budget: str = "quick",
        *,
        should_stop: Callable[[], bool] = never,
        n_jobs: int = -1,
        folder: Path | None = None,
        **changes: Any,
    ) -> Iterator[Result]:
        """Run, yielding the result as it grows; the last one is complete, or was stopped.

        Parameters
        ----------
        budget : {"quick", "full"}
            Minutes, or what the paper did.
        should_stop : callable
            Asked between trials, but not while they are read from the `folder`.
        n_jobs : int
            Worker processes where fits can be made beside each other; -1 for one a core.
        folder : Path, optional
            Trials of earlier runs with these settings, and where this one's are kept.
        **changes
            Settings to change.

        Raises
        ------
        ValueError
            If the budget, a setting or the number of workers is not allowed.
        """
        settings = self.configured(budget, **changes)
        return self._results(
            budget, Reproduction(settings, checked_jobs(n_jobs), should_stop, folder, self.sets)
        )

    def _results(self, budget: str, repro: Reproduction) -> Iterator[Result]:
        # Methods of scikit-learn serve as baselines.
        programs = {**versions(), "scikit-learn": version("scikit-learn")}
        shown = float("-inf")

        def result(state: State, message: str) -> Result:
            tables = {name: list(rows) for name, rows in repro.tables.items()}
            tables |= {
                name: rows for name, summed in self.summary.items() if (rows := plain([*summed(tables)]))
            }
            return Result(
                artefact=self.name,
                budget=budget,
                settings=plain(dict(repro.settings)),
                tables=tables,
                checks=tuple(self.judge(tables, repro.settings, complete=state == "complete")),
                data=dict(repro.data),
                differences=(*self.differences, *repro.notes),
                versions=programs,
                seconds=repro.seconds,
                state=state,
                message=message,
                done=repro.done,
                total=repro.total,
            )

        # Seconds are those of one thread: products of matrices must not be shared among several.
        with suppress(Stopped):
            for message in each_on_one_thread(self.runner(repro)):
                if time.monotonic() - shown >= PAUSE:
                    shown = time.monotonic() if repro.done else shown
                    yield result("running", message)
        early = repro.done < repro.total
        yield result("stopped" if early else "complete", "Stopped on request." if early else "Done.")

    def compared(self, tables: Tables) -> list[Row]:
        """Return the published numbers beside ours: one row each, ``ours`` None where there is none yet.

        ``deviation`` is relative to the published value, and ``within`` tells whether it is tolerated.
        """
        rows = []
        for number in self.published:
            where, column, value = number["where"], number["column"], number["value"]
            row = next(iter(rows_where(tables, number["table"], **where)), {})
            ours, std, unit = row.get(column), row.get(number.get("spread", "")), abs(value) or 1.0
            tolerance = number.get("tolerance") or number.get("absolute", 0.0) / unit
            if "spread" in number:
                tolerance = None if std is None else 2.0 * std / unit
            deviation = None if ours is None else (ours - value) / unit
            near = None if deviation is None or tolerance is None else abs(deviation) <= tolerance
            place = [at if isinstance(at, str) else f"{k} = {at}" for k, at in where.items()]
            numbers = {"published": value, "ours": ours, "deviation": deviation, "within": near}
            rows.append({"what": ", ".join([*place, column]), **numbers, "source": number["source"]})
        return rows


@cache
def declared(name: str) -> dict[str, Any]:
    """Return what the TOML file of a paper, or of a figure, says."""
    return tomllib.loads(files(__package__).joinpath(f"figures/{name}.toml").read_text(encoding="utf-8"))


def rows_of(sets: Mapping[str, Mapping[str, Any]], name: str, drawn: int = 0) -> tuple[Any, np.ndarray]:
    """Return X and y of a data set that a paper declares, else of so many ratings, about, that are drawn."""
    if name in sets:
        dataset = load_dataset(**sets[name])
        return dataset.X, dataset.y
    # As many users and items as let every one of them have the ratings that MovieLens has.
    return rated_items(drawn, max(10, drawn // 106), max(10, drawn // 60), 4, np.random.default_rng(0))


def over_grid(
    repro: Reproduction, work: Work, trials: Callable[[Reproduction], Iterable[Row]], alone: bool
) -> Generator[str]:
    """Make all trials: the runner of a figure that is a grid."""
    yield "Reading data and kernels"
    yield from repro.fill(work, list(trials(repro)), alone=alone)


def trials_of(repro: Reproduction, grid: Mapping[str, Any], stand_ins: Iterable[str] = ()) -> Iterator[Row]:
    """Yield all combinations of a grid of lists, or of names of settings; a number n means 0 to n − 1.

    Of "data" those that are here are taken, else the stand-ins.
    """
    named = {name: repro.settings[at] if isinstance(at, str) else at for name, at in grid.items()}
    named |= {"data": repro.available(*stand_ins)} if "data" in grid else {}
    for case in product(*(range(at) if isinstance(at, int) else at for at in named.values())):
        yield dict(zip(grid, case, strict=True))


def figure(
    name: str,
    work: Any,
    judging: Judge,
    trials: Callable[[Reproduction], Iterable[Row]] | None = None,
    **summary: Callable[[Tables], Iterable[Row]],
) -> Artefact:
    """Return the artefact whose words and numbers stand in ``figures/<name>.toml``.

    The file has ``title``, ``minutes``, ``differences``, ``[thresholds]``, ``[settings]``, ``[budgets]`` and
    ``[picture]``, a table ``[[statements]]`` for each statement, and ``[[published]]``, or ``[[sizes]]`` of
    data sets and rows that are ``printed``, with tolerances of their ``columns``. That of its paper has the
    ``reference``, the data sets in ``[sets]``, and ``[words]`` that several figures share. The differences
    name these, settings and thresholds in braces. `summary` are tables that follow from others.

    With a ``grid``, see `trials_of`, or `trials`, `work` is that of a trial, and those of which ``alone`` is
    true are made one after the other; else it is the runner.
    """
    own, paper = declared(name), declared(name.rpartition("_")[0])
    thresholds = own.get("thresholds", {})
    words = {**paper.get("words", {}), **own["settings"], **thresholds}
    if "grid" in own:
        trials = partial(trials_of, grid=own["grid"], stand_ins=own.get("stand_ins", ()))
    kinds = own.get("columns", {})
    printed = [
        {"table": table, "where": where, "column": column, "value": value, "source": row["source"]}
        | kinds.get(table, {}).get(column, {})
        for row in (*own.get("sizes", ()), *own.get("printed", ()))
        for table in [row.get("table", "data")]
        for where in [{name: row[name] for name in ("data", "method") if name in row}]
        for column, value in row.items()
        if column not in ("table", "source", *where)
    ]
    return Artefact(
        name=name,
        paper=paper["reference"],
        title=own["title"],
        statements=tuple(Statement(**row) for row in own["statements"]),
        differences=tuple(text.format_map(words) for text in own["differences"]),
        settings=own["settings"],
        budgets=own["budgets"],
        minutes=own["minutes"],
        runner=partial(over_grid, work=work, trials=trials, alone=own.get("alone", False))
        if trials
        else work,
        judging=judging,
        picture=own["picture"],
        published=(*own.get("published", ()), *printed),
        sets=paper.get("sets", {}),
        thresholds=thresholds,
        summary=summary,
    )
