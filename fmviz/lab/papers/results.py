"""Results of reproductions: kept when complete, and read back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fmviz.engine.drive import never
from fmviz.lab.papers.base import Artefact, Result
from fmviz.lab.papers.checkpoints import key_of
from fmviz.lab.papers.shipped import shipped_result, shipped_results
from fmviz.lab.runs.provenance import made_with
from fmviz.lab.store import RunStore, StoreError
from fmviz.lab.store.results import (
    Kept,
    StoredPieces,
    count_pieces,
    keep_result,
    kept_result,
    kept_results,
)
from fmviz.lab.values import plain


def pieces_of(artefact: Artefact, budget: str, runs: RunStore) -> StoredPieces:
    """Return what runs that were cut off have left behind under the protocol of this fmviz."""
    return StoredPieces(runs, artefact.name, budget, _protocol(artefact, budget))


def found_so_far(artefact: Artefact, budget: str, runs: RunStore) -> Result:
    """Return what a run that was cut off, or that is still at work, has found until now.

    Raises
    ------
    ValueError
        If there is none.
    """
    pieces = pieces_of(artefact, budget, runs)
    if not len(pieces):
        raise ValueError(
            f"There is no unfinished run of {artefact.name} with the {budget} budget under the protocol of "
            "this fmviz."
        )
    *_, last = artefact.run(budget, n_jobs=1, pieces=pieces, so_far=True)
    return replace(last, seconds=pieces.seconds)


def unfinished(artefact: Artefact, budget: str, runs: RunStore) -> int:
    """Return how many pieces of work a run of the artefact would find done."""
    return count_pieces(runs, artefact.name, budget, _protocol(artefact, budget))


def _protocol(artefact: Artefact, budget: str) -> str:
    return key_of(plain(dict(artefact.configured(budget))), made_with())


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
    with suppress(StoreError, sqlite3.Error):
        # Without a store the run goes on all the same; what is told at its end tells why nothing is kept.
        pieces = pieces_of(artefact, budget, open_store())
        if fresh:
            pieces.drop()
    for last in artefact.run(budget, should_stop=should_stop, n_jobs=n_jobs, pieces=pieces):
        yield last
    if last is None or last.state != "complete":
        return
    try:
        keep_result(open_store(), last.to_dict())
        if pieces is not None:
            pieces.drop()
    except (StoreError, sqlite3.Error) as error:
        raise ValueError(
            f"The result is complete but could not be kept: {error} Save it with the downloads of the page, "
            "or with --output."
        ) from error


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
    told = kept_result(runs, artefact.name, budget)
    return last_shipped(artefact, budget) if told is None else _judged(artefact, budget, told)


def last_shipped(artefact: Artefact, budget: str) -> Result | None:
    """Return the result that came with fmviz, judged as today, or None; raises ValueError as `last_kept`."""
    told = shipped_result(artefact.name, budget)
    return None if told is None else _judged(artefact, budget, told)


def _judged(artefact: Artefact, budget: str, told: Mapping[str, Any]) -> Result:
    if told.get("settings") != plain(dict(artefact.configured(budget))):
        raise ValueError(
            "The result that is kept was made under another protocol than that of this fmviz. Run it again."
        )
    result = Result.from_dict(told)
    return replace(result, checks=tuple(artefact.judge(result.tables, result.settings)))
