"""Conditional gradient with basis selection for machines on a shared basis ([C] Algorithm 1)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..errors import WhyNot
from ..models.base import Model
from ..models.shared_basis import SharedBasis
from ..parameters import Parameters
from ..problem import Formulation
from ..settings import ParamSpec
from ..shared_basis.both_layers import descend, fista_both
from ..shared_basis.gradients import BasisGradient, activations, dual_order, feature_products
from ..shared_basis.linear_part import fit_linear_part, refit_output_layer
from ..shared_basis.output_layer import OutputLayer, Risk, fista, is_wide, whitened
from ..shared_basis.selection import METHODS, select
from .base import Solver

# A criterion above λ by less than this share is rounding.
_NEWS = 1e-7
# A refit ends where a step promises less than this share of what the refit has brought, or less of it where
# more accuracy is asked for.
_PART, _PER_ACCURACY = 0.01, 1e4
# What the objective counts at least, as a share of the first one.
_LEAST = 1e-3
_MOST = 1000


class BasisSolver(Solver):
    """What the solvers of a shared basis have in common: their state is H, (d, k), and Θ, (q, m).

    The change of an epoch is the share of itself by which the objective fell, at least of a thousandth of the
    first one: single weights may move far between bases that are nearly alike.
    """

    memory: ClassVar[tuple[str, ...]] = ("_rng", "_bases", "_T", "_w", "_first")
    diverged_hint: ClassVar[str] = "Scale the features, or raise lambda_sparse."

    def _why_not_model(self, model: Model) -> WhyNot | None:
        """See `Solver._why_not_model`."""
        if isinstance(model, SharedBasis):
            return None
        return WhyNot(
            "shared_basis_only",
            f"{self.label} looks for vectors of the unit ball that several outputs share, and this model, "
            f'{model.label[0].lower()}{model.label[1:]}, has none. Choose the model "shared_basis", or '
            "another solver.",
        )

    @property
    def _model(self) -> SharedBasis:
        model = self.problem.model
        assert isinstance(model, SharedBasis), "`_why_not_model` says so"
        return model

    @property
    def _H(self) -> np.ndarray:
        """The bases as columns; they are kept as rows, whose number a checkpoint may change."""
        return self._bases.T

    @_H.setter
    def _H(self, H: np.ndarray) -> None:
        self._bases = H.T.copy()

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """See `Solver.start`."""
        self._rng = rng
        self._H = parameters.P
        parts = [parameters["V"]]
        # The weights of a wide X, which are no part of Θ.
        self._w = np.atleast_2d(parameters["w"]).T.copy()
        if self.problem.fit_linear and not is_wide(self.problem):
            parts.append(self._w)
        if self.problem.fit_intercept:
            parts.append(np.atleast_1d(parameters["intercept"])[None, :])
        self._T = np.vstack(parts)
        self._first = 0.0
        # Not remembered: it follows from the rest.
        self._here: tuple[float, np.ndarray] | None = None
        self._held = {name: parameters[name].copy() for name in ("w", "intercept")}

    def _activations(self, H: np.ndarray) -> np.ndarray:
        return activations(self.problem.design, H, self._model.diagonal)

    def _offset(self) -> np.ndarray | None:
        """Return the predictions of the weights of a wide X, None where there are none."""
        return self.problem.design.dot(self._w) if is_wide(self.problem) else None

    def _keep_live(self) -> None:
        """Drop the bases whose row of V is 0."""
        k = self._H.shape[1]
        live = self._T[:k].any(axis=1)
        if not live.all():
            self._H = self._H[:, live]
            self._T = np.vstack([self._T[:k][live], self._T[k:]])

    def _evaluate(self) -> tuple[float, np.ndarray]:
        """Return the objective and the slopes of the risk, shape (N, m), at the present point."""
        problem, here = self.problem, self.parameters()
        F = problem.predict(here).reshape(problem.design.n_samples, -1)
        risk, slopes = Risk(problem).value_and_slopes(F)
        return risk + sum(problem.penalties(here).values()), slopes

    def _fall(self, before: float) -> float:
        """Look at the present point, and return the change since the objective was `before`."""
        self._here = self._evaluate()
        now = self._here[0]
        self._first = self._first or before
        size = max(now, _LEAST * self._first)
        return abs(before - now) / size if size else 0.0

    def parameters(self) -> Parameters:
        """Return copies, with columns of zeros up to `rank`."""
        problem, k = self.problem, self._H.shape[1]
        d, m = problem.design.n_features, self._T.shape[1]
        shapes = problem.shapes
        w, bias = self._held["w"], self._held["intercept"]
        end = len(self._T)
        if problem.fit_intercept:
            end -= 1
            bias = self._T[end].reshape(shapes["intercept"])
        if problem.fit_linear:
            w = (self._w if is_wide(problem) else self._T[k:end]).T.reshape(shapes["w"])
        P, V = np.zeros((d, problem.rank)), np.zeros((problem.rank, m))
        P[:, :k], V[:k] = self._H, self._T[:k]
        return Parameters(P, w.copy(), bias.copy(), V=V)


class ConditionalGradient(BasisSolver):
    r"""Adds the vectors along which the objective falls most steeply, and refits.

    The gradient at V = 0 along a basis h is g_h = −(hᵀΓ_1 h, …, hᵀΓ_m h) for all outputs, and none is left to
    add just where its norm dual to that of the rows is at most λ for all h of the unit ball, the optimum. An
    epoch

    1. selects up to `bases` vectors of large ‖g_h‖ (`selection`), and takes those beyond λ;
    2. refits the output layer, V with w and the biases, to the relative accuracy `accuracy`;
    3. with `refit` "full" goes on with a local search on both layers, which is not convex;
    4. drops the bases whose row of V is 0.

    As published it adds one basis an epoch, selects by the ℓ1 start with refinement ("refine"), and refits by
    FISTA (`inner` "fista") to 1e-3. Eigen-steps reach larger ‖g_h‖, several bases an epoch need fewer refits,
    and the accuracy of the refits matters more than any of it.
    """

    name: ClassVar[str] = "conditional_gradient"
    label: ClassVar[str] = "Conditional gradient"
    source: ClassVar[str] = "blondel2017, Algorithm 1"
    about: ClassVar[str] = (
        "Adds to the basis the vectors of steepest descent, shared by all outputs, and refits; its duality "
        "gap bounds how far it is from any machine on any basis."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec(
            "refit",
            "choice",
            "output",
            choices=("output", "full"),
            help="What moves after a selection: the output layer, or the bases, too.",
        ),
        ParamSpec(
            "selection",
            "choice",
            "eigen",
            choices=tuple(METHODS),
            help="How bases are found: eigen-steps, the published refinement, or one of its alternatives.",
        ),
        ParamSpec(
            "inner",
            "choice",
            "whitened",
            choices=("whitened", "fista"),
            help="How the layers are refitted: in the metric of the activations, or as published.",
        ),
        ParamSpec("bases", "int", 10, 1, 100, help="The most new bases of an epoch."),
        ParamSpec(
            "accuracy",
            "float",
            1e-6,
            1e-14,
            0.1,
            log=True,
            help="The relative accuracy of a refit.",
        ),
    )

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        """See `Solver.why_not`."""
        if problem.penalty.row_norm is None:
            return WhyNot(
                "no_selection",
                f"{self.label} adds bases beyond a threshold λ, and {problem.penalty.label} has none: every "
                "basis would be added. Choose ℓ₁, ℓ₁/ℓ₂ or ℓ₁/ℓ∞, or projected gradient on a fixed number of "
                "bases.",
            )
        return None

    def prepare(self) -> None:
        """See `Solver.prepare`."""
        self._products = feature_products(self.problem.design)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """See `Solver.start`: bases without a weight are none."""
        super().start(parameters, rng)
        self._keep_live()
        if not self._T[: self._H.shape[1]].any():
            # The linear part alone, from which the first bases are selected.
            self._refit_output(self._H)

    def epoch(self) -> float:
        """See `Solver.epoch`."""
        before, slopes = self._here or self._evaluate()
        free = self.problem.rank - self._H.shape[1]
        new = self._selected(slopes, min(free, self.settings["bases"]))
        self._refit_output(np.hstack([self._H, new]))
        self._keep_live()
        if self.settings["refit"] == "full" and self._H.shape[1]:
            self._refit_both()
            self._keep_live()
        return self._fall(before)

    def at_rank(self) -> bool:
        """See `Solver.at_rank`."""
        return self._H.shape[1] == self.problem.rank

    def _selected(self, slopes: np.ndarray, count: int) -> np.ndarray:
        problem = self.problem
        if count <= 0:
            return np.zeros((problem.design.n_features, 0))
        gradient = BasisGradient(problem.design, slopes, self._model.diagonal, self._products)
        row_norm = problem.penalty.row_norm
        assert row_norm is not None, "`_why_not` says so"
        p = dual_order(row_norm)
        H, size = select(gradient, p, self.settings["selection"], count, self._rng)
        self.criterion = float(size.max(initial=0.0))
        least = problem.lambda_sparse
        if self._model.radius:
            # In place of λ there is what the bases at hand have reached.
            least = float(gradient.norms(self._H, p).max(initial=0.0))
        return H[:, size > least * (1.0 + _NEWS)]

    def _refit_output(self, H: np.ndarray) -> None:
        k, new = self._H.shape[1], H.shape[1] - self._H.shape[1]
        T = np.vstack([self._T[:k], np.zeros((new, self._T.shape[1])), self._T[k:]])
        self._H = H
        accuracy = self.settings["accuracy"]

        def refit(layer: OutputLayer, T: np.ndarray) -> np.ndarray:
            if self.settings["inner"] == "fista" or self._model.radius:
                return fista(layer, T, accuracy, _MOST)
            return whitened(layer, T, accuracy, part=min(_PART, _PER_ACCURACY * accuracy)).T

        if T.size or is_wide(self.problem):
            found = refit_output_layer(self.problem, self._activations(H), T, self._w, refit, accuracy)
            self._T, self._w = found
        else:
            self._T = T

    def _refit_both(self) -> None:
        search: Any = fista_both if self.settings["inner"] == "fista" or self._model.radius else descend
        start = self._model.diagonal, self._H, self._T
        self._H, self._T = search(self.problem, *start, self.settings["accuracy"], offset=self._offset())


class ProjectedGradient(BasisSolver):
    """Accelerated projected gradient steps on a fixed number of bases from random directions.

    The baseline of blondel2017: both layers move from the start, the bases projected on the unit ball and V
    through the operator of its penalty. It finds a stationary point, good or bad, and no basis that is
    missing.
    """

    name: ClassVar[str] = "projected_gradient"
    label: ClassVar[str] = "Projected gradient"
    source: ClassVar[str] = "blondel2017, Section 6.4"
    about: ClassVar[str] = (
        "Moves a fixed number of random bases and the output layer together; the baseline that the "
        "conditional gradient is measured by."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec("steps", "int", 20, 1, 1000, help="Accelerated steps of an epoch, which starts them anew."),
    )

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        """See `Solver._why_not`: every penalty has an operator."""
        return None

    def epoch(self) -> float:
        """See `Solver.epoch`."""
        before = (self._here or self._evaluate())[0]
        self._H, self._T = fista_both(
            self.problem,
            self._model.diagonal,
            self._H,
            self._T,
            0.0,
            self.settings["steps"],
            offset=self._offset(),
        )
        if is_wide(self.problem):
            F = self._activations(self._H) @ self._T[: self._H.shape[1]] + self._T[self._H.shape[1] :].sum(0)
            self._w = fit_linear_part(self.problem, F, self._w, 1e-6)
        return self._fall(before)
