"""What was compiled."""

from __future__ import annotations

from fmviz.engine._jit import KERNELS


def signatures() -> dict[str, int]:
    """Return how many signatures each kernel was compiled for."""
    return {name: len(kernel.signatures) for name, kernel in KERNELS.items()}


def recompiled(since: dict[str, int]) -> list[str]:
    """Return the kernels that were compiled more than once since what `signatures` told then."""
    return [name for name, count in signatures().items() if count - since.get(name, 0) > 1]
