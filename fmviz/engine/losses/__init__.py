"""The registry of losses: one file and one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..settings import bind, registry
from ..target import Target
from .base import Loss
from .scalar import ScalarLoss, evaluate

# The registry: a line for every loss, in the order of the pages.
# isort: off
from .squared import Squared
from .logistic import Logistic
from .squared_hinge import SquaredHinge
from .huber import Huber
from .quantile_huber import QuantileHuber
from .absolute import Absolute, Insensitive
from .capped import CappedInsensitive, CappedHinge
# isort: on

LOSSES: dict[str, Loss] = registry(Loss, dict(globals()))
"""Every loss of one prediction with its default parameters, by name."""

# Those of several classes, a prediction for each.
# isort: off
from .vector import Separate, VectorLoss
from .multiclass_logistic import MulticlassLogistic
from .smoothed_hinge import SmoothedHinge
from .multiclass_squared_hinge import MulticlassSquaredHinge
# isort: on

VECTOR_LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (MulticlassLogistic(), SmoothedHinge(), MulticlassSquaredHinge())
}
"""Every loss of several classes, by name."""
_OF_CLASSES: dict[str, Loss] = {"logistic": MulticlassLogistic(), "squared_hinge": MulticlassSquaredHinge()}


def get_loss(given: str | Loss, settings: Mapping[str, Any] | None = None) -> Loss:
    """Return a loss: the given one, or the one of that name with these parameters.

    Raises
    ------
    ValueError
        If the name is unknown, or a parameter is not declared or not allowed.
    """
    return bind(Loss, LOSSES | VECTOR_LOSSES, given, settings)


def loss_of_outputs(loss: Loss, target: Target) -> Loss:
    """Return the form that a loss has for all outputs of a target together.

    That is the loss itself for one output. For several classes it is the multi-class form, for several real
    targets or labels the sum over them.

    Raises
    ------
    ValueError
        If the loss has no such form.
    """
    if target.kind in ("class", "ordinal"):
        found = _OF_CLASSES.get(loss.name, loss)
        if isinstance(found, VectorLoss) and target.kind in found.kinds:
            return found
        names = ", ".join(repr(name) for name in (*_OF_CLASSES, "smoothed_hinge"))
        raise ValueError(
            f"loss = {loss.name!r} has no form for {target.n_outputs} classes at once; choose one of {names}."
        )
    if isinstance(loss, VectorLoss):
        if target.kind in loss.kinds:
            return loss
        raise ValueError(
            f"loss = {loss.name!r} scores several classes against each other, and this target has none; "
            "choose 'squared' for numbers, and 'logistic' for two classes or several labels."
        )
    return Separate(loss) if target.n_outputs > 1 else loss
