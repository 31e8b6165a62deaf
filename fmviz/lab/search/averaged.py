"""Predictions averaged over samples of a Bayesian machine, beside those of a run."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pandas as pd

from fmviz.engine.drive import never
from fmviz.engine.outputs.side_by_side import AnyProblem
from fmviz.engine.parameters import Parameters
from fmviz.engine.sampling.gibbs import GibbsSampler
from fmviz.engine.sampling.posterior import Posterior
from fmviz.lab.runner import Run, quality

__all__ = ["Average", "averaged", "can_be_averaged"]

_DRAWS, _BURN_IN = 150, 50
# Visits of stored entries, and numbers kept, beyond which it would take minutes, or much memory.
_MOST_VISITS = 1e10
_MOST_NUMBERS = 5e7


def can_be_averaged(problem: AnyProblem) -> bool:
    """Return whether there are samples of such a machine, of one output, and within some minutes."""
    if problem.n_machines is not None:
        return False
    visits = (_DRAWS + _BURN_IN) * problem.design.nnz * (problem.rank + 1)
    numbers = _DRAWS * problem.design.n_features * (problem.rank + 1)
    return problem.model.why_no_threshold() is None and visits <= _MOST_VISITS and numbers <= _MOST_NUMBERS


def averaged(
    prepared: Run, should_stop: Callable[[], bool] = never
) -> Generator[str, None, Posterior | None]:
    """Return samples of a machine of the run's rank and training rows, None where they cannot be had.

    Features of one attribute share means and precisions. After every sample a sentence on how far it is
    comes; with `should_stop` it ends early, with None.
    """
    problem = prepared.problem
    if not can_be_averaged(problem):
        return None
    binary = problem.loss.task == "binary"
    sampler = GibbsSampler(
        problem.design,
        problem.y,
        problem.rank,
        binary,
        problem.fit_linear,
        problem.fit_intercept,
        np.unique(prepared.dataset.groups, return_inverse=True)[1],
        np.random.default_rng([prepared.experiment.seed, 3]),
    )
    kept = []
    for number, draw in enumerate(islice(sampler.draws(), _BURN_IN + _DRAWS), 1):
        if should_stop():
            return None
        if number > _BURN_IN:
            kept.append(draw)
        yield f"Sample {number} of {_BURN_IN + _DRAWS} of a Bayesian machine."
    return Posterior.of(kept, binary)


@dataclass(frozen=True, eq=False)
class Average:
    """Predictions averaged over samples, beside those of a fit.

    Attributes
    ----------
    posterior : Posterior
        The samples, in single precision.
    score, own_score : float or None
        How good the average and the fit are on rows kept out: the area under the ROC curve, or minus the
        RMSE; None where none were.
    message : str
        The same in a sentence.
    """

    posterior: Posterior
    score: float | None
    own_score: float | None
    message: str

    @classmethod
    def beside(cls, prepared: Run, parameters: Parameters, posterior: Posterior) -> Average:
        """Compare samples with the parameters of a fit."""
        draws = posterior.P.shape[0]
        small = Posterior(
            posterior.P.astype(np.float32),
            posterior.w.astype(np.float32),
            posterior.intercept.astype(np.float32),
            posterior.binary,
        )
        if prepared.validation is None:
            return cls(small, None, None, f"{draws} samples of a Bayesian machine.")
        design, y = prepared.validation
        sampled, own = (
            -found["rmse"] if "rmse" in found else found["auc"]
            for found in (
                quality(y, posterior.scores(design.matrix)),
                quality(y, prepared.problem.model.predict(design, parameters)),
            )
        )
        which = "AUC" if posterior.binary else "RMSE"
        scale, unit = (1.0, "") if posterior.binary else prepared.dataset.unit
        better = "better than" if sampled > own else "no better than"
        words = (
            f"Averaged over {draws} samples of a Bayesian machine, predictions of the rows kept out are "
            f"{better} those of this fit: {which} {scale * abs(sampled):.4g} and {scale * abs(own):.4g}"
            + (f" (in {unit})." if unit else ".")
        )
        return cls(small, sampled, own, words)

    @property
    def better(self) -> bool:
        """Whether the average predicts better."""
        return self.score is not None and self.own_score is not None and self.score > self.own_score

    def intervals(self, i: np.ndarray, j: np.ndarray, level: float = 0.95) -> pd.DataFrame:
        """Return what the samples say of the weights of pairs (i, j).

        Returns
        -------
        DataFrame
            ``mean`` over the samples; ``lower`` and ``upper``, the ends of the central interval of
            probability `level`; ``probability``, the share of the samples whose weight has the sign of the
            mean.
        """
        return pd.DataFrame(self.posterior.intervals(i, j, level))

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        return int(self.posterior.P.nbytes + self.posterior.w.nbytes)
