"""Proximal coordinate descent ([A] Algorithm 1), and coordinate descent as its smooth case (Algorithm 4)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..errors import WhyNot
from ..memory import aligned_copy
from ..models import Model
from ..parameters import Parameters
from ..params import ParamSpec
from ..problem import Formulation, Problem
from ._anderson import ANDERSON
from ._factors import Screen, factor_sweep, stores_slope
from ._pairs import Lanes, pair_factor_sweep
from ._revival import REVIVE, Revival
from ._sweeping import ACTIVE_SWEEPS, SweepingSolver, relative_change
from .base import Solver

# "auto" sweeps feature by feature where a dense X has more entries than this, so that it cannot be read from
# the caches once for every column of P, and XP has fewer than that, so that it can for every feature.
LARGE_X = 2**21
SMALL_XP = 2**17
# Sweeps by columns that "mixed" begins with. Grown from a small start together, all columns follow the same
# direction; one after the other, each fits what those before it have left.
FIRST_SWEEPS = 2

ORDER = ParamSpec(
    "order",
    "choice",
    "auto",
    choices=("auto", "columns", "features", "mixed"),
    help="columns: one column of P after the other, as published. features: one row of P after the other; "
    "large X is so read once a sweep. mixed: features after two epochs by columns. auto: mixed for dense X "
    f"of more than {LARGE_X:,} entries and XP of fewer than {SMALL_XP:,}, else columns.",
)


def mixed_is_best(problem: Problem) -> bool:
    """Return whether sweeps by features pay: X is dense and large, and XP is not."""
    n, d = problem.design.shape
    return problem.design.storage.name == "dense" and n * d > LARGE_X and n * problem.rank < SMALL_XP


def check_by_columns(solver: Solver) -> None:
    """Raise ValueError where a solver is asked for what only machines of second order have."""
    if solver.settings.get(REVIVE.name):
        raise ValueError(
            "revive = True is for machines of second order, where a column at 0 is kept by no term of lower "
            f"degree than what it could gain; for the model {solver.problem.model.name!r} leave it out."
        )
    if solver.settings[ORDER.name] not in ("auto", "columns"):
        raise ValueError(
            f"order = {solver.settings[ORDER.name]!r} is for machines of second order, which keep a sum "
            f"⟨p_:,s, x⟩ for every column of P; for the model {solver.problem.model.name!r} what is kept is "
            "made anew for each: choose 'auto' or 'columns'."
        )


class PCD(SweepingSolver):
    """Minimise over one entry of P at a time, in closed form."""

    name: ClassVar[str] = "pcd"
    label: ClassVar[str] = "PCD"
    source: ClassVar[str] = "atarashi2021, Algorithm 1"
    about: ClassVar[str] = (
        "Proximal coordinate descent: each entry of P in turn jumps to the minimum of its own "
        "one-dimensional problem. No step size to tune, and the objective never rises. Dense sweeps pass "
        "over entries that provably stay 0, and go feature by feature where X is large."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (ORDER, ACTIVE_SWEEPS, ANDERSON, REVIVE)
    memory: ClassVar[tuple[str, ...]] = (*SweepingSolver.memory, "_revival")
    _revival: Revival | None = None

    def prepare(self) -> None:
        """See `Solver.prepare`."""
        problem = self.problem
        penalty = problem.penalty.entry
        assert penalty is not None, "the driver asks why_not first"
        self._prepare(penalty)
        stored = stores_slope(problem.design.storage, self._loss)
        if self.settings[ORDER.name] == "auto":
            # Said now: choices decide which kernels are made ready.
            self.settings[ORDER.name] = "mixed" if mixed_is_best(problem) else "columns"
        if self.settings[ORDER.name] != "columns":
            self._partners = None
        self._column_caches = np.tile(self._cache, (1 if penalty.shared else problem.rank, 1))
        self._slope = aligned_copy(np.zeros(problem.design.n_samples if stored else 0))
        if self._partners is not None:
            self._lanes = Lanes.of(problem.design, self._partners, problem.y, problem.weights)

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        """See `Solver.why_not`."""
        penalty = problem.penalty
        if not problem.model.multilinear:
            return not_linear(self.label, problem.model)
        if penalty.entry is None:
            return WhyNot(
                "no_entry_view",
                penalty.why_no_entry
                or f"{penalty.label} binds the entries of a row by their norm, which has no slope at 0: "
                "steps on single entries can get stuck where no entry alone improves. "
                "Use PBCD, which moves whole rows.",
            )
        return None

    @classmethod
    def for_model(cls, model: Any) -> type[Solver]:
        """See `Solver.for_model`."""
        from .columns import ColumnPCD
        from .lifted import LiftedPCD

        if model.lifted:
            return LiftedPCD
        return ColumnPCD if model.columnar else cls

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """See `Solver.start`."""
        design, rank = self.problem.design, self.problem.rank
        dense = design.storage.name == "dense"
        shape = (rank, design.n_features) if dense else (0, 0)
        self._screen = Screen(
            np.sqrt(design.power(2).T @ np.ones(design.n_samples)),
            np.full(shape, np.inf),
            np.zeros(shape),
            np.zeros(rank),
            aligned_copy(np.zeros((rank, design.n_samples) if dense else (0, 0))),
            float(self.problem.weights.max(initial=1.0)),
        )
        problem = self.problem
        if self.settings.get(REVIVE.name) and problem.penalty.saddles:
            self._revival = Revival(problem, rng)
        super().start(parameters, rng)

    def epoch(self) -> float:
        """See `Solver.epoch`."""
        change = super().epoch()
        if self._revival is None or not self._revival.due(change):
            return change
        dead = np.flatnonzero(~self._P.any(axis=1))
        column = self._revival.column(self._f + self._shift, change) if dead.size else None
        if column is None:
            return change
        self._P[dead[0]] = column
        self._refresh()
        return max(change, relative_change((float(np.abs(column).max()), self._P)))

    def _lay(self, P: np.ndarray) -> np.ndarray:
        return aligned_copy(P.T)

    def _n_largest(self) -> int:
        return self.problem.rank

    def _kernel(self) -> Any:
        if self._partners is not None:
            return pair_factor_sweep(self._loss, self._penalty, self._weight)
        design = self.problem.design
        return [
            factor_sweep(design.storage, self._loss, self._penalty, self._weight, by_features)
            for by_features in (False, True)
        ]

    def rehearse(self) -> None:
        """See `Solver.rehearse`."""
        for _ in range(FIRST_SWEEPS + 1 if self.settings.get(ORDER.name) == "mixed" else 1):
            self.epoch()
        if self._revival is not None:
            self._revival.column(self._f + self._shift, 0.0)

    def _sweep_factors(self) -> float:
        problem = self.problem
        if self._partners is not None:
            return self._compiled(
                *self._lanes,
                self._f,
                self._P,
                self._moments,
                self._cache,
                problem.mu,
                problem.loss.theta,
                self._lambda_p,
                problem.lambda_sparse,
                self._live_only,
            )
        order = self.settings[ORDER.name]
        by_features = order == "features" or (order == "mixed" and self._epochs > FIRST_SWEEPS)
        return self._compiled[by_features](
            *problem.design.columns,
            problem.y,
            problem.weights,
            self._f,
            self._slope,
            self._P,
            self._A,
            self._moments,
            self._largest,
            self._column_caches,
            self._screen,
            problem.mu,
            problem.loss.theta,
            self._lambda_p,
            problem.lambda_sparse,
            self._live_only,
        )


def not_linear(label: str, model: Model) -> WhyNot:
    """Return why closed steps on entries or rows do not exist where f is not linear in them."""
    if model.lifted:
        return WhyNot(
            "rows_not_linear",
            f"{label} moves a row of P at once, and a row here holds entries of all of U¹, …, U^m, which f "
            f"multiplies with each other in general: {model.label} is linear in each U^t alone. Use CD or "
            "PCD, which move one entry, or APGD.",
        )
    return WhyNot(
        "entries_not_linear",
        f"{label} minimises along an entry or a row in closed form, but powers of ⟨p, x⟩ make f a polynomial "
        "of degree m in every entry of P, and the objective is not convex along it (blondel2016, Section 5). "
        "Use CD, which searches along the entry, or L-BFGS.",
    )


class CD(PCD):
    """Coordinate descent for the smooth objective of a canonical FM."""

    name: ClassVar[str] = "cd"
    label: ClassVar[str] = "CD"
    source: ClassVar[str] = "atarashi2021, Algorithm 4; blondel2016, Algorithms 1 and 2"
    about: ClassVar[str] = (
        "Coordinate descent, also called alternating least squares: each entry of P in turn jumps to the "
        "minimum of its own one-dimensional problem. For the smooth penalty ℓ₂² only."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (ORDER,)

    fits_coefficients: ClassVar[bool] = True
    takes_powers: ClassVar[bool] = True

    @classmethod
    def for_model(cls, model: Any) -> type[Solver]:
        """See `Solver.for_model`."""
        from .columns import ColumnCD
        from .lifted import LiftedCD

        if model.lifted:
            return LiftedCD
        return ColumnCD if model.columnar else cls

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        """See `Solver.why_not`."""
        penalty = problem.penalty
        if not penalty.smooth:
            return WhyNot(
                "not_smooth",
                f"CD takes plain gradient steps, and {penalty.label} has no gradient at 0, "
                "just where it makes P sparse. Use "
                + ("PCD or PBCD, which take" if penalty.separable else "nmAPGD, which takes")
                + " proximal steps.",
            )
        return None
