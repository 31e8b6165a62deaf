"""Conditional gradient with basis selection for machines on a shared basis ([C] Algorithm 1)."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np

from ..errors import WhyNot
from ..models.base import Model
from ..models.shared_basis import SharedBasis
from ..parameters import Parameters
from ..penalties import Penalty
from ..problem import Formulation, Problem
from ..settings import ParamSpec
from ..shared_basis.gradients import BasisGradient, activations, dual_order, feature_products
from ..shared_basis.linear_part import fit_linear_part, refit_output_layer
from ..shared_basis.output_layer import OutputLayer, Risk, fista, fista_of_blocks, is_wide, whitened
from ..shared_basis.selection import METHODS, select
from .base import Solver

_MOST_STEPS = 1000
Limits = tuple[float | None, float | None]
_LBFGS_MEMORY = 20


class BothLayers:
    """The risk as a function of H, shape (d, k), and Θ, shape (q, m), stacked as in `OutputLayer`."""

    def __init__(self, problem: Problem, diagonal: bool, k: int, offset: np.ndarray | None = None) -> None:
        self._offset = offset
        self.problem, self.diagonal, self.k = problem, diagonal, k
        self.risk = Risk(problem)
        # Without bases: the linear part of Z, with the terms of the objective in Θ except V.
        self.linear = OutputLayer(problem, np.zeros((problem.design.n_samples, 0)), offset)

    def layer(self, H: np.ndarray) -> OutputLayer:
        """Return the problem of the output layer on these bases."""
        return OutputLayer(self.problem, activations(self.problem.design, H, self.diagonal), self._offset)

    def value_and_gradients(self, H: np.ndarray, T: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the risk plus λ_w‖w‖², and the gradients in H and in Θ."""
        design, k, linear = self.problem.design, self.k, self.linear
        A = design.dot(H)
        Phi = np.square(A)
        if not self.diagonal:
            squares = design.power(2)
            Phi = 0.5 * (Phi - np.asarray(squares @ np.square(H)))
        V, linear_T = T[:k], T[k:]
        value, slopes = self.risk.value_and_slopes(Phi @ V + linear.predict(linear_T))
        E = slopes @ V.T
        if self.diagonal:
            in_H = 2.0 * design.transpose_dot(A * E)
        else:
            in_H = design.transpose_dot(A * E) - H * np.asarray(squares.T @ E)
        ridge = linear.ridge[:, None]
        in_T = np.vstack([Phi.T @ slopes, linear.Z.T @ slopes + 2.0 * ridge * linear_T])
        return value + float((ridge * np.square(linear_T)).sum()), in_H, in_T


