"""Runs as one file to share: a ZIP archive of JSON and NPZ, without code in it."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Collection, Iterator
from typing import IO, Any

from fmviz.engine.drive import never
from fmviz.lab.confined import confined
from fmviz.lab.store.archived_run import checked_run
from fmviz.lab.store.database import insert
from fmviz.lab.store.packing import UNREADABLE, pack_records, spark
from fmviz.lab.store.runs import RunStore, new_id

FORMAT = "fmviz runs"
VERSION = 1

# What an archive may unfold to, and what reading it may take: more is a mistake, or meant to fill the memory.
MOST_BYTES = 500_000_000
_MOST_ABOUT = 100_000
_SECONDS, _MEMORY = 60.0, 1.5e9

_TEXTS = ("status", "message", "details", "origin", "title", "digest", "data_hash")


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


def import_runs(
    store: RunStore, file: bytes | IO[bytes], should_stop: Callable[[], bool] = never
) -> tuple[list[str], int]:
    """Read an archive; return the ids of the new runs, and how many were there already.

    It is read in a process of its own, see `fmviz.lab.confined`, all of it before anything is
    written, and all is written at once. A run with the id of another one gets a new id.

    Raises
    ------
    ValueError
        If it is no such archive, or a part of it cannot be read: then nothing is imported.
    StoppedError
        If `should_stop` was true before all of it had been read; nothing is imported then, either.
    """
    data = file if isinstance(file, bytes) else file.read()
    found = confined(
        _archive_parts,
        data,
        name="This file",
        seconds=_SECONDS,
        memory=_MEMORY,
        advice="Export fewer runs at a time.",
        should_stop=should_stop,
    )
    new: list[str] = []
    runs = found["runs"]
    known = {run.id: run for run in store.get_many([run["id"] for run in runs])}
    with store.database.write() as connection:
        for run in runs:
            there = known.get(run["id"])
            if there is not None and (there.digest, there.created) == (run["digest"], run["created"]):
                continue
            name = run["id"] if there is None else new_id()
            new.append(name)
            _insert(connection, name, run, found.get(f"parameters of {run['id']}"))
    return new, len(runs) - len(new)


def _archive_parts(data: bytes) -> dict[str, Any]:
    runs = read_archive(data)
    packed = {f"parameters of {run['id']}": arrays for run, arrays in runs if arrays is not None}
    return {"runs": [run for run, _ in runs], **packed}


def read_archive(data: bytes) -> list[tuple[dict[str, Any], bytes | None]]:
    """Return the runs of an archive, checked, each with its packed parameters; raises ValueError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return list(_runs(archive))
    except UNREADABLE as error:
        raise ValueError(
            f"This file cannot be imported ({error}). Take one that “Export” or `fmviz runs export` has made."
        ) from error


def _runs(archive: zipfile.ZipFile) -> Iterator[tuple[dict[str, Any], bytes | None]]:
    entries = {entry.filename: entry.file_size for entry in archive.infolist()}
    if len(entries) < len(archive.infolist()):
        raise ValueError("some of its names stand twice")
    if sum(entries.values()) > MOST_BYTES:
        raise ValueError(f"it unfolds to more than {MOST_BYTES / 1e9:g} GB")
    if entries["about.json"] > _MOST_ABOUT:
        raise ValueError(f"its about.json has {entries['about.json']:,} bytes")
    about = json.loads(archive.read("about.json"))
    if (about.get("format"), about.get("version")) != (FORMAT, VERSION):
        raise ValueError(f"it is no {FORMAT} file of version {VERSION}")
    for entry in entries:
        name, _, kind = entry.rpartition(".")
        if kind == "json" and entry != "about.json":
            arrays = archive.read(f"{name}.npz") if f"{name}.npz" in entries else None
            yield checked_run(name, json.loads(archive.read(entry)), arrays), arrays


def _insert(connection: Any, name: str, run: dict[str, Any], data: bytes | None) -> None:
    trace = run["trace"]
    last = trace[-1] if trace else {"epoch": 0}
    insert(
        connection,
        "runs",
        **{part: value for part, value in run.items() if part not in ("id", "trace")},
        id=name,
        epoch=last["epoch"],
        seconds=float(last.get("seconds", 0.0)),
        last=json.dumps(last),
        spark=json.dumps(spark(record["objective"] for record in trace)),
    )
    if trace:
        records = pack_records(trace)
        insert(connection, "traces", run=name, first=trace[0]["epoch"], last=last["epoch"], records=records)
    if data is not None:
        insert(connection, "parameters", run=name, epoch=last["epoch"], data=data)
