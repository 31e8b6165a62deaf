"""Results of reproductions: kept when complete, and read back; finished trials of those that are not."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from joblib import Memory

import fmviz
from fmviz.engine.drive import never
from fmviz.lab.papers.base import Artefact, Result
from fmviz.lab.papers.shipped import shipped_result, shipped_results
from fmviz.lab.store import RunStore, StoreError
from fmviz.lab.store.results import Kept, keep_result, kept_result, kept_results
from fmviz.lab.values import plain

MOST_BYTES = "1G"
"""What the folder of all trials may hold; those that were used last stay."""


def folder_of(artefact: Artefact, budget: str, runs: RunStore) -> Path:
    """Return the folder of finished trials under the protocol of an artefact, by this version of fmviz.

    Those of all artefacts are in the folder ``papers`` beside the run store, in that of `joblib`, which is to
    know the size of all.
    """
    protocol = json.dumps([plain(dict(artefact.configured(budget))), fmviz.__version__], sort_keys=True)
    name = hashlib.sha256(protocol.encode()).hexdigest()[:24]
    return runs.path.parent / "papers" / "joblib" / f"{artefact.name}-{budget}" / name


def unfinished(artefact: Artefact, budget: str, runs: RunStore) -> int:
    """Return how many trials a run of the artefact would find done."""
    return sum(1 for _ in folder_of(artefact, budget, runs).rglob("output.pkl"))


def run_and_keep(
    artefact: Artefact,
    budget: str,
    open_store: Callable[[], RunStore],
    should_stop: Callable[[], bool] = never,
    *,
    n_jobs: int = -1,
) -> Iterator[Result]:
    """Run, yielding the result as it grows, and keep the complete one.

    Finished trials are kept on the way, and a run that was cut off goes on from them.

    Raises
    ------
    ValueError
        If others could have put finished trials there; after the last result, if it could not be kept.
    """
    folder, last = None, None
    with suppress(StoreError, sqlite3.Error, OSError):
        # Without a store the run goes on all the same; the sentence at its end says why nothing is kept.
        folder = _private(folder_of(artefact, budget, open_store()))
    for last in artefact.run(budget, should_stop=should_stop, n_jobs=n_jobs, folder=folder):
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
    if folder is not None:
        shutil.rmtree(folder.parent, ignore_errors=True)


def _private(folder: Path) -> Path:
    """Return the folder, after a check that only this user writes to that of all trials.

    Trials are pickles, which may run anything when they are read.
    """
    papers = folder.parents[2]
    papers.mkdir(mode=0o700, exist_ok=True)
    if os.name == "posix" and ((status := papers.lstat()).st_uid != os.geteuid() or status.st_mode & 0o022):
        raise ValueError(
            f"The folder of finished trials, {papers}, belongs to another user, or others may write to it: "
            "what they put there could run as a program of yours. Remove it, or name another run store with "
            "FMVIZ_STORE or --store."
        )
    papers.chmod(0o700)
    Memory(papers, verbose=0).reduce_size(bytes_limit=MOST_BYTES)
    return folder


def last_results(runs: RunStore) -> dict[tuple[str, str], Kept]:
    """Return of which results there are, by artefact and budget: kept here, or else come with fmviz."""
    return {**shipped_results(), **kept_results(runs)}


def last_kept(artefact: Artefact, budget: str, runs: RunStore | None = None) -> Result | None:
    """Return the result that is kept, else the one that came with fmviz, judged as today, or None.

    Raises
    ------
    ValueError
        If there is one that was made under another protocol than that of this fmviz.
    """
    stored = None if runs is None else kept_result(runs, artefact.name, budget)
    stored = shipped_result(artefact.name, budget) if stored is None else stored
    if stored is None:
        return None
    if stored.get("settings") != plain(dict(artefact.configured(budget))):
        raise ValueError(
            "The result that is kept was made under another protocol than that of this fmviz. Run it again."
        )
    result = Result.from_dict(stored)
    return replace(result, checks=tuple(artefact.judge(result.tables, result.settings)))
