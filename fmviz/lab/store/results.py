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
    """When a result was kept, and of what.

    Attributes
    ----------
    artefact, budget : str
        What was run.
    created : float
        Seconds since the epoch.
    seconds : float
        How long it took.
    verdicts : mapping of str to int
        How many checks came to which verdict.
    shipped : bool
        Whether it is ours, and came with fmviz.
    without : tuple of str
        Data sets that were not at hand, where that is known.
    parts : (int, int), optional
        Of an unfinished one, how many of how many parts there are.
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
    """Return how many checks of a result, as ``Result.to_dict`` tells it, came to which verdict."""
    return dict(Counter(check["verdict"] for check in result["checks"]))


def newest(results: Iterable[Kept]) -> Kept | None:
    """Return the newest result that was made here, else the newest at all, or None."""
    return max(results, key=lambda result: (not result.shipped, result.created), default=None)


def keep_result(runs: RunStore, result: Mapping[str, Any]) -> None:
    """Keep a result, as ``fmviz.lab.papers.Result.to_dict`` tells it, in the place of the one before."""
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
    """Return what is kept, by artefact and budget."""
    rows = runs.database.read("SELECT artefact, budget, created, seconds, verdicts FROM results")
    results = [Kept(**{**dict(row), "verdicts": json.loads(row["verdicts"])}) for row in rows]
    return {(result.artefact, result.budget): result for result in results}


def kept_result(runs: RunStore, artefact: str, budget: str) -> dict[str, Any] | None:
    """Return the result of an artefact that is kept, as it was told, or None."""
    sql = "SELECT data FROM results WHERE artefact = ? AND budget = ?"
    rows = runs.database.read(sql, (artefact, budget))
    return json.loads(zlib.decompress(rows[0]["data"])) if rows else None
