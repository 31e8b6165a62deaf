"""Export and import runs as a ZIP archive of JSON and NPZ."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Collection
from typing import Any

from fmviz.lab.store.database import insert
from fmviz.lab.store.packing import UNREADABLE, pack_records, spark, unpack_parameters
from fmviz.lab.store.runs import RunStore, new_id

FORMAT = "fmviz runs"
VERSION = 1
MOST_BYTES = 500_000_000
"""The maximum size of a file, packed and unpacked."""
_WORDS = ("status", "message", "details", "origin", "title", "digest", "data_hash")
_FILTERS = ("dataset", "model", "regularizer", "solver")


def export_runs(store: RunStore, runs: Collection[str]) -> bytes:
    """Return an archive of runs with their traces and parameters.

    Running ones are exported in their current state; imported, they are interrupted, and restart when they
    are resumed.

    Raises
    ------
    ValueError
        If a run is unknown.
    """
    exported = store.get_many(runs)
    missing = set(runs) - {run.id for run in exported}
    if missing:
        raise ValueError(f"There is no run {min(missing)!r} to export.")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        about = {"format": FORMAT, "version": VERSION, "exported": time.time(), "runs": len(exported)}
        archive.writestr("about.json", json.dumps(about))
        for run in exported:
            data: dict[str, Any] = {name: getattr(run, name) for name in _WORDS}
            data |= {"id": run.id, "created": run.created, "updated": run.updated, "epoch": run.epoch}
            data |= {"experiment": run.settings, "versions": run.versions, "trace": store.trace(run.id)}
            archive.writestr(f"{run.id}.json", json.dumps(data))
            rows = store.database.read("SELECT data FROM parameters WHERE run = ?", (run.id,))
            if rows:
                archive.writestr(f"{run.id}.npz", rows[0]["data"], zipfile.ZIP_STORED)
    return buffer.getvalue()


def import_runs(store: RunStore, data: bytes) -> tuple[list[str], int]:
    """Import an archive at once; return the ids of the new runs, and the number of known ones.

    A run with the id of another one gets a new id.

    Raises
    ------
    ValueError
        If it is not a valid archive; then nothing is imported.
    """
    try:
        runs = _read_archive(data)
    except UNREADABLE as error:
        raise ValueError(
            f"This file cannot be imported ({error}). Take one that “Export” or `fmviz runs export` has made."
        ) from error
    new: list[str] = []
    known = {run.id: run for run in store.get_many([row["id"] for row, *_ in runs])}
    with store.database.write() as connection:
        for row, trace, parameters in runs:
            there = known.get(row["id"])
            if there is not None and (there.digest, there.created) == (row["digest"], row["created"]):
                continue
            name = row["id"] if there is None else new_id()
            new.append(name)
            insert(connection, "runs", **{**row, "id": name})
            if trace:
                ends = {"first": trace[0]["epoch"], "last": trace[-1]["epoch"]}
                insert(connection, "traces", run=name, **ends, records=pack_records(trace))
            if parameters is not None:
                insert(connection, "parameters", run=name, epoch=row["epoch"], data=parameters)
    return new, len(runs) - len(new)


def _read_archive(data: bytes) -> list[tuple[dict[str, Any], list[dict[str, Any]], bytes | None]]:
    """Return the row of every run, its trace, and its packed parameters."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
            raise ValueError(f"it unfolds to more than {MOST_BYTES / 1e9:g} GB")
        files = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(files.pop("about.json"))
    if (about.get("format"), about.get("version")) != (FORMAT, VERSION):
        raise ValueError(f"it is no {FORMAT} file of version {VERSION}")
    runs = []
    for name in [entry.removesuffix(".json") for entry in files if entry.endswith(".json")]:
        run, parameters = json.loads(files[f"{name}.json"]), files.get(f"{name}.npz")
        settings, trace = run["experiment"], run["trace"]
        last = trace[-1] if trace else {"epoch": 0}
        if parameters is not None:
            unpack_parameters(parameters)
        row = {
            **{word: str(run.get(word, "")) for word in _WORDS},
            **{word: str(settings.get(word, "")) for word in _FILTERS},
            **{when: float(run[when]) for when in ("created", "updated")},
            **{"id": name, "epoch": int(last["epoch"]), "seconds": float(last.get("seconds", 0.0))},
            **{"experiment": json.dumps(settings), "seed": int(settings.get("seed", 0))},
            **{"versions": json.dumps(run.get("versions", {})), "last": json.dumps(last)},
            "spark": json.dumps(spark(record["objective"] for record in trace)),
        }
        runs.append((row, trace, parameters))
    return runs
