r"""Symmetric low-rank matrices, W = P diag(λ) Pᵀ, and the gradient in W as an operator.

The gradient of Σ_n α_n f(x_n) in a symmetric W is Xᵀ diag(α) X if f(x) = xᵀWx, and half of it with a zero
diagonal if f(x) = Σ_{i<j} w_ij x_i x_j.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..design import Design

# The number of features up to which a d × d matrix is cheaper than a Lanczos iteration, with exact
# eigenvalues.
_SMALL = 200
# The same bound for an extreme eigenvalue that is not necessarily the largest in absolute value.
_LARGE = 600
# The number of features up to which the gradient is stored as a matrix.
DENSE = 2_000
# The number of columns of the gradient computed together for more features.
_BLOCK = 1_024
_ROUNDING = 1e-9


def eigenform(P: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (Q, λ) with Q diag(λ) Qᵀ = P diag(coefficients) Pᵀ, by a QR decomposition of P.

    Then ‖W‖_tr = Σ|λ_s|. For W = ½(UVᵀ + VUᵀ) of the lifted form ([B] Section 5.2), use P = ½[U + V, U − V]
    and coefficients 1 and −1.

    Parameters
    ----------
    P : (d, k) ndarray
        Arbitrary columns.
    coefficients : (k,) ndarray
        Weights of either sign.

    Returns
    -------
    Q : (d, r) ndarray
        Orthonormal columns, r ≤ min(d, k); rows that are zero in all columns with a non-zero coefficient are
        exactly zero.
    λ : (r,) ndarray
        The non-zero eigenvalues, largest absolute value first.
    """
    P = P[:, coefficients != 0]
    coefficients = coefficients[coefficients != 0]
    Q, R = orthonormal(P)
    small = (R * coefficients) @ R.T
    values, vectors = _leading_part(0.5 * (small + small.T))
    return Q @ vectors, values


