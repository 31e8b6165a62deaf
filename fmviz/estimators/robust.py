"""Robust factorization machines as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from fmviz.engine.errors import finite_number, whole_number
from fmviz.engine.fit import chosen_solver
from fmviz.engine.losses import CappedHinge, CappedInsensitive, Insensitive, Loss
from fmviz.engine.models import Model, RobustFM
from fmviz.engine.problem import Problem
from fmviz.engine.settings import SMALL
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.robust import Caps, estimate_caps, linear_strength
from fmviz.engine.target import Target

from .base import Callback, ModelEstimator, RandomState, generator
from .fitting import keep_parameters
from .supervised import ModelClassifier, ModelRegressor, Weights

Given: TypeAlias = float | str | None
"""A number, "auto", or None for no cap."""

# Up to this number of features the rank of Z is unlimited; for more, the default limit.
_FREE_RANK, _RANK = 60, 30


class _Robust(ModelEstimator):
    """Common base of the regressor and the classifier."""

    regularizer = "l2"
    _merges_rows = True
    _largest_epsilon: ClassVar[float | None] = None

    def _number(self, name: str, low: float = 0.0, high: float | None = None) -> float | None:
        """Return a numeric parameter; None for "auto", infinity for None."""
        value = getattr(self, name)
        if value is None and name.startswith("cap"):
            return np.inf
        if isinstance(value, str):
            if value == "auto":
                return None
            raise ValueError(f"{name} = {value!r} is neither a number nor 'auto'.")
        return finite_number(name, value, low, high)

    def _caps(self) -> Caps:
        return Caps(
            self._number("eps_insensitive", high=self._largest_epsilon),
            self._number("cap_loss", SMALL),
            self._number("cap_spectrum", SMALL),
            self._number("lambda_spectrum"),
        )

    @property
    def loss(self) -> Loss:
        caps = self._caps()
        return self._loss_of(caps.epsilon or 0.0, caps.cap or 1.0)

    def _model(self) -> Model:
        cap = self._caps().spectrum
        return RobustFM("squared") if cap == np.inf else RobustFM(cap=cap or 1.0)

    def _setting(self, name: str) -> Any:
        if name == "rank":
            return 1 if self.rank is None else whole_number("rank", self.rank, 1)
        if name in ("lambda_w", "lambda_p"):
            return self._number("lambda_spectrum" if name == "lambda_p" else name)
        return super()._setting(name)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = False
            tags.classifier_tags.multi_label = False
        return tags

    def _completed(self, problem: Problem, refresh: bool = True) -> tuple[Problem, Any]:
        rng = generator(self.random_state)
        d = problem.design.n_features
        free = d if d <= _FREE_RANK else min(d, _RANK)
        problem = replace(problem, rank=free if self.rank is None else self.rank)
        if self._number("lambda_w") is None:
            problem = problem.at(lambda_w=linear_strength(problem))
        caps, start = self._caps(), problem.start(0.0, rng)
        if None in (caps.epsilon, caps.cap, caps.spectrum, caps.lambda_p):
            solver = chosen_solver(problem, self.solver)
            problem, start, _ = estimate_caps(problem, caps, solver, start, rng)
        return problem, start

    def _fit(self, X: Any, target: Target, sample_weight: Any, stratified: bool = False) -> None:
        if target.kind not in ("real", "binary") or target.values.ndim > 1:
            raise ValueError(
                f"Only binary classification is supported, and a single target: y has {target.n_outputs} "
                "outputs. Fit a machine for each, for example with sklearn.multiclass.OneVsRestClassifier."
            )
        super()._fit(X, target, sample_weight, stratified)
        f = self._scores(X)
        kinks: Any = self._fitted_loss.majoriser
        self.outlier_mask_ = kinks.excess(f, target.values) > kinks.cap
        trusted = self.eps_insensitive_ + (0.0 if np.isinf(kinks.cap) else kinks.cap)
        delta = trusted / 6.0 or 1.0
        self.sample_weight_ = delta * kinks.weights(f, target.values, delta)

    def _store(self, problem: Problem, end: Snapshot) -> None:
        super()._store(problem, end)
        loss, model = problem.loss, cast(RobustFM, problem.model)
        self.eps_insensitive_ = loss.settings["epsilon"]
        self.cap_loss_ = np.inf if loss.cap is None else loss.cap
        self.cap_spectrum_ = model.cap if model.capped else np.inf
        self.lambda_spectrum_, self.lambda_w_ = problem.lambda_p, problem.lambda_w
        counted = model.free(self.coefficients_) if model.capped else self.coefficients_ > 0.0
        self.rank_ = int(np.count_nonzero(counted))
        self.squares_ = np.square(self.P_) @ self.coefficients_


class RobustFMRegressor(_Robust, ModelRegressor):
    r"""Robust factorization machine that excludes outliers and learns its rank.

    Minimizes (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_Z Σ_s min{λ_s², ε₃} over a positive semidefinite Z =
    P diag(λ) Pᵀ, w and the bias b, with f(x) = b + ⟨w, x⟩ + xᵀZx and the capped ε-insensitive loss ℓ(f, y) =
    min{max{|f − y| − ε₁, 0}, ε₂} (robust_fm, Eq. 3). Rows with |f − y| > ε₁ + ε₂ are excluded: their targets
    have no influence. Eigenvalues with λ_s² > ε₃ are free; the others are shrunk.

    The majorizer of the loss printed in the paper, with the weight 1/(2ε₁) and 0 inside the tube, does not
    majorize. We use the weight 1/(2 max{u, δ}) for every excess 0 ≤ u ≤ ε₂, or its tangent in u. The
    majorizer of the norm is Tr(P_Mᵀ Z Zᵀ P_M), M = {s : λ_s² ≤ ε₃}. With both caps None, the problem is
    convex and `certificate_` proves optimality.

    With "auto", the caps are estimated from the data in about ten fits: the noise scale σ from least absolute
    deviations, ε₁ = σ/2, ε₁ + ε₂ = 3σ, and ε₃ between the eigenvalues of Z and those of a fit to permuted
    residuals. Many similar outliers, such as a second model for a fifth of the rows or joint shifts of
    features on rows of high leverage, can be mistaken for the model.

    Parameters
    ----------
    rank : int, optional
        The maximum rank of Z. None means no limit for up to 60 features, and 30 for more.
    eps_insensitive : float or "auto", default="auto"
        ε₁ ≥ 0: residuals up to ε₁ have no loss.
    cap_loss : float, "auto" or None, default="auto"
        ε₂ > 0: the maximum loss of a row. None for no cap.
    cap_spectrum : float, "auto" or None, default="auto"
        ε₃ > 0: eigenvalues with a larger square are free. None for λ_Z‖Z‖²_F.
    lambda_w, lambda_spectrum : float or "auto", default="auto"
        λ_w and λ_Z, both ≥ 0. "auto" sets λ_Z such that all eigenvalues that are not free are 0, and a λ_w
        with little shrinkage.
    solver : str or Solver, default="auto"
        "two_stage" or "incremental_svd", or an instance, such as ``fmviz.solvers.TwoStage(rounds=500)``;
        "auto" selects the latter for more than 61 features.
    max_iter : int, default=50
        The maximum number of epochs.
    tol : float, default=1e-3
        The fit has converged when neither Z nor a linear weight changes by more than `tol` times the largest
        one in an epoch.
    fit_linear, fit_intercept, standardize, warm_start, early_stopping, validation_fraction, n_iter_no_change
        As for `FactorizationMachineRegressor`.
    verbose, callback
        As for `FactorizationMachineRegressor`.
    random_state : int, numpy Generator or RandomState, optional
        Permutes residuals, draws mini-batches, and selects held-out rows.

    Attributes
    ----------
    outlier_mask_ : (N,) bool ndarray
        The excluded rows.
    sample_weight_ : (N,) ndarray
        The weight of each row in the weighted squared loss of the majorizer: 1 up to an excess of
        δ = (ε₁ + ε₂)/6, δ/u beyond, 0 for excluded rows.
    rank_ : int
        The number of free eigenvalues; without a cap, the number of non-zero ones.
    P_ : (d, rank) ndarray
        Orthonormal eigenvectors of Z, and columns of zeros.
    coefficients_ : (rank,) ndarray
        The eigenvalues λ_s ≥ 0 of Z, largest first.
    squares_ : (d,) ndarray
        z_jj, the weight of x_j².
    eps_insensitive_, cap_loss_, cap_spectrum_, lambda_w_, lambda_spectrum_ : float
        The values used in the fit.
    w_ : (d,) ndarray
        The linear weights; zeros without a linear term.
    intercept_ : float
        The bias; 0 without one.
    used_features_ : (m,) int ndarray
        The features whose row of P is not zero.
    n_used_interactions_ : int
        The number of pairs i < j whose rows of P share a column in which both are non-zero.
    center_, scale_, feature_importances_ : (d,) ndarray
        As for `FactorizationMachineRegressor`; all parameters refer to the scaled columns.
    certificate_ : float
        The relative duality gap of the convex majorizer at the result: a bound on the decrease by another
        step.
    history_, status_, n_iter_, n_features_in_, feature_names_in_
        As for `FactorizationMachineRegressor`.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = 2 * (X[:, 0] + X[:, 1]) ** 2 + X[:, 2] + 0.1 * rng.normal(size=300)
    >>> y[:30] += 20  # Gross errors.
    >>> fitted = fmviz.RobustFMRegressor(random_state=0).fit(X, y)
    >>> fitted.rank_
    1
    >>> int(fitted.outlier_mask_[:30].sum())
    30
    """

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are keywords)
        self,
        rank: int | None = None,
        *,
        eps_insensitive: float | str = "auto",
        cap_loss: Given = "auto",
        cap_spectrum: Given = "auto",
        lambda_w: float | str = "auto",
        lambda_spectrum: float | str = "auto",
        solver: str | Solver = "auto",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        max_iter: int = 50,
        tol: float = 1e-3,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        verbose: int = 0,
        random_state: RandomState | None = None,
        callback: Callback | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def _loss_of(self, epsilon: float, cap: float) -> Loss:
        return Insensitive(epsilon) if cap == np.inf else CappedInsensitive(epsilon, cap)


class RobustFMClassifier(_Robust, ModelClassifier):
    r"""Robust factorization machine for two classes that excludes mislabelled rows and learns its rank.

    The labels are encoded as -1 and +1, and the loss is the capped hinge loss of the margin y·f(x), ℓ(f, y) =
    min{max{1 − ε₁ − yf, 0}, ε₂}: the one-sided analogue of the capped ε-insensitive loss. Rows with
    yf < 1 − ε₁ − ε₂ are excluded. Objective, parameters and attributes are those of `RobustFMRegressor`, with
    these differences.

    Parameters
    ----------
    eps_insensitive : float or "auto", default="auto"
        ε₁ from 0 to 1; "auto" is 0.
    cap_loss : float, "auto" or None, default="auto"
        ε₂; "auto" is 2, which excludes rows with yf < −1.
    class_weight : dict or "balanced", optional
        As for `FactorizationMachineClassifier`.
    rank, cap_spectrum, lambda_w, lambda_spectrum, solver, fit_linear, fit_intercept
        As for `RobustFMRegressor`.
    standardize, max_iter, tol, warm_start, early_stopping, validation_fraction, n_iter_no_change
        As for `RobustFMRegressor`.
    verbose, random_state, callback
        As for `RobustFMRegressor`.

    Attributes
    ----------
    classes_ : (2,) ndarray
        The sorted labels; the second one is the positive class.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> truth = X[:, 0] ** 2 + X[:, 1] ** 2 > 2
    >>> y = truth ^ (np.arange(120) < 12)  # The first labels are flipped.
    >>> fitted = fmviz.RobustFMClassifier(cap_spectrum=1.0, lambda_spectrum=0.01).fit(X, y)
    >>> fitted.score(X, truth) > 0.95
    True
    >>> bool(fitted.outlier_mask_[:12].mean() > 0.5 > fitted.outlier_mask_[12:].mean())
    True
    """

    _largest_epsilon = 1.0

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are keywords)
        self,
        rank: int | None = None,
        *,
        eps_insensitive: float | str = "auto",
        cap_loss: Given = "auto",
        cap_spectrum: Given = "auto",
        lambda_w: float | str = "auto",
        lambda_spectrum: float | str = "auto",
        class_weight: Weights | None = None,
        solver: str | Solver = "auto",
        fit_linear: bool = True,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        max_iter: int = 50,
        tol: float = 1e-3,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        verbose: int = 0,
        random_state: RandomState | None = None,
        callback: Callback | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def _loss_of(self, epsilon: float, cap: float) -> Loss:
        return CappedHinge(epsilon, 1e12 if cap == np.inf else cap)
