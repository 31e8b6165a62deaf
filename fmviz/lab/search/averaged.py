"""Predictions averaged over samples of a Bayesian factorization machine, compared with a fit."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.engine.design import Design
from fmviz.engine.fit import never
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.sampling.posterior import Posterior, draws_by_output, intervals_of
from fmviz.engine.target import Target
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.runner import Run
from fmviz.metrics import METRICS, Metric, Predictions, measured
from fmviz.metrics.prediction import auc_by_row, standard_error

_DRAWS, _BURN_IN = 150, 50
# Limits on visited entries and stored numbers, for time and memory.
_MOST_VISITS = 1e10
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
        """Return whether it ends within a minute and in memory."""
        return self.visits(problem) <= _MOST_VISITS and self.numbers(problem) <= _MOST_NUMBERS


def usual_sampling(problem: Problem) -> Sampling:
    """Return one machine with the rank and all features of a problem."""
    return Sampling(problem.rank, [np.ones(problem.design.n_features, dtype=bool)], _BURN_IN, _DRAWS)


def can_be_sampled(problem: Problem) -> bool:
    """Return whether samples suit the model and the loss: pairs, separate outputs, and a mean or classes."""
    return problem.model.plain and (problem.loss.task == "binary" or problem.loss.name == "squared")


def can_be_averaged(problem: Problem) -> bool:
    """Return whether `averaged` is possible, in time and memory."""
    return can_be_sampled(problem) and usual_sampling(problem).fits(problem)


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


def averaged(
    prepared: Run, should_stop: Callable[[], bool] = never
) -> Generator[Message, None, Posterior | None]:
    """Return samples of machines with the rank and training rows of a run, or None if impossible."""
    problem = prepared.problem
    if not can_be_averaged(problem):
        return None
    seed = prepared.experiment.seed
    return (yield from sampled(problem, usual_sampling(problem), seed, should_stop))


@dataclass(frozen=True, eq=False)
class Baseline:
    """The baseline of the weights of a fit with respect to levels of attributes.

    If every row has exactly one level of an attribute, adding a constant to the weights of all levels with
    another feature, and subtracting it from the linear weight of that feature, changes no prediction. Samples
    compared with a fit need the same constants: with ⟨p_i, p_j⟩ = ⟨p_i − p̄, p_j − p̄⟩ + …, p̄ the mean
    factors of an attribute over the rows, the first term is independent of the baseline, and the others are
    taken from the fit.

    Attributes
    ----------
    P : (d, k) ndarray
        The factors of the fit.
    shares : (G, d) CSR array
        Share of the rows with each level, for attributes with one level per row; the last row is empty.
    attribute : (d,) int ndarray
        The row of `shares` of every feature.
    """

    P: np.ndarray
    shares: sp.csr_array
    attribute: np.ndarray

    @classmethod
    def of(cls, prepared: Run, parameters: Parameters) -> Baseline:
        """Return the baseline of a fit with these parameters."""
        design = prepared.problem.design
        n, d = design.n_samples, design.n_features
        # Without linear weights there is nothing to subtract from.
        levels = (
            [
                np.array(attribute.columns)
                for attribute in Attributes(prepared.dataset).all
                # Every row has exactly one of its levels.
                if attribute.kind == "levels" and not attribute.can_lack
            ]
            if prepared.problem.fit_linear
            else []
        )
        attribute = np.full(d, len(levels))
        for place, columns in enumerate(levels):
            attribute[columns] = place
        share = np.where(attribute < len(levels), design.transpose_dot(np.ones(n)) / n, 0.0)
        shares = sp.csr_array((share, (attribute, np.arange(d))), shape=(len(levels) + 1, d))
        return cls(parameters.P, shares, attribute)

    def centered(self, P: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return ⟨p_i − p̄, p_j − p̄⟩ for pairs (i, j), shape (n,)."""
        means = self.shares @ P
        first, second = (P[features] - means[self.attribute[features]] for features in (i, j))
        return np.einsum("pk,pk->p", first, second)

    def own(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the other terms of the weights of pairs (i, j), shape (n,)."""
        return np.einsum("pk,pk->p", self.P[i], self.P[j]) - self.centered(self.P, i, j)


@dataclass(frozen=True, eq=False)
class Average:
    """Predictions averaged over samples, compared with those of a fit.

    Attributes
    ----------
    posterior : Posterior
        The samples, in single precision.
    better : bool
        Whether the average is used for prediction: if it is better by more than a standard error of the
        difference.
    figures : mapping of str to float
        Prediction metrics of the average on these rows, by the names of `Run.measure`.
    message : str
        The comparison as a sentence.
    baseline : Baseline or None
        The baseline of the fit; None with several outputs.
    scale : float
        Factor from the samples' scores to those of the fit.
    """

    posterior: Posterior
    better: bool
    figures: Mapping[str, float]
    message: str
    baseline: Baseline | None
    scale: float

    @classmethod
    def beside(cls, prepared: Run, parameters: Parameters, posterior: Posterior) -> Average:
        """Compare samples with the parameters of a fit."""
        draws = posterior.P.shape[-3]
        log_odds = prepared.problem.loss.probability(np.zeros(1)) is not None
        baseline = Baseline.of(prepared, parameters) if prepared.problem.n_machines is None else None
        fit = baseline, LOG_ODDS if log_odds else 1.0
        if prepared.validation is None:
            return cls(posterior, False, {}, f"{draws} samples of a Bayesian machine.", *fit)
        design, y = prepared.validation
        target = Target.of(prepared.dataset.target_of(y))
        metric = metric_of(target.kind)
        scale, title = metric.within(prepared.dataset.unit)
        title += prepared.dataset.contrast if metric.name == "auc" else ""
        scores = posterior.scores(design.matrix), prepared.problem.model.scores(design, parameters)
        each = [measured(target.kind, Predictions(target, f)) for f in scores]
        sampled, own = (figures[metric.name] for figures in each)
        shown = {f"validation_{name}": value for name, value in each[0].items()}
        gain = np.subtract(*(by_row(target, f) for f in scores))
        error = standard_error(gain, prepared.row_groups[1])
        better = bool(gain.mean() > error)
        compared = "better than" if better else "worse than" if gain.mean() < -error else "about as good as"
        words = (
            f"On held-out rows, predictions averaged over {draws} samples of a Bayesian machine are "
            f"{compared} those of this fit: {title} {scale * sampled:.4g} and {scale * own:.4g}, "
            f"{abs(gain.mean()) / (error or 1.0):.1f} standard errors apart."
        )
        return cls(posterior, better, shown, words, *fit)

    def intervals(self, i: np.ndarray, j: np.ndarray, level: float = 0.95) -> pd.DataFrame:
        """Return posterior statistics of the weights of pairs (i, j), in the baseline of the fit.

        Returns
        -------
        DataFrame
            ``mean``; ``lower`` and ``upper``, the ends of the central interval of probability `level`;
            ``probability``, the share of samples whose weight has the sign of the mean.
        """
        assert self.baseline is not None, "requires a single output"
        samples = np.stack([self.baseline.centered(P, i, j) for P in self.posterior.P])
        return pd.DataFrame(intervals_of(self.scale * samples + self.baseline.own(i, j), level))

    @property
    def n_bytes(self) -> int:
        """The memory size in bytes."""
        return int(self.posterior.P.nbytes + self.posterior.w.nbytes)


def metric_of(kind: str) -> Metric:
    """Return the metric that compares predictions of a kind of target."""
    return METRICS["rmse" if kind == "real" else "auc"]


def by_row(target: Target, f: np.ndarray) -> np.ndarray:
    """Return how good each prediction is, shape (N,): minus its squared error, or its part of the metric."""
    y = target.values
    if target.kind == "real":
        return np.asarray(-np.square(y - f).reshape(len(y), -1).mean(axis=1))
    scores = f.reshape(len(f), -1).T
    each = [auc_by_row(own.values, s) for own, s in zip(target.outputs, scores, strict=True)]
    known = [areas for areas in each if np.isfinite(areas).all()]
    # Without rows of a class, there is nothing to compare.
    return np.mean(known, axis=0) if known else np.full(len(f), 0.5)


def average_beside(
    prepared: Run, parameters: Parameters, should_stop: Callable[[], bool] = never
) -> Generator[Message | Average, None, Average | None]:
    """Draw samples for a run, if possible, and compare their predictions with those of the fit."""
    posterior = yield from averaged(prepared, should_stop)
    if posterior is None:
        return None
    average = Average.beside(prepared, parameters, posterior)
    yield average
    return average
