"""Serialization of parameters and records to bytes, without pickle."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fmviz.engine.arrays import UNREADABLE, Arrays
from fmviz.engine.parameters import Parameters

Record = dict[str, Any]


def pack_parameters(parameters: Mapping[str, np.ndarray]) -> bytes:
    """Serialize parameters, or other named arrays, as a compressed NPZ archive."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **parameters)
    return buffer.getvalue()


def unpack_parameters(data: bytes) -> Parameters:
    """Deserialize parameters by `pack_parameters`; raises ValueError on anything else."""
    try:
        return parameters_of(Arrays(data))
    except UNREADABLE as error:
        raise ValueError(f"These are not parameters of a run, or are damaged: {error}.") from error


def parameters_of(arrays: Mapping[str, np.ndarray]) -> Parameters:
    """Return parameters from named arrays; KeyError if one is missing, ValueError if one is not numeric."""
    if not all(array.dtype.kind == "f" for array in arrays.values()):
        raise ValueError("parameters must be floating-point numbers")
    values = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    if missing := {"P", "w", "intercept"} - values.keys():
        raise KeyError(min(missing))
    if values["w"].ndim == 1:
        values["intercept"] = values["intercept"].reshape(())
    return Parameters(**values)


def pack_records(records: Sequence[Mapping[str, Any]]) -> bytes:
    """Serialize records as compressed JSON, column by column if all have the same keys."""
    names = list(records[0]) if records else []
    if all(list(record) == names for record in records):
        table: Any = {name: [record[name] for record in records] for name in names}
    else:
        table = [dict(record) for record in records]
    return zlib.compress(json.dumps(table, separators=(",", ":")).encode(), 6)


def unpack_records(data: bytes) -> list[Record]:
    """Deserialize records by `pack_records`; raises ValueError on anything else."""
    try:
        table = json.loads(zlib.decompress(data))
    except (zlib.error, ValueError) as error:
        raise ValueError(f"This is not a trace of a run ({error}).") from error
    if isinstance(table, dict):
        return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    return [dict(record) for record in table]


def spark(values: Iterable[float], most: int = 48) -> list[float]:
    """Return at most `most` finite values, evenly spaced, including the first and the last."""
    kept = [float(value) for value in values if np.isfinite(value)]
    places = np.linspace(0, len(kept) - 1, min(len(kept), most)).round().astype(int)
    return [kept[i] for i in places]
