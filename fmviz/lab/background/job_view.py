"""What a page reads of a job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Generic, TypeVar

from fmviz.engine.parameters import Parameters
from fmviz.lab.background.thinned import Frame, Thinned, thin
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment

__all__ = ["MOST_FRAMES", "MOST_RECORDS", "EveryNth", "JobState", "JobView"]

MOST_RECORDS = 2_000
MOST_FRAMES = 40


class JobState(StrEnum):
    """Where a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    DIVERGED = "diverged"

    @property
    def active(self) -> bool:
        """Whether the job waits for a worker or has one."""
        return self in (JobState.QUEUED, JobState.RUNNING)

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self not in (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED)


T = TypeVar("T")


class EveryNth(Generic[T]):
    """Every 2ⁱ-th epoch and the last one, at most `most` items in all, the same at every repetition."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.stride = 1
        self._kept: list[tuple[int, T]] = []
        self._last: tuple[int, T] | None = None

    def add(self, epoch: int, item: T) -> None:
        """Take in the item of an epoch later than all before."""
        self._last = (epoch, item)
        if epoch % self.stride == 0:
            self._kept.append(self._last)
        # One place is the last item's.
        while len(self._kept) >= self.most:
            self.stride *= 2
            self._kept = [kept for kept in self._kept if kept[0] % self.stride == 0]

    def items(self) -> tuple[T, ...]:
        """Return what is kept."""
        kept = [item for _, item in self._kept]
        if self._last is not None and (not self._kept or self._kept[-1][0] != self._last[0]):
            kept.append(self._last[1])
        return tuple(kept)


@dataclass(frozen=True, eq=False)
class JobView:
    """What a job looks like at one moment. Nothing in it changes any more.

    Attributes
    ----------
    id, owner : str
        The job, and the session that it belongs to.
    experiment : Experiment
        What runs.
    state : JobState
        Where it is.
    message : str
        A sentence for people.
    details : str
        The traceback of an unexpected error, else empty.
    history : tuple of dict
        Records of snapshots (`Snapshot.record`), at most `MOST_RECORDS`, the first and the last among them.
    stride : int
        The history holds every so many epochs.
    frames : tuple of Frame
        At most `MOST_FRAMES` epochs, evenly spread, the first and the last among them.
    parameters : Parameters or None
        The last parameters. Not to be written to.
    dataset : Dataset or None
        The data, once loaded.
    elapsed : float
        Seconds since the start, up to the end.
    version : int
        Grows with every change.
    converged : bool
        Whether the run ended because it met its tolerance.
    saved : bool
        Whether the run store has it, under its id.
    unsaved : str
        Why the run store does not have all of it, else empty.
    """

    id: str
    owner: str
    experiment: Experiment
    state: JobState
    message: str
    details: str
    history: tuple[dict[str, Any], ...]
    stride: int
    frames: tuple[Frame, ...]
    parameters: Parameters | None
    dataset: Dataset | None
    elapsed: float
    version: int
    converged: bool
    saved: bool = False
    unsaved: str = ""

    @cached_property
    def thinned(self) -> Thinned | None:
        """The last parameters, thinned for a picture."""
        return None if self.parameters is None else thin(self.parameters)

    @property
    def last(self) -> dict[str, Any]:
        """The last record, empty before the first."""
        return self.history[-1] if self.history else {}

    @property
    def epoch(self) -> int:
        """Epochs done."""
        return int(self.last.get("epoch", 0))

    @property
    def seconds(self) -> float:
        """Seconds spent in the solver."""
        return float(self.last.get("seconds", 0.0))
