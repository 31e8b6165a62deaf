"""The largest strength of a shared basis, from which none is used."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..problem import Problem
from .gradients import DUAL_ORDER, BasisGradient
from .output_layer import OutputLayer, refit_output_layer, risk_and_slopes, whitened
from .selection import select

_ACCURACY = 1e-9


def largest_strength(problem: Problem) -> float:
    """Return λ_max: the largest ‖g_h‖ found at the fit with V = 0.

    From there on V = 0 is the optimum: exactly for ℓ1, for ℓ1/ℓ2 and ℓ1/ℓ∞ up to the search for h.

    Parameters
    ----------
    problem : Problem
        A problem of the model "shared_basis", with a penalty that makes rows of V zero; its λ is ignored.
    """
    w = np.zeros((problem.design.n_features, problem.target.n_outputs))
    layer = OutputLayer(problem, w[:, :0], w)
    start = np.zeros((layer.Z.shape[1], w.shape[1]))
    T, _ = refit_output_layer(layer, start, w, partial(whitened, tol=_ACCURACY), _ACCURACY)
    slopes = risk_and_slopes(problem, layer.Z @ T + layer.offset)[1]
    gradient = BasisGradient(problem.design, slopes, layer.diagonal)
    norms = select(gradient, DUAL_ORDER[problem.penalty.row_norm], "eigen", 1, np.random.default_rng(0))[1]
    return float(norms.max(initial=0.0))
