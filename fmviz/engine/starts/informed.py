"""Starting points and solver settings that avoid a collapse to P = 0, and explanations of collapses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...typography import typeset
from ..blas import one_thread
from ..errors import one_of
from ..fit import Budget, Fit, chosen_solver
from ..parameters import Parameters
from ..penalties import get_penalty
from ..penalties.cs import CS
from ..problem import Formulation, Problem
from ..snapshot import Snapshot
from ..solvers import Solver, get_solver
from .strengths import SHRINKAGE_SHARE, References
from .zero_threshold import why_no_threshold, zero_threshold

STARTS = ("informed", "random")
ESCAPE = "revive"
QUICK = {"active_sweeps": 10}
"""Sweeps over live entries between full sweeps, for solvers that have them.

An informed start already has most of its support, and weak strengths need many sweeps over few entries.
"""
# The budget of the fit that provides the start of a run.
_ROUGH = Budget(epochs=100, tol=1e-3, report_every=None)
# The budget of the fits that compare starts. Results from two starts differ long before convergence.
_SHORT = Budget(epochs=30, tol=1e-2, report_every=None)
# Objectives with a smaller relative difference count as the same minimum; the choice does not depend on
# rounding.
_DIFFERENT = 1e-3


def informed_solver(solver: Solver, problem: Formulation) -> Solver:
    """Return the solver with unit-free tolerances and the escape from saddle points at P = 0."""
    saddles = problem.penalty.saddles is not None and problem.model.no_threshold is None
    informed = solver.having(**{ESCAPE: True} if saddles else {})
    informed.unit_free = True
    informed.leaves_zero = saddles and ESCAPE not in solver.settings
    return informed


def fit_from(
    kind: str,
    problem: Problem,
    solver: str | Solver,
    init_scale: Any,
    rng: np.random.Generator,
    *,
    start: Parameters | None = None,
    at_any_strength: bool = False,
    shrunk: bool = False,
) -> Fit:
    """Return a fit from one of the `STARTS`, with a solver to match.

    Parameters
    ----------
    kind : {"informed", "random"}
        An informed start is the `lower_start` at its λ, given a `path_start`, or the latter itself if
        `at_any_strength`, for fits at other λ.
    start : Parameters, optional
        The start, if it is known.
    problem, solver, init_scale, rng
        See `Fit.of`; there may be one scale per machine.
    shrunk
        See `path_start`.
    """
    informed = one_of("start", kind, STARTS) == "informed"
    if start is None and not informed:
        start = problem.start(init_scale, rng)
    elif start is None:
        start = path_start(problem.reference, init_scale, rng, shrunk)
        start = start if at_any_strength else lower_start(problem.reference, start)
    fit = Fit.of(problem, solver, start=start, rng=rng)
    return replace(fit, solver=informed_solver(fit.solver, problem)) if informed else fit


@one_thread()
def lower_start(problem: Problem, start: Parameters) -> Parameters:
    """Return the given start or, for CS, a short fit with TI if a fit from it ends lower.

    CS thresholds whole rows by the norms of all others, and drops features of weak pairs while P is still
    random. TI, with the same λ_max, treats each column separately.
    """
    if problem.n_machines is not None:
        return problem.joined(problem.by_machine(lower_start, start))
    if not isinstance(problem.penalty, CS) or problem.model.no_threshold is not None:
        return start
    other = _short_fit(replace(problem, penalty=get_penalty("ti")), start).parameters
    lower = (1.0 - _DIFFERENT) * _short_fit(problem, start).objective
    return other if _short_fit(problem, other).objective < lower else start


def _short_fit(problem: Problem, start: Parameters) -> Snapshot:
    solver = informed_solver(chosen_solver(problem, "auto"), problem)
    # A separate generator leaves the draws of the run unchanged.
    return Fit.of(problem, solver, _SHORT, start=start, rng=np.random.default_rng(0)).end()


@one_thread()
def path_start(
    problem: Problem, init_scale: Any, rng: np.random.Generator, shrunk: bool = False
) -> Parameters:
    """Return a random start, or a solution without sparsity if a random start would end at P = 0.

    It does not depend on λ. A regularizer that is homogeneous of degree 1, like ℓ1, makes P = 0 a local
    minimum for any λ > 0, and a small random start converges to it. The start is then a fit with ℓ2², with
    λ_p at least 0.02 of the strength at which it is 0. If λ_p is derived from the data, it is already that
    large (`shrunk`). There may be one scale per machine.
    """
    if problem.n_machines is not None:
        return problem.joined(problem.by_machine(path_start, init_scale, rng, shrunk))
    start = problem.start(init_scale, rng)
    if problem.model.no_threshold is not None or problem.penalty.why_no_threshold() is None:
        return start
    smooth = replace(problem, penalty=get_penalty("l2"), lambda_sparse=0.0)
    if not shrunk:
        smooth = smooth.at(lambda_p=max(problem.lambda_p, SHRINKAGE_SHARE * References(smooth).lambda_p))
    name = "cd" if problem.loss.mu() is not None else "lbfgs" if problem.loss.smooth else "reweighted"
    end = Fit.of(smooth, informed_solver(get_solver(name), smooth), _ROUGH, start=start, rng=rng).end()
    return end.parameters if np.isfinite(end.objective) else start


@one_thread()
def why_empty(problem: Problem, end: Parameters) -> str | None:
    """Return why a fit of a model with interactions ended with P = 0, and the strength that would avoid it.

    Parameters
    ----------
    problem : Problem
        The problem with its final strengths.
    end : Parameters
        The result of the fit. Its w and bias are used as the linear fit.

    Returns
    -------
    str or None
        One or two sentences, with several machines on those with P = 0; None if P is non-zero or empty, the
        model is convex, or the target is constant and needs no interactions.
    """
    if problem.n_machines is not None:
        reasons = problem.by_machine(why_empty, end)
        empty = [c for c, why in enumerate(reasons) if why is not None]
        return f"{problem.target.in_words(empty)}: {reasons[empty[0]]}" if empty else None
    if problem.model.convex or not problem.design.in_memory or not end.P.size or end.P.any():
        return None
    if problem.at_constant:
        return None
    at = f"λ = {typeset(problem.lambda_sparse)} and λ_p = {typeset(problem.lambda_p)}"
    if problem.model.no_threshold is not None:
        return f"No interaction is left: P = 0 at {at}. Decrease them, or increase the scale of the start."
    if why_no_threshold(problem) is not None:
        return (
            f"No interaction is left: P = 0 at {at}, a local minimum for {problem.penalty.label} at every "
            "λ > 0. Decrease λ, or follow a path of increasing strengths."
        )
    limit = zero_threshold(problem, end, tight=False)
    if problem.lambda_sparse < limit.lower:
        return (
            f"No interaction is left: P = 0 at {at}, although below λ = {typeset(limit.lower)} there is a P "
            "with a lower objective. Increase the scale of the start, or use the saddle escape."
        )
    if limit.lower > 0.0:
        return f"No interaction is left: P = 0 at {at}. Choose λ below {typeset(limit.lower)} to leave it."
    least = zero_threshold(replace(problem, penalty=get_penalty("l2"), lambda_p=0.0), limit.linear).lower
    if least == 0.0:
        return "No interaction is left: P = 0, and no pair of features lowers the loss of the linear fit."
    if problem.lambda_p < least:
        return f"No interaction is left: P = 0 at {at}. Decrease λ, or increase the scale of the start."
    way = f"for every λ. Choose λ_p below {typeset(least)} to leave it."
    return f"No interaction is left: P = 0 at {at}, {way}"
