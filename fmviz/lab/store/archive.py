"""Export and import runs as a ZIP archive of JSON and NPZ."""

from __future__ import annotations

import io
import json
import math
import re
import time
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields
from typing import IO, Any

from fmviz.engine.drive import never
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.confined import confined
from fmviz.lab.experiment import Experiment
from fmviz.lab.store.database import insert
from fmviz.lab.store.packing import UNREADABLE, Record, pack_records, spark, unpacked_shapes
from fmviz.lab.store.runs import RunStore, new_id

FORMAT = "fmviz runs"
VERSION = 1

# Limits of the uncompressed size, and of time and memory to read it.
MOST_BYTES = 500_000_000
_MOST_ABOUT = 100_000
_SECONDS, _MEMORY = 60.0, 1.5e9

# The maximum length of every text.
_MOST_CHARACTERS = {
    **{"status": 40, "message": 4_000, "details": 100_000, "origin": 40},
    **{"title": 400, "digest": 128, "data_hash": 128},
}
_FILTERS = ("dataset", "model", "regularizer", "solver")
_SCALARS = {scalar.name for scalar in fields(Snapshot)} - {"parameters", "metrics", "status"}
_NAME = re.compile(r"[\w-]{1,64}", re.ASCII)
# Seconds since 1970 of the year 2242: later times cannot be displayed.
_LATEST = 8.6e9
_MOST_EPOCHS = 10**9
_MOST_METRICS = 100

MOST_PARAMETERS = 500_000_000
"""The maximum uncompressed size of the parameters of a run."""


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
            data: dict[str, Any] = {name: getattr(run, name) for name in _MOST_CHARACTERS}
            data |= {"id": run.id, "created": run.created, "updated": run.updated, "epoch": run.epoch}
            data |= {"experiment": run.settings, "versions": run.versions, "trace": store.trace(run.id)}
            archive.writestr(f"{run.id}.json", json.dumps(data))
            rows = store.database.read("SELECT data FROM parameters WHERE run = ?", (run.id,))
            if rows:
                archive.writestr(f"{run.id}.npz", rows[0]["data"], zipfile.ZIP_STORED)
    return buffer.getvalue()


def import_runs(
    store: RunStore, file: bytes | IO[bytes], should_stop: Callable[[], bool] = never
) -> tuple[list[str], int]:
    """Import an archive; return the ids of the new runs, and the number of existing ones.

    The archive is read in a subprocess, see `fmviz.lab.confined`, and written in a single transaction. A run
    with the id of another one gets a new id.

    Raises
    ------
    ValueError
        If it is not a valid archive; then nothing is imported.
    StoppedError
        If `should_stop` returns true during reading; then nothing is imported.
    """
    parts = confined(
        _archive_parts,
        file if isinstance(file, bytes) else file.read(),
        name="This file",
        seconds=_SECONDS,
        memory=_MEMORY,
        advice="Export fewer runs at a time.",
        should_stop=should_stop,
    )
    new: list[str] = []
    runs = parts["runs"]
    known = {run.id: run for run in store.get_many([run["id"] for run in runs])}
    with store.database.write() as connection:
        for run in runs:
            there = known.get(run["id"])
            if there is not None and (there.digest, there.created) == (run["digest"], run["created"]):
                continue
            name = run["id"] if there is None else new_id()
            new.append(name)
            _insert(connection, name, run, parts.get(f"parameters of {run['id']}"))
    return new, len(runs) - len(new)


def _archive_parts(data: bytes) -> dict[str, Any]:
    runs = read_archive(data)
    packed = {f"parameters of {run['id']}": arrays for run, arrays in runs if arrays is not None}
    return {"runs": [run for run, _ in runs], **packed}


def read_archive(data: bytes) -> list[tuple[dict[str, Any], bytes | None]]:
    """Return the validated runs of an archive with their packed parameters; raises ValueError."""
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
            yield _checked_run(name, json.loads(archive.read(entry)), arrays), arrays


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


