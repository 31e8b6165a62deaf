"""A reproduction while it runs: the settings that its runner reads, the tables it fills, the work it does."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from fmviz.engine.drive import never
from fmviz.lab.background.workers import stream
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.experiment import Experiment
from fmviz.lab.papers.tables import Row
from fmviz.lab.runs.provenance import array_hash
from fmviz.lab.search.sweep import FAILED, LOST, attempt, sweep
from fmviz.lab.values import plain

Settings = Mapping[str, Any]
Item = TypeVar("Item")
Numbered = Generator[tuple[int, Row]]
"""Places among some items, and their results, in the order of completion."""

_PAUSE = 0.5


class Pieces(Protocol):
    """Where finished pieces of work are kept by their keys."""

    def get(self, key: str) -> Any:
        """Return what is kept under a key, or None."""

    def keep(self, key: str, value: Any) -> None:
        """Keep a value in the types of JSON."""


class Stopped(Exception):  # noqa: N818
    """Raised where a reproduction is to end before all is done: on request, or where what is kept ends."""


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
    """

    def __init__(
        self,
        settings: Settings,
        n_jobs: int = 1,
        should_stop: Callable[[], bool] = never,
        pieces: Pieces | None = None,
        so_far: bool = False,
        sets: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.settings, self.n_jobs, self.sets = settings, n_jobs, sets or {}
        self.tables: dict[str, list[Row]] = {}
        self.data: dict[str, str] = {}
        self.notes: list[str] = []
        self.done, self.total = 0, 0
        self.should_stop, self._pieces, self._so_far = should_stop, pieces, so_far
        self._earlier, self._start, self._shown = 0.0, time.perf_counter(), -math.inf

    @property
    def seconds(self) -> float:
        """Wall time of this run and of those that it goes on from."""
        return self._earlier + (0.0 if self._so_far else time.perf_counter() - self._start)

    def check(self) -> None:
        """Raise `Stopped` if it is to stop."""
        if self.should_stop():
            raise Stopped

    def row(self, table: str, /, **values: Any) -> None:
        """Add a row to a table."""
        self.tables.setdefault(table, []).append(plain(values))

    def use(self, name: str, X: Any, y: np.ndarray | None = None, **facts: Any) -> None:
        """Note which data are in use: their digest, and a row of the table "data"."""
        if name not in self.data:
            self.data[name] = array_hash(X, np.empty(0) if y is None else y)
            self.row("data", data=name, n=X.shape[0], d=X.shape[1], **facts)

    def note(self, text: str) -> None:
        """Note a difference from the paper."""
        if text not in self.notes:
            self.notes.append(text)

    def due(self) -> bool:
        """Return whether enough time has passed for another look at the tables, within a piece of work."""
        now = time.perf_counter()
        if now - self._shown < _PAUSE:
            return False
        self._shown = now
        return True

    def available(self, *instead: str) -> list[str]:
        """Return the data sets of ``settings["data"]`` that are here; the stand-ins where there are none."""
        names, wanted = [], self.settings["data"]
        for name in wanted:
            reason = dataset_spec(self.sets[name]["name"]).unavailable() if name in self.sets else None
            if reason is None:
                names.append(name)
            else:
                self.note(f"{name} is not here and left out. {reason}")
        if not names:
            used = " and ".join(instead).capitalize()
            missing = ", ".join(wanted)
            self.note(f"{used} stand in for {missing}; they settle none of the paper's statements.")
        return names or list(instead)

    def each(self, cases: Iterable[Item], total: int | None = None) -> Iterator[Item]:
        """Yield pieces of work, of which there are `total`, until it is to stop."""
        todo = list(cases)
        self.total += len(todo) if total is None else total
        for case in todo:
            self.check()
            yield case

    # ----------------------------------------------------------------------------------------- pieces of work

    def once(self, parts: tuple[Any, ...], steps: Callable[[], Iterator[str]]) -> Iterator[str]:
        """Do a piece of work that adds rows, or take the rows that an earlier run has got from it.

        It depends on `parts`; ``steps()`` yields messages as it goes on. What was stopped is not kept.
        """
        key = key_of(*parts)
        known = self._recall(key)
        if known is not None:
            for table, rows in known.items():
                self.tables.setdefault(table, []).extend(rows)
        else:
            if self._so_far:
                raise Stopped
            before = {table: len(rows) for table, rows in self.tables.items()}
            yield from steps()
            self.check()
            added = {table: rows[before.get(table, 0) :] for table, rows in self.tables.items()}
            self._keep(key, {table: rows for table, rows in added.items() if rows})
        self.done += 1

    def resumed(
        self, items: Sequence[Item], key: Callable[[Item], str], work: Callable[[list[Item]], Numbered]
    ) -> Numbered:
        """Yield the results of all items: those that are kept, then those that are made now.

        ``work(items)`` yields places and results; a result that has a "failure" is not kept.
        """
        kept = {index: self._recall(key(item)) for index, item in enumerate(items)}
        missing = [index for index, known in kept.items() if known is None]
        yield from ((index, known) for index, known in kept.items() if known is not None)
        if not missing:
            return
        if self._so_far:
            raise Stopped
        with closing(work([items[index] for index in missing])) as results:
            for count, (place, value) in enumerate(results, start=1):
                index = missing[place]
                if not value.get("failure"):
                    self._keep(key(items[index]), value)
                yield index, value
                if count < len(missing):
                    self.check()

    def trials(
        self, name: str, work: Callable[[Row, Settings], Row], trials: Sequence[Row], columns: Sequence[str]
    ) -> Iterator[tuple[Row, Row]]:
        """Do the work of all trials in workers until it is to stop; a failure is a row of None that says why.

        Parameters
        ----------
        name : str
            Of the work, among what is kept.
        work : callable
            ``work(trial, settings)`` returns the columns of a row; importable by name.
        trials : sequence of dict
            In the types of JSON; their "data" names a data set in use.
        columns : sequence of str
            Those of a row that a failure has no values for.
        """
        own = partial(_attempted, work, tuple(columns), self.settings)

        def key(trial: Row) -> str:
            return key_of(name, trial, self.data.get(trial.get("data", "")))

        def run(remaining: list[Row]) -> Numbered:
            return stream(own, remaining, lambda _: _failed(columns, LOST), n_jobs=self.n_jobs)

        with closing(self.resumed(trials, key, run)) as results:
            for index, result in results:
                self.done += 1
                yield trials[index], result

    def ready(
        self,
        work: Callable[[Row, Settings], Row],
        trials: Sequence[Row],
        kind: Callable[[Row], Hashable],
        **changes: Any,
    ) -> Iterator[str]:
        """Do the work of one trial of each kind, some settings changed: workers find its kernels compiled."""
        if self.n_jobs != 1:
            yield "Readying the kernels"
            for trial in {kind(trial): trial for trial in trials}.values():
                _attempted(work, (), {**self.settings, **changes}, trial)

    def fits(self, experiments: Sequence[Experiment], seconds: float) -> Numbered:
        """Fit experiments for so many solver seconds at most.

        Yields places, and ``status`` and ``values`` of a `fmviz.lab.search.sweep.SweepRow`, or a ``failure``
        with its ``details``.
        """

        def run(remaining: list[Experiment]) -> Numbered:
            with closing(sweep(remaining, n_jobs=self.n_jobs, seconds=seconds)) as rows:
                for row in rows:
                    if row.status == FAILED:
                        yield row.index, {"failure": row.message, "details": row.details}
                    else:
                        yield row.index, {"status": row.status, "values": plain(row.values, finite=False)}

        return self.resumed(experiments, lambda fit: key_of(fit.to_dict(), seconds), run)

    def _recall(self, key: str) -> Any:
        kept = None if self._pieces is None else self._pieces.get(key)
        if kept is None:
            return None
        self._earlier = max(self._earlier, kept["seconds"])
        return kept["value"]

    def _keep(self, key: str, value: Any) -> None:
        if self._pieces is not None:
            self._pieces.keep(key, {"seconds": self.seconds, "value": value})


def _attempted(
    work: Callable[[Row, Settings], Row], columns: Sequence[str], settings: Settings, trial: Row
) -> Row:
    result, failure, _ = attempt(lambda: work(trial, settings))
    return _failed(columns, failure) if result is None else result


def _failed(columns: Sequence[str], failure: str) -> Row:
    return {**dict.fromkeys(columns), "failure": failure}


def key_of(*parts: Any) -> str:
    """Return the key of a piece from what it depends on, as JSON takes it."""
    return json.dumps(parts, sort_keys=True, ensure_ascii=False)
