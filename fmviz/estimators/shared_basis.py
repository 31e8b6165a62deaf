"""Scikit-learn estimators for machines with one or several outputs on a shared basis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fmviz.engine.errors import one_of, whole_number
from fmviz.engine.losses import Loss
from fmviz.engine.models import Model, SharedBasis
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import OUTPUT_PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.shared_basis.output_layer import largest_strength
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.strengths import LINEAR_SHARE, linear_reference
from fmviz.engine.target import Target

from .base import Callback, ModelEstimator, RandomState
from .fitting import keep_parameters
from .supervised import ModelClassifier, ModelRegressor, Weights

STRENGTH_SHARE = 0.01
"""The default λ as a fraction of λ_max."""


class _SharedBasis(ModelEstimator):
    """Common base of the regressor and the classifier."""

    _merges_rows = True
    # A certificate costs more than an epoch.
    _certify_every = 1_000

    def _model(self) -> Model:
        return SharedBasis(kernel=self.kernel, radius=0.0 if self.radius is None else self.radius)

    def _setting(self, name: str) -> Any:
        if name == "regularizer":
            return OUTPUT_PENALTIES[one_of("penalty", self.penalty, OUTPUT_PENALTIES)]
        return whole_number("rank", self.rank, 1) if name == "rank" else super()._setting(name)

    def _dummies(self) -> int:
        return int(self._switch("augment"))

    def _completed(self, problem: Problem, refresh: bool = True) -> tuple[Problem, Any]:
        if self.lambda_w is None:
            problem = problem.at(lambda_w=LINEAR_SHARE * linear_reference(problem))
        if self.lambda_sparse is None and not problem.model.radius:
            scaled = problem
            if problem.penalty.row_norm is None:
                # ‖V‖² has no λ_max; that of the row-wise ℓ2 norms is used.
                scaled = replace(problem, penalty=OUTPUT_PENALTIES["l1_l2"])
            problem = problem.at(lambda_sparse=STRENGTH_SHARE * largest_strength(scaled))
        return problem, 0.0

    def _attributes(self, parameters: Parameters) -> dict[str, Any]:
        d, live = self.n_features_in_, parameters["V"].any(axis=1)
        bases = np.ascontiguousarray(parameters.P[:d, live].T)
        bias = parameters["intercept"] + parameters["w"][..., d:].sum(axis=-1)
        return {
            "bases": bases,
            "offsets": parameters.P[d:, live].sum(axis=0),
            "output_weights": np.ascontiguousarray(parameters["V"][live]),
            "w": parameters["w"][..., :d],
            "intercept": bias if bias.ndim else float(bias),
            "used_features": np.flatnonzero(bases.any(axis=0)),
        }


class SharedBasisRegressor(_SharedBasis, ModelRegressor):
    """Polynomial network or factorization machine for one or several real targets on a shared basis.

    Minimizes (1/N) Σ_n c_n Σ_c ℓ(f_c(x_n), y_nc) + λ_w‖w‖² + λ Ω(V) over V, w, the biases and the bases h_r
    in the unit ball, with f_c(x) = b_c + ⟨w_c, x⟩ + Σ_r v_rc σ(h_r, x) (blondel2017). σ(h, x) is ⟨h, x⟩², or
    with the kernel "anova" Σ_{i<j} h_i h_j x_i x_j. Ω is a norm of the rows of V; it determines
    the number of bases and whether outputs share them.

    Parameters
    ----------
    rank : int, default=50
        The maximum number of bases k.
    kernel : {"polynomial", "anova"}, default="polynomial"
        The kernel σ.
    augment : bool, default=False
        Whether to add a constant feature of 1, which gives σ(h, x) = (γ + ⟨h, x⟩)² linear terms. The paper
        uses it, without the terms w and b.
    penalty : {"l1_l2", "l1", "l1_linf", "l2"}, default="l1_l2"
        Ω(V): Σ_r ‖v_r‖₂, with which outputs share bases; Σ|v_rc|, with which they do not; Σ_r max_c|v_rc|;
        or ‖V‖², with `rank` bases from random directions.
    loss : str or Loss, default="squared"
        A loss of one number, summed over the targets.
    solver : str or Solver, default="auto"
        "conditional_gradient" (also "auto") or "projected_gradient", or an instance, such as
        ``fmviz.solvers.ConditionalGradient(refit="full")``, which refits the bases as well after bases are
        added; it takes longer but needs fewer bases.
    lambda_w, lambda_sparse : float, optional
        λ_w and λ, both ≥ 0. By default they are derived from the data: λ_w as in the other estimators, and
        λ as 0.01 of λ_max, the smallest λ at which V = 0.
    radius : float, optional
        τ of the constraint Ω(V) ≤ τ, which replaces λ.
    max_iter : int, default=100
        The maximum number of epochs; each adds up to ten bases and refits.
    tol : float, default=1e-4
        The fit has converged when the relative decrease of the objective in an epoch is at most `tol`; it
        also ends, with the reason "rank", when all `rank` bases are in use.
    fit_linear, fit_intercept, standardize, warm_start, early_stopping, validation_fraction, n_iter_no_change
        As for `FactorizationMachineRegressor`.
    verbose, callback, dtype
        As for `FactorizationMachineRegressor`.
    random_state : int, numpy Generator or RandomState, optional
        The source of the starts of searches for bases, and of the held-out rows.

    Attributes
    ----------
    bases_ : (k, d) ndarray
        The bases h_r in use, without the dummy feature.
    offsets_ : (k,) ndarray
        The entries γ_r of the dummy feature; zeros without one.
    output_weights_ : (k, m) ndarray
        The weights V.
    w_ : (m, d) ndarray, or (d,) for one target
        The linear weights; zeros without a linear term.
    intercept_ : (m,) ndarray, or float for one target
        The biases; 0 without them.
    center_, scale_, feature_importances_ : (d,) ndarray
        As for `FactorizationMachineRegressor`; all parameters refer to the scaled columns.
    used_features_ : (n,) int ndarray
        The features of the bases in use.
    n_used_interactions_ : int
        The number of pairs of features that share a basis.
    certificate_ : float
        The final relative duality gap: the objective exceeds the minimum over all machines of this kind, on
        any bases, by at most this fraction of itself; with ``penalty="l2"``, over machines on these bases.
    history_, status_, n_iter_, n_features_in_, feature_names_in_
        As for `FactorizationMachineRegressor`; ``least_certificate`` in the history is the certificate that
        the best possible bounds would give, a lower bound.

    Examples
    --------
    >>> import fmviz
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 6))
    >>> Y = np.column_stack([X[:, 0] * X[:, 1], X[:, 0] * X[:, 1] - X[:, 2] ** 2])
    >>> machine = fmviz.SharedBasisRegressor(random_state=0).fit(X, Y)
    >>> machine.score(X, Y) > 0.99
    True
    >>> machine.interactions(output=1, top=1)[["feature_i", "feature_j"]].values.tolist()
    [[0, 1]]
    """

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are keywords)
        self,
        rank: int = 50,
        *,
        kernel: str = "polynomial",
        augment: bool = False,
        penalty: str = "l1_l2",
        loss: str | Loss = "squared",
        solver: str | Solver = "auto",
        lambda_w: float | None = None,
        lambda_sparse: float | None = None,
        radius: float | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        max_iter: int = 100,
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

    def _target_of(self, y: np.ndarray) -> Target:
        values = np.array(y, dtype=np.float64)
        self._n_targets = values.shape[1:]
        # A column of ±1 is still a real target.
        return Target(values if values.shape[1:] != (1,) else values[:, 0], "real")

    def _predict(self, X: Any) -> np.ndarray:
        f = super()._predict(X)
        return f.reshape(len(f), *self._n_targets)


class SharedBasisClassifier(_SharedBasis, ModelClassifier):
    """Polynomial network or factorization machine for several classes on a shared basis.

    Every class has a score f_c(x) = b_c + ⟨w_c, x⟩ + Σ_r v_rc σ(h_r, x), and all scores are fitted jointly
    (blondel2017): the objective is that of `SharedBasisRegressor` with a loss of all scores of a row. Two
    classes have a single score, positive for the second; with several labels per row (y of shape (N, m) with
    entries 0 and 1), each label has a score.

    Parameters
    ----------
    loss : {"logistic", "smoothed_hinge", "squared_hinge"}, default="logistic"
        The multiclass form of the loss; for two classes and for labels, "logistic" or "squared_hinge".
    class_weight : dict or "balanced", optional
        As for `FactorizationMachineClassifier`; not for several labels.
    rank, kernel, augment, penalty, solver, lambda_w, lambda_sparse, radius
        As for `SharedBasisRegressor`.
    fit_linear, fit_intercept, standardize, max_iter, tol, warm_start, early_stopping, validation_fraction
        As for `SharedBasisRegressor`.
    n_iter_no_change, verbose, random_state, callback, dtype
        As for `SharedBasisRegressor`.

    Attributes
    ----------
    classes_ : (m,) ndarray
        The sorted labels; for several labels per row, their indices.
    bases_, offsets_, output_weights_, w_, intercept_, center_, scale_, used_features_, n_used_interactions_
        As for `SharedBasisRegressor`; two classes have one output.
    certificate_, feature_importances_, history_, status_, n_iter_, n_features_in_, feature_names_in_
        As for `SharedBasisRegressor`.

    Examples
    --------
    >>> import fmviz
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> machine = fmviz.SharedBasisClassifier(random_state=0).fit(X, y)
    >>> machine.score(X, y) > 0.99
    True
    >>> machine.output_weights_.shape[1]
    3
    """

    def __init__(  # noqa: PLR0913 (scikit-learn: parameters are keywords)
        self,
        rank: int = 50,
        *,
        kernel: str = "polynomial",
        augment: bool = False,
        penalty: str = "l1_l2",
        loss: str | Loss = "logistic",
        class_weight: Weights | None = None,
        solver: str | Solver = "auto",
        lambda_w: float | None = None,
        lambda_sparse: float | None = None,
        radius: float | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        max_iter: int = 100,
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
