"""Descent directions at P = 0: maximize the λ below which the objective decreases along a column."""

from __future__ import annotations

import numpy as np

# The number of pairs of largest gradient from which the search starts.
_PAIRS = 12
_ASCENT_STEPS = 400


def pair_starts(A: np.ndarray) -> list[np.ndarray]:
    """Return the best column with two entries for each of the pairs of largest |A_ij|."""
    d = A.shape[0]
    size = np.triu(np.abs(A), 1)
    flat = np.argsort(-size, axis=None, kind="stable")[: min(_PAIRS, d * (d - 1) // 2)]
    starts = []
    for i, j in zip(*np.unravel_index(flat, A.shape), strict=True):
        v = np.zeros(d)
        v[i], v[j] = 0.5, np.copysign(0.5, A[i, j])
        starts.append(v)
    return starts


def descent_direction(A: np.ndarray, lambda_p: float, pairs: bool, v: np.ndarray) -> tuple[float, np.ndarray]:
    """Return a local maximum of vᵀMv / ω(vvᵀ), M = A − λ_p I, and its v.

    Parameters
    ----------
    A : (d, d) ndarray
        −½G, the negative gradient of the risk in a symmetric W, with zero diagonal.
    lambda_p : float
        The strength λ_p.
    pairs : bool
        Whether ω(W) is Σ_{i<j} |w_ij| instead of Σ_ij |w_ij|; see `fmviz.engine.starts.zero_threshold`.
    v : (d,) ndarray
        The start.

    Returns
    -------
    ratio : float
        The λ below which the objective decreases along v.
    v : (d,) ndarray
        The direction, of any norm.
    """
    if not pairs:
        v = _on_ball(A - lambda_p * np.eye(len(A)), v)
        return _ratio(A, lambda_p, False, v), v
    # With ω = ½(‖v‖₁² − ‖v‖²), the ratio is above t if vᵀ(M + ½tI)v > ½t‖v‖₁² (Dinkelbach).
    best = _ratio(A, lambda_p, True, v)
    for _ in range(20 if np.isfinite(best) else 0):
        v_next = _on_ball(A + (0.5 * best - lambda_p) * np.eye(len(A)), v)
        ratio = _ratio(A, lambda_p, True, v_next)
        if not ratio > best * (1.0 + 1e-12):
            break
        best, v = ratio, v_next
    return best, v


def _ratio(A: np.ndarray, lambda_p: float, pairs: bool, v: np.ndarray) -> float:
    square = float(v @ v)
    size = np.abs(v).sum() ** 2
    size = 0.5 * (size - square) if pairs else size
    gain = float(v @ A @ v) - lambda_p * square
    return gain / size if size > 1e-14 * square else -np.inf


def _on_ball(M: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return a local maximum of vᵀMv over ‖v‖₁ = 1, by exact steps between vertices of the ball."""
    v = v / np.abs(v).sum()
    product = M @ v
    for _ in range(_ASCENT_STEPS):
        signs = np.sign(v)
        up = int(np.abs(product).argmax())
        rise = float(np.copysign(1.0, product[up]))
        live = np.flatnonzero(v)
        down = int(live[(signs[live] * product[live]).argmin()])
        fall = signs[down]
        slope = 2.0 * (rise * product[up] - fall * product[down])
        # The sphere has no path across 0.
        if slope <= 1e-13 * np.abs(product).max() or up == down:
            break
        bend = M[up, up] + M[down, down] - 2.0 * rise * fall * M[up, down]
        most = abs(v[down])
        step = most if bend >= 0.0 else min(most, -slope / (2.0 * bend))
        v[up] += rise * step
        v[down] = 0.0 if step == most else v[down] - fall * step
        product = M @ v
    return v
