"""Numbers as print sets them."""

from __future__ import annotations

__all__ = ["with_minus"]


def with_minus(number: str) -> str:
    """Return a number with minus signs in place of its hyphens."""
    return number.replace("-", "−")
