r"""Estimation of caps and starting points of robust machines from the data.

The capped objective has many local minima. Least absolute deviations, the same problem without caps, give a
start close to a good one: outliers influence it, but their distance does not.

The automatic rule then continues:

1. The noise scale σ is 1.8 times the 25 % quantile of the absolute residuals divided by 0.3186, as for normal
   noise.
2. ε₁ = σ/2 and ε₁ + ε₂ = 3σ; rounds with λ_p = 0, after each of which σ is estimated again from the included
   rows that are not at the edge of the tube, which has as many rows as there are degrees of freedom: their 60
   % quantile divided by 0.8416, changed by a factor of 0.5 to 1.25, until it is stable.
3. q is the largest eigenvalue found by the same machine in noise: in permuted residuals of the included rows.
   The k eigenvalues beyond 1.5q are factors, and √ε₃ is the geometric mean of 1.5q and λ_k, at most 0.9 λ_k.
4. λ_p = β/2N with β = 5·(0.8/σ)·median of the diagonal of ΦᵀΦ, where Φ are the products of features; this
sets
   all eigenvalues that are not free to 0. Rounds in which σ is estimated again, since the remaining model has
   few degrees of freedom. The residuals now describe the noise better: repeat from 3 until no factor is
   dropped.

For other models with a capped loss, the first two steps give ε₁ and ε₂, with unchanged strengths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..blas import one_thread
from ..errors import StoppedError
from ..fit import Budget, Fit, never
from ..losses import Loss
from ..losses.absolute import Insensitive
from ..losses.capped import CappedHinge, CappedInsensitive
from ..losses.majoriser import typical_size
from ..models.robust import RobustFM
from ..parameters import Parameters
from ..problem import Problem
from ..settings import SMALL
from ..solvers import Solver

_QUARTILE, _SIXTIETH = 0.3186, 0.8416
_ROUNDS, _UNCAPPED_ROUNDS, _MOST_SCALES, _MOST_PASSES, _SETTLED = 3, 20, 6, 4, 0.05
# Residuals within these fractions of a typical target are interpolated, or at the edge of the tube.
_INTERPOLATED, _AT_EDGE, _LEAST = 1e-5, 1e-4, 1e-6
# An initial scale that is too small includes too few rows to recover; one that is too large soon decreases.
_GENEROUS = 1.8
_SAFETY = 1.5
_CAP_OF_HINGE, _NO_CAP = 2.0, 1e12
# Settings of solvers for intermediate fits, which continue with the cap.
_ACCURACY, _MOST_ROUNDS = 1e-5, 400
# The maximum number of features whose products determine λ_p.
_MOST_FEATURES = 1_000


@dataclass(frozen=True)
class Caps:
    """The caps ε₁, ε₂, ε₃ and λ_p; None for those to estimate, infinity for no cap."""

    epsilon: float | None = None
    cap: float | None = None
    spectrum: float | None = None
    lambda_p: float | None = None


def linear_strength(problem: Problem) -> float:
    """Return a λ_w with little shrinkage, independent of the units of X and y."""
    squares = problem.design.power(2) @ np.ones(problem.design.n_features)
    return 1e-4 * problem.mean(squares) / problem.design.n_features / _typical(problem)


@one_thread()
def estimate_caps(  # noqa: C901 (the rule, step by step)
    problem: Problem,
    given: Caps,
    solver: Solver,
    start: Parameters,
    rng: np.random.Generator,
    should_stop: Callable[[], bool] = never,
) -> tuple[Problem, Parameters, float]:
    """Estimate missing caps by the automatic rule; see the module.

    Parameters
    ----------
    problem : Problem
        A problem with a capped loss, and for a robust machine with the capped norm; their caps are ignored.
    given : Caps
        The given caps.
    solver : Solver
        The solver of the fits.
    start : Parameters
        The start of the fit without caps; Z = 0 for a robust machine.
    rng : numpy Generator
        Permutes residuals.
    should_stop : callable
        Called between epochs; a true value ends the computation.

    Returns
    -------
    problem : Problem
        The problem with all caps and strengths.
    begin : Parameters
        The start of its fit.
    scale : float
        The noise scale σ.

    Raises
    ------
    StoppedError
        If `should_stop` returned true.
    """
    binary, least = problem.loss.task == "binary", _LEAST * _typical(problem)
    robust = problem.model.capped or given.spectrum is not None
    rounds = min(_MOST_ROUNDS, solver.settings.get("rounds", _MOST_ROUNDS))
    solver = solver.having(**{"accuracy": _ACCURACY, "rounds": rounds} if robust else {"uncapped": 0})
    if binary and not robust:
        return replace(problem, loss=_loss_at(True, given, 1.0)), start, 1.0

    def at(sigma: float, given: Caps = given, **more: Any) -> Problem:
        return replace(problem, loss=_loss_at(binary, given, sigma), **more)

    def fitted(problem: Problem, start: Parameters, epochs: int) -> Parameters:
        budget = Budget(epochs, tol=1e-6, report_every=None, certify_every=None)
        end = Fit.of(problem, solver, budget, start=start, rng=rng).end(should_stop)
        if should_stop():
            raise StoppedError
        return end.parameters

    def settled(here: Parameters, sigma: float, **more: Any) -> tuple[Parameters, float]:
        """Alternate fits and estimates of the scale until it is stable."""
        for _ in range(1 if binary else _MOST_SCALES):
            now, before = at(sigma, **more), sigma
            here = fitted(now, here, _ROUNDS)
            if not binary:
                scale = _scale(now, here, 0.6, _SIXTIETH, _AT_EDGE) or sigma
                sigma = float(np.clip(scale, max(0.5 * sigma, least), 1.25 * sigma))
            if abs(sigma - before) <= _SETTLED * before:
                break
        return here, sigma

    free = {"model": RobustFM("squared"), "lambda_p": 0.0} if problem.model.capped else {}
    uncapped, sigma = at(1.0, Caps(0.0, np.inf), **free), 1.0
    here = fitted(uncapped, start, 1 if robust else _UNCAPPED_ROUNDS)
    if not binary:
        sigma = max(_GENEROUS * _scale(uncapped, here, 0.25, _QUARTILE, _INTERPOLATED), least)
    if not robust:
        here, sigma = settled(here, sigma)
        return at(sigma), here, sigma
    here, sigma = settled(here, sigma, lambda_p=0.0)
    more: dict[str, Any] = {"lambda_p": given.lambda_p}
    edge, factors = 0.0, -1
    for _ in range(_MOST_PASSES):
        spectrum = given.spectrum
        if spectrum is None:
            noise = _noise(at(sigma, lambda_p=0.0), here, rng)
            if noise is not None:
                edge = max(edge, fitted(noise, noise.start(0.0, rng), 1).multipliers.max(initial=0.0))
            spectrum = _spectral_cap(here.multipliers, edge)
        more["model"] = RobustFM("squared") if spectrum == np.inf else RobustFM(cap=spectrum)
        if factors == (factors := int(more["model"].free(here.multipliers).sum())):
            break
        if given.lambda_p is None:
            more["lambda_p"] = 2.5 * (0.8 / sigma) * _median_square(problem) / problem.design.n_samples
        here, sigma = settled(here, sigma, **more)
    return at(sigma, **more), here, sigma


def _loss_at(binary: bool, given: Caps, sigma: float) -> Loss:
    if binary:
        cap = _CAP_OF_HINGE if given.cap is None else min(given.cap, _NO_CAP)
        return CappedHinge(given.epsilon or 0.0, cap)
    epsilon = 0.5 * sigma if given.epsilon is None else given.epsilon
    if given.cap == np.inf:
        return Insensitive(epsilon)
    return CappedInsensitive(
        epsilon, max(3.0 * sigma - epsilon, 0.5 * sigma) if given.cap is None else given.cap
    )


def _quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Return a weighted quantile, in which a row of weight 2 counts as two rows."""
    return float(np.quantile(values, share, weights=weights, method="inverted_cdf"))


