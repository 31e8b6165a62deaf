"""Streamlit collects garbage after every run of a script: here it learns not to walk through all modules."""

from __future__ import annotations

import gc
import sys

__all__ = ["spare_modules"]

_MANY = 20
_spared = 0


def spare_modules() -> None:
    """Take what modules hold, which stays as long as the process, out of what is searched for garbage.

    The search goes through some 200,000 objects otherwise, which takes longer than most fragments. It is done
    anew whenever many modules have been imported since.
    """
    global _spared
    if len(sys.modules) >= _spared + _MANY:
        _spared = len(sys.modules)
        gc.collect()
        gc.freeze()
