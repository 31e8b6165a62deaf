"""Conditional gradient with basis selection for machines on a shared basis ([C] Algorithm 1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, cast

import numpy as np

from ..errors import WhyNot
from ..models.base import Model
from ..models.shared_basis import SharedBasis
from ..parameters import Parameters
from ..problem import Formulation
from ..settings import ParamSpec
from ..shared_basis.gradients import DUAL_ORDER, BasisGradient
from ..shared_basis.output_layer import (
    OutputLayer,
    descend,
    fista,
    fit_linear_part,
    is_wide,
    refit_output_layer,
    risk_and_slopes,
    whitened,
)
from ..shared_basis.selection import METHODS, select
from .base import Solver

# A criterion that exceeds λ by less than this fraction is rounding.
_NEWS = 1e-7
# A refit ends when the expected decrease of a step is below this fraction of the refit's decrease, or a
# smaller fraction for a higher accuracy.
_PART, _PER_ACCURACY = 0.01, 1e4
# The minimum scale of relative changes, as a fraction of the first objective.
_LEAST = 1e-3


class BasisSolver(Solver, ABC):
    """Base class of solvers for a shared basis, with the state H, (d, k), and Θ, (q, m).

    The change of an epoch is the relative decrease of the objective, relative to at least a thousandth of the
    first one: single weights may change a lot between nearly identical bases.
    """

    memory: ClassVar[tuple[str, ...]] = ("_rng", "_bases", "_T", "_w", "_first")
    diverged_hint: ClassVar[str] = "Scale the features, or increase lambda_sparse."

    def _why_not_model(self, model: Model) -> WhyNot | None:
        if isinstance(model, SharedBasis):
            return None
        return WhyNot(
            "shared_basis_only",
            f"{self.label} searches for basis vectors shared by several outputs, which the model "
            f'{model.label[0].lower()}{model.label[1:]} does not have. Choose the model "shared_basis", or '
            "another solver.",
        )

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        self._rng, self._first, self._start = rng, 0.0, parameters.replace()
        # The bases as rows, since a checkpoint may change their number.
        self._bases = parameters.P.T.copy()
        # The linear weights of a wide X, which are not part of Θ.
        self._w = np.atleast_2d(parameters["w"]).T.copy()
        within = self.problem.fit_linear and not is_wide(self.problem)
        bias = np.reshape(parameters["intercept"], (1, -1))[: int(self.problem.fit_intercept)]
        self._T = np.vstack([parameters["V"], self._w if within else self._w[:0], bias])
        # Not in `memory`, since the other attributes determine it.
        self._here: tuple[float, np.ndarray] | None = None

    def _keep(self, T: np.ndarray, H: np.ndarray) -> None:
        """Store new layers without the bases whose row of V is 0."""
        live = np.append(T[: H.shape[1]].any(axis=1), np.ones(len(T) - H.shape[1], dtype=bool))
        self._bases, self._T = H[:, live[: H.shape[1]]].T.copy(), T[live]

    def _evaluate(self) -> tuple[float, np.ndarray]:
        """Return the objective and the slopes of the risk, shape (N, m), at the current point."""
        problem, here = self.problem, self.parameters()
        risk, slopes = risk_and_slopes(problem, problem.predict(here).reshape(len(problem.y), -1))
        return risk + sum(problem.penalties(here).values()), slopes

    def epoch(self) -> float:
        before, slopes = self._here or self._evaluate()
        self._move(slopes)
        now, _ = self._here = self._evaluate()
        self._first = self._first or before
        return abs(before - now) / (max(now, _LEAST * self._first) or 1.0)

    @abstractmethod
    def _move(self, slopes: np.ndarray) -> None:
        """Run an epoch, given the slopes of the risk at the current point."""

    def parameters(self) -> Parameters:
        """Return copies, with columns of zeros up to `rank`."""
        problem, k = self.problem, len(self._bases)
        empty, outputs = (0, problem.rank - k), problem.shapes["intercept"]
        V, w, bias = np.split(self._T, [k, len(self._T) - problem.fit_intercept])
        return self._start.replace(
            P=np.pad(self._bases.T, ((0, 0), empty)),
            V=np.pad(V, (empty, (0, 0))),
            w=(w if len(w) else self._w).T.reshape(problem.shapes["w"]).copy(),
            intercept=np.reshape(bias if len(bias) else self._start["intercept"], outputs).copy(),
        )


class ConditionalGradient(BasisSolver):
    r"""Conditional gradient: add the basis vectors of steepest descent, and refit.

    The gradient at V = 0 along a basis h is g_h = −(hᵀΓ_1 h, …, hᵀΓ_m h) for all outputs, and a point is
    optimal if and only if its norm dual to that of the rows is at most λ for all h in the unit ball. An epoch

    1. selects up to `bases` vectors of large ‖g_h‖ (`selection`), and keeps those beyond λ;
    2. refits the output layer, V with w and the biases, to the relative accuracy `accuracy`;
    3. with `refit` "full", continues with a non-convex local search on both layers;
    4. drops the bases whose row of V is 0.

    The published method adds one basis per epoch, selects by the ℓ1 start with refinement ("refine"), and
    refits by FISTA (`inner` "fista") to 1e-3. Eigen-steps reach larger ‖g_h‖, several bases per epoch need
    fewer refits, and the accuracy of the refits matters most.
    """

    name: ClassVar[str] = "conditional_gradient"
    label: ClassVar[str] = "Conditional gradient"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec(
            "refit",
            "choice",
            "output",
            choices=("output", "full"),
            help="Whether to refit only the output layer after a selection, or also the bases.",
        ),
        ParamSpec(
            "selection",
            "choice",
            "eigen",
            choices=tuple(METHODS),
            help="The search for bases: eigen-steps, the published refinement, or one of its alternatives.",
        ),
        ParamSpec(
            "inner",
            "choice",
            "whitened",
            choices=("whitened", "fista"),
            help="The refit of the layers: in the metric of the activations, or as published.",
        ),
        ParamSpec("bases", "int", 10, 1, 100, help="The maximum number of new bases per epoch."),
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
        if problem.penalty.row_norm is None:
            return WhyNot(
                "no_selection",
                f"{self.label} adds bases beyond a threshold λ, but {problem.penalty.label} has no "
                "threshold: every basis would be added. Choose ℓ₁, ℓ₁/ℓ₂ or ℓ₁/ℓ∞, or projected gradient on "
                "a fixed number of bases.",
            )
        return None

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """Start from the bases with a non-zero weight."""
        super().start(parameters, rng)
        self._keep(self._T, self._bases.T)
        if not len(self._bases):
            # Only the linear part, from which the first bases are selected.
            self._refit_output(self._bases.T)

    def _move(self, slopes: np.ndarray) -> None:
        new = self._bases[:0].T if self.at_rank() else self._selected(slopes)
        self._refit_output(np.hstack([self._bases.T, new]))
        if self.settings["refit"] == "full" and len(self._bases):
            layer, both = OutputLayer(self.problem, self._bases.T, self._w), (self._T, self._bases.T)
            local = fista if self._published or layer.penalty.row_norm != 2.0 else descend
            self._keep(*local(layer, both, self.settings["accuracy"]))

    def at_rank(self) -> bool:
        return len(self._bases) == self.problem.rank

    @property
    def _published(self) -> bool:
        return self.settings["inner"] == "fista" or bool(self.problem.model.radius)

    def _selected(self, slopes: np.ndarray) -> np.ndarray:
        problem, model = self.problem, cast(SharedBasis, self.problem.model)
        count = min(problem.rank - len(self._bases), self.settings["bases"])
        gradient = BasisGradient(problem.design, slopes, model.repeats)
        p = DUAL_ORDER[problem.penalty.row_norm]
        H, size = select(gradient, p, self.settings["selection"], count, self._rng)
        # With a radius, the norms of the current bases replace λ.
        present = self._bases.T[:, : len(self._bases) if model.radius else 0]
        return H[:, size > gradient.norms(present, p).max(initial=problem.lambda_sparse) * (1.0 + _NEWS)]

    def _refit_output(self, H: np.ndarray) -> None:
        k, accuracy = len(self._bases), self.settings["accuracy"]
        T = np.insert(self._T, [k] * (H.shape[1] - k), 0.0, axis=0)

        def refit(layer: OutputLayer, T: np.ndarray) -> np.ndarray:
            part = min(_PART, _PER_ACCURACY * accuracy)
            return fista(layer, (T,), accuracy)[0] if self._published else whitened(layer, T, accuracy, part)

        layer = OutputLayer(self.problem, H, self._w)
        T, self._w = refit_output_layer(layer, T, self._w, refit, accuracy)
        self._keep(T, H)


class ProjectedGradient(BasisSolver):
    """Accelerated projected gradient descent on a fixed number of bases, from random directions.

    The baseline of blondel2017, Section 6.4: both layers are updated from the start, the bases by projection
    onto the unit ball and V by the proximal operator of its penalty. It converges to a stationary point,
    which may be poor, and adds no bases.
    """

    name: ClassVar[str] = "projected_gradient"
    label: ClassVar[str] = "Projected gradient"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec(
            "steps",
            "int",
            20,
            1,
            1000,
            help="The number of accelerated steps per epoch; momentum restarts every epoch.",
        ),
    )

    def _move(self, slopes: np.ndarray) -> None:
        layer = OutputLayer(self.problem, self._bases.T, self._w)
        self._T, H = fista(layer, (self._T, self._bases.T), 0.0, self.settings["steps"])
        self._bases = H.T.copy()
        if is_wide(self.problem):
            self._w = fit_linear_part(self.problem, layer.Z @ self._T, self._w, 1e-6)
