"""Proximal block coordinate descent over the rows of P ([A] Algorithm 6), with and without line search."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..errors import WhyNot
from ..penalties.blockwise import parts_of
from ..problem import Formulation
from ..settings import ParamSpec
from ._anderson import ANDERSON
from ._saddle_escape import ESCAPE
from ._sweeping import ACTIVE_SWEEPS, Rounds, SweepingSolver
from .kernels.matrix_factorization import pair_row_sweep
from .kernels.row_sweep import in_lines, row_sweep
from .pcd import not_linear

SEARCH = (
    ParamSpec(
        "sigma",
        "float",
        0.01,
        1e-6,
        0.99,
        symbol=r"\sigma",
        help="The required fraction of the predicted decrease.",
    ),
    ParamSpec("rho", "float", 0.5, 0.05, 0.95, symbol=r"\rho", help="The factor of each reduction."),
)


class PBCD(SweepingSolver):
    """Proximal block coordinate descent over the rows of P ([A] Algorithm 6)."""

    name: ClassVar[str] = "pbcd"
    label: ClassVar[str] = "PBCD"

    params: ClassVar[tuple[ParamSpec, ...]] = (ACTIVE_SWEEPS, ANDERSON, ESCAPE)

    # Whether steps start larger and are reduced until the objective decreases sufficiently, as always for
    # losses whose derivative has no Lipschitz constant.
    searches: ClassVar[bool] = False
    most_trials: ClassVar[int] = 40

    def prepare(self) -> None:
        super().prepare()
        problem, design = self.problem, self.problem.design
        # Rows of P are aligned to cache lines if the state is only a sum for every column.
        self._wide = in_lines(np.empty((1, problem.rank))).shape[1] if problem.model.plain else problem.rank
        # `on` calls `why_not` first: all views exist.
        self._views: list[Any] = [view.rows for view in problem.model.views(problem.rank)]
        self._rows: list[Any] = [penalty.row for _, penalty in parts_of(problem.penalty)]
        self._caches = [row.cache(design.n_features, self._wide) for row in self._rows]
        self._places = np.empty(design.longest_column, dtype=design.columns.indices.dtype)
        self._work = in_lines(np.empty((4, design.longest_column)))
        self._sizes = np.empty(design.n_features)

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        model, penalty = problem.model, problem.penalty
        if any(view.rows is None for view in model.views(1)):
            return not_linear(self.label, model)
        if penalty.row is None:
            return WhyNot(
                "no_row_view",
                penalty.why_no_row
                or f"{penalty.label} by rows squares the norm of the updated row, and the row step is not "
                "separable over entries. Use PCD.",
            )
        return None

    def _to_layout(self, P: np.ndarray) -> np.ndarray:
        """Return P, shape (d, columns), as (blocks, d, k); a single block has rows by `in_lines`."""
        if self.problem.model.plain:
            return in_lines(P)[None]
        return np.array(P.reshape(P.shape[0], len(self._views), -1).transpose(1, 0, 2), order="C")

    def _from_layout(self) -> np.ndarray:
        parts = self._P[:, :, : self.problem.rank].transpose(1, 0, 2)
        return np.array(parts, order="C").reshape(parts.shape[0], -1)

    def _set_sums(self, sums: np.ndarray | None) -> None:
        if self._partners is None:
            self._states = [
                view.state(self.problem.design, P, sums) for view, P in zip(self._views, self._P, strict=True)
            ]

    def _sweep_factors(self, rounds: Rounds) -> None:
        problem, design = self.problem, self.problem.design
        for b, (view, row, cache) in enumerate(zip(self._views, self._rows, self._caches, strict=True)):
            strengths = self._strengths(row.quad)
            if self._partners is not None:
                sweeps = pair_row_sweep(self._loss, row, self._weight)
                rounds.take(
                    sweeps(
                        *self._round_arguments(rounds),
                        self._partners.other,
                        design.columns.indices,
                        design.columns.indptr,
                        problem.y,
                        problem.weights,
                        self._f,
                        self._P[0],
                        self._moments,
                        self._sizes,
                        self._work[0],
                        cache,
                        *strengths,
                    )
                )
                return
            # In a padded P, all are 1 and unused.
            coefficients = self._coefficients[b * problem.rank : (b + 1) * problem.rank]
            weighted, search = not problem.model.plain, self.searches or self._search
            sweeps = row_sweep(design.storage, self._loss, row, self._weight, view, weighted, search)
            rounds.take(
                sweeps(
                    *self._round_arguments(rounds),
                    *design.columns,
                    problem.y,
                    problem.weights,
                    self._f,
                    self._P[b],
                    coefficients,
                    self._states[b],
                    self._moments,
                    self._places,
                    self._work,
                    cache,
                    *strengths,
                    *(self.settings.get(spec.name, spec.default) for spec in SEARCH),
                    self.most_trials,
                )
            )


class PBCDLineSearch(PBCD):
    """PBCD with larger initial steps and backtracking ([A] Algorithm 6; Tseng and Yun 2009)."""

    name: ClassVar[str] = "pbcd_ls"
    label: ClassVar[str] = "PBCD, line search"
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ACTIVE_SWEEPS,
        ANDERSON,
        ESCAPE,
        *SEARCH,
    )
    takes_pairs: ClassVar[bool] = False
    searches: ClassVar[bool] = True
