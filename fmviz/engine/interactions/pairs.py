"""The used pairs of P ranked by weight, without forming PPᵀ."""

from __future__ import annotations

import numpy as np

_BLOCK = 512


def ranked_pairs(
    P: np.ndarray, top: int | None = None, coefficients: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the used pairs i < j and their weights Σ_s λ_s p_is p_js, largest |weight| first.

    Parameters
    ----------
    P : (d, k) ndarray
        The factors.
    top : int, optional
        The most pairs to return. Memory is O(block·d + top) with it, and grows with the number of used
        pairs without.
    coefficients : (k,) ndarray, optional
        λ, instead of ones; a column whose λ_s is 0 uses no pair.

    Returns
    -------
    i, j : int ndarrays
        The features of each pair; ties are ordered by (i, j).
    weight : float ndarray
        The weights. A pair is used where its rows share a column in which both are non-zero, so a weight
        may be 0 by cancellation.
    """
    if coefficients is None:
        coefficients = np.ones(P.shape[1])
    P = P[:, coefficients != 0]
    coefficients = coefficients[coefficients != 0]
    live = np.flatnonzero(P.any(axis=1))
    Q = P[live]
    mask = (Q != 0).astype(np.float32)
    parts = []
    for begin in range(0, live.size, _BLOCK):
        end = min(begin + _BLOCK, live.size)
        used = (mask[begin:end] @ mask[begin:].T) > 0
        used[np.tril_indices(end - begin, 0, live.size - begin)] = False
        row, column = np.nonzero(used)
        weight = ((Q[begin:end] * coefficients) @ Q[begin:].T)[row, column]
        parts.append((live[begin + row], live[begin + column], weight))
        if top is not None:
            parts = [_largest(parts, top)]
    if not parts:
        return np.empty(0, dtype=int), np.empty(0, dtype=int), np.empty(0)
    return _largest(parts, top)


def ranked_weights(W: np.ndarray, top: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the non-zero pairs i < j of a symmetric W, shape (d, d), as `ranked_pairs` does for P."""
    i, j = np.nonzero(np.triu(W, 1))
    weight = W[i, j]
    if top is not None and top < weight.size:
        # Without the small ones, but with all that are as large as the last.
        size = np.abs(weight)
        kept = size >= np.partition(size, -top)[-top]
        i, j, weight = i[kept], j[kept], weight[kept]
    return _largest([(i, j, weight)], top)


def _largest(
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], top: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    i, j, weight = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((j, i, -np.abs(weight)))[:top]
    return i[order], j[order], weight[order]
