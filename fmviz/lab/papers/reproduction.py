"""A reproduction while it runs: its settings, the tables that it fills, and the trials that it makes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory

from fmviz.engine.drive import never
from fmviz.lab.background.workers import stream
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.papers.judging import Row
from fmviz.lab.runs.provenance import array_hash
from fmviz.lab.search.sweep import LOST, attempt
from fmviz.lab.values import plain

Settings = Mapping[str, Any]
Rows = Iterable[tuple[str, Row] | None]
"""Rows, each after the name of its table; None among them is the time to ask whether to stop."""
Work = Callable[..., Rows]
"""``work(settings, **trial)`` makes a trial; importable by name."""


class Stopped(Exception):  # noqa: N818
    """Raised where a reproduction is to end before all is done."""


def use(name: str, X: Any, y: np.ndarray | None = None, **facts: Any) -> tuple[str, Row]:
    """Return the row of the table "data" on data in use, with their digest."""
    digest = array_hash(X, np.empty(0) if y is None else y)
    return "data", {"data": name, "n": X.shape[0], "d": X.shape[1], **facts, "digest": digest}


class Reproduction:
    """A figure or table while it is reproduced: settings to read, tables to fill.

    Parameters
    ----------
    settings : mapping
        The artefact's settings, those of the budget included.
    n_jobs : int
        Worker processes; -1 for one a core.
    should_stop : callable
        Asked before and after every trial, and within those that are made alone.
    folder : Path, optional
        Where `joblib.Memory` keeps trials.
    sets : mapping
        The data sets of the paper.

    Attributes
    ----------
    tables : dict of str to list of dict
        The rows so far.
    data : dict of str to str
        The digests of the data sets in use.
    notes : list of str
        What else differs from the paper, noticed on the way.
    done, total : int
        Trials.
    """

    def __init__(
        self,
        settings: Settings,
        n_jobs: int = 1,
        should_stop: Callable[[], bool] = never,
        folder: Path | None = None,
        sets: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.settings, self.n_jobs, self.should_stop, self.sets = settings, n_jobs, should_stop, sets or {}
        self.tables: dict[str, list[Row]] = {}
        self.data: dict[str, str] = {}
        self.notes: list[str] = []
        self.done, self.total = 0, 0
        self._kept = Memory(folder, verbose=0).cache(_keep, ignore=["value"])
        self._earlier, self._start = 0.0, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time of this run and of those that it goes on from."""
        return self._earlier + time.perf_counter() - self._start

    def check(self) -> None:
        """Raise `Stopped` if it is to stop."""
        if self.should_stop():
            raise Stopped

    def note(self, text: str) -> None:
        """Note a difference from the paper."""
        if text not in self.notes:
            self.notes.append(text)

    def row(self, table: str, /, **values: Any) -> None:
        """Add a row to a table; the table "data" has one row a data set."""
        if digest := values.pop("digest", None):
            if values["data"] in self.data:
                return
            self.data[values["data"]] = digest
        self.tables.setdefault(table, []).append(plain(values))

    def add(self, *rows: tuple[str, Row]) -> None:
        """Add rows, each after the name of its table."""
        for table, row in rows:
            self.row(table, **row)

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

    def results(
        self, work: Work, trials: Sequence[Row], *, alone: bool = False
    ) -> Iterator[tuple[Row, list[tuple[str, Row]]]]:
        """Yield trials with their rows: those that are kept, then those that are made now.

        Trials that take the time are made `alone`, one after the other in this process; others in workers,
        where one that fails becomes a row of the table "failures".
        """
        keys = [json.dumps([work.__name__, trial], sort_keys=True, ensure_ascii=False) for trial in trials]
        missing = [i for i, key in enumerate(keys) if not self._kept.check_call_in_cache(key, None)]
        for i in sorted(set(range(len(trials))) - set(missing)):
            seconds, rows = self._kept(keys[i], None)
            self._earlier = max(self._earlier, seconds)
            self.done += 1
            yield trials[i], rows
        make = partial(self._alone, work) if alone else partial(self._in_workers, work)
        if missing:
            self.check()
        for count, (place, rows) in enumerate(make([trials[i] for i in missing]), start=1):
            self._kept.call(keys[missing[place]], (self.seconds, rows))
            self.done += 1
            yield trials[missing[place]], rows
            if count < len(missing):
                self.check()

    def _alone(self, work: Work, trials: Sequence[Row]) -> Iterator[tuple[int, list[tuple[str, Row]]]]:
        for place, trial in enumerate(trials):
            rows = []
            for item in work(self.settings, **trial):
                self.check()
                rows += [item] if item else []
            yield place, plain(rows)

    def _in_workers(self, work: Work, trials: Sequence[Row]) -> Iterator[tuple[int, list[tuple[str, Row]]]]:
        attempted = partial(_attempted, work, self.settings)
        for place, (rows, failure, _) in stream(
            attempted, trials, lambda _: (None, LOST, ""), n_jobs=self.n_jobs
        ):
            if rows is not None:
                yield place, rows
                continue
            self.done += 1
            self.row("failures", **trials[place], message=failure)
            self.note("Fits that failed are left out: see the table of failures.")

    def fill(self, work: Work, trials: Sequence[Row], *, alone: bool = False) -> Iterator[str]:
        """Add the rows of all trials, and yield after each what it was."""
        for trial, rows in self.results(work, trials, alone=alone):
            self.add(*rows)
            yield ", ".join(v if isinstance(v, str) else f"{k} {v}" for k, v in trial.items())


def _attempted(work: Work, settings: Settings, trial: Row) -> tuple[Any, str, str]:
    return attempt(lambda: plain([item for item in work(settings, **trial) if item]))


def _keep(key: str, value: Any) -> Any:
    """Return the value; joblib, which ignores it, remembers it by the key."""
    return value
