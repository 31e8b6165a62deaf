"""What was compiled, and what more often than it should be."""

from __future__ import annotations

from collections import Counter

from numba import float32

from fmviz.engine._jit import KERNELS


def signatures() -> dict[str, int]:
    """Return how many signatures each kernel was compiled for."""
    return {name: len(kernel.signatures) for name, kernel in KERNELS.items()}


def recompiled() -> list[str]:
    """Return the kernels that were compiled more than once for X, their first argument, in one precision."""
    found = []
    for name, kernel in KERNELS.items():
        single = Counter(getattr(s[0], "dtype", None) == float32 for s in kernel.signatures)
        if max(single.values(), default=0) > 1:
            found.append(name)
    return found
