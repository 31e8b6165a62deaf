"""Several sweeps in one call of a kernel, so that threads seldom wait for the interpreter's lock.

Each kernel of sweeps has the loop in its own source, since a sweep that a loop calls would be compiled twice.
It takes, before anything else, how many sweeps it makes at `most`; `enough`, the relative change of P that
ends them earlier; all of P as its solver keeps it, flat; and `outcomes`, whose row s takes P after sweep s,
with no rows where nobody needs them. It returns how many sweeps it made, and the largest and the last change
relative to the largest entry of P.
"""

from __future__ import annotations

import numpy as np

from ..._exponential import from_bits, size_bits
from ..._jit import jitable


@jitable
def end_sweep(outcomes, made, P, moved):
    """Write P to the outcomes as that of sweep `made`, if there is room; return its relative change.

    `P` is all of it, flat, and the sweep changed an entry by `moved` at most.
    """
    if made < outcomes.shape[0]:
        for i in range(P.size):
            outcomes[made, i] = P[i]
    if not np.isfinite(moved):
        return np.inf
    bits = 0
    for i in range(P.size):
        bits = max(bits, size_bits(P[i]))
    return moved / max(from_bits(bits), moved) if moved > 0.0 else 0.0
