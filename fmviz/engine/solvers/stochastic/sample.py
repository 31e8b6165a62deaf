"""Prediction and gradient step for one sample, whose rows of P are gathered in a small buffer."""

from __future__ import annotations

from ..._jit import jitable

# A run whose gradients exceed this counts as diverged: larger squares would not be finite.
BEYOND = 1e140


@jitable
def pair_term(R, xs, count, A):
    """Return ½ Σ_s ((Σ_i x_i R_is)² − Σ_i x_i² R_is²) ([A] Eq. 4) and write Σ_i x_i R_is into A."""
    rank = A.size
    A[:] = 0.0
    squares = 0.0
    for i in range(count):
        x = xs[i]
        for s in range(rank):
            term = x * R[i, s]
            A[s] += term
            squares += term * term
    total = 0.0
    for s in range(rank):
        total += A[s] * A[s]
    return 0.5 * (total - squares)


@jitable
def descend(R, xs, count, A, keep, slope):
    """Replace R by keep·R − slope·∇f, and return the sum of sizes: not below `BEYOND` once anything diverges.

    ∂f/∂p_js = x_j (Σ_i x_i p_is − x_j p_js) ([A] Algorithm 5, line 8).
    """
    size = 0.0
    for i in range(count):
        x = xs[i]
        for s in range(A.size):
            R[i, s] = keep * R[i, s] - slope * x * (A[s] - x * R[i, s])
            size += abs(R[i, s])
    return size


@jitable
def rescale(w, factor):
    """Multiply w in place and return the remaining scale, 1."""
    for j in range(w.size):
        w[j] *= factor
    return 1.0
