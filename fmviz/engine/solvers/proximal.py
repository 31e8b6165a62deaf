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

SHRINK = ParamSpec("rho", "float", 0.5, 0.05, 0.95, symbol=r"\rho", help="The factor of each step reduction.")
GROW = ParamSpec(
    "growth", "float", 1.25, 1.0, 4.0, help="The factor by which each epoch first increases the step size."
)
STEP = ParamSpec("step", "float", 1.0, 1e-12, 1e12, log=True, symbol=r"\eta_0", help="The initial step size.")
# Below this fraction of the risk, its differences are less informative about curvature than gradients.
_FLAT = 1e-10
# A step of 2^-200 times the first one has no effect.
MOST_TRIALS = 200


class PGD(JointSolver):
    r"""Proximal gradient descent with backtracking, plain or accelerated.

    An epoch is a step θ⁺ = prox_{η·penalty}(y − η∇risk(y)) on (P, w, bias), with the penalty as in [A] Eq.
    28, from y = θ. The step size η of the previous epoch, times `growth`, is multiplied by `rho` until

    risk(θ⁺) ≤ risk(y) + ⟨∇risk(y), θ⁺ − y⟩ + ‖θ⁺ − y‖²/(2η)    (Beck and Teboulle, 2009, Eq. 2.7).

    θ⁺ is a global minimizer of the right-hand side plus the penalty; the objective therefore never increases
    (up to rounding), convex or not. The accelerated variants extrapolate,

    y = θ + (t₋/t)(z − θ) + ((t₋ − 1)/t)(θ − θ₋),    t⁺ = (1 + √(1 + 4t²))/2,

    where z is the last step, and also take a plain step from θ if the step from y does not decrease the
    objective.
    """

    name: ClassVar[str] = "pgd"
    label: ClassVar[str] = "PGD"
    params: ClassVar[tuple[ParamSpec, ...]] = (STEP, SHRINK, GROW)
    memory: ClassVar[tuple[str, ...]] = (
        *("_joint", "_x", "_previous", "_z", "_t_before", "_t", "_eta", "_first", "_value"),
    )
    accelerated: ClassVar[bool] = False

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        penalty = problem.penalty
        if penalty.why_no_operator:
            return WhyNot("no_operator", penalty.why_no_operator)
        if self.monotone and not penalty.exact_prox:
            return WhyNot(
                "inexact_operator",
                f"{self.label} needs an exact proximal operator for its descent, but that of {penalty.label} "
                "has no closed form. Use nmAPGD, which checks the objective after every inexact step, or "
                "SubGD, which needs no operator.",
            )
        return None

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        super().start(parameters, rng)
        self._eta, self._first = self.settings["step"], True
        self._value = self._objective() if self.accelerated else np.nan
        self._restart()

    def resume(self, parameters: Parameters) -> None:
        """Continue from another point, with the current step size of the line search."""
        self._x = self._joint.pack(parameters)

    def _restart(self) -> None:
        """Reset the momentum."""
        self._previous = self._z = self._x
        self._t_before = self._t = 1.0

    def _move(self) -> float:
        """Take a step; the change is the maximum over the change of the iterate and the proximal steps."""
        x, y, ahead = self._x, self._x, (self._t_before - 1.0) / self._t
        if self.accelerated and self._z is not x:
            y = x + (self._t_before / self._t) * (self._z - x)
        if ahead:
            y = y + ahead * (x - self._previous)
        z, value, fell = self._search(y)
        if np.isnan(value) and self._t != 1.0:
            # Only the extrapolation went too far.
            self._restart()
            return PGD._move(self)
        new, steps = z, [z - y]
        if self.accelerated:
            if not fell and (ahead or not self.monotone):
                v, plain, _ = self._search(x, plain=True)
                new, z, steps = self._chosen(z, value, v, plain, [*steps, v - x])
                value = plain if new is v else value
            elif self.settings.get("restart") == "gradient" and float((y - z) @ (z - x)) > 0.0:
                self._t = 1.0
            self._t_before, self._t = self._t, 0.5 * (1.0 + sqrt(1.0 + 4.0 * self._t * self._t))
        self._previous, self._x, self._z, self._value = x, new, z, value
        return self._joint.change(new, *steps if y is x and new is z else (new - x, *steps))

    def _chosen(
        self, z: np.ndarray, value: float, v: np.ndarray, plain: float, steps: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Return the next iterate given a step z from y and a plain step v, the next z, and the steps."""
        # The momentum restarts.
        self._t = 1.0
        return v, v, steps[1:]

    def _search(self, y: np.ndarray, plain: bool = False) -> tuple[np.ndarray, float, bool]:
        """Return the step from y, its objective, and whether it is low enough; y if none is accepted."""
        joint = self._joint
        eta = self._eta if plain or self._first else self._eta * self.settings["growth"]
        self._first, eta = False, float(min(eta, 1e100))
        before, gradient = joint.risk_and_gradient(y)
        if not (np.isfinite(before) and np.isfinite(gradient).all()):
            return np.full_like(y, np.nan), np.nan, False
        for _ in range(MOST_TRIALS):
            trial = joint.prox(y - eta * gradient, eta)
            step = trial - y
            room = float(step @ step) / (2.0 * eta)
            reached = joint.risk(trial)
            if room <= _FLAT * abs(before) and np.isfinite(reached):
                # The difference of the risks is below rounding; to second order it is half of this value.
                bend = 0.5 * float((joint.risk_and_gradient(trial)[1] - gradient) @ step)
            else:
                bend = reached - before - float(gradient @ step)
            if bend <= room:
                self._eta, x, risk = eta, trial, reached
                break
            eta *= self.settings["rho"]
        else:
            x, risk = y.copy(), before
        value = risk + joint.penalty(x) if self.accelerated else risk
        return x, value, value <= self._value + ROUNDING * abs(self._value)


class APGD(PGD):
    r"""FISTA with adaptive restart ([A] C.2; O'Donoghue and Candès 2015; Giselsson and Boyd 2014).

    Like `PGD`, from the extrapolated point with z = θ. The momentum restarts from t = 1

    - function scheme: if the objective would increase;
    - gradient scheme: also if ⟨y − θ⁺, θ⁺ − θ⟩ > 0.

    A step that would increase the objective is replaced by a plain step from θ within the same epoch. The
    objective therefore never increases (up to rounding), which momentum alone would not guarantee, especially
    for a non-convex objective.
    """

    name: ClassVar[str] = "apgd"
    label: ClassVar[str] = "APGD"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        STEP,
        SHRINK,
        GROW,
        ParamSpec(
            "restart",
            "choice",
            "function",
            choices=("function", "gradient"),
            help="When to restart the momentum: if the objective increases, or already if the step reverses "
            "direction.",
        ),
    )
    accelerated: ClassVar[bool] = True


class NmAPGD(PGD):
    r"""Accelerated proximal gradient descent for non-convex objectives ([A] C.2).

    With the objective F, an epoch extrapolates as in `PGD`, steps to z⁺ = prox_{α·penalty}(y − α∇risk(y)),
    and reduces α by `rho` until F(z⁺) is at most F(y) or c, minus δ‖z⁺ − y‖². If F(z⁺) ≤ c − δ‖z⁺ − y‖², then
    x⁺ = z⁺. Otherwise a plain step v⁺ from x is reduced until F(v⁺) ≤ c − δ‖v⁺ − x‖², and x⁺ is the better of
    z⁺ and v⁺. Each α starts from the Barzilai–Borwein step size ⟨s, s⟩/⟨s, r⟩, where s and r are the
    differences of points and of gradients since the last y. q⁺ = ηq + 1 and c⁺ = (ηq·c + F(x⁺))/q⁺.

    c is a mean of past values with F(x) ≤ c ≤ F(start) at all times. The objective may therefore increase
    between epochs, but (up to rounding) never above its start, and with `eta` = 0 it never increases. A run
    ends with the parameters of the lowest objective.

    The line search compares only values of F, and the operator may be inexact: bad results are rejected. If
    no α is accepted, no step is taken and the change is 0, possibly far from a minimum. The certificate then
    decides whether the run has converged or stalled.
    """

    name: ClassVar[str] = "nmapgd"
    label: ClassVar[str] = "nmAPGD"
    monotone: ClassVar[bool] = False
    accelerated: ClassVar[bool] = True
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
            help="The memory of the mean c; 0 for none.",
        ),
    )
    memory: ClassVar[tuple[str, ...]] = (*PGD.memory, "_q", "_c", "_last", "_best")

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        super().start(parameters, rng)
        self._q, self._c, self._best = 1.0, self._value, (self._value, self._x)

    def best(self) -> Parameters:
        value, x = self._best
        # Beyond rounding, which otherwise decides between the last iterates.
        lower = value < self._value - 1e-12 * abs(self._value)
        return self._joint.copy(x) if lower else self.parameters()

    def _restart(self) -> None:
        super()._restart()
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def _move(self) -> float:
        change = super()._move()
        self._last = self._here
        memory = self.settings["eta"] * self._q
        self._q = memory + 1.0
        self._c = (memory * self._c + self._value) / self._q
        if self._value <= self._best[0]:
            self._best = self._value, self._x
        return change

    def _chosen(
        self, z: np.ndarray, value: float, v: np.ndarray, plain: float, steps: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        return (z if value <= plain else v), z, steps

    def _search(self, y: np.ndarray, plain: bool = False) -> tuple[np.ndarray, float, bool]:
        """Return the accepted step from y, its objective, and whether it is sufficiently below c.

        A plain step must get below c; an extrapolated step may instead get below the value at its own start.
        """
        joint, slack = self._joint, ROUNDING * abs(self._c)
        risk, gradient = joint.risk_and_gradient(y)
        value = self._value if plain else risk + joint.penalty(y)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return np.full_like(y, np.nan), np.nan, True
        if not plain:
            self._here = y, gradient
        alpha = self._barzilai_borwein(y, gradient)
        for _ in range(MOST_TRIALS):
            z = joint.prox(y - alpha * gradient, alpha)
            step = z - y
            fall = self.settings["delta"] * float(step @ step)
            reached = joint.objective(z)
            enough = reached <= self._c - fall + slack
            if enough or (not plain and reached <= value - fall + slack):
                self._eta = alpha
                return z, reached, enough
            alpha *= self.settings["rho"]
        return y.copy(), value, value <= self._c

    def _barzilai_borwein(self, point: np.ndarray, gradient: np.ndarray) -> float:
        if self._last is None:
            return self._eta
        s, r = point - self._last[0], gradient - self._last[1]
        along, squared = float(s @ r), float(s @ s)
        # The formula requires positive curvature along s.
        if not (np.isfinite(along) and along > 1e-12 * squared):
            return self._eta
        return min(squared / along, 1e12)

    def trusts_change(self, change: float) -> bool:
        """Return whether the operator is exact: steps of an inexact one may be short anywhere."""
        return super().trusts_change(change) and self.problem.penalty.exact_prox
