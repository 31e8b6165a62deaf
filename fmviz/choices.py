"""List regularizers, solvers, models and losses, and check which combinations are supported."""

from __future__ import annotations

from fmviz.engine.compatibility import why_not_together
from fmviz.engine.errors import WhyNot
from fmviz.engine.losses import LOSSES, Loss, get_loss
from fmviz.engine.models import MODELS, Model, get_model
from fmviz.engine.penalties import PENALTIES, Penalty, get_penalty
from fmviz.engine.solvers import SOLVERS, Solver

__all__ = ["list_losses", "list_models", "list_regularizers", "list_solvers", "why_not"]


def list_regularizers() -> list[str]:
    """Return the names of the regularizers.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.list_regularizers()
    ['l2', 'l1', 'l21', 'ti', 'cs', ...]
    """
    return list(PENALTIES)


def list_solvers() -> list[str]:
    """Return the names of the solvers.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.list_solvers()
    ['cd', 'pcd', 'pbcd', ...]
    """
    return list(SOLVERS)


def list_models() -> list[str]:
    """Return the names of the models.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.list_models()
    ['fm', 'hofm', ...]
    """
    return list(MODELS)


def list_losses() -> list[str]:
    """Return the names of the losses.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.list_losses()
    ['squared', 'logistic', ...]
    """
    return list(LOSSES)


def why_not(
    regularizer: str | Penalty = "ti",
    solver: str | Solver = "auto",
    *,
    loss: str | Loss = "squared",
    model: str | Model = "fm",
) -> WhyNot | None:
    """Return the reason why a combination is not supported, or None.

    Parameters
    ----------
    regularizer, solver, loss, model : str, or Penalty, Solver, Loss, Model
        Names from the registries, or instances with their parameters; "auto" stands for any solver.

    Returns
    -------
    WhyNot or None
        None if the combination is supported, else the mathematical reason: a string with a machine-readable
        ``code``.

    Raises
    ------
    ValueError
        If a name is unknown.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.why_not("ti", "pcd") is None
    True
    >>> fmviz.why_not("l21", "pcd").code
    'no_entry_view'
    """
    return why_not_together(get_model(model), get_penalty(regularizer), get_loss(loss), solver)
