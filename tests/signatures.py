"""What was compiled."""

from __future__ import annotations

from fmviz.engine._jit import KERNELS


def signatures() -> dict[str, int]:
    """Return how many signatures each kernel was compiled for."""
    return {name: len(kernel.signatures) for name, kernel in KERNELS.items()}
