"""Read Parquet files whose columns hold single values."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd

from fmviz.tables.limits import Limits
from fmviz.tables.source import Reading, Source, named

__all__ = ["read_parquet"]


def read_parquet(data: bytes, name: str, within: Limits) -> Source:
    """Read a Parquet file; raises ValueError if it is broken, too large, or has too few columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    notes: list[str] = []
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        schema = file.schema_arrow
        n, m = file.metadata.num_rows, len(schema)
        within.check(name, columns=m, rows=n, cells=n * m)
        groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
        within.check(name, unfolded=sum(group.total_byte_size for group in groups))
        arrow = file.read()
        flat = [at for at, field in enumerate(schema) if not _compound(field.type)]
        if lost := [field.name for field in schema if _compound(field.type)]:
            notes.append(
                f"{len(lost):,} columns hold lists, structures or bytes, which are no single values, and "
                f"were left out: {', '.join(lost[:5])}{', …' if len(lost) > 5 else ''}."
            )
        arrays = {str(place): _plain(arrow.column(at)) for place, at in enumerate(flat)}
        table = pa.table(arrays).to_pandas(ignore_metadata=True, deduplicate_objects=False)
    except pa.ArrowMemoryError:
        raise MemoryError from None
    except (pa.ArrowException, OSError, EOFError, OverflowError) as error:
        said = " ".join(str(error).split())[:200].rstrip(".")
        raise ValueError(f"{name} is a broken Parquet file ({said}). Save or download it again.") from None
    columns = named([schema.field(at).name for at in flat], notes)
    if len(columns) < 2:
        raise ValueError(
            f"{name} has fewer than two columns of single values; a target and a feature are needed."
        )
    if not len(table):
        raise ValueError(f"{name} has no rows. Upload a table that has some.")
    table.columns = pd.Index(columns)
    return Source(Reading("parquet", "utf-8", "comma", "yes", "point"), table, notes=tuple(notes))


def _compound(kind: Any) -> bool:
    import pyarrow.types as of

    return not (
        of.is_boolean(kind)
        or of.is_integer(kind)
        or of.is_floating(kind)
        or of.is_decimal(kind)
        or of.is_temporal(kind)
        or of.is_string(kind)
        or of.is_large_string(kind)
        or of.is_dictionary(kind)
    )


def _plain(column: Any) -> Any:
    """Return an Arrow column as numbers, booleans, times without a zone, or strings."""
    import pyarrow as pa
    import pyarrow.types as of

    kind = column.type
    if of.is_dictionary(kind):
        column = column.cast(kind.value_type)
        return _plain(column) if not _compound(column.type) else column.cast(pa.string())
    if of.is_decimal(kind) or of.is_float16(kind):
        return column.cast(pa.float64(), safe=False)
    if of.is_timestamp(kind) or of.is_date(kind):
        return column.cast(pa.timestamp("us"), safe=False)
    if of.is_time(kind) or of.is_duration(kind):
        return column.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
    return column
