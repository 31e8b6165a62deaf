"""Reading and encoding of untrusted files in a subprocess with time and memory limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.checked import checked
from fmviz.engine.fit import never
from fmviz.lab.confined import confined
from fmviz.tables.encoded import Encoded, encode
from fmviz.tables.encoder import TableEncoder
from fmviz.tables.files import GZIP, read_unfolded, unfolded
from fmviz.tables.kinds import Column
from fmviz.tables.limits import UPLOADS, Limits
from fmviz.tables.recipe import Recipe, columns_of
from fmviz.tables.source import Reading, Source
from fmviz.tables.target import TargetEncoding

# Limits in bytes and seconds: a constant plus a multiple of the size. Tables of short words need most.
_MEMORY, _MEMORY_EACH = 600e6, 18.0
_SECONDS, _SECONDS_EACH = 20.0, 4e-7
_PLAIN = ("X", "y", "rows", "dropped", "group", "row_groups")


def read_confined(data: bytes, asked: Reading, name: str, within: Limits) -> Source:
    """Read a file by `fmviz.tables.files.read`, within time and memory limits that depend on its size.

    Raises
    ------
    ValueError
        See `read`; also if a limit is exceeded.
    """
    return _source(_read(False, data, asked, name, within, never))


def describe_confined(
    data: bytes, asked: Reading, should_stop: Callable[[], bool] = never
) -> tuple[Source, tuple[Column, ...]]:
    """Read a file by `read_confined`, and infer its column types."""
    parts = _read(True, data, asked, "The file", UPLOADS, should_stop)
    return _source(parts), tuple(checked(Column, column) for column in parts["columns"])


def encode_confined(source: Source, recipe: Recipe, should_stop: Callable[[], bool] = never) -> Encoded:
    """Encode all rows by `fmviz.tables.encoded.encode`, within the limits of uploads."""
    parts = _confined(_encoded_parts, source, recipe, n_bytes=source.n_bytes, should_stop=should_stop)
    encoder = parts["encoder"]
    return Encoded(
        target=TargetEncoding.from_dict(parts["target"]),
        encoder=None if encoder is None else TableEncoder.from_dict(encoder),
        notes=tuple(parts["notes"]),
        **{name: parts[name] for name in _PLAIN},
    )


def _read(
    describe: bool, data: bytes, asked: Reading, name: str, within: Limits, should_stop: Callable[[], bool]
) -> dict[str, Any]:
    limits: dict[str, Any] = {"name": name, "should_stop": should_stop}
    # The size is known only after decompression.
    if data.startswith(GZIP):
        data = _confined(_unfolded_parts, data, name, within, n_bytes=len(data), **limits)["data"]
    return _confined(_source_parts, describe, data, asked, name, within, n_bytes=len(data), **limits)


def _confined(
    function: Callable[..., Any],
    *arguments: Any,
    n_bytes: float,
    should_stop: Callable[[], bool],
    name: str = "The file",
) -> dict[str, Any]:
    parts: dict[str, Any] = confined(
        function,
        *arguments,
        name=name,
        seconds=_SECONDS + _SECONDS_EACH * n_bytes,
        memory=_MEMORY + _MEMORY_EACH * n_bytes,
        advice="Take a sample of its rows, or fewer columns.",
        should_stop=should_stop,
    )
    return parts


def _source(parts: Mapping[str, Any]) -> Source:
    return Source(Reading(**parts["reading"]), parts["table"], parts["X"], parts["y"], tuple(parts["notes"]))


# --------------------------------------------------------------------------------------- in the process


def _unfolded_parts(data: bytes, name: str, within: Limits) -> dict[str, Any]:
    return {"data": unfolded(data, name, within)}


def _source_parts(describe: bool, *arguments: Any) -> dict[str, Any]:
    source = read_unfolded(*arguments)
    return {
        **{name: getattr(source, name) for name in ("table", "X", "y", "notes")},
        "reading": asdict(source.reading),
        "columns": [asdict(column) for column in (columns_of(source) if describe else ())],
    }


def _encoded_parts(source: Source, recipe: Recipe) -> dict[str, Any]:
    encoded = encode(source, recipe)
    X: Any = encoded.X
    UPLOADS.check("This", features=X.shape[1], entries=int(X.nnz if sp.issparse(X) else np.count_nonzero(X)))
    return {
        **{name: getattr(encoded, name) for name in _PLAIN},
        "notes": encoded.notes,
        "target": encoded.target.to_dict(),
        "encoder": None if encoded.encoder is None else encoded.encoder.to_dict(),
    }
