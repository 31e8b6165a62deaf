"""Results of artefacts that outlive the process: kept when complete, found again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace

from fmviz.lab.papers.base import Artefact, Result, plain
from fmviz.lab.store import RunStore, StoreError
from fmviz.lab.store.results import keep_result, kept_result


def run_and_keep(
    artefact: Artefact, budget: str, open_store: Callable[[], RunStore], should_stop: Callable[[], bool]
) -> Iterator[Result]:
    """Run, yielding the result as it grows, and keep the complete one.

    Raises
    ------
    ValueError
        After the last result, if it could not be kept.
    """
    last = None
    for last in artefact.run(budget, should_stop=should_stop):
        yield last
    if last is None or last.state != "complete":
        return
    try:
        keep_result(open_store(), last.to_dict())
    except (StoreError, sqlite3.Error) as error:
        raise ValueError(
            f"The result is complete but could not be kept: {error} Take it with you with the downloads."
        ) from error


def last_kept(artefact: Artefact, budget: str, runs: RunStore) -> Result | None:
    """Return the result that is kept, judged as today, or None.

    Raises
    ------
    ValueError
        If there is one that was made under another protocol than that of this fmviz.
    """
    told = kept_result(runs, artefact.name, budget)
    if told is None:
        return None
    if told.get("settings") != plain(dict(artefact.configured(budget))):
        raise ValueError(
            "The result that is kept was made under another protocol than that of this fmviz. Run it again."
        )
    result = Result.from_dict(told)
    return replace(result, checks=tuple(artefact.judge(result.tables, result.settings)))
