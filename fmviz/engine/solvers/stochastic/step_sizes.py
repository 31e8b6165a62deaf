"""Step sizes of the stochastic solvers, and how a step shrinks and thresholds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...problem import Problem
from ...settings import ParamSpec

SCHEDULES = ("bottou", "constant", "optimal", "inverse_scaling")

STEP_PARAMS: tuple[ParamSpec, ...] = (
    ParamSpec(
        "schedule",
        "choice",
        "bottou",
        choices=SCHEDULES,
        help="How the step size falls with the steps t taken: η₀/(1+η₀λt) (Bottou 2012, the paper's), η₀, "
        "η₀/(1+2η₀λt) (optimal for curvature 2λ), or η₀/(t+1)^power.",
    ),
    ParamSpec(
        "eta0", "float", 0.1, 1e-12, 1e6, log=True, symbol=r"\eta_0", help="The step size at the start."
    ),
    ParamSpec("power", "float", 0.5, 0, 2, help="Inverse scaling only: the exponent of t."),
)


def step_sizes(schedule: str, eta0: float, power: float, lam: float, first: int, count: int) -> np.ndarray:
    """Return η_t for t = first, ..., first + count − 1, where t counts all steps of a run from 0.

    Parameters
    ----------
    schedule : {"bottou", "constant", "optimal", "inverse_scaling"}
        η₀/(1 + η₀λt) ([A] C.2, after Bottou 2012), η₀, η₀/(1 + 2η₀λt), or η₀/(t+1)^power. The third is
        1/(2λ(t + t₀)) with the t₀ that starts it at η₀: a term λ‖·‖² without ½ has curvature 2λ. Where
        λ = 0, the first and the third are constant.
    eta0, power : float
        η₀ and the exponent.
    lam : float
        λ_p for the step on P, λ_w for the step on w and the bias.
    first, count : int
        Which steps.
    """
    t = np.arange(first, first + count, dtype=np.float64)
    if schedule == "constant":
        return np.full(count, eta0)
    if schedule == "inverse_scaling":
        return eta0 / (t + 1.0) ** power
    return eta0 / (1.0 + (2.0 if schedule == "optimal" else 1.0) * eta0 * lam * t)


class Steps(NamedTuple):
    """Step t maps p to shrink(keep_p·p − step_p·g, cut), and likewise w and the bias without a shrink."""

    keep_p: np.ndarray
    step_p: np.ndarray
    cut: np.ndarray
    keep_w: np.ndarray
    step_w: np.ndarray
    step_b: np.ndarray


def make_steps(
    problem: Problem,
    settings: dict[str, Any],
    first: int,
    count: int,
    scale: float = 1.0,
    implicit: bool = True,
) -> Steps:
    """Return the coefficients of `count` steps from step `first` on, with step sizes η times `scale`.

    Implicit decay is [A] Eq. 28: argmin_q ⟨g, q⟩ + ‖q − p‖²/(2η) + λ_p‖q‖² + λΩ(q) is
    prox_{ηλr Ω}(r(p − ηg)) with r = 1/(1 + 2ηλ_p). It is stable at any η. Explicit decay is [A] Algorithm 5:
    (1 − 2ηλ)p − ηg.
    """
    operator = problem.penalty.matrix
    assert operator is not None, "`on` asks why_not first"
    schedule = settings["schedule"], settings["eta0"], settings["power"]
    in_p = scale * step_sizes(*schedule, problem.lambda_p, first, count)
    in_w = scale * step_sizes(*schedule, problem.lambda_w, first, count)
    lam_p = problem.lambda_p + problem.lambda_sparse * operator.quad
    strength = 0.0 if operator.lazy == "decay" else operator.weight * problem.lambda_sparse
    linear, bias = float(problem.fit_linear), float(problem.fit_intercept)
    if implicit:
        keep_p, keep_w = 1.0 / (1.0 + 2.0 * in_p * lam_p), 1.0 / (1.0 + 2.0 * in_w * problem.lambda_w)
        return Steps(
            keep_p, keep_p * in_p, keep_p * in_p * strength, keep_w, linear * keep_w * in_w, bias * in_w
        )
    keep_p, keep_w = 1.0 - 2.0 * in_p * lam_p, 1.0 - 2.0 * in_w * problem.lambda_w
    return Steps(keep_p, in_p, np.zeros(count), keep_w, linear * in_w, bias * in_w)
