"""Machines on a shared basis as scikit-learn estimators: the base class and the regressor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from fmviz.engine.drive import Budget, chosen_solver
from fmviz.engine.errors import finite_number, one_of, whole_number
from fmviz.engine.interactions.weights import pairs_of
from fmviz.engine.losses import Loss, get_loss
from fmviz.engine.models import get_model
from fmviz.engine.outputs.side_by_side import AnyProblem
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import OUTPUT_PENALTIES
from fmviz.engine.shared_basis.path import largest_strength
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import Solver, get_solver
from fmviz.engine.starts.strengths import LINEAR_SHARE, linear_reference
from fmviz.engine.target import Target

from .base import Callback, ModelEstimator, RandomState
from .fitting import keep_parameters, merged_rows
from .regressor import ModelRegressor

STRENGTH_SHARE = 0.01
"""The default λ, as a share of λ_max."""


class SharedBasisEstimator(ModelEstimator):
    """Common base of the regressor and the classifier."""

    loss_param = None
    lambda_p = 0.0
    _settable: ClassVar[tuple[str, ...]] = ()

    def _model_choice(self) -> tuple[str, dict[str, Any]]:
        self._switch("augment")
        radius = 0.0 if self.radius is None else finite_number("radius", self.radius, low=0)
        if radius and self.lambda_sparse:
            raise ValueError(
                f"radius = {radius:g} limits Ω(V) and lambda_sparse = {self.lambda_sparse:g} is its price; "
                "give one of them and leave the other None."
            )
        return "shared_basis", {"kernel": self.kernel, "radius": radius}

    def _dummies(self) -> int:
        return int(self.augment)

    def _problem(self, X: Any, target: Target, sample_weight: Any) -> AnyProblem:
        return super()._problem(*merged_rows(X, target, sample_weight))

    def _problem_arguments(self) -> dict[str, Any]:
        name, settings = self._model_choice()
        return {
            "loss": get_loss(self.loss),
            "penalty": OUTPUT_PENALTIES[one_of("penalty", self.penalty, OUTPUT_PENALTIES)],
            "model": get_model(name, settings),
            "rank": whole_number("rank", self.rank, 1),
            "lambda_w": 0.0 if self.lambda_w is None else self.lambda_w,
            "lambda_sparse": 0.0 if self.lambda_sparse is None else self.lambda_sparse,
            "fit_linear": self._switch("fit_linear"),
            "fit_intercept": self._switch("fit_intercept"),
        }

    def _budget(self) -> Budget:
        # A certificate takes longer than an epoch.
        return replace(super()._budget(), certify_every=1_000)

    def _completed(self, problem: AnyProblem, refresh: bool = True) -> tuple[AnyProblem, Any]:
        # A machine of several outputs is one problem.
        (problem,) = problem.machines
        if self.lambda_w is None:
            problem = problem.at(lambda_w=LINEAR_SHARE * linear_reference(problem))
        if self.lambda_sparse is None and not problem.model.radius:
            scaled = problem
            if problem.penalty.row_norm is None:
                # ‖V‖² has no λ_max: that of the rows' ℓ2 norms is used.
                scaled = replace(problem, penalty=OUTPUT_PENALTIES["l1_l2"])
            problem = problem.at(lambda_sparse=STRENGTH_SHARE * largest_strength(scaled))
        return problem, 0.0

    def _chosen_solver(self, problem: AnyProblem) -> Solver:
        refit = one_of("refit", self.refit, ("output", "full"))
        solver = chosen_solver(problem, self.solver)
        if isinstance(self.solver, Solver) or "refit" not in solver.settings:
            return super()._chosen_solver(problem)
        return get_solver(solver.name, {"refit": refit, **self._mapping("solver_params")})

    def _store(self, end: Snapshot) -> None:
        parameters, d = end.parameters, self.n_features_in_
        live = parameters["V"].any(axis=1)
        self._parameters = parameters
        self.bases_ = np.ascontiguousarray(parameters.P[:d, live].T)
        self.offsets_ = parameters.P[d:, live].sum(axis=0)
        self.output_weights_ = np.ascontiguousarray(parameters["V"][live])
        self.w_ = parameters["w"][..., :d]
        bias = parameters["intercept"] + parameters["w"][..., d:].sum(axis=-1)
        self.intercept_ = bias if bias.ndim else float(bias)
        self.used_features_ = self._used_features()
        self.n_used_interactions_ = end.used_interactions

    def _fitted_parameters(self) -> Parameters:
        return self._parameters

    def _used_features(self) -> np.ndarray:
        return np.flatnonzero(self.bases_.any(axis=0))

    def _output_number(self, output: Any) -> int:
        """Return the index of an output given by its label or number, or raise ValueError."""
        m = self.output_weights_.shape[1]
        labels = self._output_labels()
        if output is None:
            if m == 1:
                return 0
            raise ValueError(
                f"output = None, and there are {m} of them; name one of {', '.join(map(str, labels))}."
            )
        for number, label in enumerate(labels):
            if label == output:
                return number
        return whole_number("output", output, 0, m - 1)

    def _output_labels(self) -> list[Any]:
        return list(range(self.output_weights_.shape[1]))

    def interactions(self, output: Any = None, top: int | None = None) -> pd.DataFrame:
        """Return the used pairs of features of one output, largest |weight| first.

        Parameters
        ----------
        output : object, optional
            The label of a class, or the number of the output; optional for a single output.
        top : int, optional
            The number of pairs to return; by default all that are used.

        Returns
        -------
        DataFrame
            Columns ``feature_i`` and ``feature_j``, i < j, by name where the training data had names, else by
            index, and ``weight``, that of x_i x_j in this output.

        Raises
        ------
        ValueError
            If there is no such output, or `top` is not a positive whole number.
        """
        check_is_fitted(self)
        if top is not None:
            whole_number("top", top, 1)
        model: Any = self._fitted_model
        single, parameters = model.of_output(self._parameters, self._output_number(output))
        d = self.n_features_in_
        parameters = parameters.replace(P=np.ascontiguousarray(parameters.P[:d]), w=parameters.w[:d])
        ranked = pairs_of(single, parameters).ranked(top)
        i, j = ranked.sets.T
        names = self._names()
        return pd.DataFrame({"feature_i": names[i], "feature_j": names[j], "weight": ranked.weight})


class SharedBasisRegressor(SharedBasisEstimator, ModelRegressor):
    """Polynomial network or factorization machine of one or several real targets on one shared basis.

    Minimises (1/N) Σ_n c_n Σ_c ℓ(f_c(x_n), y_nc) + λ_w‖w‖² + λ Ω(V) over V, w, the biases and the bases h_r
    in the unit ball, with f_c(x) = b_c + ⟨w_c, x⟩ + Σ_r v_rc σ(h_r, x) (blondel2017). σ(h, x) is ⟨h, x⟩², or
    with the kernel "anova" Σ_{i<j} h_i h_j x_i x_j. Ω is a norm of the rows of V, which decides how many
    bases there are and whether outputs share them. Features should be on one scale, as scikit-learn's
    StandardScaler brings them.

    Parameters
    ----------
    rank : int, default=50
        The most bases k.
    kernel : {"polynomial", "anova"}, default="polynomial"
        σ.
    augment : bool, default=False
        Whether to add a dummy feature that is always 1, so that σ(h, x) = (γ + ⟨h, x⟩)² has linear terms,
        too. The paper has it, without the terms w and b.
    penalty : {"l1_l2", "l1", "l1_linf", "l2"}, default="l1_l2"
        Ω(V): Σ_r ‖v_r‖₂, by which outputs share bases; Σ|v_rc|, by which each has its own; Σ_r max_c|v_rc|;
        or ‖V‖², with which there are `rank` bases from random directions.
    refit : {"output", "full"}, default="output"
        Whether after each choice of bases V alone is refitted, or the bases, too. The latter takes longer,
        and needs fewer bases.
    loss : str or Loss, default="squared"
        A loss of one number, summed over the targets.
    solver : str, default="auto"
        "conditional_gradient", which is "auto", or "projected_gradient".
    solver_params : dict, optional
        The parameters of the solver, for instance ``{"bases": 1, "selection": "refine"}``.
    lambda_w, lambda_sparse : float, optional
        λ_w and λ, both ≥ 0. By default they are derived from the data: λ_w as in the other estimators, and
        λ as 0.01 of λ_max, from which V = 0.
    radius : float, optional
        τ of the constraint Ω(V) ≤ τ in place of λ.
    max_iter : int, default=100
        The maximum number of epochs; each adds up to ten bases and refits.
    tol : float, default=1e-4
        The fit has converged once the objective falls by no more than this share of itself in an epoch, or
        it ends with the reason "rank" where all `rank` bases are in use.
    fit_linear, fit_intercept, warm_start, early_stopping, validation_fraction, n_iter_no_change
        As for `FactorizationMachineRegressor`.
    verbose, callback, dtype
        As for `FactorizationMachineRegressor`.
    random_state : int, numpy Generator or RandomState, optional
        Gives the starts of searches for bases, and the held-out rows.

    Attributes
    ----------
    bases_ : (k, d) ndarray
        The bases h_r in use, without the dummy feature.
    offsets_ : (k,) ndarray
        γ_r, the entries of the dummy feature; zeros without one.
    output_weights_ : (k, m) ndarray
        V.
    w_ : (m, d) ndarray, or (d,) for one target
        The linear weights; zeros without a linear term.
    intercept_ : (m,) ndarray, or float for one target
        The biases; 0 without them.
    used_features_ : (n,) int ndarray
        The features of the bases in use.
    n_used_interactions_ : int
        The number of pairs of features that share a basis.
    certificate_ : float
        The relative duality gap at the end: the objective exceeds that of any machine of this kind, on any
        bases, by at most this share of itself. With ``penalty="l2"`` on these bases.
    history_, status_, n_iter_, n_features_in_, feature_names_in_
        As for `FactorizationMachineRegressor`; ``least_certificate`` in the history is a lower bound of the
        certificate for the best possible bounds.

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

    def __init__(
        self,
        rank: int = 50,
        *,
        kernel: str = "polynomial",
        augment: bool = False,
        penalty: str = "l1_l2",
        refit: str = "output",
        loss: str | Loss = "squared",
        solver: str | Solver = "auto",
        solver_params: Mapping[str, Any] | None = None,
        lambda_w: float | None = None,
        lambda_sparse: float | None = None,
        radius: float | None = None,
        fit_linear: bool = True,
        fit_intercept: bool = True,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to X, shape (N, d), dense or sparse, and y, shape (N,) or (N, m).

        Parameters
        ----------
        X : array_like or sparse matrix of shape (N, d)
            Finite numbers.
        y : (N,) or (N, m) array_like
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
            If `max_iter` epochs were not enough.
        """
        X, y = self._checked(X, y, y_numeric=True, multi_output=True)
        values = np.array(y, dtype=np.float64)
        self._n_targets = values.shape[1:]
        # A column of signs is still a real target.
        self._fit(X, Target(values if values.shape[1:] != (1,) else values[:, 0], "real"), sample_weight)
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
        f = self._predict(X)
        return f.reshape(len(f), *self._n_targets)
