"""A run as an archive holds it, checked field by field: nothing else comes into the store."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fmviz.engine.snapshot import Snapshot
from fmviz.lab.experiment import Experiment
from fmviz.lab.store.packing import Record, unpacked_shapes

# The most characters of a text.
_TEXTS = {
    **{"status": 40, "message": 4_000, "details": 100_000, "origin": 40},
    **{"title": 400, "digest": 128, "data_hash": 128},
}
_FILTERS = ("dataset", "model", "regularizer", "solver")
_SCALARS = {one.name for one in fields(Snapshot)} - {"parameters", "metrics", "status"}
_NAME = re.compile(r"[\w-]{1,64}", re.ASCII)
# Seconds since 1970 of the year 2242: later ones, no calendar of the lists can show.
_LATEST = 8.6e9
_MOST_EPOCHS = 10**9
_MOST_METRICS = 100

MOST_PARAMETERS = 500_000_000
"""Bytes of the parameters of a run, unpacked."""


def checked_run(name: str, told: Any, parameters: bytes | None) -> dict[str, Any]:
    """Return a run by the columns of the store, with its trace.

    Raises
    ------
    ValueError
        If something is not what a run has; with a sentence that names it.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is no name of a run")
    try:
        clean: dict[str, Any] = {one: _text(told, one, most) for one, most in _TEXTS.items()}
        clean |= {one: _number(told, one, 0, _LATEST) for one in ("created", "updated")}
        settings = _mapping(told, "experiment")
        clean |= {one: str(settings.get(one, ""))[:200] for one in _FILTERS}
        clean["seed"] = int(_number({"seed": 0, **settings}, "seed", 0, 2**63 - 1))
        versions = {str(key)[:40]: str(value)[:80] for key, value in _mapping(told, "versions").items()}
        clean |= {"id": name, "experiment": json.dumps(settings), "versions": json.dumps(versions)}
        clean["trace"] = _trace(told)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"run {name!r}: {error}") from error
    if parameters is not None:
        shapes = unpacked_shapes(parameters)
        if (size := 8 * sum(map(math.prod, shapes.values()))) > MOST_PARAMETERS:
            raise ValueError(f"run {name!r} has parameters of {size:,} bytes, more than {MOST_PARAMETERS:,}")
        _check_shapes(name, settings, shapes)
    return clean


def _check_shapes(name: str, settings: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ValueError where parameters are not those of the model that the settings describe."""
    try:
        experiment = Experiment.from_dict(settings)
        model: Any = experiment.machine
    except (LookupError, TypeError, ValueError):
        return  # It is listed as a run that cannot be read.
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


def _text(told: Mapping[str, Any], name: str, most: int) -> str:
    value = told.get(name, "")
    if not isinstance(value, str) or len(value) > most:
        raise ValueError(f"its {name} is no text of at most {most:,} characters")
    value.encode()  # Halves of characters cannot be stored.
    return value


def _mapping(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = told.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(f"its {name} is no mapping")
    return value


def _number(told: Mapping[str, Any], name: str, low: float = -math.inf, high: float = math.inf) -> float:
    value = told[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} = {value!r:.80} is no number")
    if math.isfinite(low) and not low <= value <= high:
        raise ValueError(f"{name} = {value!r:.80} is not between {low:g} and {high:g}")
    return value


def _trace(told: Mapping[str, Any]) -> list[Record]:
    """Return the records: ascending epochs, numbers by the names that every snapshot has, and metrics."""
    records, before = [], -1
    for record in told["trace"]:
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
