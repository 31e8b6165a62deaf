"""Copies of the run store: backups, and the readable part of a damaged store."""

from __future__ import annotations

import os
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

# Tables of the parts of a run, with the data column and its decoder.
_PARTS: dict[str, tuple[str, Callable[[bytes], Any]]] = {
    "traces": ("records", unpack_records),
    "parameters": ("data", unpack_parameters),
    "checkpoints": ("data", Checkpoint.from_bytes),
}


def backup(store: RunStore, path: Path) -> int:
    """Write a copy of a store to a new file by SQLite's backup; return its size in bytes.

    Raises
    ------
    ValueError
        If the file exists.
    StoreError
        If the store is damaged.
    """
    _create(path)
    store.database.copy_to(path)
    return path.stat().st_size


def damages(store: RunStore) -> dict[str, list[str]]:
    """Read every run with its trace, parameters and checkpoint; return the damaged parts by id."""
    return {run: parts for row, run in store.rows().items() if (parts := _read(store, row, run)[1])}


def salvage(store: RunStore, path: Path) -> tuple[int, dict[str, list[str]]]:
    """Save the runs of a damaged store to a new one.

    Returns
    -------
    n_saved : int
        The number of runs that were saved.
    damaged : dict of str to list of str
        The lost parts by run id: the record, and with it the entire run, or the trace, parameters or
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
        for row, run in store.rows().items():
            rows, unreadable = _read(store, row, run)
            for table, values in rows:
                insert(connection, table, **values)
            n_saved += bool(rows)
            if unreadable:
                damaged[run] = unreadable
        for record in store.database.undamaged("SELECT * FROM sweeps"):
            insert(connection, "sweeps", **dict(record))
    return n_saved, damaged


def _read(store: RunStore, row: int, run: str) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
    """Return the readable rows of a run by table (none if its record is damaged), and the damaged parts."""
    records = store.run_of_row(row, run)
    if not records or records[0].status == BROKEN:
        return [], ["record"]
    read = store.database.read
    # The id in the index, in case that of the row is damaged.
    rows = [("runs", {**dict(read("SELECT * FROM runs WHERE rowid = ?", (row,))[0]), "id": run})]
    damaged = []
    for table, (column, unpack) in _PARTS.items():
        try:
            parts = [dict(part) for part in read(f"SELECT * FROM {table} WHERE run = ?", (run,))]
            for part in parts:
                unpack(part[column])
            rows += [(table, {**part, "run": run}) for part in parts]
        except (StoreError, *UNREADABLE):
            damaged.append(table)
    return rows, damaged


def _create(path: Path) -> None:
    """Create a private file; ValueError if it exists."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise ValueError(f"{path} already exists. Choose a new file.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error.strerror}). Choose another file.") from None
