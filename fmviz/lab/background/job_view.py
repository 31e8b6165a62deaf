"""What a page reads of a job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.lab.background.task import TaskView
from fmviz.lab.background.thinned import Frame, thin
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment

__all__ = ["MOST_FRAMES", "MOST_RECORDS", "EveryNth", "JobView"]

MOST_RECORDS = 2_000
MOST_FRAMES = 40


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


@dataclass(frozen=True, eq=False, kw_only=True)
class JobView(TaskView):
    """What a training run looks like at one moment. Nothing in it changes any more.

    Attributes
    ----------
    items : tuple of dict
        Records of snapshots (`Snapshot.record`), at most `MOST_RECORDS`, the first and the last among them.
    experiment : Experiment
        What runs.
    stride : int
        The items are every so many epochs.
    frames : tuple of Frame
        At most `MOST_FRAMES` epochs, evenly spread, the first and the last among them.
    parameters : Parameters or None
        The last parameters. Not to be written to.
    dataset : Dataset or None
        The data, once loaded.
    converged : bool
        Whether the run ended because it met its tolerance.
    saved : bool
        Whether the run store has it, under its id.
    unsaved : str
        Why the run store does not have all of it, else empty.
    output : int or None
        Which of several outputs its parameters, its data and the pictures of its frames are of; None where
        they are of all.
    model : Model or None
        What its parameters are of, where that is not the model of the experiment: one of several outputs.
    """

    experiment: Experiment
    stride: int
    frames: tuple[Frame, ...]
    parameters: Parameters | None
    dataset: Dataset | None
    converged: bool
    saved: bool
    unsaved: str
    output: int | None = None
    model: Model | None = None

    @property
    def machine(self) -> Model:
        """The model that its parameters are of."""
        return self.model or self.experiment.machine

    @property
    def n_outputs(self) -> int:
        """How many outputs there are."""
        return 1 if self.parameters is None else self.machine.n_outputs_of(self.parameters)

    def of_output(self, c: int) -> JobView:
        """Return the view of one of several outputs; itself where there is one only."""
        if self.parameters is None:
            return self
        model, parameters = self.machine.of_output(self.parameters, c)
        if parameters is self.parameters:
            return self
        return replace(
            self,
            model=model,
            parameters=parameters,
            dataset=None if self.dataset is None else self.dataset.of_output(c),
            frames=tuple(frame.of_output(c) for frame in self.frames),
            output=c if self.n_outputs > 1 else None,
        )

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """The records of its epochs."""
        return self.items

    @cached_property
    def thinned(self) -> Any:
        """The last parameters, thinned for a picture, or None."""
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
