"""Words in CSV files that a spreadsheet would take for formulas."""

from __future__ import annotations

import re

__all__ = ["defused"]

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


def defused(cell: object) -> object:
    """Return a cell that a spreadsheet shows instead of executing it.

    A word that begins with =, +, -, @, a tab or a carriage return gets an apostrophe in front; numbers, also
    those that are written as words, stay as they are.
    """
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    return cell if _NUMBER.fullmatch(cell) else f"'{cell}"
