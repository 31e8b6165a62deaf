r"""The kernels K(p, x) that related models are sums of, with their gradients in p.

- ANOVA of degree m ([A] Eq. 39): A^m(p, x) = Σ_{j1<…<jm} Π_t p_jt x_jt, by the recursion
  a_t ← a_t + p_j x_j a_{t−1} over the entries of x, in O(nnz(x)·m).
- All subsets ([A] Eq. 54): Π_j (1 + p_j x_j).
- Homogeneous polynomial ([B] Section 3): H^m(p, x) = ⟨p, x⟩^m.

Gradients run the recursion backwards over what the way forwards left behind, so that nothing is
subtracted or divided: they are as accurate where entries cancel or 1 + p_j x_j = 0.
"""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np

from ._jit import cached_factory
from .design import Design, Storage

# Mantissas of products are scaled back before their exponents could leave the range of doubles.
_SAFE = 2.0**500


@cached_factory()
def anova_of_rows(storage: Storage):
    """Return the kernel that writes A^m(p_s, x_n) to out[n, s]; `table` has shape (m + 1, k)."""
    entry, value = storage.row, storage.value

    def anova(data, indices, indptr, P, table, out):
        degree = table.shape[0] - 1
        k = P.shape[1]
        for n in range(out.shape[0]):
            row = data[indptr[n] : indptr[n + 1]]
            features = indices[indptr[n] : indptr[n + 1]]
            table[:] = 0.0
            table[0] = 1.0
            for i in range(indptr[n + 1] - indptr[n]):
                j = entry(features, i)
                x = value(row, i)
                for t in range(min(degree, i + 1), 0, -1):
                    for s in range(k):
                        table[t, s] += x * P[j, s] * table[t - 1, s]
            out[n] = table[degree]

    return anova


@cached_factory()
def anova_gradient_of_rows(storage: Storage):
    """Return the kernel that adds Σ_n slope[n, s] ∂A^m(p_s, x_n)/∂p_js to G[j, s].

    `tables` has shape (longest row + 1, m, k): the a_0 … a_{m−1} before each entry; `back`, (m + 1, k).
    """
    entry, value = storage.row, storage.value

    def gradient(data, indices, indptr, P, slope, tables, back, G):
        degree = back.shape[0] - 1
        k = P.shape[1]
        for n in range(slope.shape[0]):
            row = data[indptr[n] : indptr[n + 1]]
            features = indices[indptr[n] : indptr[n + 1]]
            count = indptr[n + 1] - indptr[n]
            tables[0] = 0.0
            tables[0, 0] = 1.0
            for i in range(count):
                j = entry(features, i)
                x = value(row, i)
                tables[i + 1, 0] = 1.0
                for t in range(1, degree):
                    for s in range(k):
                        tables[i + 1, t, s] = tables[i, t, s] + x * P[j, s] * tables[i, t - 1, s]
            back[:] = 0.0
            back[degree] = slope[n]
            for i in range(count - 1, -1, -1):
                j = entry(features, i)
                x = value(row, i)
                for t in range(1, degree + 1):
                    for s in range(k):
                        G[j, s] += x * back[t, s] * tables[i, t - 1, s]
                        back[t - 1, s] += x * P[j, s] * back[t, s]

    return gradient


@cached_factory()
def subsets_of_rows(storage: Storage):
    """Return the kernel that writes Π_j (1 + p_js x_nj) to out[n, s], infinite only if that is too large."""
    entry, value = storage.row, storage.value

    def subsets(data, indices, indptr, P, out):
        for n in range(out.shape[0]):
            row = data[indptr[n] : indptr[n + 1]]
            features = indices[indptr[n] : indptr[n + 1]]
            for s in range(P.shape[1]):
                product = 1.0
                exponent = 0
                for i in range(indptr[n + 1] - indptr[n]):
                    product *= 1.0 + value(row, i) * P[entry(features, i), s]
                    size = abs(product)
                    if size > _SAFE or (size < 1.0 / _SAFE and size > 0.0):
                        product, shift = frexp(product)
                        exponent += shift
                out[n, s] = ldexp(product, exponent)

    return subsets


