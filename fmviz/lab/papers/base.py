"""A figure or table of a paper: its protocol, its statements, and our reproduction of it."""

from __future__ import annotations

import math
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from fmviz.engine.drive import never
from fmviz.engine.errors import one_of
from fmviz.lab.background.workers import checked_jobs
from fmviz.lab.papers.checkpoints import Memory, Pieces
from fmviz.lab.papers.references import REFERENCES
from fmviz.lab.runs.provenance import array_hash, made_with
from fmviz.lab.values import plain

Verdict = Literal["holds", "does not hold", "not settled"]
State = Literal["running", "complete", "stopped"]
Row = dict[str, Any]
Settings = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
Finding = tuple[str, Verdict, str]
"""Of a statement: the case, the verdict, and a sentence with the numbers."""
Judge = Callable[[Tables, Settings], Iterable[Finding]]

Case = TypeVar("Case")

BUDGETS = ("quick", "full")
_PAUSE = 0.5


@dataclass(frozen=True)
class Statement:
    """Something that the paper says, which our run puts to the test.

    Attributes
    ----------
    key : str
        Its name within the artefact.
    text : str
        What is said, in a sentence.
    where : str
        The section of the paper.
    judge : callable
        ``judge(tables, settings)`` returns what the numbers of a run say to it, case by case; from the
        tables alone, full or not. See `fmviz.lab.papers.judging`.
    """

    key: str
    text: str
    where: str
    judge: Judge


@dataclass(frozen=True)
class Check:
    """What our run says to a statement, in one case of it.

    Attributes
    ----------
    statement : str
        The key of the statement.
    case : str
        On what: a data set, a kernel, a scaling.
    verdict : {"holds", "does not hold", "not settled"}
        The last where the numbers do not decide, or are not there.
    measured : str
        A sentence with the numbers.
    """

    statement: str
    case: str
    verdict: Verdict
    measured: str


@dataclass(frozen=True)
class Published:
    """A number printed in the paper, and where the one of our run stands.

    Attributes
    ----------
    table : str
        The table of the result.
    where : mapping
        The columns, with their values, that single out its row.
    column : str
        The column that holds our number.
    value : float
        The paper's.
    source : str
        The table or section of the paper.
    tolerance : float
        The relative deviation up to which the two are called equal.
    """

    table: str
    where: Mapping[str, Any]
    column: str
    value: float
    source: str
    tolerance: float = 0.0


@dataclass(frozen=True)
class Picture:
    """How the tables are drawn.

    Attributes
    ----------
    kind : str
        A key of ``fmviz.figures.papers.KINDS``.
    options : mapping
        The keywords of that function.
    """

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)


class Desk:
    """What a runner works on: settings to read, tables to fill.

    Attributes
    ----------
    settings : mapping
        The artefact's settings, those of the budget included.
    n_jobs : int
        Worker processes; -1 for one a core.
    tables : dict of str to list of dict
        The rows so far.
    data : dict of str to str
        The digests of the data sets in use.
    notes : list of str
        What else, found out on the way, differs from the paper.
    done, total : int
        Pieces of work.
    memory : Memory
        What earlier runs of the same protocol have finished.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        n_jobs: int,
        should_stop: Callable[[], bool],
        memory: Memory | None = None,
    ) -> None:
        self.settings, self.n_jobs = settings, n_jobs
        self.memory = memory or Memory()
        self._asked = should_stop
        self.tables: dict[str, list[Row]] = {}
        self.data: dict[str, str] = {}
        self.notes: list[str] = []
        self.done, self.total = 0, 0
        self._shown = -math.inf

    def should_stop(self) -> bool:
        """Return whether the runner is to return: on request, or where a closed memory ends."""
        return self.memory.exhausted or self._asked()

    def row(self, table: str, /, **values: Any) -> None:
        """Add a row to a table."""
        self.tables.setdefault(table, []).append(plain(values))

    def use(self, name: str, X: Any, y: np.ndarray | None = None, **facts: Any) -> None:
        """Note which data are in use: their digest, and a row of the table "data"."""
        if name not in self.data:
            self.data[name] = array_hash(X, np.empty(0) if y is None else y)
            self.row("data", data=name, n=X.shape[0], d=X.shape[1], **facts)

    def each(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Yield pieces of work and count what is done, until the runner is to return.

        What is stopped while it is worked on does not count.
        """
        todo = list(cases)
        self.total += len(todo)
        if self.should_stop():
            return
        for case in todo:
            yield case
            if self.should_stop():
                return
            self.done += 1

    def once(self, key: str, steps: Callable[[], Iterator[str]]) -> Iterator[str]:
        """Do a piece of work that adds rows, or take the rows that an earlier run has got from it.

        Parameters
        ----------
        key : str
            Names the piece; see `fmviz.lab.papers.checkpoints.key_of`.
        steps : callable
            Returns the messages of the work as it goes on; what was stopped is not kept.
        """
        known = self.memory.recall(key)
        if known is not None:
            for table, rows in known.items():
                self.tables.setdefault(table, []).extend(rows)
            return
        if self.memory.ends_here():
            return
        before = {table: len(rows) for table, rows in self.tables.items()}
        yield from steps()
        if not self.should_stop():
            added = {table: rows[before.get(table, 0) :] for table, rows in self.tables.items()}
            self.memory.keep(key, {table: rows for table, rows in added.items() if rows})

    def due(self) -> bool:
        """Return whether enough time has passed for another look at the tables, within a piece of work."""
        now = time.perf_counter()
        if now - self._shown < _PAUSE:
            return False
        self._shown = now
        return True

    def note(self, text: str) -> None:
        """Note a difference from the paper."""
        if text not in self.notes:
            self.notes.append(text)


