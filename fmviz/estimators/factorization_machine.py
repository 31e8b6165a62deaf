"""Factorization machines as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fmviz.engine.drive import chosen_solver
from fmviz.engine.errors import one_of, whole_number
from fmviz.engine.losses import Loss
from fmviz.engine.outputs.side_by_side import AnyProblem, informed_start
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import Penalty
from fmviz.engine.solvers import Solver, get_solver
from fmviz.engine.starts.informed import STARTS, informed_solver, quick_settings

from .base import Callback, FactorEstimator, RandomState, StrengthsOfData
from .classifier import ModelClassifier, Weights
from .fitting import keep_parameters
from .interactions import PairEstimator
from .regressor import ModelRegressor


class _FactorizationMachine(StrengthsOfData, FactorEstimator, PairEstimator):
    """Common base of the regressor and the classifier."""

    def _model_choice(self) -> tuple[str, dict[str, Any]]:
        if whole_number("degree", self.degree, 1) != 2:
            raise ValueError(f"degree = {self.degree} is not available; this machine has degree 2.")
        return "fm", {}

    def _informed(self) -> bool:
        return one_of("start", self.start, STARTS) == "informed"

    def _chosen_solver(self, problem: AnyProblem) -> Solver:
        settings = self._mapping("solver_params")
        if self._informed() and self.solver == "auto" and not settings:
            name = chosen_solver(problem, "auto").name
            return informed_solver(get_solver(name, quick_settings(name)), problem)
        solver = chosen_solver(problem, self.solver, settings)
        return informed_solver(solver, problem) if self._informed() else solver

    def _cold_start(self, problem: AnyProblem, size: Any, rng: np.random.Generator) -> Parameters:
        if not self._informed():
            return problem.start(size, rng)
        return informed_start(problem, size, rng, shrunk=self.lambda_p is None)


class FactorizationMachineRegressor(_FactorizationMachine, ModelRegressor):
    """Sparse factorization machine for regression.

    Minimises (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p‖P‖²_F + λ Ω(P) over P, w and the bias b, with
    f(x) = b + ⟨w, x⟩ + Σ_{i<j} ⟨p_i, p_j⟩ x_i x_j (atarashi2021, Eq. 1 and 2). There is no ½ before a λ. The
    losses ℓ(f, y) are ½(f − y)² (squared), log(1 + e^{−yf}) (logistic), max(0, 1 − yf)² (squared hinge), and
    for Huber ½r² up to |r| = |f − y| = δ and δ(|r| − δ/2) beyond.

    With several targets, y of shape (N, m), there is a machine for each: they make their epochs together, the
    objective is the mean of theirs, the certificate the largest, and used features and interactions are those
    of any machine. `P_`, `w_` and `intercept_`, and strengths derived from the data, get a first axis of m.

    Parameters
    ----------
    rank : int, default=10
        The number of columns of P; 0 gives the linear model.
    degree : int, default=2
        The order of the interactions: 2. For higher orders see `HigherOrderFMRegressor`.
    loss : str or Loss, default="squared"
        "squared" or "huber".
    loss_param : float, optional
        The parameter of the loss: δ of "huber", 1 by default.
    regularizer : str or Penalty, default="ti"
        Ω, a name from `fmviz.list_regularizers` or a value such as ``TI(axis="rows")``; "l2" gives a
        canonical factorization machine.
    regularizer_params : dict, optional
        The parameters of the regularizer, for instance ``{"axis": "rows"}`` for TI.
    solver : str or Solver, default="auto"
        A name from `fmviz.list_solvers`; "auto" takes the one recommended for the regularizer.
    solver_params : dict, optional
        The parameters of the solver.
    lambda_w, lambda_p, lambda_sparse : float, optional
        λ_w, λ_p and λ, all ≥ 0. By default they are derived from the data, so that units do not matter: λ_w
        is that of ridge regression where ⟨w, x⟩ and the noise have the same size, λ_p is 0.02 of the λ_p at
        which P = 0, and λ is 0.15 of the λ at which P = 0 for a single pair; see `fmviz.lambda_max`.
    start : {"informed", "random"}, default="informed"
        With "random" P starts small, and stays 0 where it has become 0, as published. With "informed" it
        escapes from 0 where that is a saddle point of the objective, under TI, CS, Ω_TI, Ω_CS and ℓ2² and
        with CD, PCD and PBCD; under ℓ1 and ℓ2,1, where it is a local minimum, it starts from a fit with ℓ2².
    fit_linear, fit_intercept : bool, default=True
        Whether f has linear weights w, and a bias b, which is not penalised.
    init_scale : float, optional
        The standard deviation of the normal distribution from which the entries of P start; by default 0.02
        of the size for the pair of largest gradient alone.
    max_iter : int, default=1000
        The maximum number of epochs.
    tol : float, default=1e-4
        The fit has converged once no parameter changes by more than `tol` times the largest one in an epoch
        and the certificate is at most 100 `tol`; a fit that does not converge in `max_iter` epochs warns. 0
        makes all epochs.
    warm_start : bool, default=False
        Whether `fit` starts from the parameters of the previous fit, or from `P_`, `w_` and `intercept_` as
        set by hand. On the same rows and with the same strengths it continues as if uninterrupted, up to
        rounding: ten fits of one epoch equal one of ten. Only "lbfgs" starts with a new curvature each time,
        as scipy's is not accessible. On other rows, or with other strengths, only the parameters are kept.
    early_stopping : bool, default=False
        Whether to hold out a random part of the rows and to stop once the mean loss there has not fallen for
        `n_iter_no_change` epochs. The parameters are then those of the epoch in which it was lowest;
        `history_` has it as ``validation_loss``.
    validation_fraction : float, default=0.1
        The share of the rows held out, stratified by class in classifiers.
    n_iter_no_change : int, default=10
        The number of epochs that early stopping waits for a lower loss.
    verbose : int, default=0
        Print a line every `verbose` epochs; 0 prints nothing.
    random_state : int, numpy Generator or RandomState, optional
        The source of the random start, of the solver's draws and of the rows held out; by default numpy's
        global one.
    callback : callable, optional
        Called with every `fmviz.engine.snapshot.Snapshot`; a true return value stops the run.
    dtype : {"float64", "float32"}, default="float64"
        "float32" keeps X in single precision: half the memory, and faster sweeps of CD and PCD over a large
        dense X. Everything else is computed in double precision, on the rounded X, in `fit` and in `predict`.

    Attributes
    ----------
    P_ : (d, rank) ndarray
        The factors; the weight of the pair (i, j) is ⟨p_i, p_j⟩.
    w_ : (d,) ndarray
        The linear weights; zeros without a linear term.
    intercept_ : float
        The bias; 0 without one.
    lambda_w_, lambda_p_, lambda_sparse_ : float
        The strengths of the fit.
    used_features_ : (m,) int ndarray
        The features whose row of P is not zero.
    n_used_interactions_ : int
        The number of pairs i < j whose rows of P share a column in which both are non-zero.
    history_ : DataFrame
        One row per epoch: objective and its parts, used features and interactions, certificate (every tenth
        epoch and the last one), seconds of the solver.
    certificate_ : float
        The stationarity residual at the end, recomputed from the parameters; 0 at a stationary point.
    status_ : fmviz.engine.snapshot.Status
        How the run ended, with a sentence in ``status_.message``.
    n_iter_ : int
        The number of epochs made.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> machine = fmviz.FactorizationMachineRegressor(
    ...     lambda_p=0.1, lambda_sparse=0.1, fit_linear=False, random_state=0
    ... ).fit(X, y)
    >>> machine.status_.converged
    True
    >>> machine.n_used_interactions_, fmviz.metrics.support_recovered(W, machine.P_)
    (18, True)
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        degree: int = 2,
        loss: str | Loss = "squared",
        loss_param: float | None = None,
        regularizer: str | Penalty = "ti",
        regularizer_params: Mapping[str, Any] | None = None,
        solver: str | Solver = "auto",
        solver_params: Mapping[str, Any] | None = None,
        lambda_w: float | None = None,
        lambda_p: float | None = None,
        lambda_sparse: float | None = None,
        start: str = "informed",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        init_scale: float | None = None,
        max_iter: int = 1_000,
        tol: float = 1e-4,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        verbose: int = 0,
        random_state: RandomState | None = None,
        callback: Callback | None = None,
        dtype: str = "float64",
    ) -> None:
        keep_parameters(self, locals())


