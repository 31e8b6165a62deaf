"""Verdicts on statements of papers, from the tables of a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from fmviz.lab.papers import Row, Tables, Verdict

Said = tuple[Verdict | bool | None, str | Mapping[str, Any]]
"""A verdict, or whether a statement holds, and a sentence or the numbers for its placeholders."""
Finding = tuple[str, str, Said | None]
"""The key of a statement, a case, and the verdict, or None without numbers."""


def rows_where(tables: Tables, table: str, **where: Any) -> list[Row]:
    """Return the rows of a table with these values; none if the table does not exist yet."""
    return [row for row in tables.get(table, ()) if all(row.get(k) == value for k, value in where.items())]


def names_of(tables: Tables, settings: Mapping[str, Any]) -> list[str]:
    """Return the data sets of a run or, before any, those of its settings."""
    return list(dict.fromkeys(row["data"] for row in tables.get("data", ()))) or list(settings["data"])


def frame(tables: Tables, table: str, **where: Any) -> pd.DataFrame:
    """Return the rows of a table with these values."""
    return pd.DataFrame(rows_where(tables, table, **where))


def pivot(
    tables: Tables,
    table: str,
    value: str,
    index: str | list[str] = "seed",
    columns: str = "method",
    **where: Any,
) -> pd.DataFrame:
    """Return the means of a column of a table by other columns, in order of appearance."""
    rows = frame(tables, table, **where)
    if rows.empty:
        return rows
    return rows.pivot_table(value, index, columns, dropna=False)[rows[columns].unique()]


def verdict(holds: Verdict | bool | None) -> Verdict:
    """Return the verdict for True, False or None (not settled); a verdict is returned unchanged."""
    if isinstance(holds, str):
        return holds
    return "not settled" if holds is None else "holds" if holds else "does not hold"


def majority(cases: Iterable[bool | None], **numbers: Any) -> tuple[Verdict, dict[str, Any]]:
    """Return "holds" if three quarters of the cases or more hold, "does not hold" up to one half.

    A case without evidence is None and makes the verdict "not settled". The numbers are the given ones,
    "wins" and "n".
    """
    answers = [None if case is None else bool(case) for case in cases]
    wins, n = sum(map(bool, answers)), len(answers)
    holds = True if 4 * wins >= 3 * n else False if 2 * wins <= n else None
    holds = None if not n or None in answers else holds
    return verdict(holds), {"wins": wins, "n": n, **numbers}


def balance(gaps: Any, same: float, **numbers: Any) -> tuple[Verdict, dict[str, Any]]:
    """Return whether gaps are positive, as in `majority`; the numbers include "wins", "losses" and "n".

    Gaps of at most `same` are ties. With a majority of ties the verdict is "not settled".
    """
    decided = [gap > 0 for gap in gaps if abs(gap) > same]
    said, counts = majority(decided)
    counts = {**counts, "losses": len(decided) - counts["wins"], "n": len(gaps), **numbers}
    return said if 2 * len(decided) >= len(gaps) else "not settled", counts


def margin(gaps: Sequence[float], least: float = 0.0, unit: str = " points") -> tuple[Verdict, str] | None:
    """Return whether the mean of gaps over splits exceeds `least` by more than the standard error."""
    if len(gaps) == 0:
        return None
    if len(gaps) < 3:
        many = "One split is" if len(gaps) == 1 else f"{len(gaps)} splits are"
        return "not settled", f"{many} too few to estimate the spread."
    mean, error = fmean(gaps), stdev(gaps) / len(gaps) ** 0.5
    holds = None if abs(mean - least) <= error else mean > least
    return verdict(holds), f"Ahead by {mean:+.3g} ± {error:.2g}{unit}."


def agreed(answers: Iterable[bool | Verdict]) -> Verdict:
    """Return the unanimous verdict, else "not settled"."""
    different = set(answers)
    return verdict(different.pop() if len(different) == 1 else None)


def listed(values: Iterable[tuple[Any, ...]], form: str = "{} {}") -> str:
    """Return names and values in one line: "TI 0.2, CS 0.3"."""
    return ", ".join(form.format(*pair) for pair in values)
