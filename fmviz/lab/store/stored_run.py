"""A row of the run store as a dataclass, the updates of a running one, and liveness of its process."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.parameters import Parameters
from fmviz.lab.experiment import Experiment
from fmviz.lab.runs import found_caps
from fmviz.lab.store.packing import Record

RUNNING = "running"
PAUSED = "paused"
INTERRUPTED = "interrupted"
"""What a running or paused run becomes when the process that made it is gone."""

COLUMNS = (
    "id, created, updated, status, message, details, origin, title, experiment, digest, data_hash, versions, "
    "epoch, seconds, last, spark, owner, sweep"
)

# A run of another machine counts as abandoned when it was not updated for so long.
SILENT_SECONDS = 900.0


@dataclass(frozen=True, eq=False)
class Growth:
    """What a run has come to since it was last written.

    Attributes
    ----------
    records : sequence of mapping
        Records of snapshots, in order, later than all that are stored.
    objectives : sequence of float
        The objective along the whole run, for its sparkline.
    status, message, details : str
        Where the run is.
    parameters : Parameters, optional
        Take the place of those before.
    checkpoint : Checkpoint, optional
        Takes the place of the one before.
    data_hash : str, optional
        The hash of its data, once known.
    experiment : Experiment, optional
        Takes the place of the one before, after a change on the way.
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
    """A run as the store tells it, without its arrays.

    Attributes
    ----------
    id : str
        Its name in the store.
    created, updated : float
        Seconds since the epoch.
    status : str
        "running", "paused", "interrupted", a `fmviz.engine.snapshot.Reason`, or "failed".
    message, details : str
        The same in a sentence; the traceback of a defect.
    origin : str
        Where it was started: "page", "command", "sweep", "python".
    title : str
        What somebody called it, or empty.
    settings : mapping
        The experiment as stored, see `Experiment.to_dict`.
    digest : str
        `Experiment.digest`: runs with equal settings share it.
    data_hash : str
        See `fmviz.lab.runs.provenance.data_hash`; empty while the data were not loaded.
    versions : mapping of str to str
        See `fmviz.lab.runs.provenance.versions`.
    epoch : int
        Epochs done.
    seconds : float
        Solver seconds.
    last : mapping
        The record of the last snapshot.
    spark : list of float
        The objective along the run, at most 48 values.
    sweep : str or None
        The sweep that it belongs to.
    """

    id: str
    created: float
    updated: float
    status: str
    message: str
    details: str
    origin: str
    title: str
    settings: Mapping[str, Any]
    digest: str
    data_hash: str
    versions: Mapping[str, str]
    epoch: int
    seconds: float
    last: Record
    spark: list[float]
    sweep: str | None

    @cached_property
    def experiment(self) -> Experiment:
        """The settings.

        Raises ValueError, with a sentence, where this version of fmviz does not know them.
        """
        try:
            experiment = Experiment.from_dict(self.settings)
            found_caps.remember(experiment, self.last)
            return experiment
        except ValueError as error:
            raise ValueError(
                f"The settings of run {self.id} are not those of this fmviz: {error} It was made by fmviz "
                f"{self.versions.get('fmviz', 'of an unknown version')}."
            ) from error

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self.status not in (RUNNING, PAUSED)

    @property
    def resumable(self) -> bool:
        """Whether it was cut off and can go on."""
        return self.status == INTERRUPTED

    @classmethod
    def of(cls, row: Any) -> StoredRun:
        """Return the run of a row of the table."""
        values = dict(row)
        owner = values.pop("owner")
        for name in ("last", "spark", "versions"):
            values[name] = json.loads(values[name])
        values["settings"] = json.loads(values.pop("experiment"))
        if values["status"] in (RUNNING, PAUSED) and not _is_alive(owner, values["updated"]):
            values["status"] = INTERRUPTED
            values["message"] = (
                f"Cut off after {values['epoch']:,} epochs: the process that made this run has ended. Resume "
                "it to go on."
            )
        return cls(**values)


def _start_ticks(pid: int) -> str:
    """Return when a process started, in the system's own ticks; empty where that is not known.

    A process that has ended but is still listed, since nobody has asked for its end, has another answer.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        # The second field, the program's name in parentheses, may hold spaces.
        fields = text.rpartition(")")[2].split()
        return "ended" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""


@cache
def _owner_of(pid: int) -> str:
    return f"{socket.gethostname()}/{pid}/{_start_ticks(pid)}"


def this_process() -> str:
    """Return the name of this process, which no other one has had or will have."""
    return _owner_of(os.getpid())


def _is_alive(owner: str, updated: float) -> bool:
    """Return whether the process that wrote a run last, at the time `updated`, may still write it.

    Parameters
    ----------
    owner : str
        What `this_process` returned there.
    updated : float
        Seconds since the epoch.
    """
    host, pid, ticks = ("", "", *owner.rsplit("/", 2))[-3:]
    if not pid.isdecimal():
        return False
    if host != socket.gethostname():
        # Neither does one that wrote in a time to come.
        return abs(time.time() - updated) < SILENT_SECONDS
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return _start_ticks(int(pid)) == ticks
