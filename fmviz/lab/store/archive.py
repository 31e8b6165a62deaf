"""Export and import of runs as ZIP archives of JSON and NPZ."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections.abc import Collection
from typing import Any

from fmviz.checked import Count, checked
from fmviz.engine.arrays import UNREADABLE, Arrays
from fmviz.engine.errors import one_of
from fmviz.engine.memory import in_words
from fmviz.engine.parameters import Parameters
from fmviz.engine.snapshot import Reason, Snapshot
from fmviz.lab.experiment import name_of
from fmviz.lab.store.database import insert
from fmviz.lab.store.packing import pack_records, parameters_of, spark
from fmviz.lab.store.runs import MOST_TITLE, RunStore, new_id
from fmviz.lab.store.stored_run import BROKEN, INTERRUPTED, PAUSED, RUNNING, StoredRun

FORMAT = "fmviz runs"
VERSION = 1
MOST_BYTES = 500_000_000
"""The maximum size of a file, packed and unpacked."""
_WORDS = ("status", "message", "details", "origin", "title", "digest", "data_hash")
_STATUSES = (RUNNING, PAUSED, INTERRUPTED, "failed", *Reason)
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
# Text compresses to a tenth; far better compression indicates an archive bomb.
_MOST_RATIO, _MOST_VALUES = 200, 10_000_000


def export_runs(store: RunStore, runs: Collection[str]) -> bytes:
    """Return an archive of runs with their traces and parameters.

    Running ones are exported in their current state; after import they count as interrupted, and restart when
    resumed.

    Raises
    ------
    ValueError
        If a run is unknown or damaged.
    """
    exported = store.get_many(runs)
    if missing := set(runs) - {run.id for run in exported}:
        raise ValueError(f"Unknown run {min(missing)!r}.")
    for run in exported:
        if run.status == BROKEN:
            raise ValueError(f"Run {run.id} cannot be exported. {run.message}")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        about = {"format": FORMAT, "version": VERSION, "exported": time.time(), "runs": len(exported)}
        archive.writestr("about.json", json.dumps(about))
        for run in exported:
            data = {
                **{name: getattr(run, name) for name in (*_WORDS, "id", "created", "updated", "epoch")},
                **{"experiment": run.settings, "versions": run.versions, "trace": store.trace(run.id)},
            }
            archive.writestr(f"{run.id}.json", json.dumps(data))
            if rows := store.database.read("SELECT data FROM parameters WHERE run = ?", (run.id,)):
                archive.writestr(f"{run.id}.npz", rows[0]["data"], zipfile.ZIP_STORED)
    return buffer.getvalue()


def import_runs(store: RunStore, data: bytes) -> tuple[list[str], int]:
    """Import an archive atomically; return the ids of new runs, and the number of known ones.

    A run with the id of a different run gets a new id.

    Raises
    ------
    ValueError
        If the archive is invalid; the message contains the run, the field and its value. Nothing is imported
        then.
    """
    try:
        runs = _read_archive(data)
    except UNREADABLE as error:
        raise ValueError(
            f"This file cannot be imported ({error}). Use a file written by “Export” or `fmviz runs export`."
        ) from error
    new: list[str] = []
    known = {run.id: run for run in store.get_many([row["id"] for row, *_ in runs])}
    with store.database.write() as connection:
        for row, records, parameters in runs:
            there = known.get(row["id"])
            if there is not None and (there.digest, there.created) == (row["digest"], row["created"]):
                continue
            name = row["id"] if there is None else new_id()
            new.append(name)
            insert(connection, "runs", **{**row, "id": name})
            if records is not None:
                insert(connection, "traces", run=name, first=0, last=row["epoch"], records=records)
            if parameters is not None:
                insert(connection, "parameters", run=name, epoch=row["epoch"], data=parameters)
    return new, len(runs) - len(new)


def _read_archive(data: bytes) -> list[tuple[dict[str, Any], bytes | None, bytes | None]]:
    """Return the row of every run, its packed trace, and its packed parameters."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST_BYTES:
            raise ValueError(f"it unpacks to more than {MOST_BYTES / 1e9:g} GB")
        if size > max(_MOST_RATIO * len(data), 1e6):
            raise ValueError(f"it unpacks to {in_words(size)}, more than {_MOST_RATIO} times its size")
        about = json.loads(archive.read("about.json"))
        if (about.get("format"), about.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"it is not a {FORMAT} file of version {VERSION}")
        names = [entry.removesuffix(".json") for entry in archive.namelist() if entry.endswith(".json")]
        return [_read_run(archive, name) for name in names if name != "about"]


def _read_run(archive: zipfile.ZipFile, name: str) -> tuple[dict[str, Any], bytes | None, bytes | None]:
    """Return the row of a run, its packed trace, and its packed parameters; may raise `UNREADABLE`."""
    text = archive.read(f"{name}.json")
    packed = archive.read(f"{name}.npz") if f"{name}.npz" in archive.namelist() else None
    if not _ID.fullmatch(name):
        raise ValueError(f"{name[:100]!r} is not a run id")
    if text.count(b",") + text.count(b"[") > _MOST_VALUES:
        raise ValueError(f"{name}.json has more than {_MOST_VALUES:,} values")
    try:
        given = json.loads(text)
        trace = checked(list[dict[str, Count | float]], given["trace"])
        last = trace[-1] if trace else {}
        values = {
            **{word: given[word] for word in _WORDS if word in given},
            **{"id": name, "created": given["created"], "updated": given["updated"]},
            **{"settings": given["experiment"], "versions": given.get("versions", {}), "last": last},
            **{"epoch": last.get("epoch", 0), "seconds": last.get("seconds", 0.0)},
            "spark": spark(record["objective"] for record in trace),
        }
        run = checked(StoredRun, values)
        one_of("status", run.status, _STATUSES)
        experiment = run.experiment
        epochs = [Snapshot.of_record(record, Parameters()).epoch for record in trace]
        if epochs != sorted(set(epochs)):
            raise ValueError("trace: epochs must be ascending")
        if packed is not None:
            arrays = Arrays(packed, MOST_BYTES)
            experiment.model.check_shapes(arrays.shapes, rank=experiment.rank)
            if not parameters_of(arrays).finite() and run.status != Reason.DIVERGED:
                raise ValueError("its parameters are not finite")
    except UNREADABLE as error:
        missing = "it lacks " if isinstance(error, KeyError) else ""
        raise ValueError(f"run {name}: {missing}{error}") from error
    row = {
        **{word: getattr(run, word) for word in (*_WORDS, "created", "updated", "epoch", "seconds")},
        **{"id": name, "digest": experiment.digest, "seed": experiment.seed},
        **{"dataset": experiment.dataset.name, "model": experiment.model.name},
        **{"regularizer": experiment.regularizer.name, "solver": name_of(experiment.solver)},
        **{"title": run.title[:MOST_TITLE], "experiment": json.dumps(run.settings)},
        **{"versions": json.dumps(run.versions)},
        **{"last": json.dumps(run.last), "spark": json.dumps(run.spark)},
    }
    return row, pack_records(trace) if trace else None, packed
