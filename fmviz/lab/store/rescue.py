"""Copy the run store to another file: a backup, or what can still be read of a damaged one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from fmviz.engine.arrays import UNREADABLE
from fmviz.engine.checkpoint import Checkpoint
from fmviz.lab.store.database import StoreError, insert
from fmviz.lab.store.packing import unpack_parameters, unpack_records
from fmviz.lab.store.runs import RunStore
from fmviz.lab.store.stored_run import BROKEN

# The tables of the parts of a run: the column of their data, and what reads it.
_PARTS: dict[str, tuple[str, Callable[[bytes], Any]]] = {
    "traces": ("records", unpack_records),
    "parameters": ("data", unpack_parameters),
    "checkpoints": ("data", Checkpoint.from_bytes),
}


def backup(store: RunStore, path: Path) -> int:
    """Write a copy of a store to a new file, by SQLite's own backup; return its size in bytes.

    Raises
    ------
    ValueError
        If the file exists.
    StoreError
        If the store cannot be read.
    """
    _create(path)
    with store.database.write() as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    return path.stat().st_size


def damages(store: RunStore) -> dict[str, list[str]]:
    """Read every run of a store with its trace, parameters and checkpoint; return what is damaged, by id."""
    return {run: damaged for run in store.ids() if (damaged := _read(store, run)[1])}


def salvage(store: RunStore, path: Path) -> tuple[int, dict[str, list[str]]]:
    """Save the runs of a damaged store to a new one.

    Returns
    -------
    n_saved : int
        The number of runs that were saved.
    damaged : dict of str to list of str
        What was not, by the id of its run: its record, and with it all of it, or its trace, parameters or
        checkpoint.

    Raises
    ------
    ValueError
        If the file exists.
    StoreError
        If no row of the store can be read, or the new file cannot be written.
    """
    _create(path)
    new, n_saved, damaged = RunStore(path), 0, {}
    with closing(new), new.database.write() as connection:
        for run in store.ids():
            rows, unreadable = _read(store, run)
            for table, values in rows:
                insert(connection, table, **values)
            n_saved += bool(rows)
            if unreadable:
                damaged[run] = unreadable
        for table in ("sweeps", "results"):
            for row in store.database.undamaged(f"SELECT * FROM {table}"):
                insert(connection, table, **dict(row))
    return n_saved, damaged


def _read(store: RunStore, run: str) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
    """Return the rows of a run that can be read, by table, none if its record cannot; and what cannot."""
    select = "SELECT * FROM {} WHERE {} = ?".format
    try:
        if any(stored.status == BROKEN for stored in store.get_many([run])):
            return [], ["record"]
        rows = [("runs", dict(row)) for row in store.database.read(select("runs", "id"), (run,))]
    except StoreError:
        return [], ["record"]
    damaged = []
    for table, (column, read) in _PARTS.items():
        try:
            parts = [dict(row) for row in store.database.read(select(table, "run"), (run,))]
            for part in parts:
                read(part[column])
            rows += [(table, part) for part in parts]
        except (StoreError, *UNREADABLE):
            damaged.append(table)
    return rows, damaged


def _create(path: Path) -> None:
    """Create a private file; raise ValueError if there is one."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise ValueError(f"{path} exists already. Name a new file.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error.strerror}). Name another file.") from None
