"""The ℓ1/ℓ∞ norm: the sum of the largest absolute entries of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from .._jit import jitable, nothing
from .base import Penalty, RowView


def clip_levels(sizes: np.ndarray, strength: float) -> np.ndarray:
    """Return, for each row of sizes ≥ 0, the θ ≥ 0 with Σ max(size − θ, 0) = strength, or 0 if there is none.

    min(size, θ) is then the operator of strength·max(size), and max(size − θ, 0) the projection onto the
    simplex (Duchi, Shalev-Shwartz, Singer and Chandra 2008).
    """
    ordered = -np.sort(-sizes, axis=1)
    candidates = (np.cumsum(ordered, axis=1) - strength) / np.arange(1, sizes.shape[1] + 1)
    count = (ordered > candidates).sum(axis=1)
    level = np.take_along_axis(candidates, np.maximum(count - 1, 0)[:, None], axis=1)
    return np.maximum(level, 0.0)


@jitable
def clip(u, strength, j, P, cache):
    total, top = 0.0, 0.0
    for s in range(u.size):
        total += abs(u[s])
        top = max(top, abs(u[s]))
    if total <= strength:
        u[:] = 0.0
        return
    # Newton's method on the convex, piecewise linear Σ max(|u| − θ, 0) − strength increases to its root.
    before, level = -1.0, (total - strength) / u.size
    while level > before:
        before = level
        excess, count = 0.0, 0
        for s in range(u.size):
            if abs(u[s]) > level:
                excess += abs(u[s])
                count += 1
        level = max((excess - strength) / max(count, 1), before)
    for s in range(u.size):
        u[s] = min(max(u[s], -level), level)


@jitable
def largest(q, j, P, cache):
    top = 0.0
    for s in range(q.size):
        top = max(top, abs(q[s]))
    return top


@dataclass(frozen=True)
class L1LInf(Penalty):
    """Ω(V) = Σ_r max_c |v_rc|: the sum of the largest absolute entries of all rows."""

    name = "l1_linf"
    label = "ℓ₁/ℓ∞"
    formula = r"\|V\|_{1,\infty} = \sum_{r} \max_c |v_{rc}|"
    prox_formula = r"q_{rc} = \operatorname{sign}(v_{rc})\,\min(|v_{rc}|, \theta_r)"
    selects = "rows with jointly large entries, which tend to be equal in size"
    source = "blondel2017, Table 1"
    row_norm = inf
    row = RowView(name, 0.0, lambda d, k: np.zeros(1), nothing, clip, largest, nothing)

    def value(self, P: np.ndarray) -> float:
        """Return the sum of the largest absolute entries of all rows."""
        return float(np.abs(P).max(axis=1, initial=0.0).sum())

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Clip every row at the level at which the clipped parts sum to `strength` or to the ℓ1 norm."""
        levels = clip_levels(np.abs(P), strength)
        return np.clip(P, -levels, levels) + 0.0

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its projection onto strength·∂Ω(Q).

        For every row, ∂Ω is the ℓ1 ball if Q is 0, otherwise its face spanned by the largest entries, with
        their signs.
        """
        size = np.abs(Q)
        top = size.max(axis=1, keepdims=True, initial=0.0)
        face = (size == top) & (top > 0.0)
        on_face = np.where(face, G * np.sign(Q), -inf)
        # The projection onto a simplex is invariant under adding a constant to all entries.
        shift = np.where(top > 0.0, on_face.max(axis=1, keepdims=True), 0.0) - strength
        raised = np.where(face, on_face - shift, 0.0)
        part = np.maximum(raised - clip_levels(np.maximum(raised, 0.0), strength), 0.0) * np.sign(Q)
        outside = np.abs(G).sum(axis=1, keepdims=True) > strength
        soft = np.sign(G) * np.maximum(np.abs(G) - clip_levels(np.abs(G), strength), 0.0)
        ball = np.where(outside, soft, G)
        return G - np.where(top > 0.0, part, ball)

    def subgradient(self, P: np.ndarray) -> np.ndarray:
        """Return the sign of the largest entry of every row, 0 elsewhere."""
        out = np.zeros_like(P)
        at = np.arange(P.shape[0]), np.abs(P).argmax(axis=1)
        out[at] = np.sign(P[at])
        return out
