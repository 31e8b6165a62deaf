"""Ω_TI^m and Ω_CS^m for any order m, and their sums over all orders.

They bound the weights of m-tuples. They are linear in every |p_js| (every ‖p_j‖), so that the steps of
coordinate and row descent have a closed form; their operators on all of P have none.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from .._jit import jitable
from .base import EntryView, Penalty, RowView, entry_residual, row_residual, unit_rows
from .operators.thresholds import norm, shrink_norm, soft


def symmetric_sums(sizes: np.ndarray, degree: int) -> np.ndarray:
    """Return e_m(sizes), the sum over m-subsets of their products, along the first axis."""
    table = np.zeros((degree + 1, *sizes.shape[1:]))
    table[0] = 1.0
    for size in sizes:
        for t in range(degree, 0, -1):
            table[t] += size * table[t - 1]
    return table[degree]


def symmetric_slopes(sizes: np.ndarray, degree: int) -> np.ndarray:
    """Return ∂e_m/∂size_j for every j, the e_{m−1} of all others, without subtraction."""
    d = sizes.shape[0]
    before = np.zeros((d + 1, degree, *sizes.shape[1:]))
    after = np.zeros_like(before)
    before[0, 0] = after[d, 0] = 1.0
    for j in range(d):
        before[j + 1] = before[j]
        before[j + 1, 1:] += sizes[j] * before[j, :-1]
        i = d - 1 - j
        after[i] = after[i + 1]
        after[i, 1:] += sizes[i] * after[i + 1, :-1]
    # e_{m−1} of a union is Σ_t e_t of one part times e_{m−1−t} of the other.
    return np.einsum("jt...,jt...->j...", before[:d], after[1:, ::-1])


def products(sizes: np.ndarray) -> np.ndarray:
    """Return Π(1 + size_j) along the first axis."""
    return np.prod(1.0 + sizes, axis=0)


@functools.cache
def anova_coordinate(degree: int) -> EntryView:
    """Return Ω_TI^m as a function of an entry ([A] Eq. 44). Its cache: e_0 … e_{m−1} of |p_s|."""

    @jitable
    def begin(P, s, cache):
        cache[:] = 0.0
        cache[0] = 1.0
        for j in range(P.shape[1]):
            size = abs(P[s, j])
            if size != 0.0:
                for t in range(degree - 1, 0, -1):
                    cache[t] += size * cache[t - 1]

    @jitable
    def threshold(cache, j, p):
        # e_t without j is e_t − |p|·e_{t−1} without j; the subtraction may fall below 0 by rounding.
        size = abs(p)
        others = 1.0
        for t in range(1, degree):
            others = max(cache[t] - size * others, 0.0)
        return others

    @jitable
    def update(cache, j, old, new):
        size = abs(old)
        others = 1.0
        for t in range(1, degree):
            following = max(cache[t] - size * others, 0.0)
            cache[t] = following + abs(new) * others
            others = following

    return EntryView(f"omega_ti_{degree}", 0.0, lambda d, k: np.zeros(degree), begin, threshold, update)


@functools.cache
def anova_row(degree: int) -> RowView:
    """Return Ω_CS^m as a function of a row ([A] Eq. 50). Its cache: e_0 … e_{m−1} of the row norms."""

    @jitable
    def weight(cache, size):
        others = 1.0
        for t in range(1, degree):
            others = max(cache[t] - size * others, 0.0)
        return others

    @jitable
    def begin(P, cache):
        cache[:] = 0.0
        cache[0] = 1.0
        for j in range(P.shape[0]):
            size = norm(P[j])
            for t in range(degree - 1, 0, -1):
                cache[t] += size * cache[t - 1]

    @jitable
    def shrink(u, strength, j, P, cache):
        shrink_norm(u, strength * weight(cache, norm(P[j])))

    @jitable
    def penalty(q, j, P, cache):
        return weight(cache, norm(P[j])) * norm(q)

    @jitable
    def update(cache, j, P, q):
        size = norm(P[j])
        new = norm(q)
        others = 1.0
        for t in range(1, degree):
            following = max(cache[t] - size * others, 0.0)
            cache[t] = following + new * others
            others = following

    return RowView(f"omega_cs_{degree}", 0.0, lambda d, k: np.zeros(degree), begin, shrink, penalty, update)


@functools.cache
def anova_entries_of_row(degree: int) -> RowView:
    """Return Ω_TI^m as a function of a row: a weighted ℓ1 norm. Its cache: e_0 … e_{m−1} of every column."""

    @jitable
    def weight(cache, s, size):
        others = 1.0
        for t in range(1, degree):
            others = max(cache[s * degree + t] - size * others, 0.0)
        return others

    @jitable
    def begin(P, cache):
        cache[:] = 0.0
        for s in range(P.shape[1]):
            cache[s * degree] = 1.0
            for j in range(P.shape[0]):
                size = abs(P[j, s])
                for t in range(degree - 1, 0, -1):
                    cache[s * degree + t] += size * cache[s * degree + t - 1]

    @jitable
    def shrink(u, strength, j, P, cache):
        for s in range(u.size):
            u[s] = soft(u[s], strength * weight(cache, s, abs(P[j, s])))

    @jitable
    def penalty(q, j, P, cache):
        total = 0.0
        for s in range(q.size):
            total += weight(cache, s, abs(P[j, s])) * abs(q[s])
        return total

    @jitable
    def update(cache, j, P, q):
        for s in range(q.size):
            size = abs(P[j, s])
            others = 1.0
            for t in range(1, degree):
                following = max(cache[s * degree + t] - size * others, 0.0)
                cache[s * degree + t] = following + abs(q[s]) * others
                others = following

    return RowView(
        f"omega_ti_{degree}", 0.0, lambda d, k: np.zeros(k * degree), begin, shrink, penalty, update
    )


@jitable
def begin_with_product(P, s, cache):
    cache[0] = 1.0
    for j in range(P.shape[1]):
        cache[0] *= 1.0 + abs(P[s, j])


@jitable
def product_of_others(cache, j, p):
    return cache[0] / (1.0 + abs(p))


@jitable
def update_product(cache, j, old, new):
    cache[0] *= (1.0 + abs(new)) / (1.0 + abs(old))


@jitable
def begin_with_products(P, cache):
    for s in range(P.shape[1]):
        cache[s] = 1.0
        for j in range(P.shape[0]):
            cache[s] *= 1.0 + abs(P[j, s])


@jitable
def shrink_by_other_products(u, strength, j, P, cache):
    for s in range(u.size):
        u[s] = soft(u[s], strength * cache[s] / (1.0 + abs(P[j, s])))


@jitable
def weighted_by_other_products(q, j, P, cache):
    total = 0.0
    for s in range(q.size):
        total += cache[s] / (1.0 + abs(P[j, s])) * abs(q[s])
    return total


@jitable
def update_products(cache, j, P, q):
    for s in range(q.size):
        cache[s] *= (1.0 + abs(q[s])) / (1.0 + abs(P[j, s]))


@jitable
def begin_with_norm_product(P, cache):
    cache[0] = 1.0
    for j in range(P.shape[0]):
        cache[0] *= 1.0 + norm(P[j])


@jitable
def shrink_by_other_norm_product(u, strength, j, P, cache):
    shrink_norm(u, strength * cache[0] / (1.0 + norm(P[j])))


@jitable
def weighted_by_other_norm_product(q, j, P, cache):
    return cache[0] / (1.0 + norm(P[j])) * norm(q)


@jitable
def update_norm_product(cache, j, P, q):
    cache[0] *= (1.0 + norm(q)) / (1.0 + norm(P[j]))


@dataclass(frozen=True)
class _Higher(Penalty):
    """Common base of Ω_TI^m, Ω_CS^m and their sums over all orders."""

    convex = False
    exact_prox = False
    why_no_operator = (
        "Beyond pairs, Ω_TI and Ω_CS are neither convex nor functions of norms alone, and have no known "
        "operator on the whole of P. Use PCD or PBCD, whose steps are closed, or SubGD, which needs none."
    )


@dataclass(frozen=True)
class HigherOmegaTI(_Higher):
    """Ω_TI^m(P) = Σ_s Σ_{j1<…<jm} |p_{j1 s} ⋯ p_{jm s}| ([A] Eq. 41).

    Parameters
    ----------
    degree : int
        m ≥ 2.
    """

    degree: int = 2

    name = "omega_ti"
    label = "Ω_TI"
    formula = r"\Omega_{\mathrm{TI}}^m(P) = \sum_{s}\sum_{j_1<\dots<j_m} |p_{j_1 s}\cdots p_{j_m s}|"
    prox_formula = r"\text{none in closed form; coordinate steps are closed}"
    selects = "interactions of order m"
    source = "atarashi2021, Eq. 41 to 44"

    def value(self, P: np.ndarray) -> float:
        """Return Σ_s e_m(|p_s|)."""
        return float(symmetric_sums(np.abs(P), self.degree).sum())

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its projection on the coordinate-wise subdifferential, times strength."""
        return entry_residual(G, Q, strength * self.thresholds(Q))

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return e_{m−1} of the other |p| of the column."""
        return symmetric_slopes(np.abs(P), self.degree)

    @property
    def entry(self) -> EntryView:
        return anova_coordinate(self.degree)

    @property
    def row(self) -> RowView:
        return anova_entries_of_row(self.degree)


@dataclass(frozen=True)
class HigherOmegaCS(_Higher):
    """Ω_CS^m(P) = Σ_{j1<…<jm} ‖p_j1‖ ⋯ ‖p_jm‖ ([A] Eq. 48).

    Parameters
    ----------
    degree : int
        m ≥ 2.
    """

    degree: int = 2

    name = "omega_cs"
    label = "Ω_CS"
    formula = r"\Omega_{\mathrm{CS}}^m(P) = \sum_{j_1<\dots<j_m} \|p_{j_1}\|_2\cdots\|p_{j_m}\|_2"
    prox_formula = r"\text{none in closed form; row steps are closed}"
    selects = "features, by their part in interactions of order m"
    source = "atarashi2021, Eq. 48 to 50"
    row_wise = True
    why_no_entry = (
        "Ω_CS binds the entries of a row by their norm, which has no slope at 0: steps on single entries can "
        "get stuck where no entry alone improves. Use PBCD, which moves whole rows."
    )

    def value(self, P: np.ndarray) -> float:
        """Return e_m of the row norms."""
        return float(symmetric_sums(unit_rows(P)[0], self.degree).sum())

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its projection on the row-wise subdifferential, times strength."""
        return row_residual(G, Q, strength * self.thresholds(Q))

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return e_{m−1} of the other rows' norms, shape (d, 1)."""
        return symmetric_slopes(unit_rows(P)[0], self.degree)

    @property
    def row(self) -> RowView:
        return anova_row(self.degree)


