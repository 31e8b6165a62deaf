"""Results of a child process as bytes, without code in them: Arrow for tables, JSON for the rest."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["pack", "unpack"]

_LENGTH_BYTES = 8


def pack(value: Any) -> bytes:
    """Return the bytes of a value that JSON takes, or of a mapping.

    Of a mapping each value may also be an array, a table with unique names of its columns, or bytes.
    """
    places: list[tuple[str, str, int]] = []
    parts: list[bytes | memoryview] = []
    if isinstance(value, dict):
        plain = {}
        for name, part in value.items():
            kind = next((kind for kind, (of, _, _) in _KINDS.items() if isinstance(part, of)), None)
            if kind is None:
                plain[name] = part
            else:
                parts.append(_KINDS[kind][1](part))
                places.append((name, kind, len(parts[-1])))
        value = plain
    head = json.dumps([value, places]).encode()
    return b"".join([len(head).to_bytes(_LENGTH_BYTES, "big"), head, *parts])


def unpack(data: bytes | memoryview) -> Any:
    """Return what `pack` packed, with lists for tuples; anything else raises, and runs nothing."""
    data = memoryview(data)
    begin = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "big")
    value, places = json.loads(bytes(data[_LENGTH_BYTES:begin]))
    for name, kind, size in places:
        value[name] = _KINDS[kind][2](data[begin : (begin := begin + size)])
    return value


def _array_bytes(array: np.ndarray) -> memoryview:
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=False)
    return sink.getbuffer()


def _array(data: memoryview) -> np.ndarray:
    array: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
    return array


def _table_bytes(table: pd.DataFrame) -> memoryview:
    import pyarrow as pa  # Takes a while to import, and most programs need none of it.

    arrow = pa.Table.from_pandas(table, preserve_index=False, nthreads=1)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, arrow.schema) as stream:
        stream.write_table(arrow)
    return memoryview(sink.getvalue())


def _table(data: memoryview) -> pd.DataFrame:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
        arrow = stream.read_all()
    # Offsets that point outside would be followed.
    arrow.validate(full=True)
    return arrow.to_pandas(ignore_metadata=True, use_threads=False)


_KINDS: dict[str, tuple[type, Callable[[Any], bytes | memoryview], Callable[[memoryview], Any]]] = {
    "bytes": (bytes, lambda part: part, bytes),
    "array": (np.ndarray, _array_bytes, _array),
    "table": (pd.DataFrame, _table_bytes, _table),
}
