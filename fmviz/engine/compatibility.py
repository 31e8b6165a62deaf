"""Which solver can take which problem, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .losses import get_loss
from .models import get_model
from .regularizers import get_regularizer
from .solvers import SOLVERS, Solver, get_solver


def why_not(
    regularizer: str = "ti",
    solver: str = "auto",
    *,
    loss: str = "squared",
    model: str = "fm",
    regularizer_params: Mapping[str, Any] | None = None,
    model_params: Mapping[str, Any] | None = None,
) -> str | None:
    """Tell whether a combination can be run.

    Parameters
    ----------
    regularizer, solver, loss, model : str
        Names from the registries; solver "auto" always finds one where one exists.
    regularizer_params, model_params : mapping, optional
        The regularizer's and the model's own parameters.

    Returns
    -------
    str or None
        None where the combination runs, else the mathematical reason in a sentence.

    Raises
    ------
    ValueError
        If a name is unknown.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.why_not(regularizer="l21", solver="pcd")
    '...Use PBCD...'
    >>> fmviz.why_not(regularizer="l21", solver="pbcd") is None
    True
    """
    chosen, given = get_regularizer(regularizer), dict(regularizer_params or {})
    checked = chosen.check(given)
    chosen_model, chosen_loss = get_model(model, **dict(model_params or {})), get_loss(loss)

    if (unsuited := chosen_model.why_not(chosen)) is not None:
        return unsuited
    bound = chosen_model.bind(chosen, checked, 1)

    def reason(method: type[Solver]) -> str | None:
        return method.why_not_model(chosen_model) or method.why_not(chosen_model, bound, chosen_loss, checked)

    if solver == "auto":
        reasons = [reason(method) for method in SOLVERS.values()]
        return None if None in reasons else reasons[0]
    return reason(get_solver(solver))


# From the most to the least recommended.
_PREFERRED = ("cd", "pcd", "pbcd")


def best_solver(
    regularizer: str,
    *,
    loss: str = "squared",
    model: str = "fm",
    regularizer_params: Mapping[str, Any] | None = None,
    model_params: Mapping[str, Any] | None = None,
) -> str:
    """Return the solver that "auto" stands for."""
    others = [name for name in SOLVERS if name not in _PREFERRED]
    row_wise = get_regularizer(regularizer).row_wise
    order = ("pbcd", *_PREFERRED, *others) if row_wise else (*_PREFERRED, *others)
    for name in order:
        reason = why_not(
            regularizer,
            name,
            loss=loss,
            model=model,
            regularizer_params=regularizer_params,
            model_params=model_params,
        )
        if reason is None:
            return name
    raise ValueError(f"No solver takes regularizer {regularizer!r} with model {model!r} and loss {loss!r}.")


def cost_note(
    d: int,
    rank: int,
    regularizer: str = "ti",
    solver: str = "auto",
    *,
    loss: str = "squared",
    model: str = "fm",
    regularizer_params: Mapping[str, Any] | None = None,
    model_params: Mapping[str, Any] | None = None,
) -> str | None:
    """Tell what is expensive about a run on d features, before it starts.

    Parameters
    ----------
    d, rank : int
        The number of features, and of columns of P.
    regularizer, solver, loss, model : str
        Names from the registries.
    regularizer_params, model_params : mapping, optional
        The regularizer's and the model's own parameters.

    Returns
    -------
    str or None
        A sentence where an epoch costs more than the size of the data and of P explains, else None.

    Raises
    ------
    ValueError
        If a name is unknown, or no solver takes the problem.
    """
    chosen = get_regularizer(regularizer)
    given = chosen.check(dict(regularizer_params or {}))
    if solver == "auto":
        solver = best_solver(
            regularizer, loss=loss, model=model, regularizer_params=given, model_params=model_params
        )
    return get_solver(solver).cost_note(get_model(model, **dict(model_params or {})), chosen, d, rank, given)
