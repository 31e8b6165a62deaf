"""Artefacts, the figures and tables of papers: declaration, reproduction and judgement."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import fmviz
from fmviz.engine.blas import each_on_one_thread
from fmviz.engine.errors import one_of
from fmviz.lab.background.workers import checked_jobs
from fmviz.lab.papers import Check, Result, Row, Statement, Tables
from fmviz.lab.runner import load_dataset
from fmviz.lab.runs.provenance import versions
from fmviz.lab.values import plain
from papers.courses import cut_short
from papers.drawing import draw, stored
from papers.judging import Finding, Said, rows_where, verdict
from papers.reproduction import Reproduction, Settings, Work

Judge = Callable[[Tables, Settings], Iterable[Finding]]

BUDGETS = ("quick", "full")
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Claim(Statement):
    """A statement of a paper, with the conditions of its verdict.

    Attributes
    ----------
    measured : str
        The sentence of a check, with the names of numbers in braces.
    ranges : mapping of str to (low, high)
        Ranges in the paper of settings with several values: a run over another range settles nothing.
    at_rest : {"", "lowest", "all"}
        The objectives that must come to rest before their runs end, see `cut_short`.
    """

    measured: str = ""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    at_rest: str = ""


@dataclass(frozen=True)
class Artefact:
    """A figure or table of a paper, with everything needed to reproduce it.

    Attributes
    ----------
    name : str
        ``<paper>_<figure>``.
    paper, title : str
        Reference and heading.
    statements : tuple of Claim
        The paper's statements about it.
    differences : tuple of str
        Deviations of our protocol, and choices left open by the paper.
    settings : mapping
        The protocol.
    budgets : mapping of str to mapping
        Settings of the budgets "quick" and "full".
    minutes : mapping of str to float
        Approximate minutes of each budget on two cores.
    runner : callable
        ``runner(repro)`` fills the tables of a reproduction, and yields a description after every part.
    judging : callable
        ``judging(tables, settings)`` yields verdicts on complete or partial tables; `settings` include
        thresholds.
    picture : mapping
        Keywords of `papers.drawing.draw` for the tables.
    published : tuple of mapping
        Numbers printed in the paper: ``value`` and ``source``, the ``table`` of the result, the values
        ``where`` that select its row, and the ``column`` of our number; with ``tolerance`` or ``absolute``,
        the relative or absolute deviation of equal numbers, or ``spread``, the column of our standard
        deviation, two of which are tolerated.
    sets : mapping
        The data sets of the paper: name and parameters of each.
    thresholds : mapping
        Thresholds of the verdicts.
    summary : mapping of str to callable
        Derived tables: ``summary[name](tables)`` returns the rows.
    """

    name: str
    paper: str
    title: str
    statements: tuple[Claim, ...]
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
        """Return checks of every statement by the tables of a run.

        A check is not settled if the run is incomplete, if substitutes replace all data of the paper, if a
        range differs from the paper's, or if runs ended before their objectives came to rest.
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

    def _doubt(self, statement: Claim, case: str, tables: Tables, settings: Settings) -> str:
        """Return why a run settles nothing in a case, as the beginning of a sentence, or ``""``."""
        for name, (low, high) in statement.ranges.items():
            if (min(settings[name]), max(settings[name])) != (low, high):
                return f"Not over the paper's range of {name}, {low:,} to {high:,}: "
        if statement.at_rest and cut_short(tables, case, statement.at_rest):
            return "Runs ended before their objectives came to rest: "
        return ""

    def configured(self, budget: str = "quick", **changes: Any) -> Mapping[str, Any]:
        """Return the settings of a budget with some changes; ValueError for an unknown setting."""
        one_of("budget", budget, self.budgets)
        settings = {**self.settings, **self.budgets[budget]}
        for name in changes:
            one_of(f"The setting of {self.name}", name, settings)
        return settings | changes

    def pieces(self, budget: str) -> Path:
        """Return the folder of completed trials under these settings, by this version of fmviz."""
        protocol = json.dumps([plain(dict(self.configured(budget))), fmviz.__version__], sort_keys=True)
        digest = hashlib.sha256(protocol.encode()).hexdigest()[:24]
        return FOLDER / "pieces" / f"{self.name}-{budget}" / digest

    def run(
        self,
        budget: str = "quick",
        *,
        n_jobs: int = -1,
        folder: Path | None = None,
        report: Callable[[str], object] = str,
        **changes: Any,
    ) -> Result:
        """Reproduce the artefact; Ctrl-C ends a run early with the results so far.

        Parameters
        ----------
        budget : {"quick", "full"}
            A run of minutes, or the protocol of the paper.
        n_jobs : int
            Worker processes for trials that can run in parallel; -1 for one per core.
        folder : Path, optional
            The folder of completed trials of earlier runs with these settings and of this one.
        report : callable
            Called with a sentence on the progress after every trial.
        **changes
            Settings to change.

        Raises
        ------
        ValueError
            If the budget, a setting or the number of workers is invalid.
        """
        settings = self.configured(budget, **changes)
        repro = Reproduction(settings, checked_jobs(n_jobs), folder, self.sets)
        complete = False
        try:
            # Seconds are those of one thread: products of matrices must not be shared among several.
            for message in each_on_one_thread(self.runner(repro)):
                report(f"{repro.done}/{repro.total} {message}")
            complete = True
        except KeyboardInterrupt:
            pass
        return self._result(budget, repro, complete)

    def _result(self, budget: str, repro: Reproduction, complete: bool) -> Result:
        tables = {name: list(rows) for name, rows in repro.tables.items()}
        tables |= {name: rows for name, summed in self.summary.items() if (rows := plain([*summed(tables)]))}
        return Result(
            **self.texts(),
            picture=self.drawn(tables),
            budget=budget,
            settings=plain(dict(repro.settings)),
            tables=tables,
            checks=tuple(self.judge(tables, repro.settings, complete=complete)),
            compared=tuple(self.compared(tables)),
            data=dict(repro.data),
            differences=(*self.differences, *repro.notes),
            # Methods of scikit-learn serve as baselines.
            versions={**versions(), "scikit-learn": version("scikit-learn")},
            seconds=repro.seconds,
            state="complete" if complete else "stopped",
        )

    def texts(self) -> dict[str, Any]:
        """Return the texts of a `Result` that are declared."""
        return {
            "artefact": self.name,
            "paper": self.paper,
            "title": self.title,
            "statements": tuple(Statement(claim.key, claim.text, claim.where) for claim in self.statements),
        }

    def drawn(self, tables: Tables) -> dict[str, Any]:
        """Return the picture of a `Result` with these tables."""
        return stored(draw(tables, **self.picture))

    def compared(self, tables: Tables) -> list[Row]:
        """Return published and reproduced numbers, one row each; ``ours`` is None if not yet available.

        ``deviation`` is relative to the published value, ``within`` is whether it is tolerated.
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
    """Return the content of the TOML file of a paper or a figure."""
    return tomllib.loads((FOLDER / f"figures/{name}.toml").read_text(encoding="utf-8"))


def rated_items(
    n: int, users: int, items: int, rank: int, rng: np.random.Generator
) -> tuple[sp.csr_array, np.ndarray]:
    """Return user and item indicators, and ratings from 1 to 5 that depend on both and on their product.

    Parameters
    ----------
    n, users, items : int
        Ratings, users and items; items follow a long-tailed law, and pairs are unique.
    rank : int
        The rank of the interaction matrix.
    rng : numpy Generator
        The random generator.

    Returns
    -------
    X : (N, users + items) csr_array
        Two ones per row. N is n minus the number of duplicates.
    y : (N,) ndarray
        3.5 + a_user + b_item + ⟨u, v⟩ + noise, rounded, within 1 to 5; the four parts have standard
        deviations 0.4, 0.4, 0.6 and 0.5.
    """
    user = rng.integers(0, users, n)
    item = np.minimum((items * rng.random(n) ** 2).astype(np.int64), items - 1)
    user, item = np.divmod(rng.permutation(np.unique(user * items + item)), items)
    n = user.size
    X = sp.csr_array(
        (np.ones(2 * n), np.column_stack([user, users + item]).ravel(), np.arange(n + 1) * 2),
        shape=(n, users + items),
    )
    U, V = rng.normal(size=(users, rank)), rng.normal(size=(items, rank))
    score = 3.5 + 0.4 * rng.normal(size=users)[user] + 0.4 * rng.normal(size=items)[item]
    score += 0.6 / np.sqrt(rank) * (U[user] * V[item]).sum(axis=1) + 0.5 * rng.normal(size=n)
    return X, np.clip(np.rint(score), 1.0, 5.0)


def rows_of(sets: Mapping[str, Mapping[str, Any]], name: str, drawn: int = 0) -> tuple[Any, np.ndarray]:
    """Return X and y of a data set declared by a paper, else of approximately `n` simulated ratings."""
    if name in sets:
        dataset = load_dataset(**sets[name])
        return dataset.X, dataset.y
    # Numbers of users and items with the ratings per user and item of MovieLens.
    return rated_items(drawn, max(10, drawn // 106), max(10, drawn // 60), 4, np.random.default_rng(0))


def over_grid(
    repro: Reproduction, work: Work, trials: Callable[[Reproduction], Iterable[Row]], alone: bool
) -> Generator[str]:
    """Run all trials: the runner of a figure with a grid."""
    yield "Reading data and kernels"
    yield from repro.fill(work, list(trials(repro)), alone=alone)


def trials_of(repro: Reproduction, grid: Mapping[str, Any], stand_ins: Iterable[str] = ()) -> Iterator[Row]:
    """Yield all combinations of a grid of lists or names of settings; a number n means 0 to n − 1.

    "data" means the available data sets, or else the substitutes.
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
    """Return the artefact declared in ``figures/<name>.toml``.

    The file has ``title``, ``minutes``, ``differences``, ``[thresholds]``, ``[settings]``, ``[budgets]`` and
    ``[picture]``, a table ``[[statements]]`` for each statement, and ``[[published]]``, or ``[[sizes]]`` of
    data sets and ``printed`` rows, with tolerances of their ``columns``. The file of its paper has the
    ``reference``, the data sets in ``[sets]``, and ``[words]`` common to several figures. Differences
    can refer to these, to settings and to thresholds in braces. `summary` are derived tables.

    With a ``grid``, see `trials_of`, or `trials`, `work` runs a trial, and trials with ``alone`` run
    sequentially; otherwise `work` is the runner.
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
        statements=tuple(Claim(**row) for row in own["statements"]),
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
