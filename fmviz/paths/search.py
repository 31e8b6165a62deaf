"""Search for the strength λ whose fit uses a given number of interactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fmviz.engine.drive import Budget, chosen_solver
from fmviz.engine.errors import finite_number, whole_number
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import Solver
from fmviz.typography import typeset

from .path import (
    Order,
    checked_strengths,
    cold_start,
    iterate_path,
    path_solver,
    problem_of,
    start_and_solver,
)

# The grid of the paper's search (atarashi2021, 8.3): powers of ten.
GRID = tuple(10.0**e for e in range(-7, -1))


@dataclass(frozen=True, eq=False)
class Probe:
    """One step of `find_lambda`.

    Attributes
    ----------
    lambda_sparse : float
        The strength tried.
    used_interactions : int
        The number of interactions used by its fit.
    low, high : float
        The bracket after this probe: too many interactions at `low`, too few at `high`; NaN while unknown.
    snapshot : Snapshot
        The final snapshot of the fit.
    status : {"searching", "found", "not reachable"}
        The state of the search; the last probe has the outcome.
    message : str
        The status as a sentence.
    """

    lambda_sparse: float
    used_interactions: int
    low: float
    high: float
    snapshot: Snapshot
    status: Literal["searching", "found", "not reachable"]
    message: str


def accepted_range(target: int) -> tuple[int, int]:
    """Return the largest j(j − 1)/2 up to the target and the next one (atarashi2021, 8.3)."""
    whole_number("target_interactions", target, 0)
    j = int((1 + (1 + 8 * target) ** 0.5) / 2)
    while j * (j - 1) // 2 > target:
        j -= 1
    return j * (j - 1) // 2, (j + 1) * j // 2


def find_lambda(
    X: Any,
    y: Any,
    target_interactions: int = 1_000,
    accept: tuple[int, int] | None = None,
    *,
    grid: Sequence[float] = GRID,
    narrowest: float = 1e-12,
    solver: str | Solver = "auto",
    max_iter: int = 1_000,
    tol: float = 1e-4,
    init_scale: float = 0.01,
    random_state: Any = None,
    standardize: bool | str = "auto",
    should_stop: Callable[[], bool] = lambda: False,
    **problem: Any,
) -> Iterator[Probe]:
    """Search for the strength λ at which a fit uses a given number of interactions (atarashi2021, 8.3).

    The grid is fitted downward from its largest strength until a fit uses more interactions than the target;
    this strength and the previous one form the bracket, which is then bisected. The search ends when a fit
    uses an accepted number, or as *not reachable* if the grid contains no bracket or the bracket becomes
    narrower than `narrowest`. All fits have the same random start.

    Parameters
    ----------
    X, y
        As for `regularization_path`.
    target_interactions : int
        The target number.
    accept : (int, int), optional
        The accepted range, which contains the target. The default is the paper's choice for 1,000, 990 to
        1,035, and so for any target: from the largest binomial coefficient j(j − 1)/2 up to the target, which
        feature selection can reach, to the next one.
    grid : sequence of float
        The strengths searched for a bracket.
    narrowest : float
        The width of the bracket at which the search stops.
    solver, max_iter, tol, init_scale, random_state, standardize, **problem
        As for `regularization_path`.
    should_stop : callable
        Called between epochs and fits; a stopped search yields no final status.

    Yields
    ------
    Probe
        After every fit; the status of the last one is not "searching".

    Raises
    ------
    ValueError
        If a parameter is out of range, or parameters are incompatible.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> settings = {"lambda_p": 0.1, "fit_linear": False, "random_state": 0}
    >>> for probe in fmviz.find_lambda(X, y, 18, grid=[0.01, 0.05, 1.0], **settings):
    ...     print(f"{probe.lambda_sparse:.4f}: {probe.used_interactions} interactions, {probe.status}")
    1.0000: 0 interactions, searching
    0.0500: 22 interactions, searching
    0.5250: 0 interactions, searching
    0.2875: 16 interactions, found
    """
    budget = Budget(
        epochs=whole_number("max_iter", max_iter, 1),
        tol=finite_number("tol", tol, low=0),
    )
    return search_lambda(
        problem_of(X, y, standardize, problem)[0],
        target_interactions,
        accept,
        grid=grid,
        narrowest=narrowest,
        solver=solver,
        budget=budget,
        init_scale=init_scale,
        random_state=random_state,
        should_stop=should_stop,
    )


def search_lambda(
    problem: Problem,
    target_interactions: int = 1_000,
    accept: tuple[int, int] | None = None,
    *,
    grid: Sequence[float] = GRID,
    narrowest: float = 1e-12,
    solver: str | Solver = "auto",
    budget: Budget,
    start: str = "random",
    order: Order = "cold",
    init_scale: float = 0.01,
    random_state: Any = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[Probe]:
    """Search like `find_lambda` for a given problem, ignoring its λ.

    `start` is as for `regularization_path`. With `order` "down" or "up", fits start from the fit at the next
    larger or next smaller strength so far, and the grid is traversed in that direction. The fits then form a
    path, and none can be reproduced alone.
    """
    target = whole_number("target_interactions", target_interactions, 0)
    accept = accepted_range(target_interactions) if accept is None else accept
    least, most = whole_number("accept[0]", accept[0], 0), whole_number("accept[1]", accept[1], 0)
    if not least <= target <= most:
        raise ValueError(f"accept = {accept!r} does not contain the target {target:,}; widen it.")
    strengths = sorted(checked_strengths("grid", grid), reverse=order != "up")
    rng = np.random.default_rng(random_state)
    method = chosen_solver(problem, solver) if order == "cold" else path_solver(problem, solver)
    first, method = start_and_solver(problem, start, init_scale, rng, method)
    finite_number("narrowest", narrowest, low=0)

    fits: dict[float, Parameters] = {}

    def fit(strength: float) -> Snapshot | None:
        before = [other for other in fits if (other < strength) == (order == "up")]
        near = min(before, key=lambda other: abs(other - strength), default=None)
        # The same draws each time, to make a cold fit at the resulting strength reproducible alone.
        begin = first if near is None else fits[near]
        if order == "cold":
            begin = cold_start(problem.at(lambda_sparse=strength), first, start)
        points = iterate_path(
            problem,
            [strength],
            orders=("cold",),
            start=begin,
            solver=method,
            budget=budget,
            random_state=deepcopy(rng),
            should_stop=should_stop,
        )
        end = next((point.snapshot for point in points), None)
        if order != "cold" and end is not None:
            fits[strength] = end.parameters
        return end

    return _search(fit, target, least, most, strengths, narrowest, should_stop)


def _search(
    fit: Callable[[float], Snapshot | None],
    target: int,
    least: int,
    most: int,
    strengths: list[float],
    narrowest: float,
    should_stop: Callable[[], bool],
) -> Iterator[Probe]:
    low = high = float("nan")
    waiting = list(strengths)
    rising = strengths[0] < strengths[-1]
    while not should_stop():
        strength = waiting.pop(0) if waiting else 0.5 * (low + high)
        if (end := fit(strength)) is None or should_stop():
            return
        used = end.used_interactions
        if least <= used <= most:
            words = f"Found: λ = {typeset(strength, '.6g')} uses {used:,} interactions."
            yield Probe(strength, used, low, high, end, "found", words)
            return
        if used > most:
            low = strength
        else:
            high = strength
        if (used > most) != rising:
            waiting = []
        d = end.parameters.P.shape[-2]
        lost = _failure(low, high, used, target, waiting, narrowest, d * (d - 1) // 2)
        words = lost or (
            f"λ = {typeset(strength, '.6g')} uses {used:,} interactions, "
            f"{'more' if used > most else 'fewer'}."
        )
        yield Probe(strength, used, low, high, end, "not reachable" if lost else "searching", words)
        if lost:
            return


def _failure(
    low: float, high: float, used: int, target: int, waiting: list[float], narrowest: float, pairs: int
) -> str | None:
    """Return the reason why the search fails, or None."""
    if np.isnan(high) and not waiting:
        return (
            f"Not reachable: even the largest strength of the grid, {low:g}, leaves {used:,} interactions. "
            "Add larger strengths to the grid."
        )
    if np.isnan(low) and used == pairs:
        return f"Not reachable: all {pairs:,} pairs are used. Choose a smaller number."
    if np.isnan(low) and not waiting:
        return (
            f"Not reachable: even the smallest strength of the grid, {high:g}, leaves only {used:,} "
            "interactions. Add smaller strengths, or increase the scale of the start."
        )
    if high - low < narrowest:
        return (
            f"Not reachable: the number of interactions jumps over {target:,} between λ = {low:.15g} and "
            f"{high:.15g}."
        )
    return None
