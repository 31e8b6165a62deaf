"""The minimax concave penalty on the entries of P, which does not shrink large ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from .._jit import jitable, nothing
from ..settings import setting
from .base import EntryView, MatrixView, Penalty, RowView


@jitable
def firm(p, strength, gamma):
    """Return the q that minimizes ½(q − p)² + strength·ω(q): firm thresholding; hard for strength ≥ γ."""
    size = abs(p)
    if strength >= gamma:
        return p if size > sqrt(strength * gamma) else 0.0
    if size <= strength:
        return 0.0
    if size >= gamma:
        return p
    q = (size - strength) / (1.0 - strength / gamma)
    return q if p > 0.0 else -q


@jitable
def minimum(cache, j, p, g, h, lam_p, lam):
    bend = h + 2.0 * lam_p
    if bend <= 0.0:
        return 0.0 if lam > 0.0 else p
    u = h * p - g
    # Where the sum is not convex 0 may be a local minimum only; the bounds that skip zeros keep it as well.
    return 0.0 if p == 0.0 and abs(u) <= lam else firm(u / bend, lam / bend, cache[0])


@jitable
def threshold(cache, j, p):
    return max(1.0 - abs(p) / cache[0], 0.0)


@jitable
def shrink_row(u, strength, j, P, cache):
    for s in range(u.size):
        u[s] = firm(u[s], strength, cache[0])


@jitable
def row_penalty(q, j, P, cache):
    total = 0.0
    for s in range(q.size):
        # ∫ max{1 − x/γ, 0} dx from 0 to |q|.
        size = min(abs(q[s]), cache[0])
        total += size * (1.0 - 0.5 * size / cache[0])
    return total


@jitable
def shrink_all(M, strength, theta, work):
    for s in range(M.shape[0]):
        for j in range(M.shape[1]):
            M[s, j] = firm(M[s, j], strength, theta[0])


@dataclass(frozen=True)
class MCP(Penalty):
    """Ω(P) = Σ_js ∫ max{1 − x/γ, 0} dx from 0 to |p_js|: |p| − p²/2γ up to γ, and γ/2 beyond. Not convex."""

    gamma: float = setting(
        1.0,
        low=1e-6,
        high=1e6,
        log=True,
        symbol=r"\gamma",
        help="The size above which entries are not shrunk; for large γ the penalty is ℓ₁.",
    )

    name = "mcp"
    label = "MCP"
    formula = r"\sum_{j,s} \int_0^{|p_{js}|} \max(1 - x/\gamma,\,0)\,dx"
    prox_formula = (
        r"q_{js} = p_{js}\text{ if }|p_{js}|\ge\gamma,\ "
        r"\text{else } \operatorname{sign}(p_{js})\,\dfrac{\max(|p_{js}|-\lambda,\,0)}{1-\lambda/\gamma}"
        r"\ (\lambda<\gamma)"
    )
    selects = "entries of P, like ℓ₁, without shrinking large ones"
    stands_for = "the minimax concave penalty: ℓ₁ near 0, constant for large entries"
    mechanism = (
        "MCP has the threshold of ℓ₁ for small entries of P, and none for entries larger than γ: these are "
        "not shrunk towards 0."
    )
    source = "Zhang 2010, Eq. 2.1, on the entries of P, with γλ in place of γ"
    convex = False

    def value(self, P: np.ndarray) -> float:
        """Return the sum of |p| − p²/2γ up to γ, and of γ/2 beyond."""
        size = np.minimum(np.abs(P), self.gamma)
        return float((size * (1.0 - 0.5 * size / self.gamma)).sum())

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Return a global minimizer, entry by entry."""
        Q = P.copy()
        shrink_all(Q, float(strength), (self.gamma,), Q)
        # Adding 0 turns −0 into 0.
        return Q + 0.0

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return the slope of the penalty at every |p_js|: 1 − |p|/γ, and 0 beyond γ."""
        return np.maximum(1.0 - np.abs(P) / self.gamma, 0.0)

    def _cache(self, d: int, k: int) -> np.ndarray:
        return np.array([self.gamma])

    @property
    def entry(self) -> EntryView:
        return EntryView(self.name, 0.0, self._cache, nothing, minimum, threshold, nothing, separate=True)

    @property
    def row(self) -> RowView:
        return RowView(self.name, 0.0, self._cache, nothing, shrink_row, row_penalty, nothing)

    @property
    def matrix(self) -> MatrixView:
        return MatrixView(self.name, shrink_all, theta=(self.gamma,))
