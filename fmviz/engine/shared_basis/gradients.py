r"""The gradient of the risk in infinitely many basis vectors, as a symmetric matrix for every output.

With the slopes D of the risk in the predictions, shape (N, m), the risk changes by Σ_c u_c·hᵀΓ_c h along
u·σ(h, x); the paper's g_h is therefore −(hᵀΓ_1 h, …, hᵀΓ_m h), with

    Γ_c = Xᵀ diag(D_:c) X for σ(h, x) = ⟨h, x⟩², and half of it with a zero diagonal if σ is the ANOVA kernel
    of degree 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ..design import Design
from ..linalg.lowrank import PairGradient, features_of_pairs, pair_gradient

# The maximum number of entries for which the m matrices are formed, which makes products independent of N.
_ENTRIES = 4_000_000
_LANCZOS, _TINY = 1e-6, 1e-300


def activations(
    design: Design, H: np.ndarray, diagonal: bool, products: np.ndarray | None = None
) -> np.ndarray:
    """Return σ(h_r, x_n), shape (N, k), for the columns of H, shape (d, k); `products` are XH, if known."""
    values = np.square(design.dot(H) if products is None else products)
    return values if diagonal else 0.5 * (values - np.asarray(design.power(2) @ np.square(H)))


def unit(H: np.ndarray) -> np.ndarray:
    """Return H, shape (d,) or (d, s), with columns of norm 1; zero columns are unchanged."""
    return np.asarray(H / np.maximum(np.linalg.norm(H, axis=0 if H.ndim == 2 else None), _TINY))


DUAL_ORDER: Mapping[Any, float] = {1.0: np.inf, 2.0: 2.0, np.inf: 1.0}
"""The exponent p with 1/p + 1/q = 1, by q: the norm of g_h dual to the ℓq norm of rows."""


def dual_vectors(G: np.ndarray, p: float) -> np.ndarray:
    """Return, for each row g of G, the a with ‖a‖_q ≤ 1 and ⟨a, g⟩ = ‖g‖_p, in the shape of G."""
    signs = np.where(G < 0.0, -1.0, 1.0)
    if p == 1.0:
        return signs
    if p == 2.0:
        return np.asarray(G / np.maximum(np.linalg.norm(G, axis=1, keepdims=True), _TINY))
    largest = np.abs(G).argmax(axis=1)[:, None]
    return np.where(np.arange(G.shape[1]) == largest, signs, 0.0)


class BasisGradient:
    """The matrices Γ_1, …, Γ_m, formed if small, otherwise as operators on vectors.

    Parameters
    ----------
    design : Design
        The features X, shape (N, d).
    slopes : (N, m) ndarray
        The slopes D.
    diagonal : bool
        Whether σ includes the squares of features.
    """

    def __init__(self, design: Design, slopes: np.ndarray, diagonal: bool) -> None:
        self.design, self.slopes, self.diagonal = design, slopes, diagonal
        self.d, self.m = design.n_features, slopes.shape[1]
        self.small = self.m * self.d**2 <= _ENTRIES

    def each(self) -> Iterator[np.ndarray]:
        """Yield Γ_1, …, Γ_m, each of shape (d, d)."""
        return (pair_gradient(self.design, slope, self.diagonal) for slope in self.slopes.T)

    @cached_property
    def matrices(self) -> np.ndarray:
        """All Γ_c, shape (m, d, d)."""
        return np.stack([*self.each()])

    def values(self, H: np.ndarray) -> np.ndarray:
        """Return h_rᵀΓ_c h_r for the columns of H, shape (d, s): shape (s, m)."""
        if not self.small:
            return activations(self.design, H, self.diagonal).T @ self.slopes
        return np.einsum("ds,cds->sc", H, self.matrices @ H)

    def norms(self, H: np.ndarray, p: float) -> np.ndarray:
        """Return ‖g_h‖_p for the columns of H, shape (s,)."""
        return np.asarray(np.linalg.norm(self.values(H), ord=p, axis=1))

    def images(self, H: np.ndarray, A: np.ndarray, products: np.ndarray | None = None) -> np.ndarray:
        """Return Σ_c a_rc Γ_c h_r for the columns h_r of H and the rows of A, shape (s, m): shape (d, s).

        `products` are XH, if known.
        """
        weights = self.slopes @ A.T
        image = self.design.transpose_dot((self.design.dot(H) if products is None else products) * weights)
        return image if self.diagonal else 0.5 * (image - self.design.transpose_dot(weights, 2) * H)

    @cached_property
    def _live(self) -> np.ndarray:
        return features_of_pairs(self.design, self.diagonal)

    def leading(self, A: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return eigenvectors of Σ_c a_rc Γ_c of largest |eigenvalue| for the rows of A, shape (s, m).

        Shape (s, d, count), at most d of them, largest first; by Lanczos iterations for many features.
        """
        if self.small:
            values, vectors = np.linalg.eigh(np.tensordot(A, self.matrices, axes=1))
            order = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :count]
            return np.take_along_axis(vectors, order[:, None, :], axis=2)
        directions = np.zeros((len(A), self.d, count))
        for r, a in enumerate(A):
            operator = PairGradient(self.design, self.slopes @ a, self.diagonal)
            _, vectors = operator.leading(count, self._live, rng.normal(size=self.d), _LANCZOS)
            directions[r, :, : vectors.shape[1]] = vectors
        return directions
