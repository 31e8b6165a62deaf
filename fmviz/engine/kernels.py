r"""The kernels K(p, x) that related models are sums of, with their gradients in p.

- ANOVA of degree m ([A] Eq. 39): A^m(p, x) = Σ_{j1<…<jm} Π_t p_jt x_jt, by the recursion
  a_t ← a_t + p_j x_j a_{t−1} over the entries of x, in O(nnz(x)·m).
- All subsets ([A] Eq. 54): Π_j (1 + p_j x_j).
- Homogeneous polynomial ([B] Section 3): H^m(p, x) = ⟨p, x⟩^m.

Gradients run the recursion backwards over what the way forwards left behind, so that nothing is
subtracted or divided: they are as accurate where entries cancel or 1 + p_j x_j = 0.
"""

from __future__ import annotations

from math import comb, frexp, ldexp
from typing import Any

import numpy as np

from ._jit import cached_factory, jitable
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


@jitable
def once(x):
    """Return x."""
    return x


@jitable
def twice(x):
    """Return x²."""
    return x * x


@cached_factory()
def anova_slopes_of_rows(storage: Storage, power):
    """Return the kernel that adds Σ_n weight[n, s] power(∂A^m(p_s, x_n)/∂p_js) to G[j, s].

    `tables` has shape (longest row + 1, m, k): the a_0 … a_{m−1} before each entry; `back`, (m + 1, k).
    """
    entry, value = storage.row, storage.value

    def slopes(data, indices, indptr, P, weight, tables, back, G):
        degree = back.shape[0] - 1
        k = P.shape[1]
        slope = np.empty(k)
        for n in range(weight.shape[0]):
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
            back[degree] = 1.0
            for i in range(count - 1, -1, -1):
                j = entry(features, i)
                x = value(row, i)
                slope[:] = 0.0
                for t in range(1, degree + 1):
                    for s in range(k):
                        slope[s] += back[t, s] * tables[i, t - 1, s]
                        back[t - 1, s] += x * P[j, s] * back[t, s]
                for s in range(k):
                    G[j, s] += weight[n, s] * power(x * slope[s])

    return slopes


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
def subsets_slopes_of_rows(storage: Storage, power):
    """Return the kernel that adds Σ_n weight[n, s] power(∂K_all(p_s, x_n)/∂p_js) to G[j, s].

    `before` and `shifts` have the length of the longest row: mantissa and exponent of the product of all
    earlier factors.
    """
    entry, value = storage.row, storage.value

    def slopes(data, indices, indptr, P, weight, before, shifts, G):
        for n in range(weight.shape[0]):
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
                after = 1.0
                exponent = 0
                for i in range(count - 1, -1, -1):
                    j = entry(features, i)
                    x = value(row, i)
                    slope = x * ldexp(before[i] * after, int(shifts[i]) + exponent)
                    G[j, s] += weight[n, s] * power(slope)
                    after *= 1.0 + x * P[j, s]
                    size = abs(after)
                    if size > _SAFE or (size < 1.0 / _SAFE and size > 0.0):
                        after, shift = frexp(after)
                        exponent += shift

    return slopes