Runner = Callable[[Desk], Iterator[str]]


@dataclass(frozen=True)
class Result:
    """A run of an artefact, finished or growing; all of it plain data.

    Attributes
    ----------
    artefact, budget : str
        Which artefact, and which budget.
    settings : mapping
        All settings in force.
    tables : mapping of str to list of dict
        The numbers.
    checks : tuple of Check
        What they say to the statements.
    data : mapping of str to str
        Digests of the data sets.
    differences : tuple of str
        What differs from the paper: as declared, and as found out in this run.
    versions : mapping of str to str
        Of Python and of packages.
    seconds : float
        Wall time; after a break, with that of the runs before.
    state : {"running", "complete", "stopped"}
        Whether there is more to come.
    message : str
        What is being done.
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
        """Read what `to_dict` wrote.

        Raises
        ------
        ValueError
            If something is missing or unknown.
        """
        known = set(cls.__dataclass_fields__)
        if set(given) != known:
            odd = min(set(given) ^ known)
            word = "unknown" if odd in given else "missing"
            raise ValueError(
                f"This is not a stored result: {odd!r} is {word}. Give what Result.to_dict wrote."
            )
        checks = tuple(Check(**check) for check in given["checks"])
        return cls(**{**given, "checks": checks, "differences": tuple(given["differences"])})


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
        What the paper says about it, and how our numbers are held against it.
    differences : tuple of str
        What our protocol does otherwise, or had to decide.
    settings : mapping
        The protocol.
    budgets : mapping of str to mapping
        For "quick" and "full" the settings that make the difference.
    minutes : mapping of str to float
        How long they take, roughly, on two cores.
    runner : callable
        ``runner(desk)`` fills the desk's tables and yields, after every piece of work, what comes next; it
        returns early where ``desk.should_stop()``.
    picture : Picture
        How the tables are drawn.
    published : tuple of Published
        Numbers printed in the paper.
    """

    name: str
    paper: str
    title: str
    statements: tuple[Statement, ...]
    differences: tuple[str, ...]
    settings: Mapping[str, Any]
    budgets: Mapping[str, Mapping[str, Any]]
    minutes: Mapping[str, float]
    runner: Runner
    picture: Picture
    published: tuple[Published, ...] = ()

    def judge(self, tables: Tables, settings: Settings) -> list[Check]:
        """Return what the tables of a run, complete or not, say to every statement."""
        return [
            Check(one.key, *finding) for one in self.statements for finding in one.judge(tables, settings)
        ]

    def configured(self, budget: str = "quick", **changes: Any) -> Mapping[str, Any]:
        """Return the settings of a budget, some of them changed.

        Raises
        ------
        ValueError
            If the budget or a setting is unknown.
        """
        one_of("budget", budget, self.budgets)
        found = {**self.settings, **self.budgets[budget]}
        for name in changes:
            one_of(f"The setting of {self.name}", name, found)
        return MappingProxyType(found | changes)

    def run(
        self,
        budget: str = "quick",
        *,
        should_stop: Callable[[], bool] = never,
        n_jobs: int = -1,
        pieces: Pieces | None = None,
        so_far: bool = False,
        **changes: Any,
    ) -> Iterator[Result]:
        """Run, yielding the result as it grows; the last one is complete, or was stopped.

        Parameters
        ----------
        budget : {"quick", "full"}
            Minutes, or what the paper did.
        should_stop : callable
            Asked between pieces of work.
        n_jobs : int
            Worker processes where fits can be made beside each other; -1 for one a core.
        pieces : Pieces, optional
            Finished work of earlier runs with these settings, and where this one's goes.
        so_far : bool
            Whether to make nothing and end where the `pieces` end. Runners that keep none run all the same.
        **changes
            Settings to change.

        Raises
        ------
        ValueError
            If the budget, a setting or the number of workers is not allowed.
        """
        settings = self.configured(budget, **changes)
        return self._results(
            budget, Desk(settings, checked_jobs(n_jobs), should_stop, Memory(pieces, so_far))
        )

    def _results(self, budget: str, desk: Desk) -> Iterator[Result]:
        programs = made_with()

        def result(state: State, message: str) -> Result:
            tables = {name: list(rows) for name, rows in desk.tables.items()}
            return Result(
                artefact=self.name,
                budget=budget,
                settings=plain(dict(desk.settings)),
                tables=tables,
                checks=tuple(self.judge(tables, desk.settings)),
                data=dict(desk.data),
                differences=(*self.differences, *desk.notes),
                versions=programs,
                seconds=desk.memory.seconds,
                state=state,
                message=message,
                done=desk.done,
                total=desk.total,
            )

        # Seconds are those of one thread: products of matrices must not be shared among several.
        with threadpool_limits(1, user_api="blas"):
            for message in self.runner(desk):
                yield result("running", message)
        stopped = desk.done < desk.total
        yield result("stopped" if stopped else "complete", "Stopped on request." if stopped else "Done.")

    def compared(self, tables: Tables) -> list[Row]:
        """Return the published numbers beside ours: one row each, ``ours`` None where there is none yet.

        ``deviation`` is relative to the published value, and ``within`` tells whether it is tolerated.
        """
        rows = []
        for one in self.published:
            found = rows_where(tables, one.table, **one.where)
            ours = found[0].get(one.column) if found else None
            deviation = None if ours is None else (ours - one.value) / (abs(one.value) or 1.0)
            rows.append(
                {
                    "what": ", ".join([*(_named(*item) for item in one.where.items()), one.column]),
                    "published": one.value,
                    "ours": ours,
                    "deviation": deviation,
                    "within": None if deviation is None else abs(deviation) <= one.tolerance,
                    "source": one.source,
                }
            )
        return rows


