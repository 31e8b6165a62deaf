"""Escapes user text for Markdown."""

from __future__ import annotations

import re

__all__ = ["plain"]

# A colon before a blank and an underscore within a word are what they are.
_ACTIVE = re.compile(
    r"[\\`*{}\[\]<>#|~$@]|&(?=[#\w])|:(?=\S)|_(?![^\W_])|(?<![^\W_])_|(?<=www)\.|^[-+=]|(?<=^\d)[.)]|(?<=^\d\d)[.)]",
    re.IGNORECASE,
)
# Addresses are looked for once more in what has been read, without backslashes, wherever a word begins.
_ADDRESS = re.compile(r"(?=https?:|www\.|@)", re.IGNORECASE)
_WORD_JOINER = "\u2060"


def plain(text: object) -> str:
    """Return Markdown that shows a text as it is, in one line.

    Streamlit's Markdown knows HTML entities, formulas, colours, icons, links and addresses, too; each holds a
    sign that a backslash turns into itself.
    """
    line = _ADDRESS.sub(_WORD_JOINER, " ".join(str(text).split()))
    return _ACTIVE.sub(r"\\\g<0>", line)
