"""Bayesian factorization machines as scikit-learn estimators: averages over samples, with nothing to tune."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fmviz.engine.design import Design
from fmviz.engine.errors import finite_number, whole_number
from fmviz.engine.interactions.pairs import FactoredPairs
from fmviz.engine.sampling.gibbs import Draw, GibbsSampler
from fmviz.engine.sampling.posterior import Posterior
from fmviz.engine.target import Target

if TYPE_CHECKING:
    import pandas as pd


class _BayesianFM(BaseEstimator):
    """What the regressor and the classifier share."""

    rank: int
    n_draws: int
    burn_in: int
    groups: Any
    fit_linear: bool
    fit_intercept: bool
    random_state: Any
    verbose: int

    P_: np.ndarray
    w_: np.ndarray
    intercept_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _sample(self, X: Any, y: np.ndarray, binary: bool) -> list[Draw]:
        """Run the chain and store its samples."""
        design = Design(X)
        rank = whole_number("rank", self.rank, 0, 10_000)
        kept = whole_number("n_draws", self.n_draws, 2)
        burn_in = whole_number("burn_in", self.burn_in, 0)
        every = int(whole_number("verbose", int(self.verbose), 0))
        seed = check_random_state(self.random_state).randint(2**31, size=4)
        sampler = GibbsSampler(
            design,
            y,
            rank,
            binary,
            bool(self.fit_linear),
            bool(self.fit_intercept),
            self._grouped(design.n_features),
            np.random.default_rng(seed),
        )
        draws = []
        for i, draw in enumerate(islice(sampler.draws(), burn_in + kept), 1):
            if every and i % every == 0:
                print(f"draw {i:,} of {burn_in + kept:,}: noise {draw.noise:.4g}")
            if i > burn_in:
                draws.append(draw)
        found = Posterior.of(draws, binary)
        self.P_, self.w_, self.intercept_ = found.P, found.w, found.intercept
        return draws

    def _grouped(self, d: int) -> np.ndarray:
        """Return the number of the group of every feature."""
        if self.groups is None:
            return np.zeros(d, dtype=np.int64)
        groups = np.asarray(self.groups)
        if groups.shape != (d,):
            raise ValueError(
                f"groups has shape {groups.shape}; name one for each of the {d} features, or leave it out."
            )
        return np.unique(groups, return_inverse=True)[1]

    def _posterior(self) -> Posterior:
        check_is_fitted(self)
        return Posterior(self.P_, self.w_, self.intercept_, isinstance(self, ClassifierMixin))

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, accept_sparse=("csc", "csr"), dtype=np.float64)

    def interactions(self, top: int = 50, level: float = 0.95) -> pd.DataFrame:
        """Return the pairs of features of largest mean weight, with what the samples say of each.

        Parameters
        ----------
        top : int, default=50
            The number of pairs.
        level : float, default=0.95
            The probability of the interval from ``lower`` to ``upper``.

        Returns
        -------
        DataFrame
            Columns ``feature_i`` and ``feature_j``, i < j; ``weight``, the mean of ⟨p_i, p_j⟩ over the
            samples; ``lower`` and ``upper``, the ends of the central interval of that probability; and
            ``probability``, the share of the samples whose weight has the sign of the mean.

        Raises
        ------
        ValueError
            If `top` or `level` is out of range.
        """
        check_is_fitted(self)
        import pandas as pd

        whole_number("top", top, 1)
        finite_number("level", level, 0, 1)
        posterior, d = self._posterior(), self.P_.shape[1]
        L = posterior.mean_factors()
        found = FactoredPairs(np.arange(d), d, L, L).ranked(top)
        i, j, weight = found.i, found.j, found.weight
        samples = posterior.weights(i, j)
        lower, upper = np.quantile(samples, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
        names = getattr(self, "feature_names_in_", np.arange(d))
        return pd.DataFrame(
            {
                "feature_i": names[i],
                "feature_j": names[j],
                "weight": weight,
                "lower": lower,
                "upper": upper,
                "probability": (np.sign(samples) == np.sign(weight)).mean(axis=0),
            }
        )


class BayesianFMRegressor(RegressorMixin, _BayesianFM):
    """Factorization machine averaged over samples of its posterior distribution; nothing is tuned.

    y = f(x) + ε with f(x) = b + ⟨w, x⟩ + Σ_{i<j} ⟨p_i, p_j⟩ x_i x_j, ε ~ N(0, 1/α), normal priors on the
    entries of w and of every column of P, and vague priors on their means and precisions and on α, all of
    which are drawn by Gibbs sampling (Freudenthaler, Schmidt-Thieme and Rendle 2011). No weight is exactly 0:
    for a sparse machine see `FactorizationMachineRegressorCV`. For predictions it is often the better one.

    Parameters
    ----------
    rank : int, default=10
        The number of columns of P; 0 leaves the linear model.
    n_draws : int, default=150
        The number of samples that are kept, of d(k + 1) + 1 numbers each.
    burn_in : int, default=50
        The number of samples before them.
    groups : (d,) array_like, optional
        Features of one group, such as the categories of one column, share means and precisions.
    fit_linear, fit_intercept : bool, default=True
        Whether f has linear weights w, and a bias b.
    random_state : int or RandomState, optional
        The source of all draws.
    verbose : int, default=0
        Print a line every so many samples; 0 prints nothing.

    Attributes
    ----------
    P_ : (n_draws, d, rank) ndarray
        The factors of every sample.
    w_ : (n_draws, d) ndarray
        The linear weights.
    intercept_ : (n_draws,) ndarray
        The biases.
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

    noise_: np.ndarray

    def __init__(
        self,
        rank: int = 10,
        *,
        n_draws: int = 150,
        burn_in: int = 50,
        groups: Any = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.groups = groups
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Sample the posterior distribution given X, shape (N, d), dense or sparse, and y, shape (N,).

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) array_like
            Finite targets.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed, with the reason.
        """
        X, y = validate_data(self, X, y, accept_sparse=("csc", "csr"), dtype=np.float64, y_numeric=True)
        draws = self._sample(X, Target.of(y).values, binary=False)
        self.noise_ = np.array([draw.noise for draw in draws])
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean of the predictive distribution for every row of X.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The features that `fit` saw.
        return_std : bool, default=False
            Whether to return its standard deviation, too: that of the samples and of the noise.

        Returns
        -------
        (N,) ndarray, or two of them
        """
        parts = [*self._posterior().each(self._checked(X))]
        mean = np.concatenate([part.mean(axis=0) for part in parts])
        if not return_std:
            return mean
        variance = np.concatenate([part.var(axis=0) for part in parts])
        return mean, np.sqrt(variance + np.square(self.noise_).mean())


