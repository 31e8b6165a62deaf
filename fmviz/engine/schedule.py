"""Schedules of regularization strengths that change during a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..typography import typeset
from .errors import finite_number, one_of, whole_number

__all__ = ["STRENGTHS", "Change", "Schedule", "changes_of", "strengths_in_words"]

STRENGTHS = ("lambda_sparse", "lambda_p", "lambda_w")
"""The strengths that can change."""


def strengths_in_words(values: Mapping[str, Any]) -> str:
    """Format strengths, one for each output if there are several, with their symbols."""
    numbers = {name: " ".join(typeset(value) for value in np.ravel(values[name])) for name in STRENGTHS}
    return "λ = {lambda_sparse}, λ_p = {lambda_p}, λ_w = {lambda_w}".format(**numbers)


class Change(NamedTuple):
    """A change of one strength between two epochs.

    Attributes
    ----------
    epoch : int
        The number of epochs after which it takes effect; epochs from ``epoch + 1`` on use the new value.
    name : str
        One of `STRENGTHS`.
    value : float
        The new value, at least 0.
    """

    epoch: int
    name: str
    value: float


def changes_of(given: Iterable[Any]) -> tuple[Change, ...]:
    """Validate changes and sort them by epoch; of two at the same epoch, the later one wins.

    Raises
    ------
    ValueError
        If one is not (epoch, name, value), or out of range.
    """
    values: dict[tuple[int, str], float] = {}
    for item in given:
        try:
            epoch, name, value = item
        except (TypeError, ValueError):
            raise ValueError(
                f"{item!r} is not a change of a strength; pass the epoch, the name and the new value, "
                'such as (50, "lambda_sparse", 0.1).'
            ) from None
        place = whole_number("epoch of a change", epoch, 0), one_of("name of a change", name, STRENGTHS)
        values[place] = finite_number(name, value, 0)
    order = sorted(values, key=lambda place: (place[0], STRENGTHS.index(place[1])))
    return tuple(Change(*place, values[place]) for place in order)


class Schedule:
    """The changes of a run; more may be added while it runs.

    Parameters
    ----------
    changes : iterable of (epoch, name, value)
        See `changes_of`.
    """

    def __init__(self, changes: Iterable[Any] = ()) -> None:
        self.changes = changes_of(changes)

    def add(self, changes: Iterable[Any]) -> None:
        """Add changes, replacing those of the same strength at the same epoch."""
        self.changes = changes_of((*self.changes, *changes))

    def after(self, epoch: int) -> dict[str, float]:
        """Return the changed strengths after this many epochs."""
        return {change.name: change.value for change in self.changes if change.epoch <= epoch}

    def pending(self, epoch: int, last: int) -> bool:
        """Return whether a change takes effect at or after `epoch`, in a run of `last` epochs."""
        return any(epoch <= change.epoch < last for change in self.changes)
