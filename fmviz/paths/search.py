"""Search for the weakest strength λ of a fixed grid that leaves about a given number of interactions.

Many strengths leave about N interactions, and the counts are not monotone in λ and depend on the start of
each fit. All searches therefore visit the same strengths, from weak to strong, and each fit starts at the
previous solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fmviz.engine.errors import finite_number, whole_number
from fmviz.engine.fit import Budget, never
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.informed import fit_from
from fmviz.engine.starts.strengths import fill_strengths
from fmviz.typography import typeset

from .path import PathPoint, path_solver, problem_of

PER_DECADE = 12
"""The number of strengths per decade of the grid."""
# A share of the default strength. On planted pairs, ℓ1 retains wrong pairs in paths from ten times this
# share.
_SHARE = 1e-3
_DECADES = 7
# A path ends after a decade of fits with too few interactions, since counts are not monotone.
_BELOW = PER_DECADE


@dataclass(frozen=True, eq=False)
class Probe:
    """One step of `find_lambda`.

    Attributes
    ----------
    lambda_sparse : float
        The strength.
    used_interactions : int
        The number of interactions used by its fit.
    snapshot : Snapshot
        The final snapshot of the fit.
    start : Parameters
        The parameters at the start of the fit.
    status : {"searching", "found", "nearest"}
        The last probe is the chosen fit: "found" if its count is accepted, else "nearest".
    message : str
        The status as a sentence.
    tried : tuple of (float, int)
        All strengths so far with their interaction counts, from weak to strong.
    span : tuple of float
        For the last probe, the weakest and the strongest λ with an accepted count; empty if there is none.
    """

    lambda_sparse: float
    used_interactions: int
    snapshot: Snapshot
    start: Parameters
    status: Literal["searching", "found", "nearest"]
    message: str
    tried: tuple[tuple[float, int], ...]
    span: tuple[float, ...] = ()


def accepted_range(target: int) -> tuple[int, int]:
    """Return the largest j(j − 1)/2 up to the target and the next one (atarashi2021, 8.3)."""
    whole_number("target_interactions", target, 0)
    j = int((1 + (1 + 8 * target) ** 0.5) / 2)
    while j * (j - 1) // 2 > target:
        j -= 1
    return j * (j - 1) // 2, (j + 1) * j // 2


def grid(low: float, high: float) -> tuple[float, ...]:
    """Return the strengths of the grid in a range: twelve per decade, 1, 1.21, 1.47 …, to three digits."""
    steps = range(math.floor(PER_DECADE * math.log10(low)), math.ceil(PER_DECADE * math.log10(high)) + 1)
    each = (float(f"{10.0 ** (step / PER_DECADE):.3g}") for step in steps)
    return tuple(strength for strength in each if low <= strength <= high)


def weakest(problem: Problem) -> float:
    """Return the first strength of paths: the largest of the grid up to a thousandth of the default."""
    given = {"lambda_w": problem.lambda_w, "lambda_p": problem.lambda_p, "lambda_sparse": None}
    default = fill_strengths(problem, {**given, "init_scale": 1.0})[0].lambda_sparse
    share = _SHARE * (float(np.max(default)) or 1.0)
    return grid(share / 2.0, share)[-1]


def choose(counts: Sequence[int], target: int, accept: tuple[int, int]) -> tuple[int, list[int]]:
    """Return the index of the chosen fit, and the indices of all fits with an accepted count of interactions.

    Parameters
    ----------
    counts : sequence of int
        The interaction counts of the fits, from weak to strong.
    target : int
        The number.
    accept : (int, int)
        The accepted range.

    Returns
    -------
    (int, list of int)
        The first accepted fit, or else the first of the nearest ones, by the ratio of the counts. Fits after
        the end of a path are ignored.
    """
    end = next((n for n in range(1, len(counts)) if is_past(counts[:n], accept)), len(counts))
    inside = [place for place, used in enumerate(counts[:end]) if accept[0] <= used <= accept[1]]
    distances = [abs(math.log(used / (target or 1))) if used else math.inf for used in counts[:end]]
    return (inside or [distances.index(min(distances))])[0], inside


def is_past(counts: Sequence[int], accept: tuple[int, int]) -> bool:
    """Return whether a path is complete: no interaction is left, or a decade of fits had too few."""
    return counts[-1] == 0 or (len(counts) >= _BELOW and max(counts[-_BELOW:]) < accept[0])


def walk(
    problem: Problem,
    strengths: Sequence[float] | None = None,
    *,
    solver: str | Solver = "auto",
    budget: Budget,
    init_scale: float,
    random_state: Any = None,
    should_stop: Callable[[], bool] = never,
) -> Iterator[tuple[Parameters, PathPoint]]:
    """Yield fits from weak to strong, with their starts: the solutions at the next weaker grid strengths.

    The first fit, and each fit at a strength below `weakest`, starts like an upward path. A fit thus depends
    only on its strength, not on the other requested strengths.
    """
    first = weakest(problem)
    chain = grid(first, 10.0**_DECADES * first if strengths is None else max(first, *strengths))
    rng = np.random.default_rng(random_state)
    method, scale = path_solver(problem, solver), finite_number("init_scale", init_scale, low=0)
    fit = fit_from("informed", problem, method, scale, deepcopy(rng), at_any_strength=True)
    fit = replace(fit, budget=replace(budget, report_every=None))
    for strength in sorted({*chain, *(strengths or ())}):
        end = replace(fit, problem=problem.at(lambda_sparse=strength), rng=deepcopy(rng)).end(should_stop)
        if should_stop():
            return
        if strengths is None or strength in strengths:
            yield fit.start, PathPoint("cold", strength, end, math.nan)
        if strength in chain:
            fit = replace(fit, start=end.parameters)


def find_lambda(  # noqa: PLR0913 (keywords as those of the estimators)
    X: Any,
    y: Any,
    target_interactions: int = 1_000,
    accept: tuple[int, int] | None = None,
    *,
    solver: str | Solver = "auto",
    max_iter: int = 1_000,
    tol: float = 1e-4,
    init_scale: float | None = None,
    random_state: Any = None,
    standardize: bool | str = "auto",
    should_stop: Callable[[], bool] = never,
    **problem: Any,
) -> Iterator[Probe]:
    """Find the weakest strength λ that leaves about a given number of interactions.

    The grid has twelve strengths per decade and is traversed upwards from one thousandth of the default
    strength; each fit starts at the solution of the next weaker strength, and the first one as with
    ``start="informed"``. Of all fits with an accepted number, the one at the weakest λ is chosen: it shrinks
    the weights least. Counts are not monotone in λ; the search ends after a full decade of strengths with
    too few interactions, or when none remains. The pages Compare and λ-path and ``fmviz fit
    --interactions`` use the same rule.

    Parameters
    ----------
    X, y
        As for `regularization_path`.
    target_interactions : int
        The target number.
    accept : (int, int), optional
        The accepted range, which contains the target. The default is the choice of atarashi2021 for 1,000,
        990 to 1,035, and so for any target: from the largest binomial coefficient j(j − 1)/2 up to the
        target, which feature selection can reach, to the next one.
    solver, max_iter, tol, random_state, standardize, **problem
        As for `regularization_path`.
    init_scale : float, optional
        The standard deviation of the random start; by default derived from the data.
    should_stop : callable
        Called between epochs and fits; a stopped search yields no final status.

    Yields
    ------
    Probe
        After every fit, and last the chosen one again, with its status and the span of λ.

    Raises
    ------
    ValueError
        If a parameter is out of range, or parameters are incompatible.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> *_, probe = fmviz.find_lambda(X, y, 18, lambda_p=0.1, fit_linear=False, random_state=0)
    >>> print(probe.message)
    λ = 0.0681 uses 18 interactions, the weakest λ with 15 to 21; the strongest is 0.681.
    """
    described = problem_of(X, y, standardize, problem)[0]
    if init_scale is None:
        given = dict.fromkeys(("lambda_w", "lambda_p", "lambda_sparse"), 0.0)
        init_scale = fill_strengths(described, {**given, "init_scale": None})[1]
    return search_lambda(
        described,
        target_interactions,
        accept,
        solver=solver,
        budget=Budget(whole_number("max_iter", max_iter, 1), tol=finite_number("tol", tol, low=0)),
        init_scale=init_scale,
        random_state=random_state,
        should_stop=should_stop,
    )


def search_lambda(
    problem: Problem,
    target_interactions: int = 1_000,
    accept: tuple[int, int] | None = None,
    *,
    should_stop: Callable[[], bool] = never,
    **fits: Any,
) -> Iterator[Probe]:
    """Search as `find_lambda` does, for a given problem at any λ; the other keywords are those of `walk`."""
    target = whole_number("target_interactions", target_interactions, 0)
    accept = accepted_range(target) if accept is None else accept
    least, most = whole_number("accept[0]", accept[0], 0), whole_number("accept[1]", accept[1], 0)
    if not least <= target <= most:
        raise ValueError(f"accept = {accept!r} does not contain the target {target:,}; widen it.")
    return _search(walk(problem, should_stop=should_stop, **fits), target, (least, most), should_stop)


def _search(
    fits: Iterator[tuple[Parameters, PathPoint]],
    target: int,
    accept: tuple[int, int],
    should_stop: Callable[[], bool],
) -> Iterator[Probe]:
    tried: list[tuple[float, int]] = []
    for start, point in fits:
        strength, end = point.lambda_sparse, point.snapshot
        tried.append((strength, end.used_interactions))
        counts = [used for _, used in tried]
        words = f"λ = {typeset(strength)} uses {counts[-1]:,} interactions."
        probe = Probe(strength, counts[-1], end, start, "searching", words, tuple(tried))
        yield probe
        place, inside = choose(counts, target, accept)
        if place == len(tried) - 1:
            chosen = probe
        if is_past(counts, accept):
            break
    if should_stop() or not tried:
        return
    within = " to ".join(dict.fromkeys(f"{end:,}" for end in accept))
    about = f"λ = {typeset(chosen.lambda_sparse)} uses {chosen.used_interactions:,} interactions"
    if not inside:
        words = f"No λ of the grid leaves {within} interactions; the nearest: {about}."
        yield replace(chosen, status="nearest", message=words, tried=tuple(tried))
        return
    span = tried[inside[0]][0], tried[inside[-1]][0]
    words = f"{about}, the weakest λ with {within}; the strongest is {typeset(span[1])}."
    yield replace(chosen, status="found", message=words, tried=tuple(tried), span=span)
