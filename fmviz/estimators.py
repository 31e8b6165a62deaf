"""Factorization machines as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fmviz._pairs import PairClassifier, PairEstimator, PairRegressor
from fmviz.engine.errors import whole_number
from fmviz.engine.snapshot import Parameters, Snapshot


class _FactorizationMachine(PairEstimator):
    """What regression and classification share."""

    _model = "fm"

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

    def _problem(self) -> dict[str, Any]:
        if whole_number("degree", self.degree, 1) != 2:
            raise ValueError(f"degree = {self.degree} is not available; this machine has degree 2.")
        self._check_mapping("regularizer_params")
        self._check_mapping("solver_params")
        return {
            "rank": self.rank,
            "regularizer": self.regularizer,
            "lambda_p": self.lambda_p,
            "regularizer_params": self.regularizer_params,
        }

    def _run_settings(self) -> dict[str, Any]:
        rng = generator(self.random_state)
        return {"init_scale": self.init_scale, "rng": rng, **(self.solver_params or {})}

    def _keep(self, parameters: Parameters) -> None:
        super()._keep(parameters)
        self.P_ = parameters.P

    def _fitted(self) -> Parameters:
        return Parameters(self.P_, self.w_, self.intercept_)

    def _used_features(self) -> np.ndarray:
        return np.flatnonzero(self.P_.any(axis=1))


class FactorizationMachineRegressor(_FactorizationMachine, PairRegressor):
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
        "squared" or "huber".
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


class FactorizationMachineClassifier(_FactorizationMachine, PairClassifier):
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


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator made of what scikit-learn calls a random state, or raise ValueError."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state = {random_state!r} must be None, a whole number from 0 up, or a numpy generator."
        ) from None
