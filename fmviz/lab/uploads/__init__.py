"""Uploaded data sets."""

from __future__ import annotations

import re

_NAME = re.compile(r"own_[0-9a-f]{20}")


def is_upload(name: object) -> bool:
    """Return whether a name has the form of an uploaded data set, stored here or not."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
