"""Batch proximal gradient descent, plain and accelerated, with line search on the smooth part."""

from __future__ import annotations

from math import sqrt
from typing import ClassVar

import numpy as np

from ..errors import WhyNot
from ..parameters import Parameters
from ..problem import Formulation
from ..settings import ParamSpec
from ._flat_problem import ROUNDING, JointSolver

SHRINK = ParamSpec(
    "rho", "float", 0.5, 0.05, 0.95, symbol=r"\rho", help="Factor of each shortening of the step."
)
GROW = ParamSpec(
    "growth", "float", 1.25, 1.0, 4.0, help="Each epoch tries a step that is longer by this factor first."
)
STEP = ParamSpec(
    "step", "float", 1.0, 1e-12, 1e12, log=True, symbol=r"\eta_0", help="The step that is tried first of all."
)
# Below this share of the risk, its differences say less about curvature than the gradients do.
_FLAT = 1e-10
# A step of 2^-200 of the first one moves nothing.
MOST_TRIALS = 200


class PGD(JointSolver):
    r"""Proximal gradient descent with backtracking.

    An epoch is one step θ⁺ = prox_{η·penalty}(θ − η∇risk(θ)) on (P, w, bias), with the penalty as in
    [A] Eq. 28. The step size η of the last epoch, times `growth`, is multiplied by `rho` until

    risk(θ⁺) ≤ risk(θ) + ⟨∇risk(θ), θ⁺ − θ⟩ + ‖θ⁺ − θ‖²/(2η)    (Beck and Teboulle, 2009, Eq. 2.7).

    θ⁺ is a global minimiser of the right-hand side plus the penalty, so the objective never rises (up to
    rounding), whether or not it is convex.
    """

    name: ClassVar[str] = "pgd"
    label: ClassVar[str] = "PGD"
    source: ClassVar[str] = "atarashi2021, Section 4.1 and Eq. 28; Beck and Teboulle (2009)"
    about: ClassVar[str] = (
        "Proximal gradient descent: one step on all of P, w and the bias at once, whose size a line search "
        "finds. The objective never rises."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (STEP, SHRINK, GROW)

    memory: ClassVar[tuple[str, ...]] = ("_joint", "_x", "_eta", "_first")

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        penalty = problem.penalty
        if penalty.why_no_operator:
            return WhyNot("no_operator", penalty.why_no_operator)
        if not penalty.exact_prox:
            return WhyNot(
                "inexact_operator",
                f"{self.label} owes its descent to an exact proximal operator, and that of "
                f"{penalty.label} has no closed form. Use nmAPGD, which checks the objective after every "
                "inexact step, or SubGD, which needs no operator.",
            )
        return None

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        super().start(parameters, rng)
        self._eta = self.settings["step"]
        self._first = True

    def resume(self, parameters: Parameters) -> None:
        """Continue from another point, with the present step size of the line search."""
        self._x = self._joint.pack(parameters)

    def _move(self) -> float:
        """Make a step; the change is the length of the proximal step, 0 just where θ is stationary."""
        before, self._x = self._x, self._step(self._x, self._longer())[0]
        return self._joint.change(self._x, self._x - before)

    def _longer(self) -> float:
        longer = self._eta if self._first else self._eta * self.settings["growth"]
        self._first = False
        return float(min(longer, 1e100))

    def _step(self, y: np.ndarray, eta: float) -> tuple[np.ndarray, float]:
        """Return prox(y − η∇risk(y)) for the first η that passes, and its risk; y where none passes."""
        joint = self._joint
        before, gradient = joint.risk_and_gradient(y)
        if not (np.isfinite(before) and np.isfinite(gradient).all()):
            return np.full_like(y, np.nan), np.nan
        for _ in range(MOST_TRIALS):
            x = joint.prox(y - eta * gradient, eta)
            step = x - y
            room = float(step @ step) / (2.0 * eta)
            risk = joint.risk(x)
            if room <= _FLAT * abs(before) and np.isfinite(risk):
                # The difference of the risks is below rounding; to second order it is half of this one.
                bend = 0.5 * float((joint.risk_and_gradient(x)[1] - gradient) @ step)
            else:
                bend = risk - before - float(gradient @ step)
            if bend <= room:
                self._eta = eta
                return x, risk
            eta *= self.settings["rho"]
        return y.copy(), before


class APGD(PGD):
    r"""FISTA with adaptive restart.

    The step of PGD is taken from y = θ_t + (t_{i−1} − 1)/t_i·(θ_t − θ_{t−1}), with
    t_{i+1} = (1 + √(1 + 4t_i²))/2. The momentum restarts from t = 1

    - function scheme: where the objective would rise;
    - gradient scheme: also where ⟨y − θ_{t+1}, θ_{t+1} − θ_t⟩ > 0.

    A step that would raise the objective is not taken; a plain step from θ_t takes its place within the
    same epoch. So the objective never rises (up to rounding), which momentum alone would not ensure, least of
    all since the objective is not convex.
    """

    name: ClassVar[str] = "apgd"
    label: ClassVar[str] = "APGD"
    source: ClassVar[str] = (
        "atarashi2021, Section C.2; Beck and Teboulle (2009); O'Donoghue and Candès (2015); "
        "Giselsson and Boyd (2014)"
    )
    about: ClassVar[str] = (
        "Accelerated proximal gradient descent, FISTA: steps from a point extrapolated beyond the last one. "
        "The momentum restarts where it would raise the objective, so the objective never rises."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (
        STEP,
        SHRINK,
        GROW,
        ParamSpec(
            "restart",
            "choice",
            "function",
            choices=("function", "gradient"),
            help="Restart the momentum where the objective rises, or already where the step turns back.",
        ),
    )
    memory: ClassVar[tuple[str, ...]] = (*PGD.memory, "_previous", "_t", "_momentum", "_value")

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        super().start(parameters, rng)
        self._previous = self._x
        self._t = 1.0
        self._momentum = 0.0
        self._value = self._objective()

    def _move(self) -> float:
        """Make a step; the change is the larger of the iterate's move and of the proximal step."""
        joint = self._joint
        y = self._x + self._momentum * (self._x - self._previous)
        x, risk = self._step(y, self._longer())
        value = risk + joint.penalty(x)
        # Written with <=, so that NaN restarts, too.
        fell = value <= self._value + ROUNDING * abs(self._value)
        if self._momentum and not fell:
            self._t = 1.0
            y = self._x
            x, risk = self._step(y, self._eta)
            value = risk + joint.penalty(x)
        elif self.settings["restart"] == "gradient" and float((y - x) @ (x - self._x)) > 0.0:
            self._t = 1.0
        self._previous, self._x, self._value = self._x, x, value
        following = 0.5 * (1.0 + sqrt(1.0 + 4.0 * self._t * self._t))
        self._momentum = (self._t - 1.0) / following
        self._t = following
        return joint.change(x, x - self._previous, x - y)


class NmAPGD(JointSolver):
    r"""Accelerated proximal gradient descent for objectives that are not convex.

    With F the objective, an epoch extrapolates,

    y = x + (t₋/t)(z − x) + ((t₋ − 1)/t)(x − x₋),

    steps to z⁺ = prox_{α·penalty}(y − α∇risk(y)), and shortens α by `rho` until F(z⁺) is at most F(y) or c,
    less δ‖z⁺ − y‖². If F(z⁺) ≤ c − δ‖z⁺ − y‖² then x⁺ = z⁺. Else a plain step v⁺ from x is made until
    F(v⁺) ≤ c − δ‖v⁺ − x‖², and x⁺ is the better of z⁺ and v⁺. Each α starts from the step size of Barzilai
    and Borwein, ⟨s, s⟩/⟨s, r⟩, with s and r the differences of points and of gradients since the last y.
    t⁺ = (1 + √(1 + 4t²))/2, q⁺ = ηq + 1 and c⁺ = (ηq·c + F(x⁺))/q⁺.

    c is a mean of past values with F(x) ≤ c ≤ F(start) at all times. So the objective may rise from one
    epoch to the next, but (up to rounding) never above its start, and with `eta` = 0 it never rises.

    The line search compares values of F alone, so the operator may be inexact: a bad result is rejected. If
    it stays bad for every α no step is made and the change is 0, possibly far from a minimum. The
    certificate then decides whether the run has converged or stalled.
    """

    name: ClassVar[str] = "nmapgd"
    label: ClassVar[str] = "nmAPGD"
    source: ClassVar[str] = "atarashi2021, Section C.2; Li and Lin (2015), Algorithm 2 with line search"
    about: ClassVar[str] = (
        "Non-monotone accelerated proximal gradient descent: momentum for objectives that are not convex. "
        "The objective may rise for a while, but never above its start."
    )
    monotone: ClassVar[bool] = False
    params: ClassVar[tuple[ParamSpec, ...]] = (
        STEP,
        SHRINK,
        ParamSpec(
            "delta", "float", 1e-4, 1e-12, 1.0, log=True, symbol=r"\delta", help="The required decrease."
        ),
        ParamSpec(
            "eta",
            "float",
            0.8,
            0.0,
            0.99,
            symbol=r"\eta",
            help="How long the mean c remembers; 0: not at all.",
        ),
    )

    memory: ClassVar[tuple[str, ...]] = (
        *("_joint", "_x", "_previous", "_z", "_t_before", "_t", "_q", "_c", "_value", "_last", "_alpha"),
    )

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        """Return why there is no operator, exact or not."""
        reason = problem.penalty.why_no_operator
        return WhyNot("no_operator", reason) if reason else None

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        super().start(parameters, rng)
        self._previous = self._z = self._x
        self._t_before, self._t, self._q = 0.0, 1.0, 1.0
        self._last: tuple[np.ndarray, np.ndarray] | None = None
        self._alpha = self.settings["step"]
        self._c = self._value = self._objective()

    def _move(self) -> float:
        """Make a step; the change is the largest of the iterate's move and of the proximal steps."""
        joint, x = self._joint, self._x
        y = x + (self._t_before / self._t) * (self._z - x)
        y += ((self._t_before - 1.0) / self._t) * (x - self._previous)
        risk, gradient = joint.risk_and_gradient(y)
        value = risk + joint.penalty(y)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            if self._t == 1.0:
                return float("inf")
            # The extrapolation alone went too far.
            self._previous = self._z = self._x
            self._t_before, self._t, self._last = 0.0, 1.0, None
            return self._move()
        z, value_z, enough = self._search(y, gradient, value)
        steps = [z - y]
        new, value_new = z, value_z
        if not enough:
            in_x = joint.risk_and_gradient(x)[1]
            v, value_v, _ = self._search(x, in_x, self._value, plain=True)
            steps.append(v - x)
            if not value_z <= value_v:
                new, value_new = v, value_v
        self._last = y, gradient
        self._previous, self._x, self._z, self._value = x, new, z, value_new
        self._t_before, self._t = self._t, 0.5 * (1.0 + sqrt(1.0 + 4.0 * self._t * self._t))
        memory = self.settings["eta"] * self._q
        self._q = memory + 1.0
        self._c = (memory * self._c + value_new) / self._q
        return joint.change(new, new - x, *steps)

    def _search(
        self, point: np.ndarray, gradient: np.ndarray, value: float, plain: bool = False
    ) -> tuple[np.ndarray, float, bool]:
        """Return the accepted step from `point`, its objective, and whether that is well below c.

        A plain step must get below c; another one may as well get below the value at its own point.
        """
        joint, slack = self._joint, ROUNDING * abs(self._c)
        alpha = self._barzilai_borwein(point, gradient)
        for _ in range(MOST_TRIALS):
            z = joint.prox(point - alpha * gradient, alpha)
            step = z - point
            fall = self.settings["delta"] * float(step @ step)
            reached = joint.objective(z)
            enough = reached <= self._c - fall + slack
            if enough or (not plain and reached <= value - fall + slack):
                self._alpha = alpha
                return z, reached, enough
            alpha *= self.settings["rho"]
        return point.copy(), value, value <= self._c

    def _barzilai_borwein(self, point: np.ndarray, gradient: np.ndarray) -> float:
        if self._last is None:
            return self._alpha
        s, r = point - self._last[0], gradient - self._last[1]
        along, squared = float(s @ r), float(s @ s)
        # Without positive curvature along s the formula says nothing.
        if not (np.isfinite(along) and along > 1e-12 * squared):
            return self._alpha
        return min(squared / along, 1e12)

    def trusts_change(self, change: float) -> bool:
        """Return whether the operator is exact: a step of an inexact one may be short anywhere."""
        return super().trusts_change(change) and self.problem.penalty.exact_prox
