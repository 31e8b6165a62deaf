"""Several sweeps in one call, so that threads seldom wait for each other at the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._exponential import from_bits, size_bits
from ..._jit import jitable
from .extrapolation import note


def repeated(sweep: Callable[..., float]) -> Callable[..., Any]:
    """Return the plain function of a kernel that makes a sweep again and again.

    The sweep takes any arguments and returns the largest change of an entry of P. The kernel takes how many
    sweeps it makes at `most`; `enough`, the relative change that ends them; P as its solver keeps it, flat;
    the `Iterates` that it notes after every sweep, with w and the bias, and how many there are, a `count`
    that ends the sweeps where there is no room for more; then what the sweep takes. It returns how many
    sweeps it made, the largest and the last change relative to the largest entry of P, and the count.
    """
    once = jitable(sweep)

    def sweeps(most, enough, P, iterates, count, w, bias, *args):
        made = 0
        largest = 0.0
        last = 0.0
        going = made < most
        while going:
            moved = once(*args)
            made += 1
            last = 0.0
            if not np.isfinite(moved):
                last = np.inf
            elif moved > 0.0:
                bits = 0
                for i in range(P.size):
                    bits = max(bits, size_bits(P[i]))
                last = moved / max(from_bits(bits), moved)
            largest = max(largest, last)
            count = note(iterates, count, P, w, bias)
            full = count > 0 and count == iterates.noted.shape[0]
            going = made < most and last > enough and not full
        return made, largest, last, count

    # What is being compiled is told by the name of its factory.
    sweeps.__qualname__ = sweep.__qualname__
    return sweeps
