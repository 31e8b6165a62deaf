"""Escape user text for Markdown."""

from __future__ import annotations

import re

# A colon before a blank and an underscore within a word are what they are.
_ACTIVE = re.compile(
    r"[\\`*{}\[\]<>#|~$@]|&(?=[#\w])|:(?=\S)|_(?![^\W_])|(?<![^\W_])_|(?<=www)\.|^[-+=]|(?<=^\d)[.)]|(?<=^\d\d)[.)]",
    re.IGNORECASE,
)
# Addresses, icons, emoji and arrows are looked for once more in what has been read, without backslashes.
_BROKEN = re.compile(
    r"(?=https?:|www\.|@)|(?<=:)(?=[^\s:]+:)|(?:(?<=\s[-<>~])|(?<=^[-<>~]))(?=[-=>]+(?:\s|$))", re.IGNORECASE
)
_WORD_JOINER = "\u2060"
_PAIRED = re.compile(
    r"[`$*~_].*[`$*~_]|[\\|]|\][\s]*[\[(:]|\[\^|:\S+[:\[]|<.*>|&[#\w]|https?:|www\.|@|(?:^|\s)[-<>~][-=>]+(?:\s|$)|^[-+=#>]|^\d+[.)]",
    re.IGNORECASE,
)


def plain(text: object) -> str:
    """Return Markdown that shows a text as it is, in one line.

    Streamlit's Markdown knows HTML entities, formulas, colours, icons, links and addresses, too; each holds a
    sign that a backslash turns into itself.
    """
    return _ACTIVE.sub(r"\\\g<0>", _BROKEN.sub(_WORD_JOINER, " ".join(str(text).split())))


def plain_label(text: str) -> str:
    """Return the label of a control, which is also read aloud: with backslashes only where it needs them."""
    line = " ".join(text.split())
    return plain(line) if _PAIRED.search(line) else line
