"""Parts of all kernels of sweeps: sample weights, and the end of one of several sweeps in a call.

With several sweeps a call, threads seldom wait for the interpreter's lock. Each kernel of sweeps has the loop
in its own source, since a sweep that a loop calls would be compiled twice. Its first arguments are the
largest number of sweeps, `most`; `enough`, the relative change of P that ends them earlier; all of P in its
solver's layout, flat; and `outcomes`, whose row s takes P after sweep s, without rows where they are not
needed. It returns the number of sweeps, and the largest and the last change relative to the largest entry of
P.
"""

from __future__ import annotations

import numpy as np

from ..._exponential import from_bits, size_bits
from ..._jit import jitable


@jitable
def end_sweep(outcomes, sweep, P, moved):
    """Write P to the outcomes as that of number `sweep`, if there is room; return its relative change.

    `P` is flat, and the sweep changed no entry by more than `moved`.
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
