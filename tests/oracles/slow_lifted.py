"""Reference implementation of lifted expansions with the full tensor, for d ≤ 6."""

from __future__ import annotations

from itertools import combinations, permutations, product
from math import prod

import numpy as np

from . import slow_fm


def tensor(U: np.ndarray) -> np.ndarray:
    """S(Σ_s u_s¹ ⊗ … ⊗ u_s^m), U of shape (m, d, r): the mean over all orders of the indices."""
    m, d, r = U.shape
    W = np.zeros((d,) * m)
    for index in product(range(d), repeat=m):
        orders = list(permutations(index))
        W[index] = sum(prod(U[t, order[t], s] for t in range(m)) for order in orders for s in range(r))
        W[index] /= len(orders)
    return W


def split(P: np.ndarray, m: int) -> np.ndarray:
    """U¹, …, U^m of P = [U¹ … U^m]."""
    return np.array(np.split(P, m, axis=1))


def predict(kernel: str, m: int, X: np.ndarray, P, w, bias) -> np.ndarray:
    """b + ⟨w, x⟩ + ⟨W, x ⊗ … ⊗ x⟩, over all indices (polynomial) or increasing ones (anova)."""
    W = tensor(split(P, m))
    d = X.shape[1]
    indices = combinations(range(d), m) if kernel == "anova" else product(range(d), repeat=m)
    indices = list(indices)
    return bias + X @ w + np.array([sum(W[i] * prod(x[j] for j in i) for i in indices) for x in X])


def coordinate_epoch(kernel, m, X, y, P, w, b, *, loss, lam_w, lam_p, lam, penalty, linear, weights=None):
    """[B] Algorithm 2: the bias and w, then u_js^t for t, s, j in this order; f is linear in each."""
    c = np.ones(y.size) if weights is None else weights / weights.mean()
    mu = slow_fm.MU[loss]

    def slopes(w, b):
        return c * slow_fm.SLOPE[loss](predict(kernel, m, X, P, w, b), y)

    P = P.copy()
    w, b = slow_fm.linear_sweep(slopes, X, w, b, loss=loss, c=c, lam_w=lam_w, linear=linear, bias=linear)
    for column in range(P.shape[1]):
        for j in range(P.shape[0]):
            old = P[j, column]
            ends = []
            for trial in (1.0, 0.0):
                P[j, column] = trial
                ends.append(predict(kernel, m, X, P, w, b))
            P[j, column] = old
            df = ends[0] - ends[1]
            g, h = np.mean(slopes(w, b) * df), mu * np.mean(c * df**2)
            parabolas = slow_fm.pieces_along(penalty, P, j, np.eye(P.shape[1])[column])
            P[j, column] = slow_fm.least(parabolas, old, g, h, 2 * lam_p / m, lam)
    return P, w, b


def weights(U: np.ndarray, c: np.ndarray, repeated: bool) -> dict[tuple[int, ...], float]:
    """The weight of every used product of m features in Σ_s c_s Π_t ⟨u_s^t, x⟩, term by term."""
    m, d, r = U.shape
    totals: dict[tuple[int, ...], float] = {}
    for index in product(range(d), repeat=m):
        features = tuple(sorted(index))
        if repeated or len(set(index)) == m:
            for s in range(r):
                term = c[s] * prod(U[t, index[t], s] for t in range(m))
                if term:
                    totals[features] = totals.get(features, 0.0) + term
    return totals
