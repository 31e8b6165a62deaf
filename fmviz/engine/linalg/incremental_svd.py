"""Brand's incremental decomposition: a symmetric matrix of low rank that is added to, never formed."""

from __future__ import annotations

import numpy as np

# An eigenvalue below this share of the largest one is rounding.
_ROUNDING = 1e-14
# Where a column adds no more than this share of what another one does, its direction is looked at again.
_NOTHING_NEW = 1e-3


def updated(
    P: np.ndarray, eigenvalues: np.ndarray, A: np.ndarray, weights: np.ndarray, rank: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `rank` largest positive eigenvalues of P diag(eigenvalues) Pᵀ + A diag(weights) Aᵀ.

    [P, A] = [P, U]·[[I, PᵀA], [0, R]] with an orthonormal U, so that the eigenvectors are those of a matrix
    of order r + c, turned by [P, U] (Brand 2006, for a symmetric matrix): O(d(r + c)² + (r + c)³), no d × d
    array. Keeping the largest positive eigenvalues is the projection on the semidefinite matrices of such a
    rank.

    Parameters
    ----------
    P : (d, r) ndarray
        Orthonormal columns.
    eigenvalues : (r,) ndarray
        Theirs.
    A : (d, c) ndarray
        Any columns.
    weights : (c,) ndarray
        Theirs, of either sign.
    rank : int
        The most that are kept.

    Returns
    -------
    P : (d, q) ndarray
        Orthonormal columns, q ≤ rank.
    eigenvalues : (q,) ndarray
        All positive, largest first.
    """
    r = eigenvalues.size
    inside = P.T @ A
    rest = A - P @ inside
    # Twice is enough (Kahan): what is left of P in the rest is rounding of the rest, not of A.
    again = P.T @ rest
    rest -= P @ again
    U, R = np.linalg.qr(rest)
    sizes = np.abs(np.diagonal(R))
    if sizes.size and sizes.min() < _NOTHING_NEW * sizes.max():
        # Where the rest is rounding alone its directions may have parts in P, or one another.
        U -= P @ (P.T @ U)
        U, turn = np.linalg.qr(U)
        R = turn @ R
    beside = np.vstack([inside + again, R])
    K = (beside * weights) @ beside.T
    K[np.arange(r), np.arange(r)] += eigenvalues
    found, vectors = np.linalg.eigh(0.5 * (K + K.T))
    order = np.argsort(-found, kind="stable")[:rank]
    order = order[found[order] > _ROUNDING * np.abs(found).max(initial=0.0)]
    return P @ vectors[:r, order] + U @ vectors[r:, order], found[order]


def orthonormalised(P: np.ndarray, eigenvalues: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same decomposition with columns that are orthonormal to rounding; they drift by and by."""
    Q, R = np.linalg.qr(P)
    small = (R * eigenvalues) @ R.T
    found, vectors = np.linalg.eigh(0.5 * (small + small.T))
    return Q @ vectors[:, ::-1], found[::-1]
