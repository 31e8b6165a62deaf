"""Registry of losses."""

from __future__ import annotations

from functools import partial

from ..settings import bind, registry
from ..target import Kind, Target
from .base import Loss
from .scalar import ScalarLoss, evaluate

# In the order of the pages.
# isort: off
from .squared import Squared
from .logistic import Logistic
from .squared_hinge import SquaredHinge
from .huber import Huber
from .quantile_huber import QuantileHuber
from .poisson import Poisson
from .absolute import Absolute, Insensitive
from .capped import CappedInsensitive, CappedHinge
# isort: on

LOSSES: dict[str, Loss] = registry(Loss, dict(globals()))
"""All losses of a single prediction with default parameters, by name."""

# Multiclass losses, with a prediction for each class.
# isort: off
from .vector import AtMost, Separate, VectorLoss
from .multiclass_logistic import MulticlassLogistic
from .smoothed_hinge import SmoothedHinge
from .multiclass_squared_hinge import MulticlassSquaredHinge
# isort: on

VECTOR_LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (MulticlassLogistic(), SmoothedHinge(), MulticlassSquaredHinge())
}
"""All multiclass losses, by name."""
_OF_CLASSES: dict[str, Loss] = {"logistic": MulticlassLogistic(), "squared_hinge": MulticlassSquaredHinge()}


get_loss = partial(bind, Loss, LOSSES | VECTOR_LOSSES)
"""Return a loss unchanged, or create it by name with these parameters; see `bind`."""


def loss_of_outputs(loss: Loss, target: Target) -> Loss:
    """Return the form of a loss for all outputs of a target jointly.

    For one output, this is the loss itself; for several classes, the multiclass form; for several real
    targets or labels, the sum over them; and for ordered classes, the sum over their levels.

    Raises
    ------
    ValueError
        If the loss has no such form.
    """
    if (reason := why_no_form(loss, target.kind)) is not None:
        raise ValueError(reason)
    if target.kind == "class":
        return _OF_CLASSES.get(loss.name, loss)
    if isinstance(loss, VectorLoss) or target.n_outputs == 1:
        return loss
    return AtMost(loss) if target.kind == "ordinal" else Separate(loss)


def why_no_form(loss: Loss, kind: Kind) -> str | None:
    """Return why a loss has no joint form for all outputs of this kind of target, or None."""
    if kind == "class":
        form = _OF_CLASSES.get(loss.name, loss)
        if isinstance(form, VectorLoss) and kind in form.kinds:
            return None
        names = ", ".join(repr(name) for name in (*_OF_CLASSES, "smoothed_hinge"))
        return f"loss = {loss.name!r} has no multiclass form; choose one of {names}."
    if isinstance(loss, VectorLoss) and kind not in loss.kinds:
        return (
            f"loss = {loss.name!r} needs several classes, which this target does not have; choose "
            "'squared' for numbers, and 'logistic' for two classes, ordered classes or several labels."
        )
    return None
