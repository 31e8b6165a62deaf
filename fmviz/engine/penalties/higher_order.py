"""Ω_TI^m and Ω_CS^m for any order m, and their sums over all orders.

They bound the weights of m-tuples. They are linear in every |p_js| (every ‖p_j‖); the steps of coordinate and
row descent therefore have a closed form, but their operators on all of P do not.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from .._jit import jitable
from ._coupled import Sizes, entries_penalty, entry_penalty, norm_penalty
from .base import EntryView, Penalty, RowView, unit_rows


def symmetric_sums(sizes: np.ndarray, degree: int | None) -> np.ndarray:
    """Return e_m(sizes), the sum of products over all m-subsets, along the first axis.

    Without a degree, the sum is over all non-empty subsets, Π(1 + size) − 1, without cancellation.
    """
    if degree is None:
        return np.asarray(np.expm1(np.log1p(sizes).sum(axis=0)))
    return elementary_sums(sizes, degree)[degree]


def elementary_sums(values: np.ndarray, most: int) -> np.ndarray:
    """Return e_0, …, e_most of the values along the first axis, shape (most + 1, …)."""
    table = np.zeros((most + 1, *values.shape[1:]))
    table[0] = 1.0
    for row in values:
        table[1:] += row * table[:-1]
    return table


def symmetric_slopes(sizes: np.ndarray, degree: int | None) -> np.ndarray:
    """Return the slopes of `symmetric_sums`: e_{m−1} of the others, without subtraction, or Π(1 + size)."""
    if degree is None:
        return np.asarray(np.prod(1.0 + sizes, axis=0) / (1.0 + sizes))
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
    """Return e_m as a function of the sizes ([A] Eq. 44, 50), with e_0 … e_{m−1} as its cache."""

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
"""The product Π(1 + size) over all sizes."""


def _function(degree: int | None) -> Sizes:
    return PRODUCT if degree is None else elementary(degree)


@dataclass(frozen=True)
class _Higher(Penalty):
    """Common base of Ω_TI^m, Ω_CS^m and their sums over all orders.

    Parameters
    ----------
    degree : int or None
        m ≥ 2; None for all subsets of features.
    """

    degree: int | None = None

    convex = False
    exact_prox = False
    why_no_operator = (
        "Beyond pairs, Ω_TI and Ω_CS are neither convex nor functions of norms only, and have no known "
        "proximal operator on P. Use PCD or PBCD, whose steps have a closed form, or SubGD, which needs no "
        "operator."
    )

    def _sizes(self, P: np.ndarray) -> np.ndarray:
        return unit_rows(P)[0] if self.row_wise else np.abs(P)

    def value(self, P: np.ndarray) -> float:
        """Return `symmetric_sums` of the |p_js| summed over columns, or of the row norms."""
        return float(symmetric_sums(self._sizes(P), self.degree).sum())

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return `symmetric_slopes` of the |p_js|, or of the row norms, shape (d, 1)."""
        return symmetric_slopes(self._sizes(P), self.degree)


@dataclass(frozen=True)
class HigherOmegaTI(_Higher):
    """Ω_TI^m(P) = Σ_s Σ_{j1<…<jm} |p_{j1 s} ⋯ p_{jm s}| ([A] Eq. 41 to 44)."""

    name = "omega_ti"
    label = "Ω_TI"
    formula = r"\Omega_{\mathrm{TI}}^m(P) = \sum_{s}\sum_{j_1<\dots<j_m} |p_{j_1 s}\cdots p_{j_m s}|"
    selects = "interactions of order m"

    @property
    def entry(self) -> EntryView:
        return entry_penalty(sizes=_function(self.degree))

    @property
    def row(self) -> RowView:
        return entries_penalty(sizes=_function(self.degree))


@dataclass(frozen=True)
class HigherOmegaCS(_Higher):
    """Ω_CS^m(P) = Σ_{j1<…<jm} ‖p_j1‖ ⋯ ‖p_jm‖ ([A] Eq. 48 to 50)."""

    name = "omega_cs"
    label = "Ω_CS"
    formula = r"\Omega_{\mathrm{CS}}^m(P) = \sum_{j_1<\dots<j_m} \|p_{j_1}\|_2\cdots\|p_{j_m}\|_2"
    selects = "features, by their contribution to interactions of order m"
    row_wise = True
    why_no_entry = (
        "Ω_CS couples the entries of a row by their norm, which is not differentiable at 0: steps on single "
        "entries can get stuck at points that no single entry improves. Use PBCD, which updates whole rows."
    )

    @property
    def row(self) -> RowView:
        return norm_penalty(sizes=_function(self.degree))


@dataclass(frozen=True)
class OmegaTIAll(HigherOmegaTI):
    """Ω_TI^all(P) = Σ_s Π_j (1 + |p_js|) − k, without the k empty subsets ([A] Eq. 56).

    In the paper, the last sum starts with subsets of one feature, but the product includes the empty one:
    they differ by the constant k. Here Ω(0) = 0.
    """

    formula = r"\Omega_{\mathrm{TI}}^{\mathrm{all}}(P) = \sum_{s}\Big(\prod_{j} (1+|p_{js}|) - 1\Big)"
    selects = "subsets of features"


@dataclass(frozen=True)
class OmegaCSAll(HigherOmegaCS):
    """Ω_CS^all(P) = Π_j (1 + ‖p_j‖) − 1, without the empty subset ([A] Eq. 57)."""

    formula = r"\Omega_{\mathrm{CS}}^{\mathrm{all}}(P) = \prod_{j} (1+\|p_j\|_2) - 1"
    selects = "features, by their contribution to all subsets"
