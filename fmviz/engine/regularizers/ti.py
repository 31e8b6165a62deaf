"""TI, the triangular-inequality regularizer: squared ℓ1 norms of the columns of P."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jit import jitable
from ..params import ParamSpec
from ._matrix import shrink_squared_columns, shrink_squared_rows
from ._squared_norm import ALGORITHMS, prox_squared_l1
from .base import CoordinatePenalty, MatrixOperator, Regularizer, RowPenalty, entry_residual
from .l1 import soft
from .powers import PowerTI


def one_number(d: int, k: int) -> int:
    return 1


def one_per_row(d: int, k: int) -> int:
    return d


def one_per_column(d: int, k: int) -> int:
    return k


@jitable
def begin_with_column_sum(P, s, cache):
    total = 0.0
    for j in range(P.shape[1]):
        total += abs(P[s, j])
    cache[0] = total


@jitable
def twice_rest_of_column(cache, j, p):
    # The subtraction may fall below 0 by rounding.
    return 2.0 * max(cache[0] - abs(p), 0.0)


@jitable
def update_column_sum(cache, j, old, new):
    cache[0] += abs(new) - abs(old)


@jitable
def begin_with_row_sums(P, s, cache):
    if s == 0:
        cache[:] = 0.0
        for r in range(P.shape[0]):
            for j in range(P.shape[1]):
                cache[j] += abs(P[r, j])


@jitable
def twice_rest_of_row(cache, j, p):
    return 2.0 * max(cache[j] - abs(p), 0.0)


@jitable
def update_row_sum(cache, j, old, new):
    cache[j] += abs(new) - abs(old)


@jitable
def begin_with_all_column_sums(P, cache):
    cache[:] = 0.0
    for j in range(P.shape[0]):
        for s in range(P.shape[1]):
            cache[s] += abs(P[j, s])


@jitable
def shrink_by_rest_of_columns(u, strength, j, P, cache):
    for s in range(u.size):
        u[s] = soft(u[s], 2.0 * strength * max(cache[s] - abs(P[j, s]), 0.0))


@jitable
def weighted_by_rest_of_columns(q, j, P, cache):
    total = 0.0
    for s in range(q.size):
        total += 2.0 * max(cache[s] - abs(P[j, s]), 0.0) * abs(q[s])
    return total


@jitable
def update_all_column_sums(cache, j, P, q):
    for s in range(q.size):
        cache[s] += abs(q[s]) - abs(P[j, s])


class TI(Regularizer):
    """Ω(P) = Σ_s ‖p_:,s‖₁², or with axis="rows" Σ_j ‖p_j‖₁²."""

    name = "ti"
    label = "TI"
    formula = r"\|P^\top\|_{1,2}^2 = \sum_{s} \|p_{:,s}\|_1^2"
    prox_formula = (
        r"q_{js} = \operatorname{sign}(p_{js})\,\max(|p_{js}|-2\lambda S_{\theta,s},\,0)"
        r",\quad S_{\theta,s} = \|q_{:,s}\|_1"
    )
    selects = "interactions: in each column, entries that are large relative to the others"
    source = "atarashi2021, Eq. 20 and 30, Theorem 7"
    params = (
        ParamSpec(
            "axis",
            "choice",
            "columns",
            choices=("columns", "rows"),
            help="Square the norms of the columns (the definition, Eq. 30) or of the rows.",
        ),
    )
    algorithms = tuple(ALGORITHMS)
    quad = 1.0

    def of_order(self, order: int | None, params: dict[str, Any]) -> tuple[Regularizer, dict[str, Any]] | str:
        """See `Regularizer.of_order`; [A] Eq. 45."""
        if order is None:
            return (
                "TI for all subsets would be the sum of ‖p‖₁^m over all m, whose operator is an open "
                "problem (atarashi2021, Section 6.2). Choose Ω_TI, linear in every entry of P, or ℓ₁."
            )
        return (self, params) if order == 2 else (PowerTI(), {**params, "degree": order})

    def words(self, axis: str = "columns", **params: Any) -> tuple[str, str, str]:
        """See `Regularizer.words`."""
        if axis == "rows":
            return (
                r"\|P\|_{1,2}^2 = \sum_{j} \|p_j\|_1^2",
                r"q_{js} = \operatorname{sign}(p_{js})\,\max(|p_{js}|-2\lambda S_{\theta,j},\,0)"
                r",\quad S_{\theta,j} = \|q_j\|_1",
                "interactions only weakly: in each row, entries that are large relative to the others",
            )
        return self.formula, self.prox_formula, self.selects

    def value(self, P: np.ndarray, axis: str = "columns", **params: Any) -> float:
        """Return the sum of squared ℓ1 norms along `axis`."""
        return float(np.square(np.abs(P).sum(axis=0 if axis == "columns" else 1)).sum())

    def prox(
        self,
        P: np.ndarray,
        strength: float,
        algorithm: str | None = None,
        axis: str = "columns",
        **params: Any,
    ) -> np.ndarray:
        """Apply [A] Eq. 30 to every column, or to every row."""
        if axis == "rows":
            return prox_squared_l1(P, strength, algorithm)
        return np.ascontiguousarray(prox_squared_l1(P.T, strength, algorithm).T)

    def residual(
        self, G: np.ndarray, Q: np.ndarray, strength: float, axis: str = "columns", **params: Any
    ) -> np.ndarray:
        """Return G minus its projection on strength·∂Ω(Q), with ∂‖q‖₁² = 2‖q‖₁·∂‖q‖₁."""
        sums = np.abs(Q).sum(axis=0 if axis == "columns" else 1, keepdims=True)
        return entry_residual(G, Q, strength * (2.0 * sums))

    def thresholds(self, P: np.ndarray, axis: str = "columns", **params: Any) -> np.ndarray:
        """Return 2·(‖p‖₁ − |p_js|), the norm taken along `axis`."""
        return 2.0 * rest_of_sum(np.abs(P), 0 if axis == "columns" else 1)

    def saddles(self, axis: str = "columns", **params: Any) -> bool:
        """See `Regularizer.saddles`."""
        return axis == "columns"

    def coordinate(self, axis: str = "columns", **params: Any) -> CoordinatePenalty:
        """See `Regularizer.coordinate`; the cache is the one of [A] Algorithm 1."""
        if axis == "rows":
            return CoordinatePenalty(
                "ti_rows",
                1.0,
                one_per_row,
                begin_with_row_sums,
                twice_rest_of_row,
                update_row_sum,
                shared=True,
            )
        return CoordinatePenalty(
            self.name, 1.0, one_number, begin_with_column_sum, twice_rest_of_column, update_column_sum
        )

    def row(self, axis: str = "columns", **params: Any) -> RowPenalty | None:
        """See `Regularizer.row`; a row of the row-wise reading has no separable step."""
        if axis == "rows":
            return None
        return RowPenalty(
            self.name,
            1.0,
            one_per_column,
            begin_with_all_column_sums,
            shrink_by_rest_of_columns,
            weighted_by_rest_of_columns,
            update_all_column_sums,
        )

    def operator(self, axis: str = "columns", **params: Any) -> MatrixOperator:
        """See `Regularizer.operator`; rows shrink each at their own pace, so there is no common offset."""
        if axis == "rows":
            return MatrixOperator("ti_rows", shrink_squared_rows)
        return MatrixOperator(self.name, shrink_squared_columns, lazy="coupled_entries")


def rest_of_sum(size: np.ndarray, axis: int) -> np.ndarray:
    """Return for every entry the sum of all others along `axis`, without subtracting."""
    zero = np.zeros_like(np.take(size, [0], axis=axis))
    before = np.cumsum(np.concatenate([zero, size], axis=axis), axis=axis)
    flipped = np.flip(size, axis=axis)
    after = np.flip(np.cumsum(np.concatenate([zero, flipped], axis=axis), axis=axis), axis=axis)
    n = size.shape[axis]
    return np.take(before, range(n), axis=axis) + np.take(after, range(1, n + 1), axis=axis)
