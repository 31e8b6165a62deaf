"""PPᵀ of many features as tiles, each of which shows the largest interaction within it."""

from __future__ import annotations

import itertools

import numpy as np

from fmviz.lab.interpretation.pair_weights import FactoredPairs, GivenPairs


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
    left = values if coefficients is None else values * coefficients
    return FactoredPairs(rows, n_features, left, values).tiles(edges, edges)


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
    return GivenPairs(rows, n_features, weights).tiles(edges, edges)
