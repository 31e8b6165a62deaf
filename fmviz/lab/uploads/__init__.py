"""Uploads: the names of their data sets, the files that are kept, and what becomes of them."""

from __future__ import annotations

import re

__all__ = ["is_upload"]

_NAME = re.compile(r"own_[0-9a-f]{20}")


def is_upload(name: object) -> bool:
    """Return whether a name is that of an uploaded data set, which may or may not be on this computer."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