class FactorizationMachineClassifier(_FactorizationMachine, ModelClassifier):
    """Sparse factorization machine for classes.

    Two classes are taken as -1 and +1; more are fitted one against the rest. Objective, parameters and
    attributes are those of `FactorizationMachineRegressor`, with these differences.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic" or "squared_hinge"; the losses for regression take the labels -1 and +1 as numbers.
    class_weight : dict or "balanced", optional
        The weight of a class: a number for each label, or with "balanced" in inverse proportion to
        the number of its rows. `sample_weight` multiplies it.
    rank, degree, loss_param, regularizer, regularizer_params, solver, solver_params, lambda_w, lambda_p
        As for `FactorizationMachineRegressor`.
    lambda_sparse, start, fit_linear, fit_intercept, init_scale, max_iter, tol, warm_start, early_stopping
        As for `FactorizationMachineRegressor`.
    validation_fraction, n_iter_no_change, verbose, random_state, callback, dtype
        As for `FactorizationMachineRegressor`.

    Attributes
    ----------
    classes_ : (C,) ndarray
        The labels, sorted; of two classes the second is the positive one. With more, or with several labels a
        row, there is a machine for each, and parameters and coefficients have a first axis for them.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> labels = np.where(X[:, 0] * X[:, 1] > 0, "same sign", "opposite signs")
    >>> machine = fmviz.FactorizationMachineClassifier(rank=4, max_iter=2000, random_state=0).fit(X, labels)
    >>> machine.interactions(top=1)[["feature_i", "feature_j"]].values.tolist()
    [[0, 1]]
    >>> machine.predict([[1, 1, 0, 0, 0], [1, -1, 0, 0, 0]]).tolist()
    ['same sign', 'opposite signs']
    """

    def __init__(
        self,
        rank: int = 10,
        *,
        degree: int = 2,
        loss: str | Loss = "logistic",
        loss_param: float | None = None,
        class_weight: Weights | None = None,
        regularizer: str | Penalty = "ti",
        regularizer_params: Mapping[str, Any] | None = None,
        solver: str | Solver = "auto",
        solver_params: Mapping[str, Any] | None = None,
        lambda_w: float | None = None,
        lambda_p: float | None = None,
        lambda_sparse: float | None = None,
        start: str = "informed",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        init_scale: float | None = None,
        max_iter: int = 1_000,
        tol: float = 1e-4,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        verbose: int = 0,
        random_state: RandomState | None = None,
        callback: Callback | None = None,
        dtype: str = "float64",
    ) -> None:
        keep_parameters(self, locals())
