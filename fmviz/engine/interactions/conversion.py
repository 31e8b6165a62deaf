"""Conversion between parametrisations: lifted factors, weighted columns (λ, P), pair weights W, machines.

All forms here are of second order, except for `absorb_coefficients`. In all of them the weight of the pair
(i, j) is W_ij, and the diagonal of W multiplies squares, x_j² (polynomial) or nothing (anova).
"""

from __future__ import annotations

import numpy as np

from ..errors import one_of
from ..linalg.lowrank import eigenform, eigenform_of_weights
from ..models import Model, get_model
from ..parameters import Parameters


def to_weights(model: Model | str, parameters: Parameters) -> np.ndarray:
    """Return the symmetric W of a model of second order.

    Parameters
    ----------
    model : Model or str
        A model, or its name for its defaults.
    parameters : Parameters
        Its parameters.

    Returns
    -------
    (d, d) ndarray
        P diag(λ) Pᵀ, ½(UVᵀ + VUᵀ) of a lifted model, or W itself.

    Raises
    ------
    ValueError
        If the model is not of second order.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> from fmviz.engine.snapshot import Parameters
    >>> fitted = Parameters(np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]]), np.zeros(3), 0.0)
    >>> fmviz.to_weights("fm", fitted).tolist()
    [[1.0, 2.0, 0.0], [2.0, 5.0, 3.0], [0.0, 3.0, 9.0]]
    """
    of_second_order = _of_second_order(model)
    if parameters.W is not None:
        return parameters.W.copy()
    P = parameters.P
    left, right = _halves(P) if of_second_order.lifted else (P * parameters.multipliers, P)
    half = 0.5 * (left @ right.T)
    return half + half.T


def to_expansion(model: Model | str, parameters: Parameters) -> Parameters:
    """Return (λ, P) with orthonormal columns and P diag(λ) Pᵀ = W: the reduced eigendecomposition.

    For lifted factors and columns W, shape (d, d), is not formed: ½(UVᵀ + VUᵀ) is P diag(±1) Pᵀ with
    P = ½[U + V, U − V], and a QR decomposition of P reduces it to the eigenproblem of a matrix of 2r rows at
    most; so O(d·r²) for r columns (compare [B] Section 5.2). Then Σ|λ_s|‖p_s‖² = ‖W‖_tr, the least that any
    (λ, P) or (U, V) of this W can cost ([B] Lemmas 9 and 10): the objective of a fitted `expansion` there is
    at most that of the lifted model.

    Parameters
    ----------
    model : Model or str
        As for `to_weights`.
    parameters : Parameters
        Lifted factors, columns with or without coefficients, or W.

    Returns
    -------
    fmviz.engine.snapshot.Parameters
        P, shape (d, k), with k the rank of W, and the coefficients λ by falling |λ_s|; w and the bias as
        given. Rows of unused features are exactly 0.

    Raises
    ------
    ValueError
        If the model is not of second order.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> from fmviz.engine.snapshot import Parameters
    >>> W = np.array([[0.0, 2.0], [2.0, 3.0]])
    >>> expansion = fmviz.to_expansion("qr", Parameters.of_weights(W))
    >>> expansion.multipliers.round(6).tolist()
    [4.0, -1.0]
    >>> np.allclose((expansion.P * expansion.multipliers) @ expansion.P.T, W)
    True
    """
    of_second_order = _of_second_order(model)
    if parameters.W is not None:
        columns, values = eigenform_of_weights(parameters.W)
    elif of_second_order.lifted:
        left, right = _halves(parameters.P)
        signs = np.repeat([1.0, -1.0], left.shape[1])
        columns, values = eigenform(0.5 * np.hstack([left + right, left - right]), signs)
    else:
        columns, values = eigenform(parameters.P, parameters.multipliers)
    return Parameters(columns, parameters.w.copy(), parameters.intercept, coefficients=values)


def absorb_coefficients(parameters: Parameters, degree: int = 2, into: str = "ones") -> Parameters:
    """Return the same function with coefficients of 1 or ±1: λ K(p, x) = ± K(|λ|^(1/m) p, x) ([B] Lemma 4).

    Columns with λ_s = 0 become 0. With degree 2 and the kernel A², "ones" is a factorization machine.

    Parameters
    ----------
    parameters : Parameters
        Columns P, shape (d, k), and their coefficients.
    degree : int
        m of the homogeneous kernel, H^m or A^m.
    into : {"ones", "signs"}
        The resulting coefficients.

    Returns
    -------
    fmviz.engine.snapshot.Parameters
        With coefficients None for "ones", else their signs, 1 for those that are 0.

    Raises
    ------
    ValueError
        If m is even, "ones" is asked for and some λ_s is negative: it has no real m-th root.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> from fmviz.engine.snapshot import Parameters
    >>> P = np.array([[1.0, 0.0], [2.0, 1.0]])
    >>> weighted = Parameters(P, np.zeros(2), 0.0, coefficients=np.array([4.0, 9.0]))
    >>> fmviz.absorb_coefficients(weighted).P.tolist()
    [[2.0, 0.0], [4.0, 3.0]]
    """
    one_of("into", into, ("ones", "signs"))
    given = parameters.multipliers
    signs = np.where(given < 0, -1.0, 1.0)
    if into == "ones" and degree % 2 == 0 and (given < 0).any():
        s = int(np.argmin(given))
        raise ValueError(
            f"Coefficient {s} is {given[s]:.3g}, and for even degree {degree} a negative one has no real "
            "root to be moved into its column: with coefficients 1 the pair weights PPᵀ have no negative "
            "eigenvalue (blondel2016, Lemma 4). Keep the coefficients, or choose into='signs'."
        )
    P = parameters.P * np.abs(given) ** (1.0 / degree)
    if into == "signs":
        return parameters.replace(P=P, coefficients=signs)
    return parameters.replace(P=P * signs if degree % 2 else P, coefficients=None)


def _halves(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return U and V of [U V]."""
    rank = P.shape[1] // 2
    return P[:, :rank], P[:, rank:]


def _of_second_order(model: Model | str) -> Model:
    model = get_model(model)
    if model.order != 2:
        orders = "all orders" if model.order is None else f"order {model.order}"
        raise ValueError(
            f"{model.label} has interactions of {orders}, whose weights are a tensor, not a matrix: there is "
            "no eigendecomposition of it. Choose a model of order 2."
        )
    return model
