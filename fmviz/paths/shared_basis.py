"""Choose λ of a machine on a shared basis by validation along a path."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from fmviz.engine.fit import Budget
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.shared_basis.output_layer import largest_strength
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.strengths import LINEAR_SHARE, linear_reference

from .validation import Folds, Trial, Validation, parts_of, trials_along, until_worse

LARGEST_SHARE, SMALLEST_SHARE = 0.5, 2e-3
"""The ends of the path, as fractions of λ_max."""
_COUNT, _PATIENCE = 12, 3
# Fits are compared by their predictions; a certificate costs more than an epoch.
_BUDGET = Budget(epochs=20, tol=1e-3, report_every=None, certify_every=None)
# Settings for several bases per epoch.
_QUICK = {"bases": 10, "accuracy": 1e-4}
# The number of predictions from which a single held-out part suffices.
_MANY = 5_000


def search_basis_strength(
    problem: Problem,
    folds: Folds,
    rng: np.random.Generator,
    *,
    solver: Solver,
    count: int = _COUNT,
    patience: int = _PATIENCE,
    should_stop: Callable[[], bool] = lambda: False,
) -> Generator[Trial, None, Validation]:
    """Choose λ by the mean loss on held-out rows; yield every trial.

    The path runs downward from half of λ_max, each fit warm-started from the previous one, and stops early if
    the validation loss keeps increasing. λ_w is the default of the estimators.

    Parameters
    ----------
    problem : Problem
        The problem of all rows, with the model "shared_basis"; its strengths are ignored.
    folds : sequence of (int ndarray, int ndarray)
        Training rows and held-out rows.
    rng : numpy Generator
        Draws the starts.
    solver : Solver
        The solver; its settings are kept, except the number of bases added per epoch.
    count, patience, should_stop
        As for `fmviz.paths.validation.search_strengths`.

    Returns
    -------
    Validation

    Raises
    ------
    ValueError
        If the search is stopped before the first fit.
    """
    if problem.design.n_samples * problem.target.n_outputs >= _MANY:
        folds = folds[:1]
    problem = problem.at(lambda_w=LINEAR_SHARE * linear_reference(problem), lambda_p=0.0)
    parts = parts_of(problem, folds)
    path = trials_along(
        parts,
        (np.geomspace(LARGEST_SHARE, SMALLEST_SHARE, count) * largest_strength(problem)).tolist(),
        [train.start(0.0, rng) for train, _ in parts],
        order="down",
        budget=_BUDGET,
        method=solver.having(**_QUICK),
        rng=rng,
        should_stop=should_stop,
    )
    ends: dict[Trial, Parameters] = {}
    for trial, fits in until_worse(path, patience):
        ends[trial] = fits[0]
        yield trial
    if not ends:
        raise ValueError("Stopped before the first fit.")
    best = min(ends, key=lambda trial: trial.loss)
    return Validation([*ends], best, ends[best], 0.0)
