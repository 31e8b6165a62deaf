"""Iteratively reweighted least squares for losses with kinks or caps, around another solver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..errors import WhyNot
from ..losses.majoriser import Majoriser, typical_size
from ..losses.squared import Squared
from ..parameters import Parameters
from ..problem import Formulation, Problem
from ..settings import ParamSpec
from ._sweeping import relative_change
from .base import Solver
from .gcd import GCD
from .lbfgs import LBFGS
from .pbcd import PBCD
from .pcd import CD, PCD
from .proximal import NmAPGD
from .quadratic_pgd import ExactPGD

SMOOTHING = ParamSpec(
    "smoothing",
    "float",
    0.1,
    1e-8,
    10.0,
    log=True,
    symbol=r"\delta",
    help="The initial smoothing scale, as a fraction of a typical residual.",
)
DECAY = ParamSpec("decay", "float", 0.5, 0.05, 1.0, help="The factor of the smoothing scale in every epoch.")
LEAST_SMOOTHING = 1e-5
"""The final smoothing scale, as a fraction of a typical residual: far below it, weights differ so much that
inner solvers cannot reach the accuracy of certificates."""
# If lowered sooner, the weights of rows that reach a kink too early would shorten all later steps.
_SETTLED = 0.1

_INNER = (CD, PCD, PBCD, NmAPGD, LBFGS, ExactPGD, GCD)


class Smoothing:
    """The schedule of δ, which decreases when steps are below a tenth of it.

    Parameters
    ----------
    problem : Problem
        The problem, whose targets define the unit.
    share, decay : float
        The initial δ in units, and the factor of each decrease.
    """

    memory: ClassVar[tuple[str, ...]] = ("delta",)

    def __init__(self, problem: Problem, share: float, decay: float) -> None:
        self.unit = 1.0 if problem.loss.task == "binary" else typical_size(problem.y)
        self._decay = decay
        self.delta = share * self.unit

    def after(self, change: float) -> float:
        """Decrease δ after a small change; return the change or, if larger, the still decreasing δ."""
        smoothing, least = self.delta / self.unit, min(self.delta, LEAST_SMOOTHING * self.unit)
        falling = self._decay < 1.0 and self.delta > least
        if change <= _SETTLED * smoothing:
            self.delta = max(self._decay * self.delta, least)
        return max(change, smoothing) if falling else change


def reweighted(problem: Problem, loss: Majoriser, f: np.ndarray, delta: float) -> Problem | None:
    """Return the tangent problem at predictions f, or None if all rows are beyond the cap.

    Its objective, times the mean of the weights, equals the smoothed one at f up to a constant, and majorizes
    it.
    """
    bends, aims = loss.squares(f, problem.y, delta)
    weights = problem.unit_weights * bends
    mean = float(weights.mean())
    if mean == 0.0:
        return None
    return replace(
        problem,
        loss=Squared(),
        target=replace(problem.target, values=aims),
        sample_weight=weights / mean,
        lambda_w=problem.lambda_w / mean,
        lambda_p=problem.lambda_p / mean,
        lambda_sparse=problem.lambda_sparse / mean,
    )


class Reweighted(Solver):
    r"""Iteratively reweighted squares for a loss with kinks or a cap (Nie et al. 2010; robust_fm).

    ℓ = min{u, cap} with a smooth ½u², see `fmviz.engine.losses.majoriser.Majoriser`. An epoch forms the
    majorizer Σ ½c_n(f_n − t_n)² at the current predictions, with c_n = 0 for rows beyond the cap, runs
    `inner_epochs` epochs of another solver on it with unchanged penalties, and lowers δ when changes are
    small. Any decrease of the majorizer decreases the objective with ℓ_δ, which therefore never increases at
    a fixed δ, and decreases with δ. The objective with ℓ itself increases by at most δ/2 per row.
    """

    name: ClassVar[str] = "reweighted"
    label: ClassVar[str] = "Reweighting"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec(
            "inner",
            "choice",
            "auto",
            choices=("auto", *(method.name for method in _INNER)),
            help="The solver for the weighted squares.",
        ),
        ParamSpec(
            "inner_epochs",
            "int",
            5,
            1,
            1000,
            help="The number of epochs of this solver between reweightings.",
        ),
        ParamSpec(
            "uncapped",
            "int",
            10,
            0,
            1000,
            help="The number of initial epochs without the cap, needed if all rows are beyond it at the "
            "start.",
        ),
        SMOOTHING,
        DECAY,
    )
    # The reported objective, with ℓ itself, may increase by δ/2.
    monotone: ClassVar[bool] = False
    takes_kinks: ClassVar[bool] = True
    takes_powers: ClassVar[bool] = True
    fits_coefficients: ClassVar[bool] = True
    memory: ClassVar[tuple[str, ...]] = ("_now", "_smoothing", "_rng")

    def why_not(self, problem: Formulation) -> WhyNot | None:
        """Return the reason, or None; the inner solver fits the column weights."""
        return problem.why_not() or self._why_not(problem)

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        if problem.loss.majoriser is None:
            return WhyNot(
                "no_kinks",
                f"{self.label} is for losses with kinks or caps, but the {problem.loss.label.lower()} loss "
                "is smooth. Choose another solver, which minimizes it directly.",
            )
        smooth = Formulation(problem.model, problem.penalty, Squared())
        reasons = [method.why_not(smooth) for method in self._candidates(problem)]
        return None if None in reasons else reasons[0]

    def _candidates(self, problem: Formulation) -> list[Solver]:
        chosen = self.settings["inner"]
        solvers = [method() for method in _INNER if chosen in ("auto", method.name)]
        # A sweep over rows if the penalty acts on rows.
        return sorted(solvers, key=lambda solver: problem.penalty.row_wise and solver.name != PBCD.name)

    def prepare(self) -> None:
        problem: Any = self.problem
        self._loss = problem.loss.majoriser
        smooth = Formulation(problem.model, problem.penalty, Squared())
        self._method = next(solver for solver in self._candidates(problem) if solver.why_not(smooth) is None)

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        self._now, self._rng = parameters.copy(), rng
        self._smoothing = Smoothing(self.problem, self.settings["smoothing"], self.settings["decay"])
        if np.isfinite(self._loss.cap):
            capped, self._loss = self._loss, replace(self._loss, cap=np.inf)
            for _ in range(self.settings["uncapped"]):
                self.epoch()
            self._loss = capped
            self._smoothing = Smoothing(self.problem, self.settings["smoothing"], self.settings["decay"])

    def epoch(self) -> float:
        """Reweight and run inner epochs; the change is at least δ, in units of a typical residual."""
        problem, before, delta = self.problem, self._now, self._smoothing.delta
        inner = reweighted(problem, self._loss, problem.predict(before), delta)
        if inner is not None:
            method = self._method.within(inner)
            method.start(before, self._rng)
            for _ in range(self.settings["inner_epochs"]):
                if not np.isfinite(method.epoch()):
                    return float("inf")
            self._now = method.parameters()
            method.close()
            # Solvers that extrapolate may end above their start.
            if not inner.objective(self._now) <= inner.objective(before):
                self._now = before
        now = self._now
        changes = {name: float(np.abs(now[name] - before[name]).max(initial=0.0)) for name in now}
        linear = max(changes.pop("w"), changes.pop("intercept"))
        blocks: list[Any] = [(change, now[name]) for name, change in changes.items()]
        return self._smoothing.after(relative_change((linear, now.w, np.asarray(now.intercept)), *blocks))

    def parameters(self) -> Parameters:
        return self._now.copy()
