"""In-place proximal operators on all of P, for kernels that apply them after every step.

They work in place on the transposed factors M, shape (k, d), in which columns of P are contiguous. The work
array has shape (3, max(d, k)).
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from ..._jit import jitable
from .squared_norm import prox_by_filter
from .thresholds import soft


@jitable
def soften(M, strength, theta, work):
    """Apply [A] Eq. 8."""
    for s in range(M.shape[0]):
        for j in range(M.shape[1]):
            M[s, j] = soft(M[s, j], strength)


@jitable
def row_norms(M, norms):
    """Compute ‖p_j‖₂ for every feature j."""
    norms[:] = 0.0
    for s in range(M.shape[0]):
        for j in range(M.shape[1]):
            norms[j] += M[s, j] * M[s, j]
    for j in range(M.shape[1]):
        norms[j] = sqrt(norms[j])


@jitable
def set_norms(M, norms, new):
    """Rescale every row of P to a new norm; overwrites `norms`."""
    for j in range(M.shape[1]):
        norms[j] = new[j] / norms[j] if norms[j] > 0.0 else 0.0
    for s in range(M.shape[0]):
        for j in range(M.shape[1]):
            M[s, j] *= norms[j]


@jitable
def shrink_norms(M, strength, theta, work):
    """Apply [A] Eq. 6."""
    d = M.shape[1]
    norms, new = work[0, :d], work[1, :d]
    row_norms(M, norms)
    for j in range(d):
        new[j] = max(norms[j] - strength, 0.0)
    set_norms(M, norms, new)


@jitable
def shrink_groups(M, strength, theta, work):
    """Shrink the norm of every block of rows of P; theta has the blocks of the rows, and their weights."""
    numbers, weights = theta
    factors = work[0, : weights.size]
    factors[:] = 0.0
    for s in range(M.shape[0]):
        for j in range(M.shape[1]):
            factors[numbers[j]] += M[s, j] * M[s, j]
    for g in range(weights.size):
        size = sqrt(factors[g])
        factors[g] = max(size - strength * weights[g], 0.0) / size if size > 0.0 else 0.0
    for s in range(M.shape[0]):
        for j in range(M.shape[1]):
            M[s, j] *= factors[numbers[j]]


def of_columns(prox: Callable[..., None]) -> Callable[..., None]:
    """Return the operator that applies ``prox(p, strength, work, out)`` to every column of P."""

    @jitable
    def shrink(M, strength, theta, work):
        for s in range(M.shape[0]):
            prox(M[s], strength, work[0, : M.shape[1]], M[s])

    return shrink


def of_rows(prox: Callable[..., None]) -> Callable[..., None]:
    """Return the operator that applies `prox` to every row of P, a column of M."""

    @jitable
    def shrink(M, strength, theta, work):
        k = M.shape[0]
        p = work[2, :k]
        for j in range(M.shape[1]):
            for s in range(k):
                p[s] = M[s, j]
            prox(p, strength, work[0, :k], p)
            for s in range(k):
                M[s, j] = p[s]

    return shrink


def of_norms(prox: Callable[..., None]) -> Callable[..., None]:
    """Return the operator that applies `prox` to the norms of the rows of P ([A] Theorem 8)."""

    @jitable
    def shrink(M, strength, theta, work):
        d = M.shape[1]
        norms, new = work[1, :d], work[2, :d]
        row_norms(M, norms)
        if strength > 0.0:
            prox(norms, strength, work[0, :d], new)
            set_norms(M, norms, new)

    return shrink


@jitable
def pairs_of_vector(p, strength, work, out):
    """Minimize ½‖q − p‖² + strength·½(‖q‖₁² − ‖q‖₂²); see `omega_ti.prox_pairs`."""
    if strength < 1.0:
        prox_by_filter(p, 0.5 * strength / (1.0 - strength), work, out)
        for i in range(p.size):
            out[i] /= 1.0 - strength
    else:
        best = 0
        for i in range(p.size):
            if abs(p[i]) > abs(p[best]):
                best = i
        for i in range(p.size):
            out[i] = p[i] if i == best else 0.0


shrink_squared_columns, shrink_squared_rows, shrink_squared_norms = (
    make(prox_by_filter) for make in (of_columns, of_rows, of_norms)
)
shrink_pairs, shrink_norm_pairs = of_columns(pairs_of_vector), of_norms(pairs_of_vector)
