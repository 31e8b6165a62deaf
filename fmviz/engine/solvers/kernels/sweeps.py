"""Common parts of all kernels of sweeps: sample weights, and the end of a sweep.

Several sweeps per call reduce waiting for the interpreter lock. Each kernel has the loop in its own source,
since a sweep called from a loop would be compiled twice. Its first arguments are the maximum number of
sweeps, `most`; `enough`, the relative change of P at which they end; P in the layout of the solver, flat; and
`outcomes`, whose row s receives P after sweep s, without rows if not needed. It returns the number of sweeps,
and the largest and the last change relative to the largest entry of P.
"""

from __future__ import annotations

import numpy as np

from ..._exponential import from_bits, size_bits
from ..._jit import jitable


@jitable
def end_sweep(outcomes, sweep, P, moved):
    """Write P to row `sweep` of the outcomes, if it exists; return the relative change.

    `P` is flat, and the largest change of an entry in the sweep is `moved`.
    """
    if sweep < outcomes.shape[0]:
        for i in range(P.size):
            outcomes[sweep, i] = P[i]
    if not np.isfinite(moved):
        return np.inf
    bits = 0
    for i in range(P.size):
        bits = max(bits, size_bits(P[i]))
    return moved / max(from_bits(bits), moved) if moved > 0.0 else 0.0


@jitable
def unit_weight(weights, n):
    return 1.0


@jitable
def sample_weight(weights, n):
    return weights[n]
