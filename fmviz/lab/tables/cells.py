"""Values as text for the cells of a table."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["cell"]


def cell(value: Any) -> str:
    """Return a value as a table shows it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
