"""Runs as one file to share: a ZIP archive of JSON and NPZ, without code in it."""

from __future__ import annotations

import io
import json
import sqlite3
import time
import zipfile
from collections.abc import Collection
from typing import IO, Any

from fmviz.lab.store.database import insert
from fmviz.lab.store.packing import pack_records, spark, unpack_parameters
from fmviz.lab.store.runs import RunStore, new_id

FORMAT = "fmviz runs"
VERSION = 1

# What an archive may unfold to: more is a mistake, or meant to fill the memory.
MOST_BYTES = 4_000_000_000
MOST_RUNS = 100_000
# Seconds since 1970 of the year 2242: later ones, no calendar of the lists can show.
_LATEST = 8.6e9

# What reading a broken, encrypted or made-up archive raises.
_UNREADABLE = (
    *(zipfile.BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError),
    *(AttributeError, LookupError, TypeError, ValueError),
)

# What inserting numbers, texts or ids raises that no run has.
_UNFIT = (sqlite3.IntegrityError, OverflowError, TypeError, ValueError)

_TEXTS = ("status", "message", "details", "origin", "title", "digest", "data_hash")
_FILTERS = ("dataset", "model", "regularizer", "solver")


def export_runs(store: RunStore, runs: Collection[str]) -> bytes:
    """Return the runs, with traces and parameters, as the bytes of one archive.

    Runs that go on are exported as they are now. Where they are imported they are interrupted ones, which
    begin anew when they are resumed.

    Raises
    ------
    ValueError
        If one of them is unknown.
    """
    found = store.get_many(runs)
    missing = set(runs) - {run.id for run in found}
    if missing:
        raise ValueError(f"There is no run {min(missing)!r} to export.")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        about = {"format": FORMAT, "version": VERSION, "exported": time.time(), "runs": len(found)}
        archive.writestr("about.json", json.dumps(about))
        for run in found:
            told: dict[str, Any] = {name: getattr(run, name) for name in _TEXTS}
            told |= {"id": run.id, "created": run.created, "updated": run.updated, "epoch": run.epoch}
            told |= {"experiment": run.settings, "versions": run.versions, "trace": store.trace(run.id)}
            archive.writestr(f"{run.id}.json", json.dumps(told))
            rows = store.database.read("SELECT data FROM parameters WHERE run = ?", (run.id,))
            if rows:
                archive.writestr(f"{run.id}.npz", rows[0]["data"], zipfile.ZIP_STORED)
    return buffer.getvalue()


def import_runs(store: RunStore, file: bytes | IO[bytes]) -> tuple[list[str], int]:
    """Read an archive; return the ids of the new runs, and how many were there already.

    All of it is read before anything is written, and all is written at once. A run with the id of another
    one gets a new id.

    Raises
    ------
    ValueError
        If it is no such archive, or a part of it cannot be read: then nothing is imported.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(file) if isinstance(file, bytes) else file) as archive:
            told = _read(archive)
    except _UNREADABLE as error:
        raise _refused(error) from error
    new: list[str] = []
    known = {run.id: run for run in store.get_many([run["id"] for run, _ in told])}
    try:
        with store.database.write() as connection:
            for run, data in told:
                there = known.get(run["id"])
                if there is not None and (there.digest, there.created) == (run["digest"], run["created"]):
                    connection.execute("UPDATE runs SET deleted = NULL WHERE id = ?", (run["id"],))
                    continue
                name = run["id"] if there is None else new_id()
                new.append(name)
                _insert(connection, name, run, data)
    except _UNFIT as error:
        raise _refused(error) from error
    return new, len(told) - len(new)


def _refused(error: Exception) -> ValueError:
    return ValueError(
        f"This file cannot be imported ({error}). Take one that “Export” or `fmviz runs export` has made."
    )


def _read(archive: zipfile.ZipFile) -> list[tuple[dict[str, Any], bytes | None]]:
    if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
        raise ValueError(f"it unfolds to more than {MOST_BYTES / 1e9:g} GB")
    about = json.loads(archive.read("about.json"))
    if about.get("format") != FORMAT or about.get("version") != VERSION:
        raise ValueError(f"it is no {FORMAT} file of version {VERSION}")
    names = archive.namelist()
    ids = [name.removesuffix(".json") for name in names if name.endswith(".json") and name != "about.json"]
    if len(ids) > MOST_RUNS:
        raise ValueError(f"it holds more than {MOST_RUNS:,} runs")
    found = []
    for run in ids:
        told = json.loads(archive.read(f"{run}.json"))
        settings = told["experiment"]
        clean: dict[str, Any] = {name: str(told.get(name, "")) for name in _TEXTS}
        clean |= {"id": run[:64], "created": float(told["created"]), "updated": float(told["updated"])}
        if not run or not all(0 <= clean[name] < _LATEST for name in ("created", "updated")):
            raise ValueError(f"run {run!r} has no name, or was not made between 1970 and 2242")
        clean |= {"experiment": dict(settings), "versions": dict(told.get("versions", {}))}
        clean |= {name: str(settings.get(name, "")) for name in _FILTERS}
        clean["seed"] = int(settings.get("seed", 0))
        clean["trace"] = [dict(record) for record in told["trace"]]
        for record in clean["trace"]:
            record["epoch"] = int(record["epoch"])
        data = archive.read(f"{run}.npz") if f"{run}.npz" in names else None
        if data is not None:
            unpack_parameters(data)
        found.append((clean, data))
    return found


def _insert(connection: Any, name: str, run: dict[str, Any], data: bytes | None) -> None:
    trace = run["trace"]
    last = trace[-1] if trace else {"epoch": 0}
    insert(
        connection,
        "runs",
        **{part: run[part] for part in (*_TEXTS, *_FILTERS, "created", "updated", "seed")},
        id=name,
        experiment=json.dumps(run["experiment"]),
        versions=json.dumps(run["versions"]),
        epoch=last["epoch"],
        seconds=float(last.get("seconds", 0.0)),
        last=json.dumps(last),
        spark=json.dumps(spark(float(record.get("objective", "nan")) for record in trace)),
    )
    if trace:
        records = pack_records(trace)
        insert(connection, "traces", run=name, first=trace[0]["epoch"], last=last["epoch"], records=records)
    if data is not None:
        insert(connection, "parameters", run=name, epoch=last["epoch"], data=data)
