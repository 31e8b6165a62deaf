"""Execution of a run with continuous saving to the store."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any

from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.errors import StoppedError
from fmviz.engine.snapshot import Reason, Snapshot, Status
from fmviz.engine.stopping import epochs_in_words
from fmviz.lab.experiment import Experiment
from fmviz.lab.failure import in_words
from fmviz.lab.runner import Run
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.store import RUNNING, AtWorkError, Growth, RunStore, StoredRun, StoreError, new_id

FLUSH_SECONDS = 1.0
CHECKPOINT_SECONDS = 2.0


class Recorder:
    """Executes a run and saves its trace about once a second, a checkpoint every few seconds, and its end.

    A run is stored only after its first epoch, or if it fails; `open_store` is called on the first write, and
    without it nothing is stored. Errors of the store never end a run: `trouble` has the message, and the next
    write includes everything missing. A `stored` run continues from `resume`: its last checkpoint or, with
    other strengths, its end. Thread-safe.
    """

    def __init__(
        self,
        open_store: Callable[[], RunStore] | None,
        experiment: Experiment,
        origin: str = "python",
        stored: StoredRun | None = None,
    ) -> None:
        self._open_store, self._origin, self.stored = open_store, origin, stored is not None
        self.experiment = experiment
        self.id = new_id() if stored is None else stored.id
        self.trace: list[dict[str, Any]] = []
        self.resume: Checkpoint | None = None
        self.trouble = ""
        self._updated = None if stored is None else stored.updated
        if stored is not None and open_store is not None:
            self.trace, self.resume = open_store().claim(stored.id)
        self._lock = threading.RLock()
        self._pending: dict[str, Any] = {}
        self._records: list[dict[str, Any]] = []
        self._objectives = [record["objective"] for record in self.trace]
        self._reached = self.trace[-1]["epoch"] if self.trace else -1
        self._last: Snapshot | None = None
        self._flushed = self._kept = time.monotonic()

    def snapshots(self, prepare: Callable[[], Run], should_stop: Callable[[], bool]) -> Iterator[Snapshot]:
        """Yield the snapshots of a run after recording; the last one has the status."""
        try:
            run = prepare()
            self._pending["data_hash"] = self._open_store and data_hash(run.dataset)
            checkpoints = {"resume": self.resume, "keep": self._keep, "leave": self._leave}
            with closing(run.snapshots(should_stop, **checkpoints)) as snapshots:  # type: ignore[type-var]
                for snapshot in snapshots:
                    if snapshot.status is not None:
                        break
                    self._add(snapshot)
                    yield snapshot
                    if should_stop():
                        words = f"Stopped on request after {epochs_in_words(snapshot.epoch)}."
                        snapshot = replace(snapshot, status=Status(Reason.STOPPED, words))
                        break
            # Closing sets `resume`.
            self._add(snapshot)
            assert snapshot.status is not None
            self.note(snapshot.status.reason, snapshot.status.message)
        except Exception as error:
            if not isinstance(error, StoppedError):
                self.note("failed", *in_words(error))
            raise
        yield snapshot

    def amend(self, experiment: Experiment) -> None:
        """Set changed settings, written with the next records."""
        with self._lock:
            self.experiment = self._pending["experiment"] = experiment

    def note(self, status: str, message: str, details: str = "") -> None:
        """Save the current state of a run after an epoch, an end or a failure."""
        with self._lock:
            last = self._last
            if self.stored or status == "failed" or (last is not None and (last.epoch or last.status)):
                self._write(status, message, details, last and last.parameters)

    def _keep(self, take: Callable[[], Checkpoint]) -> None:
        if time.monotonic() - self._kept >= CHECKPOINT_SECONDS:
            with self._lock:
                self._pending["checkpoint"] = take()
            self._kept = time.monotonic()

    def _leave(self, _: object, take: Callable[[], Checkpoint]) -> None:
        with self._lock:
            self.resume = self._pending["checkpoint"] = take()

    def _add(self, snapshot: Snapshot) -> None:
        with self._lock:
            if snapshot.epoch > self._reached:
                self._reached = snapshot.epoch
                self._records.append(snapshot.record())
                self._objectives.append(snapshot.objective)
            self._last = snapshot
            if snapshot.epoch and time.monotonic() - self._flushed >= FLUSH_SECONDS:
                kept = "checkpoint" in self._pending
                self._write(RUNNING, "Training.", parameters=snapshot.parameters if kept else None)

    def own(self) -> None:
        """Take ownership of a stored ended run before its first change.

        Raises
        ------
        AtWorkError
            If another process has changed it since it was opened.
        """
        if self.stored:
            self._with_store(lambda store: store.own(self.id, self._updated))

    def _write(self, status: str, message: str, details: str = "", parameters: Any = None) -> None:
        self._flushed = time.monotonic()

        def write(store: RunStore) -> None:
            # The first write is one transaction: if the process is killed, a run is stored completely or not
            # at all.
            with nullcontext() if self.stored else store.database.write():
                if not self.stored:
                    store.begin(self.experiment, run=self.id, origin=self._origin)
                store.grow(
                    self.id,
                    Growth(
                        self._records,
                        self._objectives,
                        status=status,
                        message=message,
                        details=details,
                        parameters=parameters,
                        **self._pending,
                    ),
                )
            self.stored = True
            self.trouble, self._records, self._pending = "", [], {}

        try:
            self._with_store(write)
        except AtWorkError as error:
            # The run now belongs to that process.
            self.trouble, self._open_store = str(error), None

    def _with_store(self, action: Callable[[RunStore], None]) -> None:
        if self._open_store is None:
            return
        try:
            action(self._open_store())
        except StoreError as error:
            self.trouble = str(error)
        except (sqlite3.Error, OSError) as error:
            self.trouble = (
                f"This run could not be saved ({error}). Free disk space, or choose another store with "
                "FMVIZ_STORE."
            )