@cached_factory()
def subsets_gradient_of_rows(storage: Storage):
    """Return the kernel that adds Σ_n slope[n, s] ∂K_all(p_s, x_n)/∂p_js to G[j, s].

    `before` and `shifts` have the length of the longest row: mantissa and exponent of the product of all
    earlier factors.
    """
    entry, value = storage.row, storage.value

    def gradient(data, indices, indptr, P, slope, before, shifts, G):
        for n in range(slope.shape[0]):
            row = data[indptr[n] : indptr[n + 1]]
            features = indices[indptr[n] : indptr[n + 1]]
            count = indptr[n + 1] - indptr[n]
            for s in range(P.shape[1]):
                product = 1.0
                exponent = 0
                for i in range(count):
                    before[i] = product
                    shifts[i] = exponent
                    product *= 1.0 + value(row, i) * P[entry(features, i), s]
                    size = abs(product)
                    if size > _SAFE or (size < 1.0 / _SAFE and size > 0.0):
                        product, shift = frexp(product)
                        exponent += shift
                after = slope[n, s]
                exponent = 0
                for i in range(count - 1, -1, -1):
                    j = entry(features, i)
                    x = value(row, i)
                    G[j, s] += x * ldexp(before[i] * after, shifts[i] + exponent)
                    after *= 1.0 + x * P[j, s]
                    size = abs(after)
                    if size > _SAFE or (size < 1.0 / _SAFE and size > 0.0):
                        after, shift = frexp(after)
                        exponent += shift

    return gradient


class Anova:
    """A^m for all rows of a design and all columns of P at once.

    Parameters
    ----------
    degree : int
        m ≥ 1.
    """

    def __init__(self, degree: int) -> None:
        self.degree = degree

    def values(self, design: Design, P: np.ndarray) -> np.ndarray:
        """Return A^m(p_s, x_n), shape (N, k), for P of shape (d, k)."""
        out = np.empty((design.n_samples, P.shape[1]))
        P = np.ascontiguousarray(P)
        anova_of_rows(design.storage)(*design.rows, P, np.empty((self.degree + 1, P.shape[1])), out)
        return out

    def gradient(self, design: Design, P: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return Σ_n slope[n, s] ∂A^m(p_s, x_n)/∂p_js, shape (d, k), for a slope of shape (N, k)."""
        G = np.zeros(P.shape)
        k = P.shape[1]
        anova_gradient_of_rows(design.storage)(
            *design.rows,
            np.ascontiguousarray(P),
            np.ascontiguousarray(slope),
            np.empty((design.longest_row + 1, self.degree, k)),
            np.empty((self.degree + 1, k)),
            G,
        )
        return G


class AllSubsets:
    """Π_j (1 + p_j x_j) for all rows of a design and all columns of P at once."""

    def values(self, design: Design, P: np.ndarray) -> np.ndarray:
        """Return K_all(p_s, x_n), shape (N, k), for P of shape (d, k)."""
        out = np.empty((design.n_samples, P.shape[1]))
        subsets_of_rows(design.storage)(*design.rows, np.ascontiguousarray(P), out)
        return out

    def gradient(self, design: Design, P: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return Σ_n slope[n, s] ∂K_all(p_s, x_n)/∂p_js, shape (d, k), for a slope of shape (N, k)."""
        G = np.zeros(P.shape)
        longest = max(1, design.longest_row)
        subsets_gradient_of_rows(design.storage)(
            *design.rows,
            np.ascontiguousarray(P),
            np.ascontiguousarray(slope),
            np.empty(longest),
            np.empty(longest, dtype=np.int64),
            G,
        )
        return G


class Polynomial:
    """H^m(p, x) = ⟨p, x⟩^m for all rows of a design and all columns of P at once.

    Parameters
    ----------
    degree : int
        m ≥ 1.
    """

    def __init__(self, degree: int) -> None:
        self.degree = degree

    def values(self, design: Design, P: np.ndarray) -> np.ndarray:
        """Return ⟨p_s, x_n⟩^m, shape (N, k), for P of shape (d, k)."""
        return np.asarray(design.dot(P) ** self.degree)

    def gradient(self, design: Design, P: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return Σ_n slope[n, s] ∂H^m(p_s, x_n)/∂p_js, shape (d, k), for a slope of shape (N, k)."""
        return design.transpose_dot(slope * (self.degree * design.dot(P) ** (self.degree - 1)))
