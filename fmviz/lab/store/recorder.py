"""Write a run to the store during training."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any

from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.store import PAUSED, RUNNING, Growth, RunStore, StoreError, new_id

FLUSH_SECONDS = 1.0
CHECKPOINT_SECONDS = 2.0


class Recorder:
    """Writes a run: its trace about once a second, a checkpoint every few seconds, and its end.

    A run is stored only after its first epoch, or if it fails. Errors of the store never end a run: `trouble`
    holds the message, and the next write includes everything missing. Thread-safe.

    Parameters
    ----------
    open_store : callable
        Returns the store; called on the first write.
    experiment : Experiment
        The settings of the run.
    origin : str
        Where it was started, see `fmviz.lab.store.StoredRun`.
    sweep : str, optional
        The id of its sweep.
    """

    def __init__(
        self,
        open_store: Callable[[], RunStore],
        experiment: Experiment,
        *,
        origin: str = "python",
        sweep: str | None = None,
    ) -> None:
        self._open_store = open_store
        self.experiment = experiment
        self._labels: dict[str, Any] = {"origin": origin, "sweep": sweep}
        self._lock = threading.RLock()
        self._records: list[dict[str, Any]] = []
        self._objectives: list[float] = []
        self._pending: Checkpoint | None = None
        self._last: Snapshot | None = None
        self._hash: str | None = None
        self._flushed = self._kept = time.monotonic()
        self.run = new_id()
        self.stored = False
        self._amended = False
        self.trace: list[dict[str, Any]] = []
        self.resume: Checkpoint | None = None
        self.trouble = ""

    @classmethod
    def resumed(cls, store: RunStore, run: str) -> Recorder:
        """Return the recorder of an interrupted run, with its `trace`, and its checkpoint as `resume`.

        Raises
        ------
        ValueError
            If the run cannot be resumed, see `RunStore.claim`.
        """
        experiment = store.get(run).experiment
        stored, trace, checkpoint = store.claim(run)
        recorder = cls(lambda: store, experiment, origin=stored.origin, sweep=stored.sweep)
        recorder.run, recorder.stored = stored.id, True
        recorder.trace, recorder.resume = trace, checkpoint
        recorder._objectives = [record["objective"] for record in trace]
        return recorder

    def prepared(self, dataset: Dataset) -> None:
        """Set the data of the run."""
        self._hash = data_hash(dataset)

    def amend(self, experiment: Experiment) -> None:
        """Set changed settings, to be written with the next records."""
        with self._lock:
            self.experiment, self._amended = experiment, True

    def keep(self, take: Callable[[], Checkpoint]) -> None:
        """Take a checkpoint if the last one is old enough; for `fmviz.engine.drive.iterate`."""
        if time.monotonic() - self._kept >= CHECKPOINT_SECONDS:
            with self._lock:
                self._pending = take()
            self._kept = time.monotonic()

    def add(self, snapshot: Snapshot) -> None:
        """Add a snapshot, and write to the store if the last write is old enough."""
        with self._lock:
            before = self._last or self.resume
            if before is None or snapshot.epoch > before.epoch:
                self._records.append(snapshot.record())
                self._objectives.append(snapshot.objective)
            self._last = snapshot
            if snapshot.epoch and time.monotonic() - self._flushed >= FLUSH_SECONDS:
                self._write(RUNNING, "Training.")

    def pause(self, message: str) -> None:
        """Write the state of a paused run."""
        with self._lock:
            if self._last is not None and self._last.epoch:
                self._write(PAUSED, message, thorough=True)

    def end(self, status: str, message: str, details: str = "") -> None:
        """Write the end of the run."""
        with self._lock:
            if status == "failed" or (self._last is not None and (self._last.epoch or self._last.status)):
                self._write(status, message, details, thorough=True)

    def _write(self, status: str, message: str, details: str = "", thorough: bool = False) -> None:
        self._flushed = time.monotonic()
        last, records, checkpoint = self._last, self._records, self._pending
        try:
            store = self._open_store()
            if not self.stored:
                store.begin(self.experiment, run=self.run, **self._labels)
                self.stored = True
            store.grow(
                self.run,
                Growth(
                    records,
                    objectives=self._objectives,
                    checkpoint=checkpoint,
                    parameters=last.parameters if last is not None and (thorough or checkpoint) else None,
                    status=status,
                    message=message,
                    details=details,
                    data_hash=self._hash,
                    experiment=self.experiment if self._amended else None,
                ),
            )
        except (StoreError, sqlite3.Error, OSError) as error:
            self.trouble = (
                str(error)
                if isinstance(error, StoreError)
                else f"This run could not be saved ({error}). Make room on the disk, or name another store "
                "with FMVIZ_STORE."
            )
            return
        self.trouble = ""
        self._records, self._pending, self._amended = [], None, False
