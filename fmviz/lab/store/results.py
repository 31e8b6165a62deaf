"""The last result of every reproduction, kept beside the runs, and checkpoints of unfinished ones."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fmviz.lab.store.database import StoreError
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


def newest(found: Iterable[Kept]) -> Kept | None:
    """Return the newest result that was made here, else the newest at all, or None."""
    return max(found, key=lambda one: (not one.shipped, one.created), default=None)


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
    found = [Kept(**{**dict(row), "verdicts": json.loads(row["verdicts"])}) for row in rows]
    return {(one.artefact, one.budget): one for one in found}


def kept_result(runs: RunStore, artefact: str, budget: str) -> dict[str, Any] | None:
    """Return the result of an artefact that is kept, as it was told, or None."""
    sql = "SELECT data FROM results WHERE artefact = ? AND budget = ?"
    rows = runs.database.read(sql, (artefact, budget))
    return json.loads(zlib.decompress(rows[0]["data"])) if rows else None


class StoredPieces:
    """Finished pieces of an artefact's work, of one protocol: a `fmviz.lab.papers.checkpoints.Pieces`.

    Parameters
    ----------
    runs : RunStore
        Where they are.
    artefact, budget : str
        Of which run.
    protocol : str
        What a piece depends on besides its key: settings and versions, in words.
    """

    def __init__(self, runs: RunStore, artefact: str, budget: str, protocol: str) -> None:
        self._database = runs.database
        self._scope = (artefact, budget, _digest(protocol))
        sql = f"SELECT key, seconds, value FROM pieces WHERE {_SCOPE}"
        rows = self._database.read(sql, self._scope)
        self._known: dict[str, str] = {row["key"]: row["value"] for row in rows}
        self.seconds: float = max((row["seconds"] for row in rows), default=0.0)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> Any:
        """Return what is kept under a key, or None."""
        found = self._known.get(_digest(key))
        return None if found is None else json.loads(found)

    def put(self, key: str, value: Any, seconds: float) -> None:
        """Keep a value that `json.dumps` takes."""
        digest, text = _digest(key), json.dumps(value)
        self._known[digest] = text
        # A piece that cannot be kept is made again after a break: no reason to end the run.
        with suppress(StoreError, sqlite3.Error), self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO pieces VALUES (?, ?, ?, ?, ?, ?)",
                (*self._scope, digest, seconds, text),
            )

    def drop(self) -> None:
        """Forget all pieces of the artefact and the budget, those of other protocols included."""
        self._known.clear()
        self.seconds = 0.0
        with self._database.write() as connection:
            connection.execute("DELETE FROM pieces WHERE artefact = ? AND budget = ?", self._scope[:2])


def count_pieces(runs: RunStore, artefact: str, budget: str, protocol: str) -> int:
    """Return how many `StoredPieces` there are, without reading them."""
    sql = f"SELECT COUNT(*) AS number FROM pieces WHERE {_SCOPE}"
    return int(runs.database.read(sql, (artefact, budget, _digest(protocol)))[0]["number"])


_SCOPE = "artefact = ? AND budget = ? AND protocol = ?"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
