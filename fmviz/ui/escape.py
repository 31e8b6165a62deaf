"""Escapes user text for Markdown."""

from __future__ import annotations

import re

__all__ = ["plain"]

# A colon before a blank and an underscore within a word are what they are.
_ACTIVE = re.compile(
    r"[\\`*{}\[\]<>#|~$@]|&(?=[#\w])|:(?=\S)|_(?![^\W_])|(?<![^\W_])_|(?<=www)\.|^[-+=]|(?<=^\d)[.)]|(?<=^\d\d)[.)]",
    re.IGNORECASE,
)


def plain(text: object) -> str:
    """Return Markdown that shows a text as it is, in one line.

    Streamlit's Markdown knows HTML entities, formulas, colours, icons, links and addresses, too; each holds a
    sign that a backslash turns into itself.
    """
    return _ACTIVE.sub(r"\\\g<0>", " ".join(str(text).split()))
