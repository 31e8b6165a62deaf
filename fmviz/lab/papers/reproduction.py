"""The reproduction of a figure or table: its settings, and the tables that a runner fills."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from fmviz.lab.papers.checkpoints import Memory
from fmviz.lab.runs.provenance import array_hash
from fmviz.lab.values import plain

Row = dict[str, Any]
Settings = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
Case = TypeVar("Case")

_PAUSE = 0.5


class Reproduction:
    """A figure or table while it is reproduced: settings to read, tables to fill.

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
        What else differs from the paper, noticed on the way.
    done, total : int
        Parts.
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
        """Yield pieces of work, until the runner is to return; it counts itself what is done."""
        todo = list(cases)
        self.total += len(todo)
        for case in todo:
            if self.should_stop():
                return
            yield case

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


def rows_where(tables: Tables, table: str, **where: Any) -> list[Row]:
    """Return the rows of a table with these values; none where there is no such table yet."""
    return [
        row for row in tables.get(table, ()) if all(row.get(name) == value for name, value in where.items())
    ]