class ColumnKernel:
    """K(p_s, x_n) for all rows x_n of a design and all columns p_s of P at once.

    Attributes
    ----------
    degree : int or None
        The order of its interactions; None for all subsets.
    multilinear : bool
        Whether it is linear in every single p_j.
    """

    degree: int | None
    multilinear: bool = True

    def values(self, design: Design, P: np.ndarray) -> np.ndarray:
        """Return K(p_s, x_n), shape (N, k), for P of shape (d, k)."""
        raise NotImplementedError

    def gradient(self, design: Design, P: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return Σ_n slope[n, s] ∂K(p_s, x_n)/∂p_js, shape (d, k), for a slope of shape (N, k)."""
        raise NotImplementedError

    def squares(self, design: Design, P: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return Σ_n weight[n, s] (∂K(p_s, x_n)/∂p_js)², shape (d, k), for weights of shape (N, k)."""
        raise NotImplementedError

    def split(self, dummies: np.ndarray) -> dict[int, np.ndarray]:
        """Return what K of augmented data is in kernels of the data themselves ([B] Section 8).

        With n features more that are always 1 and their factors γ, `dummies` of shape (n, k), K of degree m
        is Σ_t weight_t K_t(p_s, x), K_t the same kernel of degree t. The weights, shape (k,), are returned by
        degree, K_0 = 1 included.
        """
        raise NotImplementedError


class Anova(ColumnKernel):
    """The ANOVA kernel of degree m ([A] Eq. 39).

    Parameters
    ----------
    degree : int
        m ≥ 1.
    """

    def __init__(self, degree: int) -> None:
        self.degree: int = degree

    def values(self, design: Design, P: np.ndarray) -> np.ndarray:
        """See `ColumnKernel.values`."""
        out = np.empty((design.n_samples, P.shape[1]))
        table = np.empty((self.degree + 1, P.shape[1]))
        anova_of_rows(design.storage)(*design.rows, np.ascontiguousarray(P), table, out)
        return out

    def gradient(self, design: Design, P: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """See `ColumnKernel.gradient`."""
        return self._slopes(design, P, slope, once)

    def squares(self, design: Design, P: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """See `ColumnKernel.squares`."""
        return self._slopes(design, P, weight, twice)

    def split(self, dummies: np.ndarray) -> dict[int, np.ndarray]:
        """See `ColumnKernel.split`; weight_t = A^{m−t}(γ, 1), by [B] Eq. 15 applied once for every dummy."""
        table = np.zeros((self.degree + 1, dummies.shape[1]))
        table[0] = 1.0
        for gamma in dummies:
            table[1:] += gamma * table[:-1]
        return {t: table[self.degree - t] for t in range(self.degree + 1)}

    def _slopes(self, design: Design, P: np.ndarray, weight: np.ndarray, power: Any) -> np.ndarray:
        G, k = np.zeros(P.shape), P.shape[1]
        anova_slopes_of_rows(design.storage, power)(
            *design.rows,
            np.ascontiguousarray(P),
            np.ascontiguousarray(weight),
            np.empty((design.longest_row + 1, self.degree, k)),
            np.empty((self.degree + 1, k)),
            G,
        )
        return G


class AllSubsets(ColumnKernel):
    """The product Π_j (1 + p_j x_j) ([A] Eq. 54)."""

    degree = None

    def values(self, design: Design, P: np.ndarray) -> np.ndarray:
        """See `ColumnKernel.values`."""
        out = np.empty((design.n_samples, P.shape[1]))
        subsets_of_rows(design.storage)(*design.rows, np.ascontiguousarray(P), out)
        return out

    def gradient(self, design: Design, P: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """See `ColumnKernel.gradient`."""
        return self._slopes(design, P, slope, once)

    def squares(self, design: Design, P: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """See `ColumnKernel.squares`."""
        return self._slopes(design, P, weight, twice)

    def _slopes(self, design: Design, P: np.ndarray, weight: np.ndarray, power: Any) -> np.ndarray:
        G, longest = np.zeros(P.shape), max(1, design.longest_row)
        subsets_slopes_of_rows(design.storage, power)(
            *design.rows,
            np.ascontiguousarray(P),
            np.ascontiguousarray(weight),
            np.empty(longest),
            np.empty(longest, dtype=np.int64),
            G,
        )
        return G


class Polynomial(ColumnKernel):
    """The homogeneous polynomial ⟨p, x⟩^m ([B] Section 3).

    Parameters
    ----------
    degree : int
        m ≥ 1.
    """

    def __init__(self, degree: int) -> None:
        self.degree: int = degree
        self.multilinear = degree == 1

    def values(self, design: Design, P: np.ndarray) -> np.ndarray:
        """See `ColumnKernel.values`."""
        return np.asarray(design.dot(P) ** self.degree)

    def gradient(self, design: Design, P: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """See `ColumnKernel.gradient`."""
        return design.transpose_dot(slope * self._outer(design, P))

    def squares(self, design: Design, P: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """See `ColumnKernel.squares`."""
        return np.asarray(design.power(2).T @ (weight * self._outer(design, P) ** 2))

    def split(self, dummies: np.ndarray) -> dict[int, np.ndarray]:
        """See `ColumnKernel.split`; (γ + ⟨p, x⟩)^m by the binomial theorem."""
        gamma = dummies.sum(axis=0)
        return {t: comb(self.degree, t) * gamma ** (self.degree - t) for t in range(self.degree + 1)}

    def _outer(self, design: Design, P: np.ndarray) -> np.ndarray:
        return np.asarray(self.degree * design.dot(P) ** (self.degree - 1))
