"""Proximal operators, values and certificates of the regularizers, by name or instance."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmviz.engine.errors import finite_matrix, finite_number, one_of
from fmviz.engine.penalties import Penalty, get_penalty


def prox(name: str | Penalty, P: Any, strength: float, *, algorithm: str | None = None) -> np.ndarray:
    r"""Apply a proximal operator.

    Parameters
    ----------
    name : str or Penalty
        A regularizer: a name from `fmviz.list_regularizers`, or an instance such as ``TI(axis="rows")``.
    P : (d, k) array_like
        The point; a vector of length d is taken as one column.
    strength : float
        λ ≥ 0, multiplied by the step size if there is one.
    algorithm : {"filter", "sort", "random"}, optional
        For the squared norms and their pairwise parts: our algorithm (the default), or Algorithm 2 or 3 of
        atarashi2021. All three give the same Q.

    Returns
    -------
    Q : ndarray of the shape of P
        argmin_Q ½‖Q − P‖²_F + strength·Ω(Q), a global minimizer even if Ω is not convex. The exception is
        "omega_star": its operator has no closed form and is approximated by a few subgradient steps
        (atarashi2021, Eq. 14), set by ``prox_steps`` and ``prox_step``; the result is inexact but no worse
        than P.

    Raises
    ------
    ValueError
        If a name, a value or the shape is not allowed.

    Examples
    --------
    >>> import fmviz
    >>> fmviz.prox("l1", [[3.0], [-1.0]], 1.0)
    array([[2.],
           [0.]])
    """
    penalty = get_penalty(name)
    if algorithm is not None:
        if not penalty.algorithms:
            raise ValueError(
                f"The operator of {penalty.name!r} has a closed form and no choice of algorithm; omit "
                "`algorithm`."
            )
        one_of("algorithm", algorithm, penalty.algorithms)
    matrix = finite_matrix("P", P)
    Q = penalty.prox(matrix, finite_number("strength", strength, low=0), algorithm)
    return np.asarray(Q).reshape(np.shape(P))


def certificate(name: str | Penalty, P: Any, Q: Any, strength: float) -> float:
    r"""Return the optimality residual of Q as a proximal point of P, recomputed from the definition.

    Parameters
    ----------
    name, P, strength
        As for `prox`.
    Q : array_like of the shape of P
        The candidate result.

    Returns
    -------
    float
        The largest entry of (P − Q) minus its Euclidean projection onto strength·∂Ω(Q), divided by the
        largest |P|. For a convex objective it is 0 only at the minimizer. An error of a tenth of that scale
        in a non-zero entry of Q gives about 0.1; for the squared norms, whose ∂Ω depends on Q, up to
        0.1·(1 + 2·strength). For non-convex regularizers, ∂Ω is taken entry by entry (or row by row): 0 is
        then necessary for every strength and sufficient for strength < 1.

    Examples
    --------
    >>> import fmviz
    >>> P = [[3.0, -1.0], [1.0, 0.5]]
    >>> Q = fmviz.prox("ti", P, 0.5)
    >>> fmviz.certificate("ti", P, Q, 0.5) < 1e-12
    True
    >>> round(fmviz.certificate("l1", [3.0, -1.0], [2.3, 0.0], 1.0), 6)  # the minimizer is [2, 0]
    0.1
    """
    penalty = get_penalty(name)
    strength = finite_number("strength", strength, low=0)
    before, after = finite_matrix("P", P), finite_matrix("Q", Q)
    if before.shape != after.shape:
        raise ValueError(f"Q has shape {after.shape} but P has {before.shape}; they must agree.")
    largest = float(max(np.abs(before).max(), np.abs(after).max()))
    if largest == 0.0:
        return 0.0
    residual = penalty.residual(before - after, after, strength)
    scale = float(np.abs(before).max()) or largest
    return float(np.abs(residual).max() / scale)


def regularizer_value(name: str | Penalty, P: Any) -> float:
    """Return Ω(P) for a (d, k) matrix P; `name` as for `prox`.

    Examples
    --------
    >>> import fmviz
    >>> P = [[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]]
    >>> fmviz.regularizer_value("l1", P)
    7.0
    """
    return get_penalty(name).value(finite_matrix("P", P))