@dataclass(frozen=True)
class OmegaTIAll(_Higher):
    """Ω_TI^all(P) = Σ_s Π_j (1 + |p_js|), less the k empty subsets ([A] Eq. 56).

    The paper's last sum begins with subsets of one feature, its product with the empty one: they differ by
    the constant k. Here Ω(0) = 0.
    """

    name = "omega_ti"
    label = "Ω_TI"
    formula = r"\Omega_{\mathrm{TI}}^{\mathrm{all}}(P) = \sum_{s}\Big(\prod_{j} (1+|p_{js}|) - 1\Big)"
    prox_formula = HigherOmegaTI.prox_formula
    selects = "subsets of features"
    source = "atarashi2021, Eq. 56"

    def value(self, P: np.ndarray) -> float:
        """Return the sum over columns of the product less 1, without cancellation."""
        return float(np.expm1(np.log1p(np.abs(P)).sum(axis=0)).sum())

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its projection on the coordinate-wise subdifferential, times strength."""
        return entry_residual(G, Q, strength * self.thresholds(Q))

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return Π_{i≠j} (1 + |p_is|)."""
        size = np.abs(P)
        return np.asarray(products(size) / (1.0 + size))

    @property
    def entry(self) -> EntryView:
        return EntryView(
            "omega_ti_all",
            0.0,
            lambda d, k: np.zeros(1),
            begin_with_product,
            product_of_others,
            update_product,
        )

    @property
    def row(self) -> RowView:
        return RowView(
            "omega_ti_all",
            0.0,
            lambda d, k: np.zeros(k),
            begin_with_products,
            shrink_by_other_products,
            weighted_by_other_products,
            update_products,
        )


