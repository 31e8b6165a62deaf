"""The strength from which on a shared basis stays empty, and the linear fit that decides it."""

from __future__ import annotations

import numpy as np

from ..models.shared_basis import SharedBasis
from ..problem import Problem
from .gradients import BasisGradient, dual_order, feature_products
from .linear_part import refit_output_layer
from .output_layer import OutputLayer, Risk, whitened
from .selection import select

_ACCURACY = 1e-9


def linear_predictions(problem: Problem) -> np.ndarray:
    """Return the predictions of the fit with V = 0, shape (N, m)."""
    n, m = problem.design.n_samples, problem.target.n_outputs
    none = np.zeros((n, 0))
    layer = OutputLayer(problem, none)
    T, w = refit_output_layer(
        problem,
        none,
        np.zeros(layer.shape),
        np.zeros((problem.design.n_features, m)),
        lambda layer, T: whitened(layer, T, _ACCURACY).T if T.size else T,
        _ACCURACY,
    )
    F = layer.predict(T)
    return F + problem.design.dot(w) if w.any() else F


def largest_strength(problem: Problem) -> float:
    """Return λ_max: the largest ‖g_h‖ that is found at the fit with V = 0.

    From there on V = 0 is the optimum; exactly for ℓ1, for ℓ1/ℓ2 and ℓ1/ℓ∞ as far as the search for h finds
    it.

    Parameters
    ----------
    problem : Problem
        Of the model "shared_basis", with a penalty that makes rows of V zero; its own λ has no say.
    """
    model = problem.model
    assert isinstance(model, SharedBasis), "other models have other thresholds"
    row_norm = problem.penalty.row_norm
    assert row_norm is not None, "a smooth penalty has no threshold"
    slopes = Risk(problem).value_and_slopes(linear_predictions(problem))[1]
    gradient = BasisGradient(problem.design, slopes, model.diagonal, feature_products(problem.design))
    found = select(gradient, dual_order(row_norm), "eigen", 1, np.random.default_rng(0))[1]
    return float(found.max(initial=0.0))
