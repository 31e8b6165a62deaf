"""Escape user text for Markdown."""

from __future__ import annotations

import re

# A colon before a blank and an underscore within a word need no escape.
_ACTIVE = re.compile(
    r"[\\`*{}\[\]<>#|~$@]|&(?=[#\w])|:(?=\S)|_(?![^\W_])|(?<![^\W_])_|(?<=www)\.|^[-+=]|(?<=^\d)[.)]|(?<=^\d\d)[.)]",
    re.IGNORECASE,
)
# Addresses, icons, emoji and arrows are detected after parsing, without backslashes.
_BROKEN = re.compile(
    r"(?=https?:|www\.|@)|(?<=:)(?=[^\s:]+:)|(?:(?<=\s[-<>~])|(?<=^[-<>~]))(?=[-=>]+(?:\s|$))", re.IGNORECASE
)
_WORD_JOINER = "\u2060"
_PAIRED = re.compile(
    r"[`$*~_].*[`$*~_]|[\\|]|\][\s]*[\[(:]|\[\^|:\S+[:\[]|<.*>|&[#\w]|https?:|www\.|@|(?:^|\s)[-<>~][-=>]+(?:\s|$)|^[-+=#>]|^\d+[.)]",
    re.IGNORECASE,
)


def plain(text: object) -> str:
    """Return Markdown that renders a text literally, in one line.

    Streamlit's Markdown also has HTML entities, formulas, colours, icons, links and addresses; each contains
    a character that a backslash escapes.
    """
    return _ACTIVE.sub(r"\\\g<0>", _BROKEN.sub(_WORD_JOINER, " ".join(str(text).split())))


def plain_label(text: str) -> str:
    """Return the label of a control, with a minimum of backslashes: screen readers read them aloud."""
    line = " ".join(text.split())
    return plain(line) if _PAIRED.search(line) else line
