"""The registry of losses: one file and one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..settings import bind, registry
from .base import Loss
from .scalar import ScalarLoss, evaluate

# The registry: a line for every loss, in the order of the pages.
# isort: off
from .squared import Squared
from .logistic import Logistic
from .squared_hinge import SquaredHinge
from .huber import Huber
from .quantile_huber import QuantileHuber
# isort: on

LOSSES: dict[str, Loss] = registry(Loss, dict(globals()))
"""Every loss with its default parameters, by name."""


def get_loss(given: str | Loss, settings: Mapping[str, Any] | None = None) -> Loss:
    """Return a loss: the given one, or the one of that name with these parameters.

    Raises
    ------
    ValueError
        If the name is unknown, or a parameter is not declared or not allowed.
    """
    return bind(Loss, LOSSES, given, settings)
