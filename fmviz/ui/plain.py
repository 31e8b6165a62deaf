"""Words of other people in texts of ours: shown as they are, whatever they hold."""

from __future__ import annotations

import re

__all__ = ["plain"]

_ACTIVE = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:^=&\"'@/])")


def plain(text: str) -> str:
    """Return Markdown that shows a text as it is, in one line.

    Streamlit's Markdown knows HTML entities, formulas, colours, icons and links, too; each begins with a
    sign that a backslash turns into itself.
    """
    return _ACTIVE.sub(r"\\\1", " ".join(text.split()))
