"""Proximal coordinate descent ([A] Algorithm 1), and coordinate descent as its smooth case (Algorithm 4)."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..design import DENSE
from ..errors import WhyNot
from ..memory import aligned_copy
from ..models import Model
from ..parameters import Parameters
from ..penalties.blockwise import parts_of
from ..problem import Formulation, Problem
from ..settings import ParamSpec
from ._anderson import ANDERSON
from ._saddle_escape import ESCAPE
from ._sweeping import ACTIVE_SWEEPS, Rounds, SweepingSolver, largest_entry, relative_change
from .kernels.entry_sweep import Screen, dense_entry_sweep, entry_sweep, stores_slope
from .kernels.matrix_factorization import Lanes, pair_entry_sweep

# "auto" sweeps feature by feature if a dense X has more entries than this and does not fit into the caches
# for repeated reads, once per column of P, and XP has fewer than that and does fit, once per feature.
LARGE_X = 2**21
SMALL_XP = 2**17
# The number of initial sweeps by columns in "mixed". Grown together from a small start, all columns would
# follow the same direction; in sequence, each fits the residual of the preceding ones.
FIRST_SWEEPS = 2

ORDER = ParamSpec(
    "order",
    "choice",
    "auto",
    choices=("auto", "columns", "features", "mixed"),
    help="columns: column by column of P, as published. features: row by row of P, which reads a large X "
    "once per sweep. mixed: features after two epochs by columns. auto: mixed for dense X "
    f"of more than {LARGE_X:,} entries and XP of fewer than {SMALL_XP:,}, else columns.",
)


def mixed_is_best(problem: Problem) -> bool:
    """Return whether sweeps by features pay off: X is dense and large, and XP is not."""
    n, d = problem.design.shape
    return problem.design.storage is DENSE and n * d > LARGE_X and n * problem.rank < SMALL_XP


class PCD(SweepingSolver):
    """Proximal coordinate descent: exact minimization over one entry of P at a time ([A] Algorithm 1).

    Threads of the problem sweep in parallel over features without common rows, such as the levels of a
    category, with the same result: for sparse X of many rows, second-order machines and separable penalties,
    in the order "columns". Other sweeps are serial: for dense X, rows that are pairs, or only non-zero
    entries.
    """

    name: ClassVar[str] = "pcd"
    label: ClassVar[str] = "PCD"
    params: ClassVar[tuple[ParamSpec, ...]] = (ORDER, ACTIVE_SWEEPS, ANDERSON, ESCAPE)

    def prepare(self) -> None:
        super().prepare()
        problem = self.problem
        model = problem.model
        if not model.plain and self.settings[ORDER.name] not in ("auto", "columns"):
            raise ValueError(
                f"order = {self.settings[ORDER.name]!r} is for second-order machines, which store a sum "
                f"⟨p_:,s, x⟩ for every column of P; the model {model.name!r} recomputes its "
                "sums for each column: choose 'auto' or 'columns'."
            )
        if self.settings[ORDER.name] == "auto":
            # Decided here because the choice determines which kernels are compiled.
            self.settings[ORDER.name] = "mixed" if model.plain and mixed_is_best(problem) else "columns"
        if self.settings[ORDER.name] != "columns":
            self._partners = None
        self._views = model.views(problem.rank)
        # `on` asks `why_not` first: there are all.
        self._entries: list[Any] = [penalty.entry for _, penalty in parts_of(problem.penalty)]
        d = problem.design.n_features
        self._caches = []
        for view, entry in zip(self._views, self._entries, strict=True):
            columns = view.columns.stop - view.columns.start
            self._caches.append(np.tile(entry.cache(d, columns), (1 if entry.shared else columns, 1)))
        entry, by_columns = self._entries[0], self.settings[ORDER.name] == "columns"
        in_fields = model.plain and by_columns and self._partners is None and entry.separate
        self._ranges = self._linear.ranges if in_fields else []
        self._screened = model.plain and self._partners is None and problem.design.storage is DENSE
        self._screened &= not self._search
        if self._partners is not None:
            self._lanes = Lanes.of(problem.design, self._partners, problem.y, problem.weights)

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        penalty = problem.penalty
        if not problem.model.multilinear:
            return not_linear(self.label, problem.model)
        if penalty.entry is None:
            return WhyNot(
                "no_entry_view",
                penalty.why_no_entry
                or f"{penalty.label} couples the entries of a row by their norm, which is not differentiable "
                "at 0: steps on single entries can get stuck at points that no single entry improves. "
                "Use PBCD, which updates whole rows.",
            )
        return None

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        problem = self.problem
        if self._screened:
            design, shape = problem.design, (problem.rank, problem.design.n_features)
            self._slope = aligned_copy(np.zeros(design.n_samples if stores_slope(self._loss) else 0))
            self._screen = Screen(
                np.sqrt(design.transpose_dot(np.ones(design.n_samples), 2)),
                np.full(shape, np.inf),
                np.zeros(shape),
                np.zeros(problem.rank),
                aligned_copy(np.zeros((problem.rank, design.n_samples))),
                float(problem.weights.max(initial=1.0)),
            )
        super().start(parameters, rng)

    def _to_layout(self, P: np.ndarray) -> np.ndarray:
        """Return P, shape (d, columns), as (columns, d)."""
        return aligned_copy(P.T)

    def _from_layout(self) -> np.ndarray:
        return aligned_copy(self._P.T)

    def _refresh(self) -> None:
        # Freed before the next ones are allocated.
        self._states: list[Any] = []
        super()._refresh()

    def _set_sums(self, sums: np.ndarray | None) -> None:
        if self._partners is not None:
            return
        if self._screened:
            self._A = aligned_copy(np.asarray(sums).T)
            self._largest = np.zeros(self.problem.rank)
            return
        self._states = [
            view.entries.state(
                self.problem.design,
                self._P[view.columns],
                None if sums is None else sums[:, view.columns],
            )
            for view in self._views
        ]

    def warm_up(self) -> None:
        for _ in range(FIRST_SWEEPS + 1 if self.settings[ORDER.name] == "mixed" else 1):
            super().warm_up()

    def _sweep_factors(self, rounds: Rounds) -> None:
        order = self.settings[ORDER.name]
        by_features = order == "features" or (order == "mixed" and self._epochs > FIRST_SWEEPS)
        if self._partners is not None:
            self._sweep_pairs(rounds)
            return
        if self._screened:
            self._sweep_screened(rounds, by_features)
            return
        problem = self.problem
        model: Model = problem.model
        weights = problem.lambda_p * model.shrinkage_weights(self.parameters())
        for view, entry, cache, state in zip(
            self._views, self._entries, self._caches, self._states, strict=True
        ):
            sweeps = entry_sweep(
                problem.design.storage,
                self._loss,
                entry,
                self._weight,
                view.entries,
                model.shrinkage_power,
                by_features,
                self._search,
            )
            lam_p = weights[view.columns] + problem.lambda_sparse * entry.quad
            if self._ranges and rounds.most == 1:
                self._sweep_ranges(rounds, sweeps, lam_p)
                continue
            rounds.take(
                sweeps(
                    *self._round_arguments(rounds),
                    *problem.design.columns,
                    problem.y,
                    problem.weights,
                    self._f,
                    self._P[view.columns],
                    self._coefficients[view.columns],
                    state,
                    self._moments,
                    cache,
                    problem.mu,
                    problem.loss.theta,
                    lam_p,
                    problem.lambda_sparse,
                    self._live_only,
                    0,
                    -1.0,
                )
            )

    def _sweep_ranges(self, rounds: Rounds, sweeps: Any, lam_p: np.ndarray) -> None:
        """Sweep over one column of P after the other, and over ranges of features in parallel.

        Steps on features that have no row in common do not depend on each other if Ω is separable and other
        entries of the column remain non-zero: the result is that of the kernel alone.
        """
        problem, P, (A, tops) = self.problem, self._P, self._states[0]
        data, indices, indptr = problem.design.columns

        def sweep(s: int, elsewhere: int, features: slice) -> None:
            column = slice(s, s + 1)
            sweeps(
                *(1, 0.0, P[s, features], rounds.outcomes),
                *(data, indices, indptr[features.start : features.stop + 1]),
                *(problem.y, problem.weights, self._f),
                *(P[column, features], self._coefficients[column], (A[column], tops[column])),
                *(self._moments[features], self._caches[0][column], problem.mu, problem.loss.theta),
                *(lam_p[column], problem.lambda_sparse, self._live_only, elsewhere, tops[s]),
            )

        change = 0.0
        for s, column in enumerate(P):
            before, tops[s] = column.copy(), max(tops[s], largest_entry(A[s]))
            for ranges in self._ranges:
                begin, end = ranges[0].start, ranges[-1].stop
                elsewhere = int(np.count_nonzero(column[:begin]) + np.count_nonzero(column[end:]))
                each = ranges if elsewhere else [slice(begin, end)]
                list(problem.mapper(partial(sweep, s, elsewhere), each))
            change = max(change, float(np.abs(column - before).max()))
        change = relative_change((change, P))
        rounds.take((1, change, change))

    def _sweep_pairs(self, rounds: Rounds) -> None:
        rounds.take(
            pair_entry_sweep(self._loss, self._entries[0], self._weight)(
                *self._round_arguments(rounds),
                *self._lanes,
                self._f,
                self._P,
                self._moments,
                self._caches[0][0],
                *self._strengths(self._entries[0].quad),
            )
        )

    def _sweep_screened(self, rounds: Rounds, by_features: bool) -> None:
        problem = self.problem
        rounds.take(
            dense_entry_sweep(self._loss, self._entries[0], self._weight, by_features)(
                *self._round_arguments(rounds),
                *problem.design.columns,
                problem.y,
                problem.weights,
                self._f,
                self._slope,
                self._P,
                self._A,
                self._moments,
                self._largest,
                self._caches[0],
                self._screen,
                *self._strengths(self._entries[0].quad),
            )
        )


def not_linear(label: str, model: Model) -> WhyNot:
    """Return why steps on entries or rows have no closed form if f is not linear in them."""
    if model.multilinear:
        return WhyNot(
            "rows_not_linear",
            f"{label} updates a row of P at once, but a row contains entries of U¹, …, U^m, which f "
            f"multiplies with each other: {model.label} is linear only in "
            "each U^t. Use CD or PCD, which update single entries, or APGD.",
        )
    return WhyNot(
        "entries_not_linear",
        f"{label} minimizes along an entry or a row in closed form, but powers of ⟨p, x⟩ make f a polynomial "
        "of degree m in every entry of P, and the objective is not convex along it (blondel2016, Section 5). "
        "Use CD, which searches along the entry, or L-BFGS.",
    )


class CD(PCD):
    """Coordinate descent for the smooth objective of a canonical FM ([A] Alg. 4; [B] Alg. 1 and 2)."""

    name: ClassVar[str] = "cd"
    label: ClassVar[str] = "CD"
    params: ClassVar[tuple[ParamSpec, ...]] = (ORDER, ESCAPE)

    fits_coefficients: ClassVar[bool] = True
    takes_powers: ClassVar[bool] = True

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        penalty = problem.penalty
        if not penalty.smooth:
            return WhyNot(
                "not_smooth",
                f"CD takes plain gradient steps, but {penalty.label} has no gradient at the zeros "
                "of P. Use "
                + ("PCD or PBCD, which take" if penalty.separable else "nmAPGD, which takes")
                + " proximal steps.",
            )
        return None
