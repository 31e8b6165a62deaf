"""Validated regularization paths of machines on a shared basis ([C] Section 6.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..parameters import Parameters
from ..problem import Problem
from ..solvers import Solver
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
    model: Any = problem.model
    d, m = problem.design.n_features, problem.target.n_outputs
    layer = OutputLayer(problem, np.zeros((d, 0)), np.zeros((d, m)))
    start = np.zeros((layer.Z.shape[1], m)), np.zeros((d, m))
    refit = partial(whitened, tol=_ACCURACY)
    T, _ = refit_output_layer(layer, *start, refit, _ACCURACY)
    slopes = risk_and_slopes(problem, layer.Z @ T + layer.offset)[1]
    gradient = BasisGradient(problem.design, slopes, model.diagonal)
    norms = select(gradient, DUAL_ORDER[problem.penalty.row_norm], "eigen", 1, np.random.default_rng(0))[1]
    return float(norms.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Step:
    """A machine along the path.

    Attributes
    ----------
    strength : float
        λ.
    n_bases : int
        The bases in use.
    score : float
        Its validation score; higher is better.
    parameters : Parameters
        The machine.
    """

    strength: float
    n_bases: int
    score: float
    parameters: Parameters


def accuracy_on(problem: Problem, parameters: Parameters) -> float:
    """Return the share of a problem's rows whose class has the largest score."""
    F = problem.predict(parameters)
    predicted = F.argmax(axis=1) if F.ndim == 2 else np.where(F > 0.0, 1.0, -1.0)
    return float(np.mean(predicted == problem.y))


def validated_path(
    problem: Problem,
    score: Callable[[Parameters], float],
    strengths: Iterable[float],
    solver: Solver,
    rng: np.random.Generator,
    most_epochs: int = 100,
) -> Iterator[Step]:
    """Yield the machine after every epoch of a solver, for one λ after the other.

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
