"""Pairwise products by rows of a large sparse X, without N × k arrays: each row is read once."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._jit import cached_factory
from ..design import Design, Storage, line


@cached_factory()
def pairs_of_rows(storage: Storage):
    """Return the kernel that adds Σ_{i<j} ⟨p_i, p_j⟩ x_ni x_nj to f[n]."""
    entry, value = storage.row, storage.value

    def pairs(data, indices, indptr, P, f):
        d, k = P.shape
        live = np.zeros(d, np.bool_)
        for j in range(d):
            for s in range(k):
                live[j] |= P[j, s] != 0.0
        sums = np.empty(k)
        for n in range(f.size):
            row, features, count = line(data, indices, indptr, n)
            sums[:] = 0.0
            alone = total = 0.0
            for i in range(count):
                j = entry(features, i)
                if live[j]:
                    x = value(row, i)
                    for s in range(k):
                        z = x * P[j, s]
                        sums[s] += z
                        alone += z * z
            for s in range(k):
                total += sums[s] * sums[s]
            f[n] += 0.5 * (total - alone)

    return pairs


@cached_factory()
def pair_slopes_of_rows(storage: Storage, power):
    """Return the kernel that adds Σ_n weight[n] power(∂f(x_n)/∂p_js) to G[j, s]."""
    entry, value = storage.row, storage.value

    def slopes(data, indices, indptr, P, weight, G):
        k = P.shape[1]
        sums = np.empty(k)
        for n in range(weight.size):
            row, features, count = line(data, indices, indptr, n)
            sums[:] = 0.0
            for i in range(count):
                j = entry(features, i)
                x = value(row, i)
                for s in range(k):
                    sums[s] += x * P[j, s]
            for i in range(count):
                j = entry(features, i)
                x = value(row, i)
                for s in range(k):
                    G[j, s] += weight[n] * power(x * (sums[s] - x * P[j, s]))

    return slopes


def pair_slopes(design: Design, P: np.ndarray, weight: np.ndarray, power: Any) -> np.ndarray:
    """Return Σ_n weight_n power(∂f(x_n)/∂p_js), shape (d, k)."""
    G = np.zeros(P.shape)
    kernel = pair_slopes_of_rows(design.storage, power)
    kernel(*design.rows, np.ascontiguousarray(P), np.ascontiguousarray(weight), G)
    return G