class BayesianFMClassifier(ClassifierMixin, _BayesianFM):
    """Probit factorization machine for two classes, averaged over samples of its posterior distribution.

    P(second class | x) = Φ(f(x)), Φ the distribution function of the normal distribution; the rest is as for
    `BayesianFMRegressor`, with latent scores in place of y (Albert and Chib 1993).

    Parameters
    ----------
    rank, n_draws, burn_in, groups, fit_linear, fit_intercept, random_state, verbose
        As for `BayesianFMRegressor`.

    Attributes
    ----------
    classes_ : (2,) ndarray
        The labels, sorted; the second one is the positive class.
    P_, w_, intercept_, n_features_in_, feature_names_in_
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

    classes_: np.ndarray

    def __init__(
        self,
        rank: int = 10,
        *,
        n_draws: int = 150,
        burn_in: int = 50,
        groups: Any = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.groups = groups
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Sample the posterior distribution given X, shape (N, d), dense or sparse, and labels y, shape (N,).

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) array_like
            Labels of two classes, numbers or strings.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed, with the reason.
        """
        X, y = validate_data(self, X, y, accept_sparse=("csc", "csr"), dtype=np.float64)
        check_classification_targets(y)
        target = Target.of_labels(y)
        if target.kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. y has {target.n_outputs} classes; wrap the "
                "classifier in sklearn.multiclass.OneVsRestClassifier."
            )
        assert target.labels is not None, "classes have labels"
        self.classes_ = target.labels
        self._sample(X, target.values, binary=True)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of every row of X: the mean of Φ(f(x)) over the samples.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The features that `fit` saw.

        Returns
        -------
        (N, 2) ndarray, columns in the order of `classes_`
        """
        positive = ndtr(self._posterior().scores(self._checked(X)))
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any) -> np.ndarray:
        """Return the more probable label of every row of X.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The features that `fit` saw.

        Returns
        -------
        (N,) ndarray
        """
        positive = self.predict_proba(X)[:, 1] > 0.5
        return np.asarray(self.classes_[positive.astype(int)])
