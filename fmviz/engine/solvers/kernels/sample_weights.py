"""Sample weights in kernels, compiled away where there are none."""

from __future__ import annotations

from ..._jit import jitable


@jitable
def unit_weight(weights, n):
    return 1.0


@jitable
def sample_weight(weights, n):
    return weights[n]
