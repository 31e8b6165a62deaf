"""PPᵀ of many features as tiles: each shows the largest interaction within it, and none is lost."""

from __future__ import annotations

import itertools

import numpy as np

_BLOCK = 256


def tile_edges(n_features: int, n_tiles: int) -> np.ndarray:
    """Return the first feature of every tile and `n_features` at the end, shape (n_tiles + 1,)."""
    n_tiles = max(1, min(n_tiles, n_features))
    return (np.arange(n_tiles + 1) * n_features) // n_tiles


def pooled_interactions(
    rows: np.ndarray,
    values: np.ndarray,
    n_features: int,
    n_tiles: int = 128,
    coefficients: np.ndarray | None = None,
) -> np.ndarray:
    """Max-pool PPᵀ, or P diag(c) Pᵀ, its diagonal left out, without forming it.

    Parameters
    ----------
    rows : (m,) int ndarray
        The features with a non-zero row of P, ascending.
    values : (m, k) ndarray
        Their rows.
    n_features : int
        The number of rows of P.
    n_tiles : int
        The most tiles along an axis.
    coefficients : (k,) ndarray, optional
        c, nowhere 0; ones by default.

    Returns
    -------
    (t, t) float64 ndarray
        Per tile the interaction Σ_s c_s p_is p_js, i ≠ j, of largest magnitude, with its sign. It is 0 if
        and only if no pair within the tile shares a column in which both are non-zero.
    """
    edges = tile_edges(n_features, n_tiles)
    t = edges.size - 1
    high, low = np.zeros((t, t)), np.zeros((t, t))
    if rows.size:
        tile = np.searchsorted(edges, rows, side="right") - 1
        present, first = np.unique(tile, return_index=True)
        mask = (values != 0).astype(np.float32)
        tiny = np.nextafter(0.0, 1.0)
        left = values if coefficients is None else values * coefficients
        for begin in range(0, rows.size, _BLOCK):
            end = min(begin + _BLOCK, rows.size)
            weight = left[begin:end] @ values.T
            used = (mask[begin:end] @ mask.T) > 0
            used[np.arange(end - begin), np.arange(begin, end)] = False
            weight[~used] = 0.0
            # An interaction that cancels or underflows is still one.
            weight[used & (weight == 0)] = tiny
            above = np.maximum.reduceat(weight, first, axis=1)
            below = np.minimum.reduceat(weight, first, axis=1)
            for row in range(end - begin):
                at = tile[begin + row]
                high[at, present] = np.maximum(high[at, present], above[row])
                low[at, present] = np.minimum(low[at, present], below[row])
    return np.where(-low > high, low, high)


def tile_labels(n_features: int, n_tiles: int = 128) -> list[str]:
    """Return "features 1–20" and so on, counted from 1."""
    edges = tile_edges(n_features, n_tiles)
    return [
        f"feature {a + 1:,}" if b - a == 1 else f"features {a + 1:,}–{b:,}"
        for a, b in itertools.pairwise(edges)
    ]


def pooled_matrix(W: np.ndarray, n_tiles: int = 128) -> np.ndarray:
    """Max-pool a given symmetric matrix, shape (d, d), its diagonal left out, into the same tiles."""
    return pooled_rows(np.arange(W.shape[0]), W, W.shape[0], n_tiles)


def pooled_rows(rows: np.ndarray, weights: np.ndarray, n_features: int, n_tiles: int = 128) -> np.ndarray:
    """Do as `pooled_matrix` for a matrix that is 0 but for some rows and columns, ascending, shape (m, m)."""
    edges = tile_edges(n_features, n_tiles)
    pooled = np.zeros((edges.size - 1, edges.size - 1))
    if rows.size:
        W = weights.copy()
        np.fill_diagonal(W, 0.0)
        present, first = np.unique(np.searchsorted(edges, rows, side="right") - 1, return_index=True)
        high = np.maximum.reduceat(np.maximum.reduceat(W, first, axis=0), first, axis=1)
        low = np.minimum.reduceat(np.minimum.reduceat(W, first, axis=0), first, axis=1)
        # What is not there is 0.
        high, low = np.maximum(high, 0.0), np.minimum(low, 0.0)
        pooled[np.ix_(present, present)] = np.where(-low > high, low, high)
    return pooled