def _typical(problem: Problem) -> float:
    """Return the unit of predictions: a typical deviation of y, 1 for margins."""
    if problem.loss.task == "binary":
        return 1.0
    y, c = problem.y, problem.unit_weights
    return _quantile(np.abs(y - _quantile(y, c, 0.5)), c, 0.5) or typical_size(y)


def _scale(problem: Problem, here: Parameters, share: float, normal: float, near: float) -> float:
    """Return σ from a quantile of the residuals of included rows away from the edge of the tube."""
    loss, model = problem.loss, problem.model
    epsilon = loss.settings["epsilon"]
    sizes = np.abs(problem.predict(here) - problem.y)
    kept = problem.unit_weights * (sizes <= epsilon + (np.inf if loss.cap is None else loss.cap))
    kept[np.abs(sizes - epsilon) <= near * _typical(problem)] = 0.0
    if not kept.any():
        return 0.0
    scale = _quantile(sizes, kept, share) / normal
    if problem.lambda_p > 0.0 and isinstance(model, RobustFM):
        # Shrunk eigenvalues have few degrees of freedom. If all are free, the rows at the edge account for
        # them.
        rank, d = int(model.free(here.multipliers).sum()), here.w.size
        freedom = rank * d - rank * (rank - 1) / 2 + d + 1
        scale /= np.sqrt(max(1.0 - freedom / kept.sum(), 0.25))
    return scale


def _noise(problem: Problem, here: Parameters, rng: np.random.Generator) -> Problem | None:
    """Return the problem of the included rows with permuted residuals (noise); None for fewer than two."""
    kinks: Any = problem.loss.majoriser
    f, y = problem.predict(here), problem.y
    kept = np.flatnonzero((kinks.excess(f, y) <= kinks.cap) & (problem.unit_weights > 0.0))
    if kept.size < 2:
        return None
    values = (y if problem.loss.task == "binary" else y - f)[kept]
    noise = problem.of_rows(kept)
    return replace(noise, target=replace(noise.target, values=rng.permutation(values)))


def _spectral_cap(eigenvalues: np.ndarray, edge: float) -> float:
    edge = _SAFETY * max(edge, 0.01 * float(eigenvalues.max(initial=0.0)))
    # The last factor, or the edge if there is none.
    last = float(eigenvalues[eigenvalues > edge].min(initial=np.inf))
    return float(max(edge**2 if last == np.inf else min(edge * last, 0.81 * last**2), SMALL))


def _median_square(problem: Problem) -> float:
    """Return the median over pairs i ≤ j of Σ_n c_n (x_ni x_nj)², in the scale of a symmetric Z."""
    squares, d = problem.design.power(2), problem.design.n_features
    if d > _MOST_FEATURES:
        squares = squares[:, np.random.default_rng(0).choice(d, _MOST_FEATURES, replace=False)]
    products = sp.coo_array(squares.T @ (sp.diags_array(problem.unit_weights) @ squares))
    entries = (products.data * np.where(products.row == products.col, 1.0, 2.0))[products.row <= products.col]
    return float(np.median(entries[entries > 0.0])) if (entries > 0.0).any() else 1.0
