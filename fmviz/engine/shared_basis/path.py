"""Paths over λ outside and bases inside, validated on the way ([C] Section 6.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..parameters import Parameters
from ..problem import Problem
from ..solvers import Solver


@dataclass(frozen=True, eq=False)
class Step:
    """A machine on the way.

    Attributes
    ----------
    strength : float
        λ.
    n_bases : int
        The bases in use.
    score : float
        What validation says of it; higher is better.
    parameters : Parameters
        The machine.
    """

    strength: float
    n_bases: int
    score: float
    parameters: Parameters


def accuracy_on(problem: Problem) -> Callable[[Parameters], float]:
    """Return a score: the share of a problem's rows whose class has the largest score."""

    def score(parameters: Parameters) -> float:
        F = problem.predict(parameters)
        found = F.argmax(axis=1) if F.ndim == 2 else np.where(F > 0.0, 1.0, -1.0)
        return float(np.mean(found == problem.y))

    return score


def validated_path(
    problem: Problem,
    score: Callable[[Parameters], float],
    strengths: Iterable[float],
    solver: Solver,
    rng: np.random.Generator,
    most_epochs: int = 100,
) -> Iterator[Step]:
    """Yield every machine that a solver goes through, for one λ after the other.

    Each λ starts without a basis. Its run ends when `rank` bases are in use, or an epoch changes nothing.
    """
    for strength in strengths:
        method = solver.on(problem.at(lambda_sparse=strength))
        start = problem.start(0.0, rng)
        method.start(start, rng)
        for _ in range(most_epochs):
            change = method.epoch()
            here = method.parameters()
            n_bases = int(np.count_nonzero(here["V"].any(axis=1)))
            yield Step(strength, n_bases, score(here), here)
            if change <= 1e-9 or n_bases == problem.rank:
                break
        method.close()
