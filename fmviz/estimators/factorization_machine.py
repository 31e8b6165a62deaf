"""Factorization machines as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

from fmviz.engine.errors import whole_number

from .base import (
    FactorEstimator,
    ModelClassifier,
    ModelRegressor,
    PairEstimator,
    with_parameters,
)


class _FactorizationMachine(FactorEstimator, PairEstimator):
    """What regression and classification share."""

    _model = "fm"

    degree: int

    __init__ = with_parameters(FactorEstimator.__init__, degree=2)

    def _problem(self) -> dict[str, Any]:
        if whole_number("degree", self.degree, 1) != 2:
            raise ValueError(f"degree = {self.degree} is not available; this machine has degree 2.")
        return super()._problem()


class FactorizationMachineRegressor(_FactorizationMachine, ModelRegressor):
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
        The order of the interactions; 2. For higher ones see `HigherOrderFMRegressor`.
    loss : str, default="squared"
        "squared" or "huber".
    regularizer : str, default="ti"
        Ω, a name from `fmviz.list_regularizers`; "l2" gives a canonical factorization machine.
    solver : str, default="auto"
        A name from `fmviz.list_solvers`; "auto" takes the one made for the regularizer.
    lambda_w, lambda_p, lambda_sparse : float, default=1e-3
        λ_w, λ_p and λ̃, all ≥ 0. Where λ̃ is large for so small a start, P collapses to 0, which is a
        stationary point of every factorization machine. PCD with ``solver_params={"revive": True}`` leaves it
        where the objective falls.
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
    dtype : str, default="float64"
        "float32" keeps X in single precision: half the memory, and quicker sweeps of CD and PCD over a large
        dense X. All else is calculated in double precision, on the rounded X, in `fit` and in `predict`.

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


class FactorizationMachineClassifier(_FactorizationMachine, ModelClassifier):
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

    __init__ = with_parameters(_FactorizationMachine.__init__, loss="logistic")
