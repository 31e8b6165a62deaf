"""The second-order factorization machine ([A] Eq. 1)."""

from __future__ import annotations

import numpy as np

from ..design import Design
from ..snapshot import Parameters


class FactorizationMachine:
    """f(x) = b + ⟨w, x⟩ + Σ_{i<j} ⟨p_i, p_j⟩ x_i x_j.

    Attributes
    ----------
    name, label, formula : str
        Identifier, words, and LaTeX.
    multilinear : bool
        Whether f is linear in every single entry and row of P, as coordinate and row steps need.
    """

    name = "fm"
    label = "Factorization machine, order 2"
    formula = r"f(x) = b + \langle w, x\rangle + \sum_{i<j}\langle p_i, p_j\rangle\,x_i x_j"
    multilinear = True

    def predict(self, design: Design, parameters: Parameters) -> np.ndarray:
        """Return f for every row of the design, shape (N,), by [A] Eq. 4."""
        f = np.full(design.n_samples, float(parameters.intercept))
        if parameters.w.any():
            f += design.dot(parameters.w)
        live = parameters.P.any(axis=0)
        if live.any():
            P = parameters.P[:, live]
            f += 0.5 * np.square(design.dot(P)).sum(axis=1)
            f -= 0.5 * design_square_dot(design, np.square(P).sum(axis=1))
        return f


def design_square_dot(design: Design, right: np.ndarray) -> np.ndarray:
    """Return (X∘X) @ right."""
    return np.asarray(design.power(2) @ right)
