"""Escapes text of users, such as names of columns, in charts and in files for spreadsheets."""

from __future__ import annotations

import html
import re

__all__ = ["defused", "literal", "spoken"]

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")


def literal(text: str) -> str:
    """Return text that Plotly shows as it is; it takes tags such as <b> and <a> for its own."""
    return html.escape(text, quote=False)


def spoken(text: object) -> object:
    """Return the words behind what `literal` wrote; anything but a text as it is."""
    return html.unescape(text) if isinstance(text, str) else text


def defused(cell: object) -> object:
    """Return a cell that a spreadsheet shows instead of executing it.

    A word that begins with =, +, -, @, a tab or a carriage return gets an apostrophe in front; numbers, also
    those that are written as words, stay as they are.
    """
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    return cell if _NUMBER.fullmatch(cell) else f"'{cell}"
