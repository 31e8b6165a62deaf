"""Bayesian factorization machines as scikit-learn estimators, by Gibbs sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.design import Design
from fmviz.engine.errors import finite_number, whole_number
from fmviz.engine.interactions.weights import Interactions, PairWeights
from fmviz.engine.models import get_model
from fmviz.engine.sampling.gibbs import Draw
from fmviz.engine.sampling.posterior import Posterior, draws_by_output, intervals_of
from fmviz.engine.target import Target
from fmviz.paths.scaling import Scale

from .fitting import SparseInput, by_output, checked_data, keep_parameters, one_column
from .supervised import LabelClassifier, classes_of


class BayesianFM(SparseInput):
    """Common base of the regressor and the classifier."""

    def _sample(self, X: Any, target: Target, binary: bool) -> list[list[Draw]]:
        """Run a Markov chain for every output and store its samples."""
        design = Design(X)
        design.check_size()
        centered = bool(self.fit_linear) and bool(self.fit_intercept)
        self._scale = Scale.of(design.matrix, self.standardize, centered)
        if (scaled := self._scale.apply(design.matrix, rounded=True)) is not design.matrix:
            design = Design(scaled)
        target.check_size()
        rank = whole_number("rank", self.rank, 0, 10_000)
        kept = whole_number("n_draws", self.n_draws, 2)
        burn_in = whole_number("burn_in", self.burn_in, 0)
        every = int(whole_number("verbose", int(self.verbose), 0))
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
        groups, total = self._grouped(design.n_features), burn_in + kept
        settings = rank, binary, bool(self.fit_linear), bool(self.fit_intercept), groups, rng
        chains: list[list[Draw]] = [[] for _ in target.outputs]
        for c, i, draw in draws_by_output(design, target.outputs, total, *settings):
            if every and i % every == 0:
                of = f" of output {target.output_names[c]!r}" if len(chains) > 1 else ""
                print(f"draw {i:,} of {total:,}{of}: noise {draw.noise:.4g}")
            if i > burn_in:
                chains[c].append(draw)
        posterior = self._posterior = Posterior.of(chains, binary)
        self.P_, self.w_, self.intercept_ = posterior.P, posterior.w, posterior.intercept
        self._target = replace(target, values=target.values[:0])
        self._described = {"Model": f"Bayesian factorization machine, rank {rank}", "Samples": f"{kept:,}"}
        return chains

    def _grouped(self, d: int) -> np.ndarray:
        """Return the group number of every feature."""
        groups = np.zeros(d) if self.groups is None else np.asarray(self.groups)
        if groups.shape != (d,):
            raise ValueError(
                f"groups has shape {groups.shape}; give a group for each of the {d} features, or omit it."
            )
        return np.unique(groups, return_inverse=True)[1]

    def _columns(self, X: Any, read: Callable[[Posterior, Any], np.ndarray]) -> np.ndarray:
        """Return a statistic of every output at X; several outputs get a last axis."""
        check_is_fitted(self)
        X = self._scale.apply(checked_data(self, X, reset=False))
        each = [read(posterior, X) for posterior in self._posterior.machines]
        return np.stack(each, axis=-1) if len(each) > 1 else each[0]

    def _scores(self, X: Any) -> np.ndarray:
        return get_model("fm").scores(Design(self._scale.apply(X)), self._posterior.mean_parameters())

    def posterior_of(self, output: Any = None) -> Posterior:
        """Return the samples of one output, by label or number, by default the first.

        They refer to the scaled columns.
        """
        check_is_fitted(self)
        return self._posterior.machines[0 if output is None else self._target.output(output)]

    def pair_weights(self, output: Any = None) -> PairWeights:
        """Return the mean weights of all pairs of features."""
        return Interactions.of(self.posterior_of(output).mean_factors())

    def interactions(self, top: int = 50, level: float = 0.95, output: Any = None) -> pd.DataFrame:
        """Return the feature pairs of largest mean weight, with credible intervals and sign probabilities.

        Parameters
        ----------
        top : int, default=50
            The number of pairs.
        level : float, default=0.95
            The probability of the interval from ``lower`` to ``upper``.
        output : label or int, optional
            One of several outputs, by class or number; by default all are concatenated.

        Returns
        -------
        DataFrame
            Columns ``feature_i`` and ``feature_j``, i < j; ``weight``, the posterior mean of ⟨p_i, p_j⟩ for
            the scaled columns; ``lower`` and ``upper``, the ends of the central interval of probability
            `level`; ``probability``, the share of samples with the sign of the mean; and ``weight_in_units``,
            the weight of the product of the unscaled columns of X.

        Raises
        ------
        ValueError
            If `top` or `level` is out of range, or the output does not exist.
        """
        check_is_fitted(self)
        whole_number("top", top, 1)
        finite_number("level", level, 0, 1)
        if output is None and self._target.n_outputs > 1:
            outputs = self._target.output_names
            return by_output({name: self.interactions(top, level, name) for name in outputs})
        posterior, names = self.posterior_of(output), self.names()
        pairs, weight, *_ = self.pair_weights(output).ranked(top)
        i, j = pairs.T
        intervals = intervals_of(posterior.weights(i, j), level, weight)
        return pd.DataFrame(
            {
                "feature_i": names[i],
                "feature_j": names[j],
                "weight": weight,
                **{name: intervals[name] for name in ("lower", "upper", "probability")},
                "weight_in_units": weight / self.scale_[pairs].prod(axis=1),
            }
        )


class BayesianFMRegressor(RegressorMixin, BayesianFM):
    """Bayesian factorization machine for regression: posterior averages, without tuning.

    y = f(x) + ε with f(x) = b + ⟨w, x⟩ + Σ_{i<j} ⟨p_i, p_j⟩ x_i x_j, ε ~ N(0, 1/α), normal priors on the
    entries of w and of every column of P, and vague hyperpriors on their means and precisions and on α. All
    are drawn by Gibbs sampling (Freudenthaler, Schmidt-Thieme and Rendle 2011). No weight is exactly 0; for
    sparse models see `FactorizationMachineRegressorCV`. Posterior averages often predict better.

    Parameters
    ----------
    rank : int, default=10
        The number of columns of P; 0 gives the linear model.
    n_draws : int, default=150
        The number of stored samples, of d(k + 1) + 1 numbers each.
    burn_in : int, default=50
        The number of initial samples discarded.
    groups : (d,) array_like, optional
        The group of each feature. Features of a group, such as the categories of a column, share means and
        precisions.
    fit_linear, fit_intercept : bool, default=True
        Whether f has linear weights w, and a bias b.
    standardize : {"auto", True, False}, default="auto"
        As for `FactorizationMachineRegressor`: whether f is a function of scaled columns, which makes the
        priors independent of units.
    random_state : int or RandomState, optional
        The source of all draws.
    verbose : int, default=0
        Print a line every `verbose` samples; 0 prints nothing.

    Attributes
    ----------
    P_ : (n_draws, d, rank) ndarray
        The factors of every sample. With m targets there is a chain for each, and `P_`, `w_`, `intercept_`
        and `noise_` have an additional first axis of length m.
    w_ : (n_draws, d) ndarray
        The linear weights.
    intercept_ : (n_draws,) ndarray
        The biases.
    center_, scale_, feature_importances_ : (d,) ndarray
        As for `FactorizationMachineRegressor`; samples refer to the scaled columns.
    noise_ : (n_draws,) ndarray
        The standard deviations 1/√α of the errors.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> machine = fmviz.BayesianFMRegressor(random_state=0).fit(X[:150], y[:150])
    >>> machine.score(X[150:], y[150:]) > 0.95
    True
    >>> bool((machine.interactions(top=18)["probability"] == 1.0).all())
    True
    """

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are keywords)
        self,
        rank: int = 10,
        *,
        n_draws: int = 150,
        burn_in: int = 50,
        groups: Any = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any) -> Self:
        """Sample the posterior distribution given X, shape (N, d), dense or sparse, and y, shape (N,).

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) or (N, m) array_like
            Finite targets.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        """
        X, y = checked_data(self, X, y, y_numeric=True, multi_output=True)
        chains = self._sample(X, Target(Target.of(one_column(y)).values), binary=False)
        noise = np.array([[draw.noise for draw in draws] for draws in chains])
        self.noise_ = noise if len(chains) > 1 else noise[0]
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean of the predictive distribution for every row of X.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The same features as in `fit`.
        return_std : bool, default=False
            Whether to also return its standard deviation, from the spread of the samples and the noise.

        Returns
        -------
        (N,) ndarray, (N, m) for several targets, or a pair of these
        """
        mean, variance = self._columns(
            X, lambda posterior, X: np.hstack([[p.mean(axis=0), p.var(axis=0)] for p in posterior.each(X)])
        )
        if not return_std:
            return mean
        return mean, np.sqrt(variance + np.square(self.noise_).mean(axis=-1))


