"""A running reproduction: settings, tables and trials."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory

from fmviz.lab.background.workers import carry_out
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.failure import LOST, attempt
from fmviz.lab.papers import Row
from fmviz.lab.runs.provenance import array_hash
from fmviz.lab.values import plain

Settings = Mapping[str, Any]
Rows = Iterable[tuple[str, Row]]
"""Pairs of a table name and a row."""
Work = Callable[..., Rows]
"""``work(settings, **trial)`` runs a trial; importable by name."""


def use(name: str, X: Any, y: np.ndarray | None = None, **facts: Any) -> tuple[str, Row]:
    """Return the row of the table "data" for a data set, with its digest."""
    digest = array_hash(X, np.empty(0) if y is None else y)
    return "data", {"data": name, "n": X.shape[0], "d": X.shape[1], **facts, "digest": digest}


class Reproduction:
    """A running reproduction of a figure or table.

    Parameters
    ----------
    settings : mapping
        The settings of the artefact, including those of the budget.
    n_jobs : int
        Worker processes; -1 for one per core.
    folder : Path, optional
        The folder of `joblib.Memory` for trials.
    sets : mapping
        The data sets of the paper.

    Attributes
    ----------
    tables : dict of str to list of dict
        The rows so far.
    data : dict of str to str
        The digests of the data sets in use.
    notes : list of str
        Further differences from the paper, found during the run.
    done, total : int
        Numbers of trials.
    """

    def __init__(
        self,
        settings: Settings,
        n_jobs: int = 1,
        folder: Path | None = None,
        sets: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.settings, self.n_jobs, self.sets = settings, n_jobs, sets or {}
        self.tables: dict[str, list[Row]] = {}
        self.data: dict[str, str] = {}
        self.notes: list[str] = []
        self.done, self.total = 0, 0
        self._kept = Memory(folder, verbose=0).cache(_keep, ignore=["value"])
        self._earlier, self._start = 0.0, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time of this run and of the earlier runs it continues."""
        return self._earlier + time.perf_counter() - self._start

    def note(self, text: str) -> None:
        """Note a difference from the paper."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, *rows: tuple[str, Row]) -> None:
        """Add pairs of a table name and a row; the table "data" has one row per data set."""
        for table, row in rows:
            values = plain(row)
            if table == "data":
                name, digest = row["data"], values.pop("digest")
                if self.data.get(name, digest) != digest:
                    self.note(f"{name} differed between trials: repeat the run.")
                if name in self.data:
                    continue
                self.data[name] = digest
            self.tables.setdefault(table, []).append(values)

    def available(self, *instead: str) -> list[str]:
        """Return the available data sets of ``settings["data"]``, or the substitutes if there are none."""
        wanted = self.settings["data"]
        known = [name for name in wanted if name in self.sets]
        reasons = {name: dataset_spec(self.sets[name]["name"]).unavailable() for name in known}
        names = [name for name in wanted if reasons.get(name) is None]
        for name in (name for name in wanted if name not in names):
            self.note(f"{name} is unavailable and was omitted. {reasons[name]}")
        if not names:
            used = " and ".join(instead).capitalize()
            missing = ", ".join(wanted)
            self.note(f"{used} replace {missing}; they settle none of the paper's statements.")
        return names or list(instead)

    def fill(self, work: Work, trials: Sequence[Row], *, alone: bool = False) -> Iterator[str]:
        """Add the rows of all trials, stored ones first, and yield a description after each.

        Trials that measure time run `alone`, sequentially in this process; others run in workers. A failed
        trial becomes a row of the table "failures" and is repeated by the next run.
        """
        self.total += len(trials)
        missing = []
        for trial in trials:
            key = json.dumps([work.__name__, trial], sort_keys=True, ensure_ascii=False)
            if self._kept.check_call_in_cache(key, None):
                seconds, rows = self._kept(key, None)
                self._earlier = max(self._earlier, seconds)
                yield self._finished(trial, rows)
            else:
                missing.append((trial, key))
        chains = [partial(_attempted, work, self.settings, trial) for trial, _ in missing]
        n_jobs = 1 if alone else self.n_jobs
        with closing(carry_out(chains, n_jobs=n_jobs, lost=lambda _: (None, LOST, ""))) as results:
            for place, (rows, failure, _) in results:
                trial, key = missing[place]
                if rows is None:
                    rows = [("failures", {**trial, "message": failure})]
                    self.note("Failed fits are omitted: see the table of failures.")
                else:
                    self._kept.call(key, (self.seconds, rows))
                yield self._finished(trial, rows)

    def _finished(self, trial: Row, rows: Iterable[tuple[str, Row]]) -> str:
        self.add(*rows)
        self.done += 1
        return ", ".join(value if isinstance(value, str) else f"{k} {value}" for k, value in trial.items())


def _attempted(
    work: Work, settings: Settings, trial: Row, should_stop: Callable[[], bool]
) -> Iterator[tuple[Any, str, str]]:
    yield attempt(lambda: plain(list(work(settings, **trial))))


def _keep(key: str, value: Any) -> Any:
    """Return the value; joblib ignores it and caches it by the key."""
    return value