# ------------------------------------------------------------------------------------- what an archive holds


def _checked_run(name: str, data: Any, parameters: bytes | None) -> dict[str, Any]:
    """Validate a run and return it by the columns of the store, with its trace; raises ValueError."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is no name of a run")
    try:
        clean: dict[str, Any] = {field: _text(data, field, most) for field, most in _MOST_CHARACTERS.items()}
        clean |= {field: _number(data, field, 0, _LATEST) for field in ("created", "updated")}
        settings = _mapping(data, "experiment")
        clean |= {field: str(settings.get(field, ""))[:200] for field in _FILTERS}
        clean["seed"] = int(_number({"seed": 0, **settings}, "seed", 0, 2**63 - 1))
        versions = {str(key)[:40]: str(value)[:80] for key, value in _mapping(data, "versions").items()}
        clean |= {"id": name, "experiment": json.dumps(settings), "versions": json.dumps(versions)}
        clean["trace"] = _trace(data)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"run {name!r}: {error}") from error
    if parameters is not None:
        shapes = unpacked_shapes(parameters)
        if (size := 8 * sum(map(math.prod, shapes.values()))) > MOST_PARAMETERS:
            raise ValueError(f"run {name!r} has parameters of {size:,} bytes, more than {MOST_PARAMETERS:,}")
        _check_shapes(name, settings, shapes)
    return clean


def _check_shapes(name: str, settings: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ValueError if the shapes of the parameters do not match the model of the settings."""
    try:
        experiment = Experiment.from_dict(settings)
        model: Any = experiment.model
    except (LookupError, TypeError, ValueError):
        return  # Listed as an unreadable run.
    *outputs, d = shapes["w"] or (0,)
    if model.multi_output:
        model, outputs = model.for_outputs((shapes.get("V") or (1,))[-1]), []
    described = {part: (*outputs, *shape) for part, shape in model.shapes(d, experiment.rank).items()}
    if shapes != described:
        raise ValueError(
            f"run {name!r} has parameters of the shapes {_listed(shapes)}, and its settings describe "
            f"{_listed(described)}"
        )


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(
        f"{part} {' × '.join(map(str, shape)) or '()'}" for part, shape in sorted(shapes.items())
    )


def _text(data: Mapping[str, Any], name: str, most: int) -> str:
    value = data.get(name, "")
    if not isinstance(value, str) or len(value) > most:
        raise ValueError(f"its {name} is no text of at most {most:,} characters")
    value.encode()  # Lone surrogates cannot be stored.
    return value


def _mapping(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(f"its {name} is no mapping")
    return value


def _number(data: Mapping[str, Any], name: str, low: float = -math.inf, high: float = math.inf) -> float:
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} = {value!r:.80} is no number")
    if math.isfinite(low) and not low <= value <= high:
        raise ValueError(f"{name} = {value!r:.80} is not between {low:g} and {high:g}")
    return value


def _trace(data: Mapping[str, Any]) -> list[Record]:
    """Validate and return the records: ascending epochs, with the numbers of a snapshot and metrics."""
    records, before = [], -1
    for record in data["trace"]:
        if missing := _SCALARS - record.keys():
            raise ValueError(f"a record lacks {min(missing)}")
        if len(record) > len(_SCALARS) + _MOST_METRICS:
            raise ValueError(f"a record has {len(record):,} numbers")
        clean: Record = {_metric(name): _number(record, name) for name in record}
        for name in ("epoch", "used_features", "used_interactions"):
            clean[name] = int(_number(record, name, 0, 2**62))
        if not before < clean["epoch"] <= _MOST_EPOCHS:
            raise ValueError(f"epoch {clean['epoch']:,} follows {before:,}")
        before = clean["epoch"]
        records.append(clean)
    return records


def _metric(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is no name of a number")
    return name
