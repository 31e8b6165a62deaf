"""Scikit-learn estimators for sparse factorization machines and related models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fmviz.engine.errors import finite_number, one_of
from fmviz.engine.fit import Budget, Fit, chosen_solver
from fmviz.engine.losses import Loss
from fmviz.engine.models import HigherOrder, Lifted, Model, PolynomialNetwork, get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import Penalty
from fmviz.engine.problem import Problem
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.informed import QUICK, STARTS, fit_from
from fmviz.engine.starts.strengths import fill_strengths

from .base import Callback, ModelEstimator, RandomState
from .fitting import keep_parameters
from .supervised import ModelClassifier, ModelRegressor, Weights

_SUITED = {"rank": 10, "regularizer": "l2", "max_iter": 200, "tol": 1e-4}
"""Defaults of settings that depend on the model, unless overridden in `_OWN`."""
_OWN: Mapping[str, Mapping[str, Any]] = {
    "fm": {"regularizer": "ti", "max_iter": 1_000},
    "hofm": {"regularizer": "omega_ti"},
    "all_subsets": {"regularizer": "omega_ti"},
    "convex_fm": {"rank": 30, "max_iter": 100, "tol": 1e-6},
    "qr": {"regularizer": "l1", "max_iter": 2_000, "tol": 1e-6},
}
_OTHERS = {"robust": "RobustFM", "shared_basis": "SharedBasis"}


class _FactorizationMachine(ModelEstimator):
    """Common base of the regressor and the classifier."""

    _takes_parts = True

    def _model(self) -> Model:
        # A copy: instances cache computed values, but scikit-learn requires settings to stay unchanged.
        model = replace(get_model(self.model))
        if model.name in _OTHERS:
            name = _OTHERS[model.name]
            raise ValueError(
                f"model = {self.model!r} has separate estimators: {name}Regressor and {name}Classifier. "
                "Use one of them, or choose another model, such as 'fm'."
            )
        for name, missing, why in (
            ("rank", not model.factorised, "has a weight for every pair of features, and no factors"),
            ("init_scale", model.convex, "starts from 0"),
        ):
            if missing and (value := getattr(self, name)) is not None:
                raise ValueError(
                    f"{name} = {value!r} does not apply to model = {self.model!r}, which {why}. Leave "
                    f"{name}=None, or choose another model, such as 'fm'."
                )
        if isinstance(model, HigherOrder):
            # There are no products of more features than X has.
            model = HigherOrder(max(2, min(model.order, getattr(self, "n_features_in_", model.order))))
        return model

    def _setting(self, name: str) -> Any:
        value, suited = getattr(self, name), {**_SUITED, **_OWN.get(self._model().name, {})}
        automatic = value is None or (isinstance(value, str) and value == "auto")
        return suited[name] if automatic and name in suited else value

    def _dummies(self) -> int:
        model = self._model()
        if not self._switch("augment"):
            return 0
        if not isinstance(model, PolynomialNetwork | Lifted):
            raise ValueError(
                f"augment = True adds products of lower degrees to a model of a single degree; "
                f"model = {self.model!r} is not one. Leave augment=False, or choose "
                "fmviz.models.PolynomialNetwork or fmviz.models.Lifted."
            )
        return 1 if model.kernel == "polynomial" else model.degree - 1

    def _completed(self, problem: Problem, refresh: bool = True) -> tuple[Problem, Any]:
        given = {name: getattr(self, name) for name in STRENGTHS}
        if not refresh:
            given = {name: getattr(self, f"{name}_", value) for name, value in given.items()}
        scale = None if self.init_scale is None else finite_number("init_scale", self.init_scale, low=0)
        given["init_scale"] = 0.0 if problem.model.convex else scale
        if given["lambda_sparse"] is None and problem.penalty.smooth and not problem.model.plain:
            given["lambda_sparse"] = 0.0
        if given["lambda_p"] is None and not problem.model.factorised and given["lambda_sparse"] != 0.0:
            given["lambda_p"] = 0.0
        problem, size = fill_strengths(problem, given)
        for name in STRENGTHS:
            setattr(self, f"{name}_", getattr(problem, name))
        return problem, size

    def _begin(
        self, problem: Problem, begin: Any, budget: Budget, rng: np.random.Generator, warm: bool
    ) -> Fit:
        solver = chosen_solver(problem, self.solver)
        informed = one_of("start", self.start, STARTS) == "informed"
        if informed and problem.model.plain and self.solver == "auto":
            solver = solver.having(**QUICK)
        start = begin if isinstance(begin, Parameters) else None
        if warm:
            start = self._warm_start(problem, problem.start(begin, rng))
        fit = fit_from(self.start, problem, solver, begin, rng, start=start, shrunk=self.lambda_p is None)
        return replace(fit, budget=budget)


class FactorizationMachineRegressor(_FactorizationMachine, ModelRegressor):
    """Sparse factorization machine, or another model of feature products, for regression.

    Minimizes (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_p R(P) + λ Ω(P) over P, w and the bias b, with
    f(x) = b + ⟨w, x⟩ + g(x) and R(P) = ‖P‖²_F unless the table states otherwise. The λ have no factor ½. The
    losses ℓ(f, y) are ½(f − y)² (squared), log(1 + e^{−yf}) (logistic), max(0, 1 − yf)² (squared hinge), and
    for Huber ½r² up to |r| = |f − y| = δ and δ(|r| − δ/2) beyond.

    ====================  ==============================================================================
    `model`               g(x)
    ====================  ==============================================================================
    "fm"                  Σ_{i<j} ⟨p_i, p_j⟩ x_i x_j, the factorization machine (atarashi2021, Eq. 1 and 2)
    HigherOrder(M)        Σ_{m=2}^{M} Σ_s A^m(p^(m)_s, x), A^m the sum of the products of m distinct
                          features, with separate factors and a form of Ω for each order (atarashi2021,
                          Section 6.1)
    "all_subsets"         Σ_s Π_j (1 + p_js x_j): the product of the features of a subset S, including the
                          empty set and single features, has the weight Σ_s Π_{j∈S} p_js (atarashi2021,
                          Section 6.2)
    PolynomialNetwork(m)  Σ_s λ_s⟨p_s, x⟩^m, or with ``kernel="anova"`` Σ_s λ_s A^m(p_s, x), λ_s fitted, 1 or
                          random signs; R is Σ_s |λ_s|‖p_s‖² or, with fitted λ_s and m > 2, Σ_s |λ_s|‖p_s‖^m,
                          which does not depend on the scale of p_s (blondel2016, Eq. 1 and 13)
    Lifted(m)             Σ_s Π_t ⟨u_s^t, x⟩, or with ``kernel="anova"`` Σ_{i<j} ½(UVᵀ + VUᵀ)_ij x_i x_j; R is
                          (1/m) Σ_t‖U^t‖²_F. For m = 2 the minimum is that of the polynomial network with
                          fitted λ_s; with enough columns every local minimum is global (blondel2016,
                          Sections 5 and 7, D.3, Theorem 2)
    "quadratic"           Σ_{i<j} w_ij x_i x_j with a symmetric W in place of P, Ω = ‖W‖₁, the sum of all d²
                          |w_ij|, and R = ‖W‖_tr, that of the |eigenvalues|: convex, of O(d²) memory (QR and
                          SLQR of atarashi2021, Eq. 3, 22 and 58)
    "convex"              the same, or with ``ConvexFM(diagonal=True)`` xᵀWx, regularized by R only;
                          W = P diag(λ) Pᵀ is never formed (Blondel, Fujino and Ueda 2015)
    ====================  ==============================================================================

    The products of an all-subsets model grow exponentially with the number of large features: if a fit
    diverges, scale the features or choose a smaller `init_scale`. Fits of HigherOrder and "all_subsets"
    depend on the unit of y, and of a sparse X, since no λ suits products of several orders in all units:
    scale the target to unit variance, for example with scikit-learn's TransformedTargetRegressor.

    With several targets, y of shape (N, m), there is a machine for each. Their epochs run together; the
    objective is their mean, the certificate their maximum, and used features and interactions are those used
    by any machine. Parameters, and strengths derived from the data, get a first axis of length m.

    Parameters
    ----------
    rank : int, optional
        The number of columns of P, for each order or factor of a tensor; 0 gives the linear model. By default
        10; for "convex" it is the maximum rank of W, by default 30. Not for "quadratic".
    model : str or Model, default="fm"
        A name, "fm", "hofm", "all_subsets", "expansion", "lifted", "quadratic" or "convex", or an instance
        from `fmviz.models`: ``HigherOrder(3)``, ``PolynomialNetwork(2, coefficients="signs")``,
        ``Lifted(3)``, ``ConvexFM(diagonal=True)``. Orders beyond the number of features are dropped.
    augment : bool, default=False
        Whether to add constant features of 1 to X for PolynomialNetwork and Lifted, with factors γ that are
        learned and penalized like all others: one turns ⟨p_s, x⟩^m into (γ_s + ⟨p_s, x⟩)^m, and m − 1 turn
        A^m into a weighted sum of A^1, …, A^m (blondel2016, Section 8).
    loss : str or Loss, default="squared"
        A name, "squared", "huber", or "poisson" for counts, or an instance from `fmviz.losses`, such as
        ``Huber(1.5)`` with δ = 1.5 instead of 1.
    regularizer : str or Penalty, default="auto"
        Ω, a name from `fmviz.list_regularizers` or an instance from `fmviz.penalties`, such as
        ``TI(axis="rows")``; "l2" gives a canonical factorization machine. "auto" is "ti" for "fm", "omega_ti"
        for HigherOrder and "all_subsets", "l2" for PolynomialNetwork, Lifted and "convex", and "l1" for
        "quadratic"; `fmviz.why_not` checks whether a model supports it.
    solver : str or Solver, default="auto"
        A name from `fmviz.list_solvers`, or an instance from `fmviz.solvers`, such as ``PCD(revive=True)``;
        "auto" selects the recommended one for model and regularizer.
    lambda_w, lambda_p, lambda_sparse : float, optional
        λ_w, λ_p and λ, all ≥ 0. By default they are derived from the data, independently of units: λ_w is
        that of ridge regression if ⟨w, x⟩ and the noise are of equal size. For "fm", λ_p is 0.02 of the λ_p
        at which P = 0, and λ is 0.15 of the λ at which P = 0 for a single pair; see `fmviz.lambda_max`. For
        other product models, both are 0.02 of the value that outweighs the gain of the best single column,
        and λ is 0 with "l2". For "convex" λ_p, and for "quadratic" λ, is 0.15 of the value at which W = 0;
        for "quadratic", λ_p is 0 if λ is set, and also such a fraction with ``lambda_sparse=0``.
    start : {"informed", "random"}, default="informed"
        With "random", P starts small, and zero entries stay 0, as published. With "informed", P of "fm"
        leaves 0 if that is a saddle point of the objective, with TI, CS, Ω_TI, Ω_CS and ℓ2² and the solvers
        CD, PCD and PBCD; with ℓ1 and ℓ2,1, for which 0 is a local minimum, it starts from a fit with ℓ2².
        With CS, it starts from a rough fit with TI if that leads to a lower objective than the random start.
        The tolerances of the other models then do not depend on units.
    fit_linear, fit_intercept : bool, default=True
        Whether f has linear weights w, and a bias b, which is not penalized.
    standardize : {"auto", True, False}, default="auto"
        Whether f is a function of scaled columns, which makes fits independent of their units and offsets.
        With "auto", every column of a dense X, including binary ones, is centred by its weighted mean and
        divided by its weighted standard deviation, and a sparse X is unchanged. With True, the columns of a
        sparse X are divided, too. False gives the objective of the papers, on the unscaled X; only then do a
        dense and a sparse X give the same fit. λ, λ_p and λ_w refer to the scaled columns. Centring adds
        terms of lower order; if f lacks these (without w or b, and for models with only products of three or
        more features, such as PolynomialNetwork(3) without `augment`), columns are divided but not centred. A
        fit with `warm_start` keeps the scale of the first fit. `partial_fit` uses that of an earlier fit or
        manually set `center_` and `scale_`, and otherwise none. Unless False, `fit` of a regressor with b
        subtracts the weighted mean of y and adds it to b: the same objective with smaller rounding errors.
    init_scale : float, optional
        The standard deviation of the normal distribution of the initial entries of P; by default 0.02 of the
        magnitude that suits the pair of largest gradient, or the best single column, for which the factor is
        0.1 with HigherOrder, PolynomialNetwork and Lifted. Not for "quadratic" and "convex", which start at
        0.
    max_iter : int, optional
        The maximum number of epochs: by default 1000; 200 for HigherOrder, "all_subsets", PolynomialNetwork
        and Lifted, 100 for "convex" and 2000 for "quadratic".
    tol : float, optional
        A fit has converged when no parameter changes by more than `tol` times the largest one in an epoch and
        the certificate is at most 100 `tol`; if it does not converge within `max_iter` epochs, it warns. With
        0, all epochs are run. By default 1e-4, and 1e-6 for "quadratic" and "convex".
    warm_start : bool, default=False
        Whether `fit` starts from the parameters of the previous fit, or from manually set `P_`, `w_` and
        `intercept_`. On the same rows and with the same strengths, it continues as if uninterrupted, up to
        rounding: ten fits of one epoch equal one of ten. Only "lbfgs" restarts its curvature estimate, since
        scipy does not expose it. On other rows, or with other strengths, only the parameters are kept.
    early_stopping : bool, default=False
        Whether to hold out a random part of the rows and to stop when their mean loss has not decreased for
        `n_iter_no_change` epochs. The parameters are then those of the epoch with the lowest loss;
        `history_` records it as ``validation_loss``.
    validation_fraction : float, default=0.1
        The share of held-out rows, stratified by class in classifiers.
    n_iter_no_change : int, default=10
        The number of epochs without a lower loss before early stopping.
    verbose : int, default=0
        Print a line every `verbose` epochs; 0 prints nothing.
    random_state : int, numpy Generator or RandomState, optional
        The source of the random start, of the solver's draws and of the held-out rows; by default numpy's
        global one.
    callback : callable, optional
        Called with every `fmviz.engine.snapshot.Snapshot`; a truthy return value stops the run.
    dtype : {"float64", "float32"}, default="float64"
        "float32" stores X in single precision: half the memory, and faster sweeps of CD and PCD over a large
        dense X. Everything else is computed in double precision, on the rounded X, in `fit` and in `predict`.
    n_jobs : int, optional
        The number of threads, -1 for one per core; by default 1. It changes no result. From 20,000 rows on,
        sums over rows run in threads: the steps of APGD, PGD, nmAPGD and L-BFGS, certificates and
        predictions. From 500,000 rows of one-hot columns on, so do sweeps of CD and of PCD with ℓ₁, elastic
        net or MCP.

    Attributes
    ----------
    P_ : (d, columns) ndarray
        The factors; the weight of the pair (i, j) of "fm" is ⟨p_i, p_j⟩. For HigherOrder, the factors of all
        orders side by side; for Lifted, U¹, …, U^m; for "convex", orthonormal columns or 0; without the rows
        of dummy features. "quadratic" has none. All parameters refer to the scaled columns.
    U_ : (m, d, rank) ndarray
        U¹, …, U^m of Lifted.
    W_ : (d, d) ndarray
        The symmetric pair weights of "quadratic". The diagonal has no effect on f, but a W of low rank needs
        one.
    factors_ : dict of int to ndarray
        The factors by order of HigherOrder and PolynomialNetwork, (d, rank), and of Lifted, (order, d,
        columns): for the degree and, with `augment`, for all lower orders from 2.
    coefficients_ : dict of int to (columns,) ndarray, or (rank,) ndarray
        The weights of these columns: f(x) = b + ⟨w, x⟩ + Σ_m Σ_s coefficients_[m]_s K_m(factors_[m]_:,s, x).
        For "convex" λ, largest |λ_s| first, with w_ij = Σ_s λ_s p_is p_js.
    rank_ : int
        The rank of W of "convex": the number of λ_s ≠ 0.
    w_ : (d,) ndarray
        The linear weights, including those due to dummy features; zeros without a linear term.
    intercept_ : float
        The bias, including the contribution of dummy features; 0 without one.
    center_, scale_ : (d,) ndarray
        The offset and divisor of every column: its mean and standard deviation, or 0 and 1. The scale of a
        constant column is 1.
    lambda_w_, lambda_p_, lambda_sparse_ : float
        The strengths of the fit.
    feature_importances_ : (d,) ndarray
        The effect of every column on f: the root mean square change when the column is set to its mean, in
        rows whose columns are independently one standard deviation above or below their means.
    used_features_ : (m,) int ndarray
        The features in a product whose weight is structurally non-zero: with a non-zero entry in a column of
        P whose coefficient is non-zero, or in a pair of W.
    n_used_interactions_ : int
        The number of pairs i < j whose rows of P share a column in which both are non-zero, or with w_ij ≠ 0,
        without a tolerance; for other product models, the sum of `used_interactions_`.
    used_interactions_ : dict of int to int
        For other product models, the number of sets of distinct features that share a column in which all
        their factors are non-zero, by size; pairs and triples for all subsets. Products with repeated
        features are not counted, but `interactions` lists them.
    history_ : DataFrame
        One row per epoch: objective and its parts, used features and interactions, certificate (every tenth
        epoch and the last one), seconds of the solver. Counts include dummy features, if any.
    certificate_ : float
        The final stationarity residual, recomputed from the parameters; 0 at a stationary point. For
        "quadratic" and "convex", the relative duality gap: the objective exceeds its minimum by at most this
        fraction of itself.
    status_ : fmviz.engine.snapshot.Status
        The reason why the run ended, with an explanation in ``status_.message``.
    n_iter_ : int
        The number of epochs.
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

    Another model, by name or as an instance with its settings:

    >>> convex = fmviz.FactorizationMachineRegressor(model="convex", lambda_p=0.3, fit_linear=False)
    >>> convex.fit(X, y).rank_  # the number of planted groups
    3
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y = X[:, 0] * X[:, 1] * X[:, 2]
    >>> machine = fmviz.FactorizationMachineRegressor(
    ...     4, model=fmviz.models.HigherOrder(3), max_iter=2000, random_state=0
    ... ).fit(X, y)
    >>> best = machine.interactions(top=1)
    >>> best.iloc[0, :3].astype(int).tolist()
    [0, 1, 2]
    >>> float(best["weight_in_units"][0].round(1))  # of the unscaled columns
    1.0
    >>> round(machine.interaction_weight([0, 1, 2]), 1)  # of the scaled columns
    0.8
    """

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are keywords)
        self,
        rank: int | None = None,
        *,
        model: str | Model = "fm",
        augment: bool = False,
        loss: str | Loss = "squared",
        regularizer: str | Penalty = "auto",
        solver: str | Solver = "auto",
        lambda_w: float | None = None,
        lambda_p: float | None = None,
        lambda_sparse: float | None = None,
        start: str = "informed",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        init_scale: float | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        verbose: int = 0,
        random_state: RandomState | None = None,
        callback: Callback | None = None,
        dtype: str = "float64",
        n_jobs: int | None = None,
    ) -> None:
        keep_parameters(self, locals())


class FactorizationMachineClassifier(_FactorizationMachine, ModelClassifier):
    """Sparse factorization machine, or another model of feature products, for classification.

    Two classes are encoded as -1 and +1; more are fitted one-vs-rest. Objective, parameters and attributes
    are those of `FactorizationMachineRegressor`, with these differences.

    Parameters
    ----------
    loss : str or Loss, default="logistic"
        "logistic" or "squared_hinge"; regression losses treat the labels -1 and +1 as numbers.
    class_weight : dict or "balanced", optional
        The weights of the classes: a number for each label, or with "balanced" inversely proportional to
        the number of rows. They are multiplied by `sample_weight`.
    rank, model, augment, regularizer, solver, lambda_w
        As for `FactorizationMachineRegressor`.
    lambda_p, lambda_sparse, start, fit_linear, fit_intercept, standardize, init_scale, max_iter, tol
        As for `FactorizationMachineRegressor`.
    warm_start, early_stopping, validation_fraction, n_iter_no_change, verbose, random_state, callback
        As for `FactorizationMachineRegressor`.
    dtype, n_jobs
        As for `FactorizationMachineRegressor`.

    Attributes
    ----------
    classes_ : (C,) ndarray
        The sorted labels; of two classes, the second is positive. With more classes, or several labels per
        row, there is a machine for each, and parameters and coefficients have an additional first axis.

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

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are keywords)
        self,
        rank: int | None = None,
        *,
        model: str | Model = "fm",
        augment: bool = False,
        loss: str | Loss = "logistic",
        class_weight: Weights | None = None,
        regularizer: str | Penalty = "auto",
        solver: str | Solver = "auto",
        lambda_w: float | None = None,
        lambda_p: float | None = None,
        lambda_sparse: float | None = None,
        start: str = "informed",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        init_scale: float | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        verbose: int = 0,
        random_state: RandomState | None = None,
        callback: Callback | None = None,
        dtype: str = "float64",
        n_jobs: int | None = None,
    ) -> None:
        keep_parameters(self, locals())
