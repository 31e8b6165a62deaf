"""Paths of the run store and of the folder of uploads."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def default_path() -> Path:
    """Return the path of the run store: ``FMVIZ_STORE``, or a file in the user's data directory."""
    named = os.environ.get("FMVIZ_STORE")
    usual = Path(platformdirs.user_data_dir("fmviz", appauthor=False)) / "runs.sqlite"
    return Path(named).expanduser() if named else usual


def data_folder() -> Path:
    """Return the folder of uploads, ``runs-data`` beside ``runs.sqlite``; it may not exist yet."""
    store = default_path()
    return store.with_name(f"{store.stem}-data")
