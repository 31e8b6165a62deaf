"""Posterior samples of factorization machines, their mean predictions and intervals of weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from ..blas import each_on_one_thread, one_thread
from ..design import Design
from ..models import get_model
from ..parameters import Parameters
from ..target import Target
from .gibbs import Draw, GibbsSampler

# The number of rows for which the predictions of all samples are stored at once.
_ROWS = 2_000


@dataclass(frozen=True, eq=False)
class Posterior:
    """S posterior samples of a machine, or of C machines.

    Attributes
    ----------
    P : (S, d, k) or (C, S, d, k) ndarray
        The factors.
    w : (S, d) or (C, S, d) ndarray
        The linear weights.
    intercept : (S,) or (C, S) ndarray
        The biases.
    binary : bool
        Whether f is the score of a probit model of two classes.
    """

    P: np.ndarray
    w: np.ndarray
    intercept: np.ndarray
    binary: bool

    @classmethod
    def of(cls, chains: Sequence[Iterable[Draw]], binary: bool) -> Posterior:
        """Return the samples of the chain of each machine."""
        kept = [[draw.parameters for draw in chain] for chain in chains]
        P, w, intercept = (
            np.array([[getattr(sample, name) for sample in chain] for chain in kept])
            for name in ("P", "w", "intercept")
        )
        posterior = cls(P, w, intercept, binary)
        return posterior if len(kept) > 1 else posterior.machines[0]

    @property
    def machines(self) -> tuple[Posterior, ...]:
        """The samples of each machine."""
        if self.P.ndim == 3:
            return (self,)
        each = zip(self.P, self.w, self.intercept, strict=True)
        return tuple(Posterior(P, w, intercept, self.binary) for P, w, intercept in each)

    def __getitem__(self, samples: slice) -> Posterior:
        """Return some of the samples of one machine."""
        return Posterior(self.P[samples], self.w[samples], self.intercept[samples], self.binary)

    def each(self, X: Any) -> Iterable[np.ndarray]:
        """Yield the predictions of every sample, shape (S, n), for blocks of rows of X."""
        model, rows = get_model("fm"), sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        for begin in range(0, rows.shape[0], _ROWS):
            design = Design(rows[begin : begin + _ROWS])
            yield np.stack(
                [
                    model.predict(design, Parameters(P.astype(np.float64), w.astype(np.float64), float(bias)))
                    for P, w, bias in zip(self.P, self.w, self.intercept, strict=True)
                ]
            )

    def scores(self, X: Any) -> np.ndarray:
        """Return for every row the mean of f, or the score of the mean probability of the second class.

        The shape is (n,), or (n, C) for several machines.
        """
        if self.P.ndim > 3:
            return np.column_stack([machine.scores(X) for machine in self.machines])
        if not self.binary:
            return np.concatenate([part.mean(axis=0) for part in self.each(X)])
        return np.concatenate([_mean_score(part) for part in self.each(X)])

    def weights(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the weights of pairs (i, j) in every sample, shape (S, n)."""
        return np.einsum("spk,spk->sp", self.P[:, i], self.P[:, j])

    def mean_factors(self) -> np.ndarray:
        """Return L, shape (d, S·k), with L Lᵀ the mean of P Pᵀ."""
        draws, d, k = self.P.shape
        return np.asarray(self.P.transpose(1, 0, 2).reshape(d, draws * k) / np.sqrt(draws))

    def mean_parameters(self) -> Parameters:
        """Return parameters of rank S·k whose weights are the means over the samples."""
        each = [
            Parameters(machine.mean_factors(), machine.w.mean(axis=0), float(machine.intercept.mean()))
            for machine in self.machines
        ]
        return each[0] if self.P.ndim == 3 else Parameters.stacked(each)


def _mean_score(f: np.ndarray) -> np.ndarray:
    """Return Φ⁻¹ of the mean of Φ(f), f of shape (S, n), finite even if the mean rounds to 0 or 1."""
    low, high = (logsumexp(log_ndtr(side), axis=0) - np.log(len(f)) for side in (f, -f))
    return np.where(low < high, ndtri_exp(np.minimum(low, high)), -ndtri_exp(np.minimum(low, high)))


def intervals_of(samples: np.ndarray, level: float, sign: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Summarize samples of n numbers, shape (S, n).

    Returns
    -------
    dict of (n,) ndarray
        ``mean`` over the samples; ``lower`` and ``upper``, the ends of the central interval of probability
        `level`; ``probability``, the share of samples with the given `sign`, by default that of the mean.
    """
    mean = samples.mean(axis=0)
    lower, upper = np.quantile(samples, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
    same = (np.sign(samples) == np.sign(mean if sign is None else sign)).mean(axis=0)
    return {"mean": mean, "lower": lower, "upper": upper, "probability": same}


def draws_by_output(
    design: Design, outputs: Sequence[Target], number: int, *settings: Any
) -> Iterator[tuple[int, int, Draw]]:
    """Yield samples of a chain for each output: output index, sample number, and the sample.

    `settings` are the arguments of `GibbsSampler` starting with the rank.
    """
    for c, output in enumerate(outputs):
        with one_thread():
            draws = each_on_one_thread(GibbsSampler(design, output.values, *settings).draws())
        for i, draw in enumerate(islice(draws, number), 1):
            yield c, i, draw