def fista_both(
    problem: Problem,
    diagonal: bool,
    H: np.ndarray,
    T: np.ndarray,
    tol: float,
    most: int = _MOST_STEPS,
    offset: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return H and Θ after accelerated proximal gradient steps on both, with restarts ([C] Appendix D).

    The bases are projected on the unit ball, V goes through the operator of its penalty. The steps end once
    no entry moves by more than `tol` of the largest one.
    """
    both = BothLayers(problem, diagonal, H.shape[1], offset)
    proximal = both.layer(H).prox

    def smooth(H: np.ndarray, T: np.ndarray) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
        value, in_H, in_T = both.value_and_gradients(H, T)
        return value, (in_H, in_T)

    def prox(eta: float, H: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return H / np.maximum(np.linalg.norm(H, axis=0), 1.0), proximal(T, eta)

    H, T = fista_of_blocks(smooth, prox, (H, T), tol, most)
    return H, T


class _Smooth:
    """The objective in unnormalised directions u_r = ‖u_r‖h_r and a form of V with a smooth penalty.

    ℓ1: V = A − B with A, B ≥ 0, and the penalty ΣA + ΣB. ℓ1/ℓ2: V itself, whose rows are not 0. ℓ1/ℓ∞:
    v_rc = t_r s_rc with |s_rc| ≤ 1, and the penalty Σt_r.
    """

    def __init__(self, both: BothLayers, penalty: Penalty, strength: float, m: int) -> None:
        self._both, self._penalty, self._strength = both, penalty, strength
        self._d, self._k, self._m = both.problem.design.n_features, both.k, m

    def pack(self, H: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, list[Limits]]:
        """Return the variables and their bounds."""
        k, V = self._k, T[: self._k]
        free: Limits = (None, None)
        bounds: list[Limits] = [free] * H.size
        parts = [H.ravel()]
        if self._penalty.row_norm == 1.0:
            parts += [np.maximum(V, 0.0).ravel(), np.maximum(-V, 0.0).ravel()]
            bounds += [(0.0, None)] * (2 * V.size)
        elif self._penalty.row_norm == np.inf:
            tops = np.abs(V).max(axis=1)
            parts += [tops, (V / np.maximum(tops, 1e-300)[:, None]).ravel()]
            bounds += [(0.0, None)] * k + [(-1.0, 1.0)] * V.size
        else:
            parts.append(V.ravel())
            bounds += [free] * V.size
        parts.append(T[k:].ravel())
        bounds += [free] * T[k:].size
        return np.concatenate(parts), bounds

    def unpack(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return U, Θ, and the variables that make up V."""
        d, k, m = self._d, self._k, self._m
        U, x = x[: d * k].reshape(d, k), x[d * k :]
        count = {1.0: 2 * k * m, np.inf: k + k * m}.get(self._penalty.row_norm or 0.0, k * m)
        inner, linear = x[:count], x[count:].reshape(-1, m)
        if self._penalty.row_norm == 1.0:
            V = (inner[: k * m] - inner[k * m :]).reshape(k, m)
        elif self._penalty.row_norm == np.inf:
            V = inner[:k, None] * inner[k:].reshape(k, m)
        else:
            V = inner.reshape(k, m)
        return U, np.vstack([V, linear]), inner

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective and its gradient."""
        k, m, strength = self._k, self._m, self._strength
        U, T, inner = self.unpack(x)
        size = np.maximum(np.linalg.norm(U, axis=0), 1e-300)
        H = U / size
        value, in_H, in_T = self._both.value_and_gradients(H, T)
        in_U = (in_H - H * (in_H * H).sum(axis=0)) / size
        V, in_V = T[:k], in_T[:k]
        if self._penalty.row_norm == 1.0:
            value += strength * float(inner.sum())
            in_inner = np.concatenate([(in_V + strength).ravel(), (strength - in_V).ravel()])
        elif self._penalty.row_norm == np.inf:
            tops, shares = inner[:k], inner[k:].reshape(k, m)
            value += strength * float(tops.sum())
            in_inner = np.concatenate(
                [(in_V * shares).sum(axis=1) + strength, (in_V * tops[:, None]).ravel()]
            )
        else:
            norms = np.linalg.norm(V, axis=1, keepdims=True)
            value += strength * float(norms.sum())
            in_inner = (in_V + strength * V / np.maximum(norms, 1e-300)).ravel()
        return value, np.concatenate([in_U.ravel(), in_inner, in_T[k:].ravel()])


def descend(
    problem: Problem,
    diagonal: bool,
    H: np.ndarray,
    T: np.ndarray,
    tol: float,
    most: int = _MOST_STEPS,
    offset: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return H, of unit columns, and Θ after L-BFGS iterations on both, and a refit of the output layer.

    The iterations ignore kinks, and a basis with zero weight would keep it; the refit makes rows of V exactly
    0. It never raises the objective.
    """
    from scipy.optimize import minimize

    both = BothLayers(problem, diagonal, H.shape[1], offset)
    layer = both.layer(H)
    before = layer.objective(T)
    form = _Smooth(both, problem.penalty, layer.strength, T.shape[1])
    x, bounds = form.pack(H, T)
    options = {"maxiter": most, "maxfun": 2 * most, "maxcor": _LBFGS_MEMORY, "ftol": 0.1 * tol, "gtol": 0.0}
    result = minimize(form.value_and_gradient, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    U, new, _ = form.unpack(result.x)
    size = np.linalg.norm(U, axis=0)
    new_H = np.divide(U, size, out=np.zeros_like(U), where=size > 0)
    layer = both.layer(new_H)
    new = whitened(layer, new, tol)
    return (new_H, new) if layer.objective(new) <= before else (H, T)


# A criterion above λ by less than this share is rounding.
_NEWS = 1e-7
# A refit ends where a step promises less than this share of the refit's decrease, or a smaller share for a
# higher accuracy.
_PART, _PER_ACCURACY = 0.01, 1e4
# The least scale of relative changes, as a share of the first objective.
_LEAST = 1e-3
_MOST = 1000


class BasisSolver(Solver):
    """Base class of solvers of a shared basis, whose state is H, (d, k), and Θ, (q, m).

    The change of an epoch is the relative decrease of the objective, relative to at least a thousandth of the
    first one: single weights may move far between nearly identical bases.
    """

    memory: ClassVar[tuple[str, ...]] = ("_rng", "_bases", "_T", "_w", "_first")
    diverged_hint: ClassVar[str] = "Scale the features, or raise lambda_sparse."

    def _why_not_model(self, model: Model) -> WhyNot | None:
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
        return cast(SharedBasis, self.problem.model)

    @property
    def _H(self) -> np.ndarray:
        """The bases as columns; they are kept as rows, whose number a checkpoint may change."""
        return self._bases.T

    @_H.setter
    def _H(self, H: np.ndarray) -> None:
        self._bases = H.T.copy()

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        self._rng = rng
        self._H = parameters.P
        parts = [parameters["V"]]
        # The weights of a wide X, which are not part of Θ.
        self._w = np.atleast_2d(parameters["w"]).T.copy()
        if self.problem.fit_linear and not is_wide(self.problem):
            parts.append(self._w)
        if self.problem.fit_intercept:
            parts.append(np.atleast_1d(parameters["intercept"])[None, :])
        self._T = np.vstack(parts)
        self._first = 0.0
        # Not in `memory`, since it follows from the other attributes.
        self._here: tuple[float, np.ndarray] | None = None
        self._fixed = {name: parameters[name].copy() for name in ("w", "intercept")}

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
        """Evaluate the present point, and return the change since the objective was `before`."""
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
        w, bias = self._fixed["w"], self._fixed["intercept"]
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

    The gradient at V = 0 along a basis h is g_h = −(hᵀΓ_1 h, …, hᵀΓ_m h) for all outputs, and
    the optimum is reached just where its norm dual to that of the rows is at most λ for all h of the unit
    ball. An epoch

    1. selects up to `bases` vectors of large ‖g_h‖ (`selection`), and takes those beyond λ;
    2. refits the output layer, V with w and the biases, to the relative accuracy `accuracy`;
    3. with `refit` "full" continues with a local search on both layers, which is not convex;
    4. drops the bases whose row of V is 0.

    As published it adds one basis an epoch, selects by the ℓ1 start with refinement ("refine"), and refits by
    FISTA (`inner` "fista") to 1e-3. Eigen-steps reach larger ‖g_h‖, several bases an epoch need fewer refits,
    and the accuracy of the refits matters most.
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
            help="Whether to refit the output layer after a selection, or the bases, too.",
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
        if problem.penalty.row_norm is None:
            return WhyNot(
                "no_selection",
                f"{self.label} adds bases beyond a threshold λ, and {problem.penalty.label} has none: every "
                "basis would be added. Choose ℓ₁, ℓ₁/ℓ₂ or ℓ₁/ℓ∞, or projected gradient on a fixed number of "
                "bases.",
            )
        return None

    def prepare(self) -> None:
        self._products = feature_products(self.problem.design)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """Start from the bases with a non-zero weight."""
        super().start(parameters, rng)
        self._keep_live()
        if not self._T[: self._H.shape[1]].any():
            # The linear part alone, from which the first bases are selected.
            self._refit_output(self._H)

    def epoch(self) -> float:
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
        return self._H.shape[1] == self.problem.rank

    def _selected(self, slopes: np.ndarray, count: int) -> np.ndarray:
        problem = self.problem
        if count <= 0:
            return np.zeros((problem.design.n_features, 0))
        gradient = BasisGradient(problem.design, slopes, self._model.diagonal, self._products)
        p = dual_order(problem.penalty.row_norm)
        H, size = select(gradient, p, self.settings["selection"], count, self._rng)
        self.criterion = float(size.max(initial=0.0))
        least = problem.lambda_sparse
        if self._model.radius:
            # The norms of the present bases take the place of λ.
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
            return whitened(layer, T, accuracy, part=min(_PART, _PER_ACCURACY * accuracy))

        if T.size or is_wide(self.problem):
            fitted = refit_output_layer(self.problem, self._activations(H), T, self._w, refit, accuracy)
            self._T, self._w = fitted
        else:
            self._T = T

    def _refit_both(self) -> None:
        search: Any = fista_both if self.settings["inner"] == "fista" or self._model.radius else descend
        start = self._model.diagonal, self._H, self._T
        self._H, self._T = search(self.problem, *start, self.settings["accuracy"], offset=self._offset())


class ProjectedGradient(BasisSolver):
    """Accelerated projected gradient steps on a fixed number of bases from random directions.

    The baseline of blondel2017: both layers move from the start, the bases projected on the unit ball and V
    through the operator of its penalty. It finds a stationary point, good or bad, and adds no
    bases.
    """

    name: ClassVar[str] = "projected_gradient"
    label: ClassVar[str] = "Projected gradient"
    source: ClassVar[str] = "blondel2017, Section 6.4"
    about: ClassVar[str] = (
        "Moves a fixed number of random bases and the output layer together; the baseline that the "
        "conditional gradient is measured by."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec("steps", "int", 20, 1, 1000, help="Accelerated steps of an epoch, restarted in each."),
    )

    def epoch(self) -> float:
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
