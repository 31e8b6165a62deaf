"""Averages over samples of Bayesian machines, and how good predictions are by row."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np

from fmviz.engine.design import Design
from fmviz.engine.fit import never
from fmviz.engine.problem import Problem
from fmviz.engine.sampling.posterior import Posterior, draws_by_output
from fmviz.engine.target import Target
from fmviz.metrics import METRICS, Metric
from fmviz.metrics.prediction import auc_by_row

# Limits on visited entries and stored numbers, for time and memory.
_MOST_VISITS = 4e9
_MOST_NUMBERS = 5e7
LOG_ODDS = 1.702
"""Φ(z) is 1/(1 + exp(−1.702 z)) up to 0.01."""


@dataclass(frozen=True)
class Message:
    """A progress message of a fit or of sampling."""

    message: str


@dataclass(frozen=True, eq=False)
class Sampling:
    """Machines to sample and to average.

    Attributes
    ----------
    rank : int
        The rank; 0 for a linear model.
    parts : sequence of (d,) bool ndarray
        The features of each machine; the weights of all others are 0.
    burn_in, draws : int
        The numbers of first samples, which are ignored, and of samples that are averaged, per machine.
    """

    rank: int
    parts: Sequence[np.ndarray]
    burn_in: int = 30
    draws: int = 60

    def visits(self, problem: Problem) -> float:
        """Return the number of reads of entries of X."""
        counts = problem.design.counts
        each = sum(float(counts[part].sum()) for part in self.parts)
        return len(problem.machines) * (self.draws + self.burn_in) * (self.rank + 1) * each

    def numbers(self, problem: Problem) -> float:
        """Return the number of stored weights."""
        each = len(self.parts) * self.draws * problem.design.n_features * (self.rank + 1)
        return float(len(problem.machines) * each)

    def fits(self, problem: Problem) -> bool:
        """Return whether it ends within a minute and in memory, also with the samples of a prediction."""
        return self.visits(problem) <= _MOST_VISITS and self.numbers(problem) <= _MOST_NUMBERS


def can_be_sampled(problem: Problem) -> bool:
    """Return whether samples suit the model and the loss: pairs, separate outputs, and a mean or classes."""
    if not problem.model.plain or problem.loss.task == "binary":
        return problem.model.plain
    of_residual = problem.loss.scalar.of_residual
    return of_residual is not None and of_residual.is_residual


def sampled(
    problem: Problem, sampling: Sampling, seed: int, should_stop: Callable[[], bool] = never, before: str = ""
) -> Generator[Message, None, Posterior | None]:
    """Return samples of one or several machines per output, in single precision; None if stopped.

    All features of a machine share one prior: a prior per column does not shrink columns of a single feature.
    Yields a `Message` after every sample.
    """
    binary, outputs, d = problem.loss.task == "binary", problem.target.outputs, problem.design.n_features
    rng, each = np.random.default_rng([seed, 3]), sampling.burn_in + sampling.draws
    total, shape = each * len(sampling.parts), (len(outputs), sampling.draws * len(sampling.parts))
    P = np.zeros((*shape, d, sampling.rank), dtype=np.float32)
    w, intercept = np.zeros((*shape, d), dtype=np.float32), np.zeros(shape, dtype=np.float32)
    for number, part in enumerate(sampling.parts):
        design = problem.design if part.all() else Design(problem.design.matrix[:, part])
        shared = np.zeros(design.n_features, dtype=int)
        settings = sampling.rank, binary, problem.fit_linear, problem.fit_intercept, shared, rng
        for c, i, draw in draws_by_output(design, outputs, each, *settings):
            if should_stop():
                return None
            at = number * sampling.draws + i - 1 - sampling.burn_in
            if i > sampling.burn_in:
                own = draw.parameters
                P[c, at, part], w[c, at, part], intercept[c, at] = own.P, own.w, own.intercept
            of = f", machine {c + 1} of {len(outputs)}" if len(outputs) > 1 else ""
            yield Message(f"{before}Sample {number * each + i} of {total} of a Bayesian machine{of}.")
    machines = Posterior(P, w, intercept, binary)
    return machines if len(outputs) > 1 else machines.machines[0]


def metric_of(kind: str) -> Metric:
    """Return the metric that compares predictions of a kind of target."""
    return METRICS["rmse" if kind == "real" else "auc"]


def by_row(target: Target, f: np.ndarray) -> np.ndarray:
    """Return how good each prediction is, shape (N,): minus its squared error, or its part of the metric."""
    if target.kind == "real":
        return np.asarray(-np.square(target.values - f).reshape(len(f), -1).mean(axis=1))
    scores = f.reshape(len(f), -1).T
    each = [auc_by_row(own.values, s) for own, s in zip(target.outputs, scores, strict=True)]
    known = [areas for areas in each if np.isfinite(areas).all()]
    # Without rows of a class, there is nothing to compare.
    return np.mean(known, axis=0) if known else np.full(len(f), 0.5)
