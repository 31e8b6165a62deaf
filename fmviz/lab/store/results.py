"""The last result of every artefact of a paper, kept beside the runs."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping
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
    """

    artefact: str
    budget: str
    created: float
    seconds: float
    verdicts: Mapping[str, int]


def keep_result(runs: RunStore, result: Mapping[str, Any]) -> None:
    """Keep a result, as ``fmviz.lab.papers.Result.to_dict`` tells it, in the place of the one before."""
    verdicts: dict[str, int] = {}
    for check in result["checks"]:
        verdicts[check["verdict"]] = verdicts.get(check["verdict"], 0) + 1
    data = zlib.compress(json.dumps(result).encode())
    with runs.database.write() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)",
            (
                result["artefact"],
                result["budget"],
                time.time(),
                result["seconds"],
                json.dumps(verdicts),
                data,
            ),
        )


def kept_results(runs: RunStore) -> dict[tuple[str, str], Kept]:
    """Return what is kept, by artefact and budget."""
    rows = runs.database.read("SELECT artefact, budget, created, seconds, verdicts FROM results")
    found = [Kept(**{**dict(row), "verdicts": json.loads(row["verdicts"])}) for row in rows]
    return {(one.artefact, one.budget): one for one in found}


def kept_result(runs: RunStore, artefact: str, budget: str) -> dict[str, Any] | None:
    """Return the result of an artefact that is kept, as it was told, or None."""
    sql = "SELECT data FROM results WHERE artefact = ? AND budget = ?"
    rows = runs.database.read(sql, (artefact, budget))
    return json.loads(zlib.decompress(rows[0]["data"])) if rows else None