class BayesianFMClassifier(LabelClassifier, BayesianFM):
    """Bayesian probit factorization machine for classification: posterior averages, without tuning.

    P(second class | x) = Φ(f(x)), where Φ is the standard normal distribution function; otherwise like
    `BayesianFMRegressor`, with latent scores in place of y (Albert and Chib 1993). More than two classes are
    fitted one-vs-rest, with a chain for each, and their probabilities are normalized.

    Parameters
    ----------
    rank, n_draws, burn_in, groups, fit_linear, fit_intercept, standardize, random_state, verbose
        As for `BayesianFMRegressor`.

    Attributes
    ----------
    classes_ : (C,) ndarray
        The sorted labels; of two classes, the second is positive.
    P_, w_, intercept_, center_, scale_, feature_importances_, n_features_in_, feature_names_in_
        As for `BayesianFMRegressor`.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> machine = fmviz.BayesianFMClassifier(rank=4, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> machine.interactions(top=1)[["feature_i", "feature_j", "probability"]].values.tolist()
    [[0.0, 1.0, 1.0]]
    """

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are keywords)
        self,
        rank: int = 10,
        *,
        n_draws: int = 150,
        burn_in: int = 50,
        groups: Any = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any) -> Self:
        """Sample the posterior distribution given X, shape (N, d), dense or sparse, and classes or labels y.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) array_like, or (N, m) array_like of 0 and 1
            The class of every row, a number or a string; or an indicator matrix of m labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        """
        X, y = checked_data(self, X, y, multi_output=True)
        target = classes_of(one_column(y))
        self.classes_ = np.arange(target.n_outputs) if target.labels is None else target.labels
        self._sample(X, target, binary=True)
        return self

    def _positive(self, X: Any) -> np.ndarray:
        """Return the probability of +1 in every output."""
        return self._columns(X, lambda posterior, X: ndtr(posterior.scores(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of every row of X: the mean of Φ(f(x)) over the samples.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The same features as in `fit`.

        Returns
        -------
        (N, C) ndarray, columns in the order of `classes_`
        """
        positive = self._positive(X)
        return self._target.probabilities(positive)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of every row of X, or the predicted labels.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The same features as in `fit`.

        Returns
        -------
        (N,) ndarray, or (N, m) of 0 and 1 for several labels
        """
        positive = self._positive(X)
        labels = self._target.decode(positive - 0.5)
        return labels.astype(int) if self._target.kind == "several" else labels
