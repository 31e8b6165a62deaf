"""scikit-learn estimators over the engine."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fmviz.engine.design import Design
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.errors import finite_number, whole_number
from fmviz.engine.models import MODELS
from fmviz.engine.pairs import ranked_pairs
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Parameters, Reason, Snapshot


class _FactorizationMachine(BaseEstimator):
    """What regression and classification share."""

    def __init__(
        self,
        rank: int = 10,
        *,
        degree: int = 2,
        loss: str = "squared",
        regularizer: str = "ti",
        solver: str = "auto",
        lambda_w: float = 1e-3,
        lambda_p: float = 1e-3,
        lambda_sparse: float = 1e-3,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        init_scale: float = 0.01,
        max_iter: int = 200,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: Any = None,
        callback: Callable[[Snapshot], Any] | None = None,
        regularizer_params: dict[str, Any] | None = None,
        loss_param: float | None = None,
        solver_params: dict[str, Any] | None = None,
    ) -> None:
        self.rank = rank
        self.degree = degree
        self.loss = loss
        self.regularizer = regularizer
        self.solver = solver
        self.lambda_w = lambda_w
        self.lambda_p = lambda_p
        self.lambda_sparse = lambda_sparse
        self.fit_linear = fit_linear
        self.fit_intercept = fit_intercept
        self.init_scale = init_scale
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.regularizer_params = regularizer_params
        self.loss_param = loss_param
        self.solver_params = solver_params

    P_: np.ndarray
    w_: np.ndarray
    intercept_: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _run(self, X: Any, y: np.ndarray, sample_weight: Any) -> None:
        if whole_number("degree", self.degree, 1) != 2:
            raise ValueError(f"degree = {self.degree} is not available; this machine has degree 2.")
        for name in ("regularizer_params", "solver_params"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, Mapping):
                raise ValueError(f"{name} = {given!r} must be a dict of parameter names and values, or None.")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback = {self.callback!r} must be a function of a snapshot, or None.")
        for name in ("fit_linear", "fit_intercept", "warm_start"):
            if getattr(self, name) not in (True, False):
                raise ValueError(f"{name} = {getattr(self, name)!r} is neither True nor False.")
        problem = Problem.build(
            X,
            y,
            loss=self.loss,
            regularizer=self.regularizer,
            rank=self.rank,
            lambda_w=self.lambda_w,
            lambda_p=self.lambda_p,
            lambda_sparse=self.lambda_sparse,
            fit_linear=self.fit_linear,
            fit_intercept=self.fit_intercept,
            regularizer_params=self.regularizer_params,
            loss_param=self.loss_param,
            sample_weight=sample_weight,
        )
        budget = Budget(
            epochs=whole_number("max_iter", self.max_iter, 1),
            tol=finite_number("tol", self.tol, low=0),
            certify_every=10,
        )
        start = None
        if self.warm_start and hasattr(self, "P_"):
            start = Parameters(self.P_, self.w_, self.intercept_)
        records = []
        stopping = False
        snapshots = iterate(
            problem,
            self.solver,
            budget,
            lambda: stopping,
            start=start,
            init_scale=self.init_scale,
            rng=_generator(self.random_state),
            **(self.solver_params or {}),
        )
        for last in snapshots:
            records.append(last.record())
            if self.callback is not None and self.callback(last):
                stopping = True
        assert last.status is not None, "the last snapshot carries the status"
        if last.status.reason is Reason.DIVERGED:
            warnings.warn(last.status.message, ConvergenceWarning, stacklevel=3)
        self.P_ = last.parameters.P
        self.w_ = last.parameters.w
        self.intercept_ = last.parameters.intercept
        self.history_ = pd.DataFrame.from_records(records)
        self.used_features_ = np.flatnonzero(self.P_.any(axis=1))
        self.n_used_interactions_ = last.used_interactions
        self.certificate_ = last.certificate
        self.status_ = last.status
        self.n_iter_ = last.epoch

    def _predict(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse=("csc", "csr"), dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            f = MODELS["fm"].predict(Design(X), Parameters(self.P_, self.w_, self.intercept_))
        if not np.isfinite(f).all():
            raise ValueError(
                "A prediction overflows; X holds larger values than the model can take. Scale X."
            )
        return f

    def interactions(self, top: int | None = None) -> pd.DataFrame:
        """Return the used pairs, largest weight first.

        Parameters
        ----------
        top : int, optional
            The most pairs; without it all, however many.

        Returns
        -------
        DataFrame
            Columns ``feature_i``, ``feature_j`` (names where the training data had them, else indices;
            i < j) and ``weight`` = ⟨p_i, p_j⟩, sorted by falling |weight|.
        """
        check_is_fitted(self)
        if top is not None:
            whole_number("top", top, 1)
        i, j, weight = ranked_pairs(self.P_, top)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = np.arange(self.P_.shape[0])
        return pd.DataFrame({"feature_i": names[i], "feature_j": names[j], "weight": weight})


class FactorizationMachineRegressor(RegressorMixin, _FactorizationMachine):
    """Sparse factorization machine for regression.

    Minimises (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p‖P‖²_F + λ̃ Ω(P) over P, w and the bias, with
    f(x) = b + ⟨w, x⟩ + Σ_{i<j} ⟨p_i, p_j⟩ x_i x_j (atarashi2021, Eq. 1 and 2). No ½ stands before a λ. The
    losses are ½(f − y)² (squared), log(1 + e^{−yf}) (logistic), max(0, 1 − yf)² (squared hinge), and for
    Huber ½r² up to |r| = |f − y| = δ and δ(|r| − δ/2) beyond.

    Parameters
    ----------
    rank : int, default=10
        Columns of P.
    degree : int, default=2
        The order of the interactions; 2.
    loss : str, default="squared"
        "squared" or "huber"..
    regularizer : str, default="ti"
        Ω, a name from `fmviz.list_regularizers`; "l2" gives a canonical factorization machine.
    solver : str, default="auto"
        A name from `fmviz.list_solvers`; "auto" takes the one made for the regularizer.
    lambda_w, lambda_p, lambda_sparse : float, default=1e-3
        λ_w, λ_p and λ̃, all ≥ 0. Where λ̃ is large for so small a start, P collapses to 0, which is a
        stationary point of every factorization machine.
    fit_linear, fit_intercept : bool, default=True
        Whether there are w and an unpenalised bias.
    init_scale : float, default=0.01
        P starts with independent N(0, init_scale²) entries.
    max_iter : int, default=200
        The most epochs.
    tol : float, default=1e-4
        Converged when no parameter changes by more than `tol` times the largest one in an epoch.
    warm_start : bool, default=False
        Whether `fit` starts from the parameters of the previous call.
    random_state : int, numpy Generator or RandomState, optional
        The source of the random start.
    callback : callable, optional
        Called with every `fmviz.engine.snapshot.Snapshot`; a true return value stops the run.
    regularizer_params : dict, optional
        The regularizer's own parameters, for instance ``{"axis": "rows"}`` for TI.
    loss_param : float, optional
        The loss's own parameter: Huber's δ.
    solver_params : dict, optional
        The solver's own parameters.

    Attributes
    ----------
    P_ : (d, rank) ndarray
        The factors; the weight of the pair (i, j) is ⟨p_i, p_j⟩.
    w_ : (d,) ndarray
        The linear weights; zeros without a linear term.
    intercept_ : float
        The bias; 0 without one.
    history_ : DataFrame
        One row an epoch: objective and its parts, used features and interactions, certificate (every
        tenth epoch and the last), solver seconds.
    used_features_ : (m,) int ndarray
        The features whose row of P is not zero.
    n_used_interactions_ : int
        Pairs i < j whose rows of P share a column in which both are non-zero.
    certificate_ : float
        The stationarity residual at the end, recomputed from the parameters; 0 at a stationary point.
    status_ : fmviz.engine.snapshot.Status
        How the run ended, with a sentence in ``status_.message``.
    n_iter_ : int
        Epochs made.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(random_state=0)
    >>> machine = fmviz.FactorizationMachineRegressor(
    ...     rank=30, lambda_p=0.1, lambda_sparse=0.1, fit_linear=False, random_state=0
    ... ).fit(X, y)
    >>> machine.status_.converged
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FactorizationMachineRegressor:
        """Fit to X, shape (N, d), dense or sparse, and y, shape (N,).

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
        """
        X, y = validate_data(self, X, y, accept_sparse=("csc", "csr"), dtype=np.float64, y_numeric=True)
        self._run(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) for every row of X, shape (N,)."""
        return self._predict(X)


class FactorizationMachineClassifier(ClassifierMixin, _FactorizationMachine):
    """Sparse factorization machine for two classes.

    Objective, parameters and attributes are those of `FactorizationMachineRegressor`, with the labels taken
    as -1 and +1, and these differences.

    Parameters
    ----------
    loss : str, default="logistic"
        "logistic" or "squared_hinge", or a regression loss on the labels -1 and +1.

    Attributes
    ----------
    classes_ : (2,) ndarray
        The labels; the second is the positive one.
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        degree: int = 2,
        loss: str = "logistic",
        regularizer: str = "ti",
        solver: str = "auto",
        lambda_w: float = 1e-3,
        lambda_p: float = 1e-3,
        lambda_sparse: float = 1e-3,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        init_scale: float = 0.01,
        max_iter: int = 200,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: Any = None,
        callback: Callable[[Snapshot], Any] | None = None,
        regularizer_params: dict[str, Any] | None = None,
        loss_param: float | None = None,
        solver_params: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            rank,
            degree=degree,
            loss=loss,
            regularizer=regularizer,
            solver=solver,
            lambda_w=lambda_w,
            lambda_p=lambda_p,
            lambda_sparse=lambda_sparse,
            fit_linear=fit_linear,
            fit_intercept=fit_intercept,
            init_scale=init_scale,
            max_iter=max_iter,
            tol=tol,
            warm_start=warm_start,
            random_state=random_state,
            callback=callback,
            regularizer_params=regularizer_params,
            loss_param=loss_param,
            solver_params=solver_params,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FactorizationMachineClassifier:
        """Fit to X, shape (N, d), dense or sparse, and labels y, shape (N,), of two classes.

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) array_like
            Labels of two classes, numbers or strings.
        sample_weight : (N,) array_like, optional
            Weights c_n ≥ 0, rescaled to a mean of 1.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, accept_sparse=("csc", "csr"), dtype=np.float64)
        check_classification_targets(y)
        classes = np.unique(y)
        if classes.size == 1:
            raise ValueError(
                f"y has one class only, {classes.tolist()[0]!r}; a classifier needs rows of two. "
                "Add rows of the other class."
            )
        if classes.size > 2:
            raise ValueError(
                f"Only binary classification is supported. y has {classes.size} classes; wrap the "
                "classifier in sklearn.multiclass.OneVsRestClassifier."
            )
        self.classes_ = classes
        self._run(X, np.where(y == classes[1], 1.0, -1.0), sample_weight)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) for every row of X, shape (N,); positive for the second class."""
        return self._predict(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return a label for every row of X, shape (N,)."""
        positive = self._predict(X) > 0
        return self.classes_[positive.astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, shape (N, 2), in the order of `classes_`; logistic loss only.

        Raises
        ------
        ValueError
            If the loss is another: its scores are not probabilities.
        """
        if self.loss != "logistic":
            raise ValueError(
                f"The loss {self.loss!r} gives scores, not probabilities; fit with loss='logistic', or use "
                "decision_function."
            )
        f = self._predict(X)
        # 1/(1 + e^-f) without overflow.
        e = np.exp(-np.abs(f))
        positive = np.where(f >= 0, 1.0, e) / (1.0 + e)
        return np.column_stack([1.0 - positive, positive])


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state = {random_state!r} must be None, a whole number from 0 up, or a numpy generator."
        ) from None
