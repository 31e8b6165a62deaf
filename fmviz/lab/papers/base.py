"""A figure or table of a paper: its protocol, its statements, and our reproduction of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from threadpoolctl import threadpool_limits

from fmviz.engine.drive import never
from fmviz.engine.errors import one_of
from fmviz.lab.background.workers import checked_jobs
from fmviz.lab.papers.checkpoints import Memory, Pieces
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Check, Statement, judged
from fmviz.lab.runs.provenance import made_with
from fmviz.lab.values import plain

State = Literal["running", "complete", "stopped"]

BUDGETS = ("quick", "full")


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
    spread : str
        The column that holds the standard deviation of ours, two of which are tolerated in its place.
    """

    table: str
    where: Mapping[str, Any]
    column: str
    value: float
    source: str
    tolerance: float = 0.0
    spread: str = ""


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


Runner = Callable[[Reproduction], Iterator[str]]


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
        ``runner(repro)`` fills the tables of a reproduction and yields, after every part, what comes next; it
        returns early where ``repro.should_stop()``.
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
        """Return what the tables of a run, complete or not, say to every statement.

        Stand-ins settle nothing: the paper says nothing of them.
        """
        checks = judged(self.statements, tables, settings)
        used = {row["data"] for row in tables.get("data", ())}
        if not used or "data" not in settings or used & set(settings["data"]):
            return checks
        return [
            replace(
                check, verdict="not settled", measured=f"On data in place of the paper's: {check.measured}"
            )
            for check in checks
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
            budget, Reproduction(settings, checked_jobs(n_jobs), should_stop, Memory(pieces, so_far))
        )

    def _results(self, budget: str, repro: Reproduction) -> Iterator[Result]:
        programs = made_with()

        def result(state: State, message: str) -> Result:
            tables = {name: list(rows) for name, rows in repro.tables.items()}
            return Result(
                artefact=self.name,
                budget=budget,
                settings=plain(dict(repro.settings)),
                tables=tables,
                checks=tuple(self.judge(tables, repro.settings)),
                data=dict(repro.data),
                differences=(*self.differences, *repro.notes),
                versions=programs,
                seconds=repro.memory.seconds,
                state=state,
                message=message,
                done=repro.done,
                total=repro.total,
            )

        # Seconds are those of one thread: products of matrices must not be shared among several.
        with threadpool_limits(1, user_api="blas"):
            for message in self.runner(repro):
                yield result("running", message)
        stopped = repro.done < repro.total
        yield result("stopped" if stopped else "complete", "Stopped on request." if stopped else "Done.")

    def compared(self, tables: Tables) -> list[Row]:
        """Return the published numbers beside ours: one row each, ``ours`` None where there is none yet.

        ``deviation`` is relative to the published value, and ``within`` tells whether it is tolerated.
        """
        rows = []
        for one in self.published:
            found = rows_where(tables, one.table, **one.where)
            ours = found[0].get(one.column) if found else None
            unit = abs(one.value) or 1.0
            deviation = None if ours is None else (ours - one.value) / unit
            tolerance: float | None = one.tolerance
            if one.spread:
                std = found[0].get(one.spread) if found else None
                tolerance = None if std is None else 2.0 * std / unit
            rows.append(
                {
                    "what": ", ".join([*(_named(*item) for item in one.where.items()), one.column]),
                    "published": one.value,
                    "ours": ours,
                    "deviation": deviation,
                    "within": None if deviation is None or tolerance is None else abs(deviation) <= tolerance,
                    "source": one.source,
                }
            )
        return rows


def _named(column: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{column} = {value}"
