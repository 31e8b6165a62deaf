"""Read the tables of a result, and come to verdicts on what a paper says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from fmviz.lab.papers import Row, Tables, Verdict

Said = tuple[Verdict | bool | None, str | Mapping[str, Any]]
"""A verdict, or whether a statement holds, and a sentence or the numbers in that of the statement."""
Finding = tuple[str, str, Said | None]
"""The key of a statement, a case of it, and what is said, or None where there are no numbers."""


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
    tables: Tables,
    table: str,
    value: str,
    index: str | list[str] = "seed",
    columns: str = "method",
    **where: Any,
) -> pd.DataFrame:
    """Return the means of a column of a table by others, the columns as they first appear."""
    rows = frame(tables, table, **where)
    if rows.empty:
        return rows
    return rows.pivot_table(value, index, columns, dropna=False)[rows[columns].unique()]


def verdict(holds: Verdict | bool | None) -> Verdict:
    """Return the verdict on what holds, does not, or, with None, is not settled; or the one that is given."""
    if isinstance(holds, str):
        return holds
    return "not settled" if holds is None else "holds" if holds else "does not hold"


def majority(cases: Iterable[bool | None], **numbers: Any) -> tuple[Verdict, dict[str, Any]]:
    """Say "holds" if it does in three of four cases or more, "does not hold" up to one in two.

    A case without evidence is None; with one of them nothing is settled. The numbers are those given, "wins"
    and "n".
    """
    answers = [None if case is None else bool(case) for case in cases]
    wins, n = sum(map(bool, answers)), len(answers)
    holds = True if 4 * wins >= 3 * n else False if 2 * wins <= n else None
    holds = None if not n or None in answers else holds
    return verdict(holds), {"wins": wins, "n": n, **numbers}


def balance(gaps: Any, same: float, **numbers: Any) -> tuple[Verdict, dict[str, Any]]:
    """Say whether gaps are positive, as `majority`; the numbers are those given, "wins", "losses" and "n".

    Gaps of at most `same` are ties. Where more than half are ties nothing is settled.
    """
    decided = [gap > 0 for gap in gaps if abs(gap) > same]
    said, counts = majority(decided)
    counts = {**counts, "losses": len(decided) - counts["wins"], "n": len(gaps), **numbers}
    return said if 2 * len(decided) >= len(gaps) else "not settled", counts


def margin(gaps: Sequence[float], least: float = 0.0, unit: str = " points") -> tuple[Verdict, str] | None:
    """Say whether gaps, one a split, are above `least` in the mean: by more than their standard error."""
    if len(gaps) == 0:
        return None
    if len(gaps) < 3:
        many = "One split tells" if len(gaps) == 1 else f"{len(gaps)} splits tell"
        return "not settled", f"{many} nothing of the spread."
    mean, error = fmean(gaps), stdev(gaps) / len(gaps) ** 0.5
    holds = None if abs(mean - least) <= error else mean > least
    return verdict(holds), f"Ahead by {mean:+.3g} ± {error:.2g}{unit}."


def agreed(answers: Iterable[bool | Verdict]) -> Verdict:
    """Return the verdict on which all answers agree, else "not settled"."""
    different = set(answers)
    return verdict(different.pop() if len(different) == 1 else None)


def listed(values: Iterable[tuple[Any, ...]], form: str = "{} {}") -> str:
    """Return names and their values in one line: "TI 0.2, CS 0.3"."""
    return ", ".join(form.format(*pair) for pair in values)
