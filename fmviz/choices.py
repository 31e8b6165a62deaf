"""List regularizers, solvers, models and losses, and check which combinations are supported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def bound(
    loss: str | Loss = "squared",
    regularizer: str | Penalty = "ti",
    model: str | Model = "fm",
    loss_param: float | None = None,
    regularizer_params: Mapping[str, Any] | None = None,
    model_params: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Resolve names and parameters to values for `Problem.build`.

    Parameters
    ----------
    loss, regularizer, model : str, or Loss, Penalty, Model
        Names, or instances with their parameters.
    loss_param : float, optional
        The first parameter of a loss given by name, such as δ of the Huber loss.
    regularizer_params, model_params : mapping, optional
        The parameters of a regularizer and of a model given by name.

    Returns
    -------
    dict
        ``loss``, ``penalty`` and ``model``.

    Raises
    ------
    ValueError
        If a name is unknown, or a parameter is not allowed.
    """
    chosen = get_loss(loss)
    if loss_param is not None:
        if not chosen.params:
            raise ValueError(f"Loss {chosen.name!r} has no parameter; omit loss_param.")
        chosen = get_loss(loss, {chosen.params[0].name: loss_param})
    return {
        "loss": chosen,
        "penalty": get_penalty(regularizer, regularizer_params),
        "model": get_model(model, model_params),
    }


def why_not(
    regularizer: str | Penalty = "ti",
    solver: str | Solver = "auto",
    *,
    loss: str | Loss = "squared",
    model: str | Model = "fm",
    regularizer_params: Mapping[str, Any] | None = None,
    model_params: Mapping[str, Any] | None = None,
) -> WhyNot | None:
    """Return the reason why a combination is not supported, or None.

    Parameters
    ----------
    regularizer, solver, loss, model : str, or Penalty, Solver, Loss, Model
        Names from the registries, or instances with their parameters; "auto" stands for any solver.
    regularizer_params, model_params : mapping, optional
        The parameters of a regularizer and of a model given by name.

    Returns
    -------
    WhyNot or None
        None if the combination is supported, else the mathematical reason: a string with a machine-readable
        ``code``.

    Raises
    ------
    ValueError
        If a name is unknown, or a parameter is not allowed.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.why_not("ti", "pcd") is None
    True
    >>> fmviz.why_not("l21", "pcd").code
    'no_entry_view'
    """
    return why_not_together(
        get_model(model, model_params), get_penalty(regularizer, regularizer_params), get_loss(loss), solver
    )
