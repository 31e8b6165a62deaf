"""Store the latest result of every reproduction of a paper."""

from __future__ import annotations

import json
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fmviz.lab.store.runs import RunStore


@dataclass(frozen=True)
class Kept:
    """A stored result without its tables.

    Attributes
    ----------
    artefact, budget : str
        The artefact and its budget.
    created : float
        Seconds since the epoch.
    seconds : float
        The duration.
    verdicts : mapping of str to int
        The number of checks by verdict.
    shipped : bool
        Whether it was shipped with fmviz.
    without : tuple of str
        Data sets that were not available, if known.
    parts : (int, int), optional
        The number of finished parts, and of all parts, of an unfinished result.
    """

    artefact: str
    budget: str
    created: float
    seconds: float
    verdicts: Mapping[str, int]
    shipped: bool = False
    without: tuple[str, ...] = ()
    parts: tuple[int, int] | None = None


def verdicts_of(result: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of checks by verdict, given a result by ``Result.to_dict``."""
    return dict(Counter(check["verdict"] for check in result["checks"]))


def newest(results: Iterable[Kept]) -> Kept | None:
    """Return the newest result computed here, else the newest shipped one, or None."""
    return max(results, key=lambda result: (not result.shipped, result.created), default=None)


def keep_result(runs: RunStore, result: Mapping[str, Any]) -> None:
    """Store a result by ``fmviz.lab.papers.Result.to_dict``, in place of the previous one."""
    data = zlib.compress(json.dumps(result).encode())
    with runs.database.write() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)",
            (
                result["artefact"],
                result["budget"],
                time.time(),
                result["seconds"],
                json.dumps(verdicts_of(result)),
                data,
            ),
        )


def kept_results(runs: RunStore) -> dict[tuple[str, str], Kept]:
    """Return the stored results by artefact and budget."""
    rows = runs.database.read("SELECT artefact, budget, created, seconds, verdicts FROM results")
    results = [Kept(**{**dict(row), "verdicts": json.loads(row["verdicts"])}) for row in rows]
    return {(result.artefact, result.budget): result for result in results}


def kept_result(runs: RunStore, artefact: str, budget: str) -> dict[str, Any] | None:
    """Return the stored result of an artefact as a dictionary, or None."""
    sql = "SELECT data FROM results WHERE artefact = ? AND budget = ?"
    rows = runs.database.read(sql, (artefact, budget))
    return json.loads(zlib.decompress(rows[0]["data"])) if rows else None
