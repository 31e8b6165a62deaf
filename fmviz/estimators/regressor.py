"""What the regressors share."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from fmviz.engine.target import Target

from .base import ModelEstimator, takes_parts


class ModelRegressor(RegressorMixin, ModelEstimator):
    """A regressor of one of the engine's models."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to X, shape (N, d), dense or sparse, and y, shape (N,).

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) array_like
            Finite targets.
        sample_weight : (N,) array_like, optional
            Weights c_n ≥ 0, rescaled to a mean of 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are not allowed, with the reason.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` epochs were not enough, the solver stalled away from a stationary point, or it
            diverged, where the last finite iterate is kept; not for ``tol=0``, which never converges.
        """
        X, y = self._checked(X, y, y_numeric=True)
        self._fit(X, Target.of(y), sample_weight)
        return self

    @available_if(takes_parts)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Make one epoch of a stochastic solver on these rows, from where the last call or fit ended.

        With ``solver="auto"`` that is "psgd". Its step sizes fall with all the steps made so far, and its
        safeguard `monotone` looks at the objective of these rows alone: where the epoch would raise it, a
        proximal gradient step takes its place. The method exists where a stochastic solver takes the model
        and the regularizer.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n, d)
            Some rows.
        y : (n,) array_like
            Their targets.
        sample_weight : (n,) array_like, optional
            Weights c_n ≥ 0, rescaled to a mean of 1 over these rows.

        Returns
        -------
        self
            `history_`, `status_` and `certificate_` are those of these rows.

        Raises
        ------
        ValueError
            As in `fit`, or for ``early_stopping=True``.

        Warns
        -----
        ConvergenceWarning
            If the epoch diverged.
        """
        X, y = self._checked(X, y, reset=not hasattr(self, "_fitted_model"), y_numeric=True)
        self._fit_part(X, Target.of(y), sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) for every row of X.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The features that `fit` saw.

        Returns
        -------
        (N,) ndarray

        Raises
        ------
        ValueError
            If X does not suit the fit, or f(x) overflows.
        """
        return self._predict(X)
