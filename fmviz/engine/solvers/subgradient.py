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

    Ω_*(P) = ½‖PPᵀ‖₁ − ½‖P‖²_F, so the objective is risk + λ_w‖w‖² + (λ_p − λ/2)‖P‖²_F + (λ/2)‖PPᵀ‖₁: the
    paper's Eq. 11 with its λ_p called λ_p − λ/2. With Z = sign(PPᵀ), a subgradient of the last two terms
    is 2(λ_p − λ/2)P + λZP = 2λ_pP + λ(Z − I)P. An epoch moves θ = (P, w, bias) by −ηg; the last η, doubled,
    is multiplied by `rho` until the objective falls by σ·η‖g‖².

    The objective never rises. But −g need not be a direction of descent where an inner product ⟨p_i, p_j⟩
    changes its sign: if no η is accepted, θ stays and the change is 0, possibly far from a minimum. The
    certificate then decides whether the run has converged or stalled.
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
                f"{penalty.label} has a gradient everywhere: there is no need of subgradients. "
                "Use L-BFGS, CD or APGD.",
            )
        return WhyNot(
            "exact_operator",
            f"A subgradient step almost never ends at an exact zero, so it would select nothing, while "
            f"{penalty.label} has an exact proximal operator, which does. Use nmAPGD, APGD, PCD or PBCD.",
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
