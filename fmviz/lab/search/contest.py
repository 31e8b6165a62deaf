"""A contest by folds: the mean, columns alone, sparse pairs, and averages over samples."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import ndtri

from fmviz.engine.fit import Budget, never
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.sampling.posterior import Posterior
from fmviz.engine.settings import SMALL
from fmviz.lab.datasets import Dataset
from fmviz.lab.quotas import WeighedCache
from fmviz.lab.runner import Run, prepare
from fmviz.lab.search.averaged import Message, Sampling, by_row, can_be_sampled, metric_of, sampled
from fmviz.metrics.prediction import standard_error
from fmviz.paths.validation import MOST_ROWS, default_folds
from fmviz.typography import counted

Name = Literal["mean", "columns", "pairs", "lines", "curves"]
"""The candidates, the sparsest first."""

_RANK, _DRAWS = 8, 200
# The limit on reads of entries of X over all folds.
_MOST_VISITS = 1e10
# Fits to more entries of X are announced.
_MANY_ENTRIES = 500_000
# The limit on entries of X with all bases side by side.
_MOST_ENTRIES = 1e7
_BASES = 8
# Candidates are worse beyond this number of standard errors.
_WORSE = 2.0

# The first fit of a page, and the page that explains it.
_contests: WeighedCache[list[Any]] = WeighedCache(2, lambda _: 0)


@dataclass(frozen=True, eq=False)
class Contest:
    """The errors of all candidates on the same held-out rows.

    Attributes
    ----------
    run : Run
        The run, with all bases of numbers side by side if the data set has them.
    samplings : mapping of str to Sampling
        The machines of every sampled candidate.
    good : mapping of str to (M,) ndarray
        For every candidate, the sparsest first, how good each prediction is: minus its squared error, or its
        contribution to the AUC or the accuracy.
    row_groups : (M,) int ndarray or None
        The groups of the rows.
    folds : int
        The number of folds; 1 if a single part of the rows was held out.
    left_out : str
        A sentence on the candidates that would take too long.
    """

    run: Run
    samplings: Mapping[str, Sampling]
    good: dict[Name, np.ndarray]
    row_groups: np.ndarray | None
    folds: int
    left_out: str = ""

    @property
    def best(self) -> Name:
        """The candidate with the best predictions.

        Sparse pairs must be better than all others by more than two standard errors, since their strengths
        were chosen on the same rows.
        """
        others = [name for name in self.good if name != "pairs" and self.behind(name, "pairs") <= _WORSE]
        return max(others, key=lambda name: self.good[name].mean(), default="pairs")

    @property
    def sparsest(self) -> Name:
        """The sparsest candidate within one standard error of the best."""
        return next(name for name in self.good if self.behind(name) <= 1.0)

    def described(self, chosen: Name) -> Name:
        """Return the candidate that describes the effects: the best with samples of pairs, for intervals.

        Sparse pairs that predict are described by themselves if the samples are worse.
        """
        averages = [name for name in ("lines", "curves") if name in self.good]
        if chosen in averages or not averages:
            return chosen if averages else "pairs"
        best = max(averages, key=lambda name: self.good[name].mean())
        return "pairs" if chosen == "pairs" and self.behind(best, "pairs") > _WORSE else best

    def behind(self, name: Name, other: Name | None = None) -> float:
        """Return by how many standard errors a candidate is worse than another, by default the best."""
        loss = self.good[other or self.best] - self.good[name]
        # Without any error, every difference counts.
        return float(loss.mean() / max(standard_error(loss, self.row_groups), SMALL))

    @property
    def labels(self) -> dict[Name, str]:
        """The names of the candidates in words."""
        labels: dict[Name, str] = {
            "mean": "the mean" if self.run.problem.target.kind == "real" else "the most frequent class",
            "columns": "the columns alone",
            "pairs": "pairs" if self.run.problem.penalty.smooth else "sparse pairs",
            "lines": "the average over samples" + " with lines" * ("curves" in self.good),
            "curves": "the average over samples with curves",
        }
        return {name: labels[name] for name in self.good}

    @property
    def errors(self) -> tuple[dict[str, Any], ...]:
        """The errors of the candidates with their standard errors, as rows of a table."""
        metric = metric_of(self.run.problem.target.kind)
        scale, title = metric.within(self.run.dataset.unit)
        title += self.run.dataset.contrast if metric.name == "auc" else ""
        rows, n = [], len(self.good["mean"])
        parts = f"in {self.folds} folds" if self.folds > 1 else "in a held-out part"
        group, groups = self.run.dataset.group, self.row_groups
        of = f" of {len(np.unique(groups)):,} groups by {group}" if group and groups is not None else ""
        for name, good in self.good.items():
            value, error = good.mean(), standard_error(good, self.row_groups)
            if metric.name == "rmse":
                value = np.sqrt(-value)
                error /= 2.0 * value or 1.0
            rows.append(
                {
                    f"{n:,} held-out rows{of} {parts}": self.labels[name],
                    title: scale * float(value),
                    "standard error": scale * float(error),
                    "standard errors behind the best": self.behind(name),
                }
            )
        return tuple(rows)

    def message(self, chosen: Name) -> str:
        """Return the outcome as a sentence."""
        labels, near = self.labels, self.sparsest
        words = f"Of {len(self.good)} candidates, the predictions of {labels[self.best]} are best."
        if self.samplings and self.behind("pairs") < 0.0:
            words += (
                " Sparse pairs, whose strengths were chosen on these rows, are not ahead by two standard "
            )
            words += "errors."
        if near != self.best:
            words += f" Those of {labels[near]} are as good within one standard error"
            words += ", and are used." if near == chosen else "."
        return f"{words} {self.left_out}".rstrip()

    def machine(
        self, name: Name, should_stop: Callable[[], bool] = never
    ) -> Generator[Message, None, Posterior | None]:
        """Return samples of a candidate on all training rows; None for sparse pairs, or if stopped."""
        problem = self.run.problem
        if name == "mean":
            return _constant(problem)
        if name == "pairs":
            return None
        sampling = self.samplings[name]
        # More samples than in the folds, for intervals.
        sampling = replace(sampling, draws=max(sampling.draws, _DRAWS // len(sampling.parts)))
        return (yield from sampled(problem, sampling, self.run.experiment.seed, should_stop))

    def embedded(self, parameters: Parameters, run: Run) -> Parameters:
        """Return parameters of a run as those of `self.run`, whose features contain those of the run."""
        names, d = run.dataset.feature_names, self.run.problem.design.n_features
        if d == len(names):
            return parameters
        every = np.array(self.run.dataset.feature_names, dtype=object)
        own = next(mask for mask in self.run.dataset.bases.values() if tuple(every[mask]) == names)
        P = np.zeros((*parameters.P.shape[:-2], d, parameters.P.shape[-1]))
        w = np.zeros((*parameters.w.shape[:-1], d))
        P[..., own, :], w[..., own] = parameters.P, parameters.w
        return Parameters(P, w, parameters.intercept)


def contest(run: Run, should_stop: Callable[[], bool] = never) -> Generator[Message, None, Contest | None]:
    """Compare candidates by folds of the training rows of a run; None if machines cannot be sampled.

    Rows of a group are held out together. Sparse pairs have the strengths of the run. Candidates that would
    take too much time or memory are left out. Yields a `Message` after every sample and fit; `should_stop`
    ends early with None.
    """
    if not can_be_sampled(run.problem):
        return None
    side, experiment, groups = in_every_basis(run), run.experiment, run.row_groups[0]
    problem, y = side.problem, run.problem.y
    folds = default_folds(
        y if y.ndim == 1 else y[:, 0],
        problem.target.kind != "real" and y.ndim == 1,
        np.random.default_rng([experiment.seed, 4]),
        groups,
    )
    samplings = {n: own for n, own in _samplings(side).items() if n == "columns" or own.fits(problem)}
    if len(folds) * sum(own.visits(problem) for own in samplings.values()) > _MOST_VISITS:
        folds = folds[:1]
    good: dict[str, list[np.ndarray]] = {}
    for number, (train, out) in enumerate(folds, 1):
        inside, held_out, before = (
            problem.of_rows(train),
            problem.of_rows(out),
            f"Fold {number} of {len(folds)}: ",
        )
        scores = {"mean": _constant(problem).scores(held_out.design.matrix)}
        for name, own in samplings.items():
            samples = yield from sampled(inside, own, experiment.seed, should_stop, before)
            if samples is None:
                return None
            scores[name] = samples.scores(held_out.design.matrix)
        fold = prepare(run.dataset, replace(experiment, validation=0.0), run.rows[0][train])
        *_, end = fold.stream(
            Budget(experiment.max_epochs, None, experiment.tol, report_every=None), should_stop
        )
        if should_stop():
            return None
        yield Message(f"{before}Sparse pairs use {counted(end.used_interactions, 'interaction')}.")
        rows = run.problem.of_rows(out)
        scores["pairs"] = fold.problem.model.scores(rows.design, end.parameters)
        for name, f in scores.items():
            good.setdefault(name, []).append(by_row(rows.target, f))
    every = {name: np.concatenate(each) for name, each in good.items()}
    _choose_columns(every, samplings)
    return Contest(
        side,
        samplings,
        {name: every[name] for name in get_args(Name) if name in every},
        None if groups is None else groups[np.concatenate([out for _, out in folds])],
        len(folds),
        _left_out(run, side),
    )


def announced(run: Run) -> str:
    """Return a sentence on what a first fit of many entries of X does and leaves out; "" for few."""
    n, d = run.problem.design.shape
    if run.problem.design.nnz < _MANY_ENTRIES:
        return ""
    left_out = _left_out(run, run) if can_be_sampled(run.problem) else ""
    return (
        f"{n:,} rows and {d:,} features: strengths are chosen by about forty fits to "
        f"{min(n, MOST_ROWS):,} rows, followed by a fit to all rows and a comparison. {left_out}"
    ).rstrip()


def contest_of(run: Run, should_stop: Callable[[], bool] = never) -> Generator[Message, None, Contest | None]:
    """Return the contest of a run, cached if its data set is registered."""
    if run.dataset.name != run.experiment.dataset.name:
        return (yield from contest(run, should_stop))
    known: list[Contest | None] = _contests.get((run.experiment, run.dataset.target_name), list)
    if not known:
        result = yield from contest(run, should_stop)
        if should_stop():
            return None
        known.append(result)
    return known[0]


def in_every_basis(run: Run) -> Run:
    """Return a run with all bases of numbers side by side, if its data set has them and memory suffices."""
    dataset = run.dataset
    if dataset.every is None or _is_too_large(dataset):
        return run
    every = dataset.every()
    if not every.bases:
        return run
    return prepare(every, replace(run.experiment, validation=0.0), *run.rows)


def _is_too_large(dataset: Dataset) -> bool:
    """Return whether X with all bases side by side would have too many entries."""
    return dataset.X.shape[0] * len(dataset.columns) * _BASES > _MOST_ENTRIES


def _left_out(run: Run, side: Run) -> str:
    """Return a sentence on the candidates that a contest leaves out; "" if there are none."""
    curves = run.dataset.every is not None and _is_too_large(run.dataset)
    names = ["the average over samples"] * (not _samplings(side)["lines"].fits(side.problem))
    names += ["curves"] * curves
    return f"Too slow for so many rows and features, and left out: {' and '.join(names)}." if names else ""


def _samplings(side: Run) -> dict[str, Sampling]:
    """Return the machines of every candidate that is sampled; columns alone with lines and with curves."""
    bases, rank = dict(side.dataset.bases), min(_RANK, side.problem.rank)
    lines = [bases.pop("line", np.ones(side.problem.design.n_features, dtype=bool))]
    samplings = {"columns": Sampling(0, lines), "lines": Sampling(rank, lines)}
    if bases:
        samplings |= {"curved": Sampling(0, [*bases.values()]), "curves": Sampling(rank, [*bases.values()])}
    return samplings


def _choose_columns(good: dict[str, np.ndarray], samplings: dict[str, Sampling]) -> None:
    """Replace the columns alone with lines by those with curves, if these are better."""
    curved, own = good.pop("curved", None), samplings.pop("curved", None)
    if curved is not None and own is not None and curved.mean() > good["columns"].mean():
        good["columns"], samplings["columns"] = curved, own


def _constant(problem: Problem) -> Posterior:
    """Return the mean, or the score of the share of a class, as a sample for every output."""
    y = np.array([output.values.mean() for output in problem.target.outputs])
    binary, d = problem.loss.task == "binary", problem.design.n_features
    intercept = (ndtri(0.5 + 0.5 * np.clip(y, -0.999, 0.999)) if binary else y)[:, None]
    constant = Posterior(np.zeros((y.size, 1, d, 0)), np.zeros((y.size, 1, d)), intercept, binary)
    return constant if y.size > 1 else constant.machines[0]
