"""Base class of the regressors."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from fmviz.engine.target import Target

from .base import ModelEstimator, takes_parts
from .fitting import one_column


class ModelRegressor(RegressorMixin, ModelEstimator):
    """A regressor of one of the engine's models, with a machine for each of several targets."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to X, shape (N, d), dense or sparse, and y, shape (N,) or (N, m).

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) or (N, m) array_like
            Finite targets: one a row, or m of them.
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
        X, y = self._checked(X, y, y_numeric=True, multi_output=True)
        self._fit(X, Target.of(one_column(y)), sample_weight)
        return self

    @available_if(takes_parts)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Make one epoch of a stochastic solver on these rows, from the result of the last call or fit.

        With ``solver="auto"`` that is "psgd". Its step sizes fall with the total number of steps, and its
        safeguard `monotone` uses the objective of these rows alone: where the epoch would raise it, a
        proximal gradient step replaces it. The method exists where a stochastic solver applies to the model
        and the regularizer.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (n, d)
            Some rows.
        y : (n,) or (n, m) array_like
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
        checks = {"y_numeric": True, "multi_output": True}
        X, y = self._checked(X, y, reset=not hasattr(self, "_fitted_model"), **checks)
        self._fit_part(X, Target.of(one_column(y)), sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) for every row of X.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            The features that `fit` saw.

        Returns
        -------
        (N,) or (N, m) ndarray, like y

        Raises
        ------
        ValueError
            If X does not suit the fit, or f(x) overflows.
        """
        return self._predict(X)
