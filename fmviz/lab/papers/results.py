"""Storage of complete results of reproductions, and of finished trials of incomplete ones.

The folder ``shipped`` contains our latest result of every figure and table. Each file has two compressed
lines of JSON: the summary for a card, and the result. `make results` writes them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from joblib import Memory

import fmviz
from fmviz.engine.drive import never
from fmviz.lab.papers.base import Artefact, Result
from fmviz.lab.store import RunStore, StoreError
from fmviz.lab.values import plain

MOST_BYTES = "1G"
"""Maximum size of the folder of all trials; least recently used trials are removed."""
FOLDER = Path(__file__).parent / "shipped"
_SUFFIX = ".json.gz"


def folder_of(artefact: Artefact, budget: str, runs: RunStore) -> Path:
    """Return the folder of finished trials of an artefact's protocol and this version of fmviz.

    The trials of all artefacts are in the folder ``papers`` next to the run store, in one `joblib` folder,
    which limits their total size.
    """
    protocol = json.dumps([plain(dict(artefact.configured(budget))), fmviz.__version__], sort_keys=True)
    name = hashlib.sha256(protocol.encode()).hexdigest()[:24]
    return runs.path.parent / "papers" / "joblib" / f"{artefact.name}-{budget}" / name


def unfinished(artefact: Artefact, budget: str, runs: RunStore) -> int:
    """Return the number of finished trials that a run of the artefact would reuse."""
    return sum(1 for _ in folder_of(artefact, budget, runs).rglob("output.pkl"))


def run_and_keep(
    artefact: Artefact,
    budget: str,
    open_store: Callable[[], RunStore],
    should_stop: Callable[[], bool] = never,
    *,
    n_jobs: int = -1,
) -> Iterator[Result]:
    """Run, yielding partial results, and store the complete one.

    Finished trials are stored during the run, and an interrupted run resumes from them.

    Raises
    ------
    ValueError
        If other users can write to the folder of trials; after the last result, if it could not be stored.
    """
    folder, last = None, None
    with suppress(StoreError, sqlite3.Error, OSError):
        # Without a store the run continues; the message at its end has the reason.
        folder = _private(folder_of(artefact, budget, open_store()))
    for last in artefact.run(budget, should_stop=should_stop, n_jobs=n_jobs, folder=folder):
        yield last
    if last is None or last.state != "complete":
        return
    try:
        keep_result(open_store(), last.to_dict())
    except (StoreError, sqlite3.Error) as error:
        raise ValueError(
            f"The result is complete but could not be stored: {error} Save it with the downloads of the "
            "page, or with --output."
        ) from error
    if folder is not None:
        shutil.rmtree(folder.parent, ignore_errors=True)


def _private(folder: Path) -> Path:
    """Return the folder, after a check that only this user can write to the folder of all trials.

    Trials are pickles, which can execute code when loaded.
    """
    papers = folder.parents[2]
    papers.mkdir(mode=0o700, exist_ok=True)
    if os.name == "posix" and ((status := papers.lstat()).st_uid != os.geteuid() or status.st_mode & 0o022):
        raise ValueError(
            f"The folder of finished trials, {papers}, belongs to another user or is writable by others, who "
            "could execute code through it. Remove it, or choose another run store with FMVIZ_STORE or "
            "--store."
        )
    papers.chmod(0o700)
    Memory(papers, verbose=0).reduce_size(bytes_limit=MOST_BYTES)
    return folder


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
    picture : str
        The SVG thumbnail of a shipped result.
    """

    artefact: str
    budget: str
    created: float
    seconds: float
    verdicts: Mapping[str, int]
    shipped: bool = False
    without: tuple[str, ...] = ()
    picture: str = ""


def verdicts_of(result: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of checks by verdict, given a result by `Result.to_dict`."""
    return dict(Counter(check["verdict"] for check in result["checks"]))


def newest(results: Iterable[Kept]) -> Kept | None:
    """Return the newest result computed here, else the newest shipped one, or None."""
    return max(results, key=lambda result: (not result.shipped, result.created), default=None)


def keep_result(runs: RunStore, result: Mapping[str, Any]) -> None:
    """Store a result by `Result.to_dict`, in place of the previous one."""
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


def shipped_results() -> dict[tuple[str, str], Kept]:
    """Return the shipped results, by artefact and budget."""
    results = [Kept(**{**head, "without": tuple(head["without"])}, shipped=True) for head in heads().values()]
    return {(result.artefact, result.budget): result for result in results}


def shipped_result(artefact: str, budget: str) -> dict[str, Any] | None:
    """Return the shipped result of an artefact as by `Result.to_dict`, or None."""
    if heads().get(artefact, {}).get("budget") != budget:
        return None
    with gzip.open(path_of(artefact), "rt", encoding="utf-8") as file:
        file.readline()
        return dict(json.loads(file.readline()))


@cache
def heads() -> Mapping[str, Mapping[str, Any]]:
    """Return the first lines of all files, by artefact."""
    lines = {}
    for path in sorted(FOLDER.glob(f"*{_SUFFIX}")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines[path.name.removesuffix(_SUFFIX)] = json.loads(file.readline())
    return lines


def path_of(artefact: str) -> Path:
    """Return the file of an artefact."""
    return FOLDER / f"{artefact}{_SUFFIX}"


def last_results(runs: RunStore) -> dict[tuple[str, str], Kept]:
    """Return the available results by artefact and budget: stored, else shipped."""
    return {**shipped_results(), **kept_results(runs)}


def last_kept(artefact: Artefact, budget: str, runs: RunStore | None = None) -> Result | None:
    """Return the stored result, else the shipped one, with present verdicts, or None.

    Raises
    ------
    ValueError
        If the result has another protocol than this version of fmviz.
    """
    stored = None if runs is None else kept_result(runs, artefact.name, budget)
    stored = shipped_result(artefact.name, budget) if stored is None else stored
    if stored is None:
        return None
    if stored.get("settings") != plain(dict(artefact.configured(budget))):
        raise ValueError("The stored result has another protocol than this version of fmviz. Run it again.")
    result = Result.from_dict(stored)
    return replace(result, checks=tuple(artefact.judge(result.tables, result.settings)))
