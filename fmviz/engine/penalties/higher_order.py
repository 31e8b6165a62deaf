"""Ω_TI^m and Ω_CS^m for any order m, and their sums over all orders.

They bound the weights of m-tuples. They are linear in every |p_js| (every ‖p_j‖), so that the steps of
coordinate and row descent have a closed form; their operators on all of P have none.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from .._jit import jitable
from ._coupled import Sizes, entries_view, entry_view, norm_view
from .base import EntryView, Penalty, RowView, unit_rows


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


@jitable
def always(cache):
    return True


@functools.cache
def elementary(degree: int) -> Sizes:
    """Return e_m of the sizes ([A] Eq. 44, 50). Its cache: e_0 … e_{m−1}."""

    @jitable
    def reset(cache, at):
        cache[at : at + degree] = 0.0
        return 1.0

    @jitable
    def add(cache, at, first, size):
        cache[at] = first
        if size != 0.0:
            for t in range(degree - 1, 0, -1):
                cache[at + t] += size * cache[at + t - 1]
        return first

    @jitable
    def weight(cache, at, size, strength):
        # e_t without j is e_t − |p|·e_{t−1} without j; the subtraction may fall below 0 by rounding.
        others = 1.0
        for t in range(1, degree):
            others = max(cache[at + t] - size * others, 0.0)
        return strength * others

    @jitable
    def update(cache, at, old, new):
        others = 1.0
        for t in range(1, degree):
            following = max(cache[at + t] - old * others, 0.0)
            cache[at + t] = following + new * others
            others = following

    return Sizes(f"elementary_{degree}", 0, degree, always, reset, add, weight, update)


@jitable
def reset_product(cache, at):
    cache[at] = 1.0
    return 1.0


@jitable
def add_to_product(cache, at, first, size):
    cache[at] *= 1.0 + size
    return cache[at]


@jitable
def product_of_others(cache, at, size, strength):
    return strength * cache[at] / (1.0 + size)


@jitable
def update_product(cache, at, old, new):
    cache[at] *= (1.0 + new) / (1.0 + old)


PRODUCT = Sizes("product", 0, 1, always, reset_product, add_to_product, product_of_others, update_product)
"""Π(1 + size) over all sizes."""


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

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return e_{m−1} of the other |p| of the column."""
        return symmetric_slopes(np.abs(P), self.degree)

    @property
    def entry(self) -> EntryView:
        return entry_view(elementary(self.degree))

    @property
    def row(self) -> RowView:
        return entries_view(elementary(self.degree))


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

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return e_{m−1} of the other rows' norms, shape (d, 1)."""
        return symmetric_slopes(unit_rows(P)[0], self.degree)

    @property
    def row(self) -> RowView:
        return norm_view(elementary(self.degree))


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
    entry = entry_view(PRODUCT)
    row = entries_view(PRODUCT)

    def value(self, P: np.ndarray) -> float:
        """Return the sum over columns of the product less 1, without cancellation."""
        return float(np.expm1(np.log1p(np.abs(P)).sum(axis=0)).sum())

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return Π_{i≠j} (1 + |p_is|)."""
        size = np.abs(P)
        return np.asarray(np.prod(1.0 + size, axis=0) / (1.0 + size))


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
    row = norm_view(PRODUCT)

    def value(self, P: np.ndarray) -> float:
        """Return the product over rows less 1, without cancellation."""
        return float(np.expm1(np.log1p(unit_rows(P)[0]).sum()))

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return Π_{i≠j} (1 + ‖p_i‖), shape (d, 1)."""
        norms = unit_rows(P)[0]
        return np.asarray(np.prod(1.0 + norms, axis=0) / (1.0 + norms))