def orthonormal(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the QR decomposition of P, shape (d, k), with zero rows of P exactly zero in Q."""
    live = np.flatnonzero(P.any(axis=1))
    basis, R = np.linalg.qr(P[live])
    Q = np.zeros((P.shape[0], basis.shape[1]))
    Q[live] = basis
    return Q, R


def eigenform_of_weights(W: np.ndarray, rank: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return (Q, λ) as in `eigenform` for a symmetric W, shape (d, d), limited to the `rank` largest."""
    live = np.flatnonzero(W.any(axis=1))
    values, vectors = _leading_part(W[np.ix_(live, live)])
    Q = np.zeros((W.shape[0], values[:rank].size))
    Q[live] = vectors[:, :rank]
    return Q, values[:rank]


def spectrum(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of a symmetric S by descending absolute value, and their vectors as columns."""
    values, vectors = np.linalg.eigh(S)
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], vectors[:, order]


def _leading_part(small: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the part of `spectrum` that exceeds rounding."""
    values, vectors = spectrum(small)
    size = np.abs(values)
    kept = size > 1e-15 * values.size * size.max(initial=0.0)
    return values[kept], vectors[:, kept]


def pair_gradient(
    design: Design, slope: np.ndarray, diagonal: bool, features: np.ndarray | None = None
) -> np.ndarray:
    """Return the gradient of Σ_n slope_n f(x_n) in W, shape (d, d), or for some features; see the module."""
    X = design.matrix if features is None else design.matrix[:, features]
    if sp.issparse(X):
        G = (X.T @ sp.csc_array(X.multiply(slope[:, None]))).toarray()
    else:
        G = X.T @ (X * slope[:, None])
    G = 0.5 * (G + G.T)
    if not diagonal:
        G *= 0.5
        np.fill_diagonal(G, 0.0)
    return np.asarray(G)


class PairGradient:
    """The gradient of Σ_n α_n f(x_n) in W, as an operator on vectors; see the module.

    Parameters
    ----------
    design : Design
        X, shape (N, d).
    slope : (N,) ndarray
        α.
    diagonal : bool
        Whether f depends on the diagonal of W.
    """

    def __init__(self, design: Design, slope: np.ndarray, diagonal: bool) -> None:
        self._design, self._slope, self._diagonal = design, slope, diagonal
        self._squares = np.zeros(0) if diagonal else design.transpose_dot(slope, 2)

    def dot(self, right: np.ndarray) -> np.ndarray:
        """Return the gradient times `right`, shape (d,) or (d, m)."""
        tall = (-1,) + (1,) * (right.ndim - 1)
        inner = self._slope.reshape(tall) * self._design.dot(right)
        product = self._design.transpose_dot(inner)
        return product if self._diagonal else 0.5 * (product - self._squares.reshape(tall) * right)

    @cached_property
    def matrix(self) -> np.ndarray:
        """The gradient as a matrix, shape (d, d)."""
        return pair_gradient(self._design, self._slope, self._diagonal)

    def largest_pair(self) -> tuple[float, int, int]:
        """Return the largest |derivative| in a pair weight, counting both its entries in W, and the pair."""
        d = self._design.n_features
        if d > DENSE:
            return self._largest_in_blocks()
        size = 2.0 * np.abs(self.matrix)
        np.fill_diagonal(size, 0.0)
        i, j = np.unravel_index(int(size.argmax()), size.shape)
        return float(size[i, j]), int(i), int(j)

    def _largest_in_blocks(self) -> tuple[float, int, int]:
        X: Any = self._design.matrix
        # No entry of column j of the product is larger than b_j = Σ_n |α_n x_nj| max_i |x_ni|.
        sizes = abs(X)
        widest = sizes.max(axis=1)
        widest = widest.toarray() if sp.issparse(X) else widest
        bounds = np.asarray(sizes.T @ (np.abs(self._slope) * np.ravel(widest))).ravel()
        order = np.argsort(-bounds, kind="stable")
        best = (0.0, 0, 1)
        for begin in range(0, order.size, _BLOCK):
            columns = order[begin : begin + _BLOCK]
            # The bound is also a rounded sum.
            bound = bounds[columns[0]] * (1.0 + _ROUNDING)
            if bound < best[0] or bound == 0.0:
                break
            part = X[:, columns].T
            if sp.issparse(X):
                product = abs(sp.csr_array(part.multiply(self._slope)) @ self._design.by_rows).tocoo()
                values, own, other = product.data, columns[product.row], product.col
            else:
                product = np.abs((part * self._slope) @ X)
                places, other = np.indices(product.shape).reshape(2, -1)
                values, own = product.ravel(), columns[places]
            values = np.where(own == other, 0.0, values)
            largest = float(values.max(initial=0.0))
            if largest >= best[0] and largest > 0.0:
                # The first of equal pairs.
                top = np.flatnonzero(values == largest)
                i, j = min(np.sort([own[top], other[top]], axis=0).T.tolist())
                best = min(best, (largest, i, j), key=lambda pair: (-pair[0], *pair[1:]))
        return (2.0 if self._diagonal else 1.0) * best[0], best[1], best[2]

    def leading(
        self, count: int, live: np.ndarray, start: np.ndarray, tol: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the eigenvalues of largest absolute value, largest first, and their eigenvectors.

        Parameters
        ----------
        count : int
            The maximum number of eigenvalues.
        live : (m,) int ndarray
            The features to include; entries of other features in the eigenvectors are exactly 0.
        start : (d,) ndarray
            The start of the Lanczos iteration.
        tol : float
            Its relative accuracy; no effect for few features.

        Returns
        -------
        (c,) ndarray, (d, c) ndarray
            c ≤ count; none if the gradient is 0.
        """
        d = self._design.n_features
        count = min(count, live.size)
        if count == 0:
            return np.zeros(0), np.zeros((d, 0))
        if live.size <= max(_SMALL, 2 * count):
            values, small = np.linalg.eigh(pair_gradient(self._design, self._slope, self._diagonal, live))
        else:
            values, small = self._lanczos(count, live, start[live], tol)
        order = np.argsort(-np.abs(values), kind="stable")[:count]
        order = order[values[order] != 0.0]
        vectors = np.zeros((d, order.size))
        vectors[live] = small[:, order]
        return values[order], vectors

    def lowest(self, tol: float) -> float:
        """Return minus the smallest eigenvalue, at least 0; for many features, accurate to `tol`."""
        d = self._design.n_features
        live = np.arange(d)
        if d <= _LARGE:
            return max(0.0, -float(np.linalg.eigvalsh(self.matrix)[0]))
        values, _ = self._lanczos(1, live, np.random.default_rng(0).normal(size=d), tol, which="SA")
        return max(0.0, -float(values[0])) if values.size else 0.0

    def _lanczos(
        self, count: int, live: np.ndarray, start: np.ndarray, tol: float, which: str = "LM"
    ) -> tuple[np.ndarray, np.ndarray]:
        # Imported here because only one model needs it, for many features.
        from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

        full = np.zeros(self._design.n_features)

        def product(u: np.ndarray) -> np.ndarray:
            full[live] = np.ravel(u)
            return self.dot(full)[live]

        operator = LinearOperator((live.size, live.size), matvec=product, dtype=np.float64)
        try:
            return eigsh(operator, count, which=which, v0=start, tol=tol)
        except ArpackNoConvergence as partial:
            return partial.eigenvalues, partial.eigenvectors
        except ArpackError:
            # The start is in the null space, for example if the gradient is 0.
            return np.zeros(0), np.zeros((live.size, 0))

    def norm(self, tol: float) -> float:
        """Return the largest |eigenvalue|.

        For many features, it is the result of a Lanczos iteration from a random start plus its residual, of
        relative size at most about `tol`: there is an eigenvalue in between. Without convergence, it is the
        largest row sum of |X|ᵀ diag|α| |X|, an upper bound.
        """
        d = self._design.n_features
        live = np.arange(d)
        if d <= _SMALL:
            return float(np.abs(np.linalg.eigvalsh(self.matrix)).max(initial=0.0))
        start = np.random.default_rng(0).normal(size=d)
        values, vectors = self._lanczos(1, live, start, tol)
        if values.size == 0:
            size = abs(self._design.matrix)
            sums = np.asarray(
                size.T @ (np.abs(self._slope) * np.asarray(size.sum(axis=1, dtype=np.float64)).ravel())
            )
            return float(sums.max()) * (1.0 if self._diagonal else 0.5)
        residual = self.dot(vectors[:, 0]) - values[0] * vectors[:, 0]
        return float(abs(values[0]) + np.linalg.norm(residual))


def features_of_pairs(design: Design, diagonal: bool) -> np.ndarray:
    """Return the features that can interact: those non-zero together with another feature in some row.

    With `diagonal`, squares also count: all features with a non-zero entry are included.
    """
    stored = design.matrix != 0
    beside = np.asarray(stored.sum(axis=1)).ravel() > (0 if diagonal else 1)
    return np.flatnonzero(np.asarray(stored.T @ beside.astype(np.float64)).ravel() > 0)
