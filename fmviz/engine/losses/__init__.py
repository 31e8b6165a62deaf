"""The registry of losses: one file and one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..params import bind
from .base import Loss
from .huber import Huber
from .logistic import Logistic
from .scalar import ScalarLoss, evaluate
from .squared import Squared
from .squared_hinge import SquaredHinge

__all__ = [
    "LOSSES",
    "Huber",
    "Logistic",
    "Loss",
    "ScalarLoss",
    "Squared",
    "SquaredHinge",
    "evaluate",
    "get_loss",
]

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Squared(), Logistic(), SquaredHinge(), Huber())}


def get_loss(given: str | Loss, settings: Mapping[str, Any] | None = None) -> Loss:
    """Return a loss: the given one, or the one of that name with these parameters.

    Raises
    ------
    ValueError
        If the name is unknown, or a parameter is not declared or out of range.
    """
    return bind(Loss, LOSSES, given, settings)
