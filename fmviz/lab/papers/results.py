"""Results of reproductions: kept when complete, and read back; finished pieces of those that are not."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from joblib import Memory

from fmviz.engine.drive import never
from fmviz.lab.papers.base import Artefact, Result
from fmviz.lab.papers.reproduction import key_of
from fmviz.lab.papers.shipped import shipped_result, shipped_results
from fmviz.lab.store import RunStore, StoreError
from fmviz.lab.store.results import Kept, keep_result, kept_result, kept_results
from fmviz.lab.values import plain

MOST_BYTES = "1G"
"""What the folder of all pieces may hold; those that were used last stay."""


def _piece(key: str, value: Any) -> Any:
    """Return the value; joblib, which ignores it, remembers it by the key."""
    return value


class StoredPieces:
    """Finished pieces of unfinished runs, in the folder ``papers`` beside the run store.

    They are known by the protocol of their artefact, its settings and the version of its program.
    """

    def __init__(self, artefact: Artefact, budget: str, runs: RunStore) -> None:
        protocol = key_of(plain(dict(artefact.configured(budget))), artefact.version)
        self._papers = runs.path.parent / "papers"
        # Where joblib, asked for the size of all, looks for them.
        self._of_all_protocols = self._papers / "joblib" / f"{artefact.name}-{budget}"
        self._folder = self._of_all_protocols / hashlib.sha256(protocol.encode()).hexdigest()[:24]

    @cached_property
    def _remembered(self) -> Any:
        return Memory(self._folder, verbose=0).cache(_piece, ignore=["value"])

    def __len__(self) -> int:
        return sum(1 for _ in self._folder.rglob("output.pkl"))

    def get(self, key: str) -> Any:
        """Return what is kept under a key, or None."""
        kept = self._remembered
        return kept(key, None) if kept.check_call_in_cache(key, None) else None

    def keep(self, key: str, value: Any) -> None:
        """Keep a value; one that cannot be kept is made again after a break."""
        with suppress(OSError):
            self._remembered.call(key, value)

    def drop(self) -> None:
        """Forget all pieces of the artefact and the budget, those of other protocols included."""
        shutil.rmtree(self._of_all_protocols, ignore_errors=True)

    def trim(self) -> None:
        """Forget the oldest pieces, of whatever artefact, beyond `MOST_BYTES`."""
        if self._papers.exists():
            Memory(self._papers, verbose=0).reduce_size(bytes_limit=MOST_BYTES)


def unfinished(artefact: Artefact, budget: str, runs: RunStore) -> int:
    """Return how many pieces of work a run of the artefact would find done."""
    return len(StoredPieces(artefact, budget, runs))


def result_so_far(artefact: Artefact, budget: str, runs: RunStore) -> Result:
    """Return the result, up to now, of a run that was cut off or is still at work; ValueError for none."""
    pieces = StoredPieces(artefact, budget, runs)
    if not len(pieces):
        raise ValueError(
            f"There is no unfinished run of {artefact.name} with the {budget} budget under the protocol of "
            "this fmviz."
        )
    *_, last = artefact.run(budget, n_jobs=1, pieces=pieces, so_far=True)
    return last


def run_and_keep(
    artefact: Artefact,
    budget: str,
    open_store: Callable[[], RunStore],
    should_stop: Callable[[], bool] = never,
    *,
    n_jobs: int = -1,
    fresh: bool = False,
) -> Iterator[Result]:
    """Run, yielding the result as it grows, and keep the complete one.

    Finished pieces are kept on the way, and a run that was cut off goes on from them, unless it is to be a
    `fresh` one.

    Raises
    ------
    ValueError
        After the last result, if it could not be kept.
    """
    pieces, last = None, None
    with suppress(StoreError, sqlite3.Error, OSError):
        # Without a store the run goes on all the same; the sentence at its end says why nothing is kept.
        pieces = StoredPieces(artefact, budget, open_store())
        if fresh:
            pieces.drop()
        pieces.trim()
    for last in artefact.run(budget, should_stop=should_stop, n_jobs=n_jobs, pieces=pieces):
        yield last
    if last is None or last.state != "complete":
        return
    try:
        keep_result(open_store(), last.to_dict())
    except (StoreError, sqlite3.Error) as error:
        raise ValueError(
            f"The result is complete but could not be kept: {error} Save it with the downloads of the page, "
            "or with --output."
        ) from error
    if pieces is not None:
        pieces.drop()


def last_results(runs: RunStore) -> dict[tuple[str, str], Kept]:
    """Return of which results there are, by artefact and budget: kept here, or else come with fmviz."""
    return {**shipped_results(), **kept_results(runs)}


def last_kept(artefact: Artefact, budget: str, runs: RunStore) -> Result | None:
    """Return the result that is kept, judged as today, or else the one that came with fmviz, or None.

    Raises
    ------
    ValueError
        If there is one that was made under another protocol than that of this fmviz.
    """
    stored = kept_result(runs, artefact.name, budget)
    return last_shipped(artefact, budget) if stored is None else _judged(artefact, budget, stored)


def last_shipped(artefact: Artefact, budget: str) -> Result | None:
    """Return the result that came with fmviz, judged as today, or None; raises ValueError as `last_kept`."""
    stored = shipped_result(artefact.name, budget)
    return None if stored is None else _judged(artefact, budget, stored)


def _judged(artefact: Artefact, budget: str, stored: Mapping[str, Any]) -> Result:
    if stored.get("settings") != plain(dict(artefact.configured(budget))):
        raise ValueError(
            "The result that is kept was made under another protocol than that of this fmviz. Run it again."
        )
    result = Result.from_dict(stored)
    return replace(result, checks=tuple(artefact.judge(result.tables, result.settings)))
