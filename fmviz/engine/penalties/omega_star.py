"""Ω_*, the ℓ1 norm of the interaction weights, which the other regularizers bound from above."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..errors import WhyNot
from ..settings import setting
from .base import Penalty

# The number of entries of a block of PPᵀ: 32 MB.
_BLOCK = 1 << 22
# The maximum number of entries of PPᵀ for which the signs of zeros are optimized.
_SIGNS = 1 << 24
_SIGN_STEPS = 200
# An inner product below this fraction of the product of the norms is a rounding error without a sign.
_ROUNDING = 1e-14


def value_and_subgradient(P: np.ndarray, wanted: bool = True) -> tuple[float, np.ndarray]:
    """Return Ω_*(P) and, on request, Z P, shape (d, k), with Z = sign(PPᵀ) off the diagonal and 0 on it.

    O(d²k) time over the non-zero rows; PPᵀ is computed in blocks of rows and never stored entirely.
    """
    out = np.zeros_like(P)
    live = np.flatnonzero(P.any(axis=1))
    L = P[live]
    rows = max(1, _BLOCK // max(1, live.size))
    total = 0.0
    for begin in range(0, live.size, rows):
        end = min(begin + rows, live.size)
        S = L[begin:end] @ L.T
        S[np.arange(end - begin), np.arange(begin, end)] = 0.0
        total += float(np.abs(S).sum())
        if wanted:
            out[live[begin:end]] = np.sign(S, out=S) @ L
    return 0.5 * total, out


@dataclass(frozen=True)
class OmegaStar(Penalty):
    r"""Ω_*(P) = Σ_{i<j} |⟨p_i, p_j⟩| = ½‖PPᵀ‖₁ − ½‖P‖²_F.

    Not convex, but ½‖PPᵀ‖₁ is: an objective with λ_p ≥ λ/2 is its risk plus a convex function ([A] Eq. 11,
    whose λ_p is ours less λ/2).

    Its subdifferential is {Z P}, where Z is symmetric with a zero diagonal, Z_ij = sign⟨p_i, p_j⟩ if this is
    not 0, and any number in [−1, 1] otherwise ([A] Eq. 13 without the diagonal). `residual` measures the
    distance to it with the best Z found. Any such Z is a proof: a small residual certifies, while a larger
    one may be an overestimate if many inner products are 0. Z results from at most 200 accelerated
    projections, and beyond 16 million pairs its free entries stay 0.
    """

    prox_steps: int = setting(
        20, low=1, high=1_000_000, help="The number of subgradient steps of the inexact operator (Eq. 14)."
    )
    prox_step: float = setting(
        0.1,
        low=1e-9,
        high=10.0,
        log=True,
        help="The size of its first step; step t has this size divided by √t.",
    )

    name = "omega_star"
    label = "Ω_*"
    formula = r"\Omega_*(P) = \sum_{i<j} |\langle p_i, p_j\rangle|"
    prox_formula = (
        r"Q \leftarrow Q - \tfrac{\eta}{\sqrt t}\,(Q - P + \lambda Z Q)"
        r",\quad Z = \operatorname{sign}(QQ^\top) - \operatorname{diag}\quad\text{(inexact)}"
    )
    selects = "interactions in principle: it penalizes the weights directly, but no step makes them 0"
    source = "atarashi2021, Eq. 9 to 14"
    convex = False
    in_weights = "pairs"
    exact_prox = False
    why_no_entry = (
        "Along an entry, Ω_* is Σ_i |q·p_is + r_i|, a sum of d − 1 absolute deviations with a kink each: its "
        "minimum is a quadratic program, and computing the r_i costs O(dk) per entry, Ω(d²k²) per epoch "
        "(atarashi2021, Eq. 15). Use nmAPGD or SubGD."
    )
    why_no_row = (
        "Along a row, Ω_* is Σ_i |⟨q, p_i⟩|, a sum of absolute values of d − 1 non-orthogonal linear forms: "
        "the row step is a quadratic program without a closed-form solution. Use nmAPGD or SubGD."
    )

    def of_order(self, order: int | None) -> Penalty | WhyNot:
        if order != 2:
            return WhyNot(
                "no_structure",
                "Ω_* of order m sums |⟨p_j1, …, p_jm⟩| over all m-tuples, O(d^m) terms without shared "
                "structure (atarashi2021, Eq. 41). Choose its upper bound Ω_TI, which costs O(dm) per "
                "column.",
            )
        return self

    def value(self, P: np.ndarray) -> float:
        """Return the sum of |⟨p_i, p_j⟩| over i < j, in O(d²k); infinite on overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            return value_and_subgradient(P, wanted=False)[0]

    def subgradient(self, P: np.ndarray) -> np.ndarray:
        """Return Z P with Z = sign(PPᵀ) off the diagonal: [A] Eq. 13 for ½‖PPᵀ‖₁, minus P."""
        return value_and_subgradient(P)[1]

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Approximate the operator by `prox_steps` subgradient steps from P, and return the best point.

        With h(Q) = ½‖Q − P‖²_F + strength·Ω_*(Q), convex for strength ≤ 1, step t goes from Q to
        Q − prox_step/√t·(Q − P + strength·Z Q). This is subgradient descent on [A] Eq. 14: h is its
        objective for λ = strength/(2(1 − strength)) at P/(1 − strength), times 1 − strength. The result
        never has a larger h than P, and rarely has exact zeros. O(prox_steps·d²k).
        """
        if strength == 0.0:
            return P.copy()
        # Ω_* is homogeneous of degree 2, and its operator of degree 1: far from 1, scale by a power of 2.
        exponent = int(np.frexp(np.abs(P).max(initial=0.0))[1])
        P = np.ldexp(P, -exponent)
        best, Q = P.copy(), P.copy()
        lowest = np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            for t in range(1, self.prox_steps + 2):
                omega, sub = value_and_subgradient(Q, wanted=t <= self.prox_steps)
                h = 0.5 * float(np.square(Q - P).sum()) + strength * omega
                if h < lowest:
                    lowest, best = h, Q
                Q = Q - (self.prox_step / sqrt(t)) * (Q - P + strength * sub)
                if not np.isfinite(Q).all():
                    break
        return np.ldexp(best, exponent)

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G − strength·Z Q for the best admissible Z found: an upper bound, see the class."""
        # Linear in (G, Q): far from 1, scale by a power of 2.
        exponent = int(np.frexp(max(np.abs(G).max(initial=0.0), np.abs(Q).max(initial=0.0)))[1])
        R = self._residual(np.ldexp(G, -exponent), np.ldexp(Q, -exponent), strength)
        return np.ldexp(R, exponent)

    def _residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        sub = value_and_subgradient(Q)[1]
        R = G - strength * sub
        live = np.flatnonzero(Q.any(axis=1))
        if strength == 0.0 or live.size == 0 or Q.shape[0] * live.size > _SIGNS:
            return R
        L = Q[live]
        S = L @ L.T
        norms = np.sqrt(np.square(L).sum(axis=1))
        free = np.abs(S) <= _ROUNDING * np.outer(norms, norms)
        np.fill_diagonal(free, False)
        dead = np.setdiff1d(np.arange(Q.shape[0]), live)
        target = strength * L
        if free.any():
            signs = np.where(free, 0.0, np.sign(S))
            np.fill_diagonal(signs, 0.0)
            R[live] = _best_signs(G[live] - signs @ target, target, free, symmetric=True)
        if dead.size:
            anything = np.ones((dead.size, live.size), dtype=bool)
            R[dead] = _best_signs(G[dead], target, anything, symmetric=False)
        return R

    def cost_note(self, d: int, k: int) -> str | None:
        return (
            f"Ω_* compares all {d * (d - 1) // 2:,} pairs of rows of P: every evaluation of the objective "
            f"takes d²k = {d * d * k:.1e} multiplications, and every inexact proximal step "
            f"{2 * self.prox_steps + 1} times as many. Pairs are computed in blocks; memory does not grow "
            "with d²."
        )


def _best_signs(G: np.ndarray, L: np.ndarray, free: np.ndarray, symmetric: bool) -> np.ndarray:
    """Return G − Z L of least norm over Z in [−1, 1] where `free` and 0 elsewhere, by FISTA."""
    largest = float(np.linalg.norm(L, 2))
    if not 1e-150 < largest < 1e150:
        return G  # Z = 0 also gives an upper bound.
    lipschitz = largest * largest
    Z = np.zeros(free.shape)
    ahead, t = Z, 1.0
    best, least = G, float(np.square(G).sum())
    for _ in range(_SIGN_STEPS):
        step = (G - ahead @ L) @ L.T / lipschitz
        if symmetric:
            step = 0.5 * (step + step.T)
        new = np.where(free, np.clip(ahead + step, -1.0, 1.0), 0.0)
        R = G - new @ L
        size = float(np.square(R).sum())
        if size < least:
            best, least = R, size
        else:
            t = 1.0
        following = 0.5 * (1.0 + sqrt(1.0 + 4.0 * t * t))
        ahead = new + (t - 1.0) / following * (new - Z)
        moved = float(np.abs(new - Z).max())
        Z, t = new, following
        if moved <= 1e-12:
            break
    return best
