"""The run store: all runs in one SQLite file."""

from __future__ import annotations

from fmviz.lab.files import default_path
from fmviz.lab.store.database import StoreError
from fmviz.lab.store.runs import AtWorkError, RunStore, new_id, store
from fmviz.lab.store.stored_run import (
    BROKEN,
    INTERRUPTED,
    PAUSED,
    RUNNING,
    Growth,
    StoredRun,
)

__all__ = [
    "BROKEN",
    "INTERRUPTED",
    "PAUSED",
    "RUNNING",
    "AtWorkError",
    "Growth",
    "RunStore",
    "StoreError",
    "StoredRun",
    "default_path",
    "new_id",
    "store",
]
