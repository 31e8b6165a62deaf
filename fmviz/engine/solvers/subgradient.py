"""Subgradient descent for Ω_*, the baseline SubGD of atarashi2021."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..errors import WhyNot
from ..parameters import Parameters
from ..problem import Formulation
from ..settings import ParamSpec
from ._flat_problem import JointSolver
from .proximal import SHRINK, STEP

_MOST_TRIALS = 60


class SubGD(JointSolver):
    r"""Subgradient descent with line search on the convex form of Ω_* ([A] Eq. 11 to 13).

    Since Ω_*(P) = ½‖PPᵀ‖₁ − ½‖P‖²_F, the objective is risk + λ_w‖w‖² + (λ_p − λ/2)‖P‖²_F + (λ/2)‖PPᵀ‖₁:
    Eq. 11 of the paper, with λ_p − λ/2 for its λ_p. With Z = sign(PPᵀ), a subgradient of the last two terms
    is 2(λ_p − λ/2)P + λZP = 2λ_pP + λ(Z − I)P. An epoch changes θ = (P, w, bias) by −ηg; twice the last η is
    multiplied by `rho` until the objective decreases by σ·η‖g‖².

    The objective never increases. However, −g need not be a descent direction if an inner product ⟨p_i, p_j⟩
    changes its sign: if no η is accepted, θ is unchanged and the change is 0, possibly far from a minimum.
    The certificate then decides whether the run has converged or stalled.
    """

    name: ClassVar[str] = "subgd"
    label: ClassVar[str] = "SubGD"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        STEP,
        SHRINK,
        ParamSpec(
            "sigma", "float", 1e-4, 1e-12, 0.5, log=True, symbol=r"\sigma", help="The required decrease."
        ),
    )

    short_steps: ClassVar[bool] = True
    memory: ClassVar[tuple[str, ...]] = ("_joint", "_x", "_eta", "_value")

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        penalty = problem.penalty
        if not penalty.exact_prox:
            return None
        if penalty.smooth:
            return WhyNot(
                "smooth",
                f"{penalty.label} is differentiable everywhere and needs no subgradients. "
                "Use L-BFGS, CD or APGD.",
            )
        return WhyNot(
            "exact_operator",
            f"Subgradient steps almost never produce exact zeros and would select nothing; {penalty.label} "
            "has an exact proximal operator, which does. Use nmAPGD, APGD, PCD or PBCD.",
        )

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        super().start(parameters, rng)
        self._eta = 0.5 * self.settings["step"]
        self._value = self._objective()

    def _move(self) -> float:
        joint, x = self._joint, self._x
        g = joint.risk_and_subgradient(x)[1]
        square = float(g @ g)
        if not np.isfinite(square):
            return float("inf")
        eta = min(2.0 * self._eta, 1e100)
        for _ in range(_MOST_TRIALS):
            trial = x - eta * g
            value = joint.objective(trial)
            if value <= self._value - self.settings["sigma"] * eta * square:
                self._eta, self._x, self._value = eta, trial, value
                return joint.change(trial, trial - x)
            eta *= self.settings["rho"]
        return 0.0
