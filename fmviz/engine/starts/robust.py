r"""Estimation of caps and starting points of robust machines from the data.

The capped objective has many local minima. Least absolute deviations, the same problem without caps, gives a
start near the good one: outliers influence it, but not their distance.

The automatic rule continues from there:

1. σ, the scale of the noise, 1.8 times the 25 % quantile of the residuals' sizes over 0.3186, as for a normal
   one.
2. ε₁ = σ/2 and ε₁ + ε₂ = 3σ; rounds with λ_p = 0, after each of which σ is estimated again from the rows that
   are kept and not at the edge of the tube, where as many rows lie as there are degrees of freedom: their 60
   % quantile over 0.8416, changed by a factor of 0.5 to 1.25, until it is stable.
3. The largest eigenvalue q that the same machine finds in noise: in permuted residuals of the kept rows.
Eigenvalues beyond 1.5q are k factors, and √ε₃ is the geometric mean of 1.5q and λ_k, at most
   0.9 λ_k.
4. λ_p = β/2N with β = 5·(0.8/σ)·median of the diagonal of ΦᵀΦ, Φ the products of features, which sets all
   eigenvalues that are not free to 0; rounds in which σ is estimated again, since the remaining model has few
   degrees of freedom. The residuals now describe the noise better: repeat from 3, until no factor is dropped.

For other models with a capped loss the first two steps give ε₁ and ε₂, with all strengths as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from ..drive import Budget, iterate, never
from ..errors import StoppedError
from ..losses import Loss
from ..losses.absolute import Absolute, Insensitive
from ..losses.capped import CappedHinge, CappedInsensitive
from ..losses.majoriser import typical_size
from ..models import Model
from ..models.robust import RobustFM
from ..parameters import Parameters
from ..problem import Problem
from ..settings import SMALL
from ..solvers import Solver, get_solver
from ..target import Target

_QUARTILE, _SIXTIETH = 0.3186, 0.8416
_ROUNDS, _MOST_SCALES, _SETTLED, _MOST_PASSES = 3, 6, 0.05, 4
_UNCAPPED_ROUNDS = 20
# Residuals below this share of a typical target count as interpolated.
_INTERPOLATED, _AT_EDGE = 1e-5, 1e-4
# A first scale that is too small keeps too few rows to recover; one that is too large soon falls.
_GENEROUS = 1.8
_SAFETY = 1.5
_CAP_OF_HINGE = 2.0
_NO_CAP = 1e12
# The accuracy of intermediate fits.
_ACCURACY = 1e-5
_MOST_ROUNDS = 400


@dataclass(frozen=True)
class Caps:
    """ε₁, ε₂, ε₃ and λ_p; None for those to estimate, infinity for no cap."""

    epsilon: float | None = None
    cap: float | None = None
    spectrum: float | None = None
    lambda_p: float | None = None


@dataclass(frozen=True)
class EstimatedCaps:
    """The result of the automatic rule.

    Attributes
    ----------
    problem : Problem
        The problem with all caps and strengths.
    start : Parameters
        The start of its fit.
    scale : float
        σ.
    edge : float
        q, the largest eigenvalue from noise alone.
    """

    problem: Problem
    start: Parameters
    scale: float
    edge: float


def linear_strength(problem: Problem) -> float:
    """Return a λ_w that hardly shrinks, whatever the units of X and y."""
    squares = problem.design.power(2) @ np.ones(problem.design.n_features)
    return 1e-4 * problem.mean(squares) / problem.design.n_features / _typical(problem)


def estimate_caps(
    problem: Problem,
    given: Caps,
    solver: Solver,
    rng: np.random.Generator,
    should_stop: Callable[[], bool] = never,
) -> EstimatedCaps:
    """Estimate the caps that are not given by the automatic rule; see the module.

    Parameters
    ----------
    problem : Problem
        A problem of the robust machine, with a capped loss and the capped norm, whatever their caps.
    given : Caps
        The given caps.
    solver : Solver
        The solver of the fits.
    rng : numpy Generator
        Permutes residuals.
    should_stop : callable
        Called between epochs; true ends the computation.

    Raises
    ------
    StoppedError
        If `should_stop` returned true.
    """
    if "accuracy" in solver.settings:
        rough = {"accuracy": _ACCURACY, "rounds": min(_MOST_ROUNDS, solver.settings["rounds"])}
        solver = get_solver(solver.name, {**solver.settings, **rough})
    fit = _Fitter(solver, rng, should_stop)
    uncapped = _uncapped(problem)
    here = fit(uncapped, None, epochs=1)
    binary = problem.loss.task == "binary"
    sigma = 1.0 if binary else _first_scale(problem, here, _typical(problem))

    def at(sigma: float, **more: Any) -> Problem:
        return replace(problem, loss=_loss_at(binary, given, sigma), **more)

    def settled(here: Parameters, sigma: float, **more: Any) -> tuple[Parameters, float]:
        return _settled(lambda sigma: at(sigma, **more), here, sigma, fit)

    here, sigma = settled(here, sigma, lambda_p=0.0)
    edge, model = 0.0, _model(problem)
    factors = -1
    for _ in range(_MOST_PASSES):
        spectrum = given.spectrum
        if spectrum is None:
            edge = max(edge, _noise_edge(at(sigma, lambda_p=0.0), here, fit))
            spectrum = _spectral_cap(here.multipliers, edge)
        model = RobustFM("squared") if spectrum == np.inf else RobustFM("capped", spectrum)
        if factors == (factors := int(model.free(here.multipliers).sum())):
            break
        strength = given.lambda_p
        if strength is None:
            strength = 2.5 * (0.8 / sigma) * _median_square(problem) / problem.design.n_samples
        here, sigma = settled(here, sigma, lambda_p=strength, model=model)
    return EstimatedCaps(at(sigma, lambda_p=strength, model=model), here, sigma, edge)


def estimate_loss_caps(
    problem: Problem,
    solver: Solver,
    start: Parameters,
    rng: np.random.Generator,
    should_stop: Callable[[], bool] = never,
) -> EstimatedCaps:
    """Estimate the caps ε₁ and ε₂ of a capped loss for any model by steps 1 and 2 of the rule.

    Parameters
    ----------
    problem : Problem
        A problem with a capped loss, whatever its caps.
    solver : Solver
        The solver of the fits.
    start : Parameters
        The start of the fit without a cap.
    rng : numpy Generator
        For the solver.
    should_stop : callable
        Called between epochs; if true, StoppedError is raised.
    """
    if problem.loss.task == "binary":
        return EstimatedCaps(replace(problem, loss=_loss_at(True, Caps(), 1.0)), start, 1.0, 0.0)
    here = _Fitter(solver, rng, should_stop)(replace(problem, loss=Absolute()), start, _UNCAPPED_ROUNDS)
    if "uncapped" in solver.settings:
        # The fits below start with the cap.
        solver = get_solver(solver.name, {**solver.settings, "uncapped": 0})
    unit = _typical(problem)
    here, sigma = _settled(
        lambda sigma: replace(problem, loss=_loss_at(False, Caps(), sigma)),
        here,
        _first_scale(problem, here, unit),
        _Fitter(solver, rng, should_stop),
    )
    return EstimatedCaps(replace(problem, loss=_loss_at(False, Caps(), sigma)), here, sigma, 0.0)


@dataclass(frozen=True, eq=False)
class _Fitter:
    """Settings of intermediate fits."""

    solver: Solver
    rng: np.random.Generator
    should_stop: Callable[[], bool] = never

    def __call__(self, problem: Problem, start: Parameters | None, epochs: int = _ROUNDS) -> Parameters:
        begin = problem.start(0.0, self.rng) if start is None else start
        budget = Budget(epochs, tol=1e-6, report_every=None)
        *_, end = iterate(problem, self.solver, budget, self.should_stop, start=begin, rng=self.rng)
        if self.should_stop():
            raise StoppedError
        return end.parameters


def _settled(
    at: Callable[[float], Problem], here: Parameters, sigma: float, fit: _Fitter
) -> tuple[Parameters, float]:
    """Fit and estimate the scale in turns, until it is stable."""
    for _ in range(_MOST_SCALES):
        now = at(sigma)
        here, before = fit(now, here), sigma
        if now.loss.task == "binary":
            break
        sigma = _next_scale(now, here, sigma, _typical(now))
        if abs(sigma - before) <= _SETTLED * before:
            break
    return here, sigma


def _model(problem: Problem) -> RobustFM:
    return cast(RobustFM, problem.model)


def _uncapped(problem: Problem) -> Problem:
    loss: Loss = problem.loss
    loss = replace(loss, cap=_NO_CAP) if isinstance(loss, CappedHinge) else Absolute()
    model = _model(problem)
    if model.capped:
        return replace(problem, loss=loss, model=replace(model, spectrum="squared"), lambda_p=0.0)
    return replace(problem, loss=loss)


def _loss_at(binary: bool, given: Caps, sigma: float) -> Loss:
    if binary:
        cap = _CAP_OF_HINGE if given.cap is None else min(given.cap, _NO_CAP)
        return CappedHinge(given.epsilon or 0.0, cap)
    epsilon = 0.5 * sigma if given.epsilon is None else given.epsilon
    if given.cap == np.inf:
        return Insensitive(epsilon)
    cap = max(3.0 * sigma - epsilon, 0.5 * sigma) if given.cap is None else given.cap
    return CappedInsensitive(epsilon, cap)


def _quantile(values: np.ndarray, weights: np.ndarray, share: float) -> float:
    """Return a weighted quantile, in which a row of weight 2 counts as two rows."""
    return float(np.quantile(values, share, weights=weights, method="inverted_cdf"))


def _typical(problem: Problem) -> float:
    """Return the unit of predictions: a typical deviation of y, 1 for margins."""
    if problem.loss.task == "binary":
        return 1.0
    y, c = problem.y, problem.unit_weights
    return _quantile(np.abs(y - _quantile(y, c, 0.5)), c, 0.5) or typical_size(y)


def _first_scale(problem: Problem, here: Parameters, unit: float) -> float:
    sizes = np.abs(problem.predict(here) - problem.y)
    counted = (sizes > _INTERPOLATED * unit) & (problem.unit_weights > 0.0)
    if not counted.any():
        return 1e-6 * unit
    scale = _quantile(sizes[counted], problem.unit_weights[counted], 0.25) / _QUARTILE
    return max(_GENEROUS * scale, 1e-6 * unit)


def _next_scale(problem: Problem, here: Parameters, sigma: float, unit: float) -> float:
    loss: Any = problem.loss
    sizes = np.abs(problem.predict(here) - problem.y)
    kept = (sizes <= loss.epsilon + loss.majoriser.cap) & (problem.unit_weights > 0.0)
    kept &= np.abs(sizes - loss.epsilon) > _AT_EDGE * unit
    if not kept.any():
        return sigma
    scale = _quantile(sizes[kept], problem.unit_weights[kept], 0.6) / _SIXTIETH
    model: Model = problem.model
    if problem.lambda_p > 0.0 and isinstance(model, RobustFM):
        # Shrunk eigenvalues have few degrees of freedom. Where all is free the rows at the edge account for
        # it.
        rank, d = int(model.free(here.multipliers).sum()), here.w.size
        freedom = rank * d - rank * (rank - 1) / 2 + d + 1
        scale /= np.sqrt(max(1.0 - freedom / problem.unit_weights[kept].sum(), 0.25))
    return max(float(np.clip(scale, 0.5 * sigma, 1.25 * sigma)), 1e-6 * unit)


def _noise_edge(problem: Problem, here: Parameters, fit: _Fitter) -> float:
    """Return the largest eigenvalue that the machine finds in permuted residuals of the kept rows."""
    kinks: Any = problem.loss.majoriser
    f = problem.predict(here)
    kept = np.flatnonzero((kinks.excess(f, problem.y) <= kinks.cap) & (problem.unit_weights > 0.0))
    if kept.size < 2:
        return 0.0
    noise = problem.of_rows(kept)
    values = noise.y if problem.loss.task == "binary" else (problem.y - f)[kept]
    target = Target(fit.rng.permutation(values), problem.target.kind, problem.target.labels)
    end = fit(replace(noise, target=target), None, epochs=1)
    return float(end.multipliers.max(initial=0.0))


def _spectral_cap(eigenvalues: np.ndarray, edge: float) -> float:
    edge = max(edge, 0.01 * float(eigenvalues.max(initial=0.0)))
    beyond = eigenvalues[eigenvalues > _SAFETY * edge]
    if not beyond.size:
        return max((_SAFETY * edge) ** 2, SMALL)
    last = float(beyond.min())
    return max(min(np.sqrt(_SAFETY * edge * last), 0.9 * last) ** 2, 1e-6 * last * last, SMALL)


def _median_square(problem: Problem) -> float:
    """Return the median over pairs i ≤ j of Σ_n c_n (x_ni x_nj)², in the scale of a symmetric Z."""
    squares = problem.design.power(2)
    d = problem.design.n_features
    if d > 1_000:
        chosen = np.random.default_rng(0).choice(d, 1_000, replace=False)
        squares = squares[:, chosen]
    weighted = sp.diags_array(problem.unit_weights) @ squares
    products = squares.T @ weighted
    products = products.toarray() if sp.issparse(products) else np.asarray(products)
    first, second = np.triu_indices(products.shape[0])
    entries = products[first, second] * np.where(first == second, 1.0, 2.0)
    return float(np.median(entries[entries > 0.0])) if (entries > 0.0).any() else 1.0
