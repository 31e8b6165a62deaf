"""Predictions averaged over samples of a Bayesian machine, beside those of a run."""

from __future__ import annotations

from itertools import islice

import numpy as np

from fmviz.engine.sampling.gibbs import GibbsSampler
from fmviz.engine.sampling.posterior import Posterior
from fmviz.lab.runner import Run

__all__ = ["averaged"]

_DRAWS, _BURN_IN = 150, 50
# Visits of stored entries, and numbers kept, beyond which it would take minutes, or much memory.
_MOST_VISITS = 1e10
_MOST_NUMBERS = 5e7


def averaged(prepared: Run) -> Posterior | None:
    """Return samples of a machine of the run's rank and training rows, None where they would take long.

    Features of one attribute share means and precisions.
    """
    problem, rank = prepared.problem, prepared.problem.rank
    visits = (_DRAWS + _BURN_IN) * problem.design.nnz * (rank + 1)
    if visits > _MOST_VISITS or _DRAWS * problem.design.n_features * (rank + 1) > _MOST_NUMBERS:
        return None
    binary = problem.loss.task == "binary"
    sampler = GibbsSampler(
        problem.design,
        problem.y,
        rank,
        binary,
        problem.fit_linear,
        problem.fit_intercept,
        np.unique(prepared.dataset.groups, return_inverse=True)[1],
        np.random.default_rng([prepared.experiment.seed, 3]),
    )
    return Posterior.of(islice(sampler.draws(), _BURN_IN, _BURN_IN + _DRAWS), binary)