def figure(
    module: str,
    runner: Runner,
    judges: Mapping[str, Judge],
    *,
    settings: Settings | None = None,
    budgets: Mapping[str, Settings] | None = None,
    published: Iterable[Published] = (),
    **words: Any,
) -> Artefact:
    """Return the artefact whose words and numbers stand in the TOML file beside a module.

    The file has ``title``, ``minutes``, ``differences``, ``[settings]``, ``[budgets]`` and ``[picture]``, a
    table ``[[statements]]`` for each statement, and ``[[published]]``, or ``[[sizes]]`` of data sets.

    Parameters
    ----------
    module : str
        Its name, which ends in the folder of the paper and the name of the figure.
    runner : callable
        See `Artefact`.
    judges : mapping of str to callable
        The judge of each statement, by its key.
    settings, budgets : mapping, optional
        Settings that are computed, and those of budgets.
    published : iterable of Published
        Further published numbers.
    **words
        What the differences name in braces.

    Raises
    ------
    ValueError
        If the statements of the file and the judges are not the same.
    """
    _, paper, name = module.rsplit(".", 2)
    told = declared(module)
    keys = {one["key"] for one in told["statements"]}
    if keys != set(judges):
        raise ValueError(f"{name}.toml and its judges differ in {', '.join(sorted(keys ^ set(judges)))}.")
    picture = dict(told["picture"])
    sizes = [
        Published("data", {"data": one["data"]}, column, value, one["source"])
        for one in told.get("sizes", ())
        for column, value in one.items()
        if column not in ("data", "source")
    ]
    return Artefact(
        name=f"{paper}_{name}",
        paper=REFERENCES[paper],
        title=told["title"],
        statements=tuple(Statement(**one, judge=judges[one["key"]]) for one in told["statements"]),
        differences=tuple(text.format_map(words) if words else text for text in told["differences"]),
        settings={**told["settings"], **(settings or {})},
        budgets={
            budget: {**own, **(budgets or {}).get(budget, {})} for budget, own in told["budgets"].items()
        },
        minutes=told["minutes"],
        runner=runner,
        picture=Picture(picture.pop("kind"), picture),
        published=(*(Published(**one) for one in told.get("published", ())), *sizes, *published),
    )


def declared(module: str) -> dict[str, Any]:
    """Return what the TOML file beside a module says."""
    package, _, name = module.rpartition(".")
    return tomllib.loads(files(package).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def _named(column: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{column} = {value}"


def rows_where(tables: Tables, table: str, **where: Any) -> list[Row]:
    """Return the rows of a table with these values; none where there is no such table yet."""
    return [
        row for row in tables.get(table, ()) if all(row.get(name) == value for name, value in where.items())
    ]