@dataclass(frozen=True)
class OmegaCSAll(_Higher):
    """Ω_CS^all(P) = Π_j (1 + ‖p_j‖), less the empty subset ([A] Eq. 57)."""

    name = "omega_cs"
    label = "Ω_CS"
    formula = r"\Omega_{\mathrm{CS}}^{\mathrm{all}}(P) = \prod_{j} (1+\|p_j\|_2) - 1"
    prox_formula = HigherOmegaCS.prox_formula
    selects = "features, by their part in all subsets"
    source = "atarashi2021, Eq. 57"
    row_wise = True
    why_no_entry = HigherOmegaCS.why_no_entry

    def value(self, P: np.ndarray) -> float:
        """Return the product over rows less 1, without cancellation."""
        return float(np.expm1(np.log1p(unit_rows(P)[0]).sum()))

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its projection on the row-wise subdifferential, times strength."""
        return row_residual(G, Q, strength * self.thresholds(Q))

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return Π_{i≠j} (1 + ‖p_i‖), shape (d, 1)."""
        norms = unit_rows(P)[0]
        return np.asarray(products(norms) / (1.0 + norms))

    @property
    def row(self) -> RowView:
        return RowView(
            "omega_cs_all",
            0.0,
            lambda d, k: np.zeros(1),
            begin_with_norm_product,
            shrink_by_other_norm_product,
            weighted_by_other_norm_product,
            update_norm_product,
        )
