"""Lifted kernel expansions: a symmetrized low-rank tensor with factors U¹, …, U^m ([B] Section 5)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .._jit import jitable, zero
from ..counting import features_in_products
from ..design import Design
from ..errors import WhyNot
from ..memory import aligned_copy
from ..parameters import Parameters
from ..penalties import Penalty
from ..settings import setting
from .base import Model, ObjectiveNotation
from .columnar import LONGER
from .columns import Anova, ColumnKernel, ColumnViews, Polynomial
from .columns.base import EntryColumnView, State, largest_of


@jitable
def _open(P, s, state):
    A, xi = state
    xi[:] = 1.0
    for t in range(A.shape[0]):
        if t != s // A.shape[1]:
            a = A[t, s % A.shape[1]]
            for n in range(xi.size):
                xi[n] *= a[n]


@jitable
def _column(P, s, state):
    return state[0][s // state[0].shape[1], s % state[0].shape[1]], state[1]


@jitable
def _absorb(kept, n, x, p):
    kept[0][n] += x * p


@jitable
def _cofactor(kept, n, x, p, own):
    return kept[1][n]


@jitable
def _advance(kept, n, x, p, q, own):
    move = x * (q - p)
    kept[0][n] += move
    return move * kept[1][n]


@jitable
def _close(s, state, live):
    if live == 0:
        # Exactly 0 instead of a rounding error that would enter the slopes of other factors.
        state[0][s // state[0].shape[1], s % state[0].shape[1]] = 0.0


@jitable
def _column_of_pairs(P, s, state):
    a, xi = _column(P, s, state)
    return a, xi, P[(s + state[0].shape[1]) % P.shape[0]]


@jitable
def _scale_of_pairs(s, state):
    return 0.5 * largest_of(state[1])


@jitable
def _partner(kept, j):
    return kept[2][j]


@jitable
def _cofactor_of_pairs(kept, n, x, p, own):
    return 0.5 * (kept[1][n] - own * x)


@jitable
def _advance_in_pairs(kept, n, x, p, q, own):
    move = x * (q - p)
    kept[0][n] += move
    return 0.5 * move * (kept[1][n] - own * x)


@functools.cache
def lifted_entries(degree: int, distinct: bool) -> EntryColumnView:
    """Return the view of Π_t ⟨u_s^t, x⟩, or with `distinct` ½(⟨u_s, x⟩⟨v_s, x⟩ − Σ_j u_js v_js x_j²).

    It is the view along an entry. P = [U¹ … U^m]ᵀ has shape (m·rank, d); its rows are the columns of the
    sweep. The state of a row is XP, kept between sweeps, and for the current column
    ξ = Π_{t' ≠ t} ⟨u_s^{t'}, x⟩, which its own steps do not change: the cofactor is ξ, or ½(ξ − v_js x_j).
    One compiled kernel serves all degrees m.
    """

    def state(design: Design, P: np.ndarray, sums: np.ndarray | None = None) -> State:
        A = aligned_copy((design.dot(P.T) if sums is None else sums).T)
        return A.reshape(degree, -1, design.n_samples), aligned_copy(np.empty(design.n_samples))

    view = EntryColumnView("lifted", state, _open, _column, _absorb, zero, zero, _cofactor, _advance, _close)
    if not distinct:
        return view
    return replace(
        view,
        name="lifted_pairs",
        column=_column_of_pairs,
        scale=_scale_of_pairs,
        partner=_partner,
        cofactor=_cofactor_of_pairs,
        advance=_advance_in_pairs,
    )


@dataclass(frozen=True)
class Lifted(Model):
    r"""f(x) = b + ⟨w, x⟩ + ⟨𝒲, x^⊗m⟩ with 𝒲 = S(Σ_s u_s¹ ⊗ … ⊗ u_s^m), S the symmetrization.

    The model of blondel2016, Eq. 10, abbreviated as [B]:

    - polynomial, H^m: ⟨w, x⟩ + Σ_s Π_t ⟨u_s^t, x⟩ for any m ≥ 2 ([B] Lemma 6);
    - anova, A²: ½ Σ_s (⟨u_s, x⟩⟨v_s, x⟩ − Σ_j u_js v_js x_j²) ([B] D.3), which is Σ_{i<j} W_ij x_i x_j with
      W = ½(UVᵀ + VUᵀ). For m > 2 there is no such form in the paper.

    P contains U¹, …, U^m side by side, with `rank` columns each: U^t is P[:, (t − 1)·rank : t·rank]. f is
    linear in every single U^t; the objective is therefore convex in each with the others fixed, for both
    kernels.

    **Scaling.** λ_p multiplies (1/m) Σ_t ‖U^t‖²_F. For m = 2 this is the ½(‖U‖² + ‖V‖²) of [B] Eq. 12, and
    by [B] Theorem 2 the minima of three objectives agree at the same λ_p, for ranks of at least that of the
    solution: this one; the `expansion` with fitted coefficients, λ_p Σ_s |λ_s|‖p_s‖²; and λ_p‖W‖_tr over
    symmetric W. For every m, a column with u¹ = … = u^m = p costs λ_p‖p‖², as in the `expansion` with
    coefficients 1; the lifted minimum is therefore never larger. [B] D.2 writes β/2 Σ_t ‖U^t‖² and sums the
    losses: β = 2Nλ_p/m.

    Ω applies to all of P. Pair weights are bounded by sums over s of |u_is||v_js|; TI of P (‖·‖₁^m of its
    columns for m > 2) therefore remains a bound on the interactions, and a zero row of P still means an
    unused feature.

    Parameters
    ----------
    degree : int, default=2
        m ≥ 2; 2 for anova.
    kernel : {"polynomial", "anova"}, default="polynomial"
        H^m, products of features with repetition, or A², without.
    """

    degree: int = setting(2, low=2, high=10, symbol="m", help="The number of features in a product.")
    kernel: str = setting(
        "polynomial",
        choices=("polynomial", "anova"),
        help="Whether products repeat features or, for degree 2 only, have distinct features.",
    )

    name = "lifted"
    label = "Lifted expansion"
    formula = (
        r"f(x) = b + \langle w, x\rangle"
        r" + \big\langle \mathcal{S}(\sum_s u_s^1\otimes\cdots\otimes u_s^m), x^{\otimes m}\big\rangle"
    )
    notation = ObjectiveNotation(
        matrix="U",
        weights="½(UVᵀ+VUᵀ)",
        shrinkage=r"\tfrac{1}{m}\sum_t\|U^t\|_F^2",
        penalty=r"\Omega(U^1, \dots, U^m)",
        shrinkage_term="λₚ/m Σ ‖Uᵗ‖²",
        penalty_term="λ Ω(U)",
    )
    part_name = "factors"
    suited: ClassVar[Mapping[str, Any]] = {"init_scale": 0.1, **LONGER}
    multilinear = True
    no_threshold: ClassVar[WhyNot | None] = WhyNot(
        "free_factors",
        "Its columns are products of different factors U¹, …, U^m, and a zero factor leaves the others "
        "without a slope. Use the λ_max of the factorization machine as a guide.",
    )

    @cached_property
    def kernels(self) -> tuple[ColumnKernel, ...]:
        return (Anova(self.degree) if self.kernel == "anova" else Polynomial(self.degree),)

    @property
    def least_features(self) -> int:
        """Two if features must be distinct."""
        return 1 if self.repeats else 2

    def why_not(self, penalty: Penalty) -> WhyNot | None:
        if not self.repeats and self.degree != 2:
            return WhyNot(
                "no_lifted_form",
                f"degree = {self.degree} with kernel 'anova' has no lifted form: distinct features are "
                "derived for degree 2 only (blondel2016, D.3). Choose degree 2, the kernel 'polynomial', or "
                "the model 'expansion', which supports 'anova' of any degree.",
            )
        if penalty.in_weights == "pairs":
            return WhyNot(
                "pairs_within_columns",
                f"{penalty.label} sums over pairs of entries within the same columns of P, but here pair "
                "weights are products of entries of two different columns, u_s and v_s. Choose TI or CS, "
                "which bound these products, ℓ₁ or ℓ₂,₁.",
            )
        return super().why_not(penalty)

    def orders_of_columns(self, rank: int) -> list[tuple[slice, int | None]]:
        return [(slice(None), self.degree)]

    def check_size(self, d: int, rank: int) -> None:
        if d < self.least_features:
            raise ValueError(
                f"The data have {d} feature(s), but the kernel 'anova' needs products of two distinct "
                "features. Choose the kernel 'polynomial'."
            )
        super().check_size(d, rank)

    def views(self, rank: int) -> tuple[ColumnViews, ...]:
        """Return views along entries only, since f multiplies the entries of a row of P with each other."""
        return (
            ColumnViews(slice(0, self.degree * rank), lifted_entries(self.degree, not self.repeats), None),
        )

    def shapes(self, d: int, rank: int) -> dict[str, tuple[int, ...]]:
        return {"P": (d, self.degree * rank), "w": (d,), "intercept": ()}

    def factors(self, P: np.ndarray) -> np.ndarray:
        """Return U¹, …, U^m, shape (m, d, rank), as a view of P, shape (d, m·rank)."""
        return P.reshape(P.shape[0], self.degree, P.shape[1] // self.degree).transpose(1, 0, 2)

    def products(self, P: np.ndarray, weights: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
        U = self.factors(P)
        return U, np.ones(U.shape[2])

    def predict(self, design: Design, parameters: Parameters) -> np.ndarray:
        """Return f for every row of the design, shape (N,)."""
        return self.forward(design, parameters)[0]

    def forward(
        self, design: Design, parameters: Parameters, keep: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return f for every row of the design, shape (N,), and XP, shape (N, m·rank)."""
        f = self.linear_part(design, parameters)
        A = design.dot(parameters.P)
        total = self.factors(A).prod(axis=0).sum(axis=1)
        if not self.repeats:
            total -= np.asarray(design.power(2) @ self.factors(parameters.P).prod(axis=0).sum(axis=1))
            total *= 0.5
        return f + total, A

    def gradient(
        self, design: Design, parameters: Parameters, slope: np.ndarray, sums: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the gradient; `sums` is XP."""
        A = design.dot(parameters.P) if sums is None else sums
        in_P = design.transpose_dot(slope[:, None] * self._others(A))
        if not self.repeats:
            in_P -= design.transpose_dot(slope, 2)[:, None] * self._others(parameters.P)
            in_P *= 0.5
        return in_P, design.transpose_dot(slope), float(slope.sum())

    def curvature(
        self, design: Design, parameters: Parameters, weight: np.ndarray, sums: np.ndarray | None = None
    ) -> np.ndarray:
        others = self._others(design.dot(parameters.P) if sums is None else sums)
        square = design.transpose_dot(weight[:, None] * np.square(others), 2)
        if self.repeats:
            return square
        partner = self._others(parameters.P)
        cross = design.transpose_dot(weight[:, None] * others, 3)
        fourth = design.transpose_dot(weight, 4)[:, None]
        total = square - 2.0 * cross * partner + fourth * np.square(partner)
        # The terms cancel if the other factor has only this entry: the remainder is rounding.
        total[total <= 1e-12 * square] = 0.0
        return 0.25 * total

    def _others(self, A: np.ndarray) -> np.ndarray:
        """Return the product over t' ≠ t of the blocks of A, shape (n, m·rank), in block t."""
        parts = self.factors(A)
        out = np.ones((self.degree, *parts.shape[1:]))
        # Products from the left and from the right, without division.
        for t in range(1, self.degree):
            np.multiply(out[t - 1], parts[t - 1], out=out[t])
        after = parts[-1].copy()
        for t in range(self.degree - 2, -1, -1):
            out[t] *= after
            after *= parts[t]
        return np.ascontiguousarray(out.transpose(1, 0, 2)).reshape(A.shape)

    def shrinkage_weights(self, parameters: Parameters) -> np.ndarray:
        """Return 1/m for every column."""
        return np.full(parameters.P.shape[1], 1.0 / self.degree)

    def used_features(self, parameters: Parameters) -> int:
        """Return the number of features in structurally non-zero monomials of 𝒲.

        Such a monomial has a non-zero entry from every u_s^t of some s, for anova of distinct features.
        """
        return int(np.count_nonzero(features_in_products(self.factors(parameters.P), not self.repeats)))
