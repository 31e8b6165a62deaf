"""Read the tables of a result: rows with some values, as dictionaries or as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Row]]


def rows_where(tables: Tables, table: str, **where: Any) -> list[Row]:
    """Return the rows of a table with these values; none where there is no such table yet."""
    return [row for row in tables.get(table, ()) if all(row.get(k) == value for k, value in where.items())]


def names_of(tables: Tables, settings: Mapping[str, Any]) -> list[str]:
    """Return the data sets of a run, or before there are any those of its settings."""
    return list(dict.fromkeys(row["data"] for row in tables.get("data", ()))) or list(settings["data"])


def frame(tables: Tables, table: str, **where: Any) -> pd.DataFrame:
    """Return the rows of a table with these values."""
    return pd.DataFrame(rows_where(tables, table, **where))


def pivot(
    tables: Tables, table: str, value: str, index: str = "seed", columns: str = "method", **where: Any
) -> pd.DataFrame:
    """Return the means of a column of a table by two others, the columns as they first appear."""
    rows = rows_where(tables, table, **where)
    if not rows:
        return pd.DataFrame()
    means = pd.DataFrame(rows).groupby([index, columns])[value].mean().unstack(columns)
    return means[list(dict.fromkeys(row[columns] for row in rows))]
