"""Conversion of the pair weights of lifted factors, weighted columns or W to weighted columns (λ, P)."""

from __future__ import annotations

import numpy as np

from ..linalg.lowrank import eigenform, eigenform_of_weights
from ..models import Model, get_model
from ..parameters import Parameters


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
        A model of second order, or its name for its defaults.
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
    model = get_model(model)
    if model.order != 2:
        orders = "all orders" if model.order is None else f"order {model.order}"
        raise ValueError(
            f"{model.label} has interactions of {orders}, whose weights are a tensor, not a matrix: there is "
            "no eigendecomposition of it. Choose a model of order 2."
        )
    if parameters.W is not None:
        columns, values = eigenform_of_weights(parameters.W)
    elif model.lifted:
        left, right = np.hsplit(parameters.P, 2)
        signs = np.repeat([1.0, -1.0], left.shape[1])
        columns, values = eigenform(0.5 * np.hstack([left + right, left - right]), signs)
    else:
        columns, values = eigenform(parameters.P, parameters.multipliers)
    return Parameters(columns, parameters.w.copy(), parameters.intercept, coefficients=values)
