"""A row of the run store as a dataclass, the updates of a running one, and liveness of its process."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fmviz.checked import Count, NonNegative, Time, checked
from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.parameters import Parameters
from fmviz.engine.schedule import strengths_in_words
from fmviz.engine.snapshot import Snapshot, html_table
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.runs import found_caps
from fmviz.lab.store.packing import Record

RUNNING = "running"
PAUSED = "paused"
INTERRUPTED = "interrupted"
"""The status of a running or paused run whose process has ended."""
BROKEN = "broken"
"""The status of a run whose row in the store cannot be read."""

COLUMNS = (
    "id, created, updated, status, message, details, origin, title, experiment, digest, data_hash, versions, "
    "epoch, seconds, last, spark, owner, sweep"
)

# A run of another computer, or on Windows of another process, counts as interrupted after this time without
# updates, in seconds.
SILENT_SECONDS = 900.0


@dataclass(frozen=True, eq=False)
class Growth:
    """An update of a stored run.

    Attributes
    ----------
    records : sequence of mapping
        New records of snapshots, in order.
    objectives : sequence of float
        The objective of all epochs, for the sparkline.
    status, message, details : str
        The current status.
    parameters : Parameters, optional
        New parameters.
    checkpoint : Checkpoint, optional
        A new checkpoint.
    data_hash : str, optional
        The hash of the data, once known.
    experiment : Experiment, optional
        New settings after a change during the run.
    """

    records: Sequence[Record] = ()
    objectives: Sequence[float] = ()
    status: str = RUNNING
    message: str = "Training."
    details: str = ""
    parameters: Parameters | None = None
    checkpoint: Checkpoint | None = None
    data_hash: str | None = None
    experiment: Experiment | None = None


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A stored run without its arrays.

    Attributes
    ----------
    id : str
        The id.
    created, updated : float
        Seconds since the epoch.
    status : str
        "running", "paused", "interrupted", "broken", a `fmviz.engine.snapshot.Reason`, or "failed".
    message, details : str
        The status as a sentence, and the traceback of a bug.
    origin : str
        The origin: "page", "command", "sweep" or "python".
    title : str
        The user's title, or empty.
    settings : mapping
        The experiment as stored, see `Experiment.to_dict`.
    digest : str
        `Experiment.digest`, shared by runs with equal settings.
    data_hash : str
        See `fmviz.lab.runs.provenance.data_hash`; empty until the data are loaded.
    versions : mapping of str to str
        See `fmviz.lab.runs.provenance.versions`.
    epoch : int
        The number of finished epochs.
    seconds : float
        Solver seconds.
    last : mapping
        The record of the last snapshot.
    spark : list of float
        At most 48 values of the objective during the run.
    sweep : str or None
        The id of its sweep.
    """

    id: str
    created: Time = 0.0
    updated: Time = 0.0
    status: str = BROKEN
    message: str = ""
    details: str = ""
    origin: str = ""
    title: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    digest: str = ""
    data_hash: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    epoch: Count = 0
    seconds: NonNegative = 0.0
    last: dict[str, Count | float] = field(default_factory=dict)
    spark: list[float] = field(default_factory=list)
    sweep: str | None = None

    @cached_property
    def experiment(self) -> Experiment:
        """The settings; ValueError if they belong to another version of fmviz."""
        if self.status == BROKEN:
            raise ValueError(self.message)
        try:
            experiment = Experiment.from_dict(self.settings)
            found_caps.remember(experiment, self.last)
            return experiment
        except ValueError as error:
            raise ValueError(
                f"The settings of run {self.id} belong to another version of fmviz "
                f"({self.versions.get('fmviz', 'unknown')}): {error}"
            ) from error

    def check_data(self, parameters: Parameters, dataset: Dataset) -> None:
        """Raise ValueError if the parameters do not fit the current data set."""
        d, m = parameters.w.shape[-1], self.experiment.model.n_outputs_of(parameters)
        for number, expected, noun in (
            (d, dataset.X.shape[1], "features"),
            (m, max(1, len(dataset.outputs)), "outputs"),
        ):
            if number != expected:
                raise ValueError(
                    f"Run {self.title or self.id} has {number:,} {noun}, but its data set now has "
                    f"{expected:,}. Train it again."
                )

    @property
    def ended(self) -> bool:
        """Whether the run is neither running nor paused."""
        return self.status not in (RUNNING, PAUSED)

    @property
    def resumable(self) -> bool:
        """Whether it was interrupted."""
        return self.status == INTERRUPTED

    def _repr_html_(self) -> str:
        given = self.experiment
        strengths = strengths_in_words(given.strengths(self.epoch - 1))
        last = Snapshot.of_record(self.last, Parameters()).described() if self.last else {}
        return html_table(
            {
                "Run": self.title or self.id,
                "Data": given.dataset.name,
                "Model": f"{given.model.label}, rank {given.rank}",
                "Regularizer": f"{given.regularizer.label}; {strengths}",
                "Solver": given.solver if isinstance(given.solver, str) else given.solver.label,
                **last,
                "Status": self.message,
            }
        )

    @classmethod
    def of(cls, row: Any) -> StoredRun:
        """Return the run of a row of the table, with the status "broken" if it is unreadable."""
        values = dict(row)
        owner = values.pop("owner")
        try:
            for name in ("last", "spark", "versions", "experiment"):
                values[name] = json.loads(values[name])
            run = checked(cls, {"settings": values.pop("experiment"), **values})
        except (TypeError, ValueError) as error:
            return cls.broken(str(values["id"]), str(error))
        if run.ended or _is_alive(str(owner), run.updated):
            return run
        message = f"Interrupted after {run.epoch:,} epochs: the process of this run has ended. Resume it."
        return replace(run, status=INTERRUPTED, message=message)

    @classmethod
    def broken(cls, run: str, error: str) -> StoredRun:
        """Return a placeholder for an unreadable run."""
        return cls(
            run,
            title="Damaged record",
            message=f"This record of the run store is damaged ({error}). `fmviz runs salvage NEW` saves all "
            "other runs to a new store.",
        )


def _start_ticks(pid: int) -> str:
    """Return the start time of a process in clock ticks, "" if unknown, "ended" for a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        # The second field, the program name in parentheses, may contain spaces.
        fields = text.rpartition(")")[2].split()
        return "ended" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""


@cache
def _owner_of(pid: int) -> str:
    return f"{socket.gethostname()}/{pid}/{_start_ticks(pid)}"


def this_process() -> str:
    """Return a unique name of this process."""
    return _owner_of(os.getpid())


def _is_alive(owner: str, updated: float) -> bool:
    """Return whether the process `owner`, see `this_process`, last updated at `updated`, is alive."""
    host, pid, ticks = ("", "", *owner.rsplit("/", 2))[-3:]
    if not pid.isdecimal():
        return False
    # On Windows, os.kill would end the process.
    if host != socket.gethostname() or sys.platform == "win32":
        # Times in the future are invalid.
        return owner == this_process() or abs(time.time() - updated) < SILENT_SECONDS
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return _start_ticks(int(pid)) == ticks
