"""Recompute the figures and tables of the papers, and ship the results with the package: `make results`.

    python -m tools.results [--from-store] [NAME ...]

Each artefact runs at the full budget if that takes at most ten minutes on two cores, otherwise at the quick
one. Results go to the run store, from which stopped runs resume. With --from-store, nothing runs: the stored
results are used, of the full budget if available, and partial results of unfinished runs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from pathlib import Path

from fmviz.figures import papers, sketch
from fmviz.lab.papers import ARTEFACTS, BUDGETS, Artefact
from fmviz.lab.papers.results import (
    heads,
    kept_result,
    kept_results,
    path_of,
    run_and_keep,
    unfinished,
    verdicts_of,
)
from fmviz.lab.store import store

MINUTES = 10.0


def stored(artefact: Artefact) -> tuple[dict, float] | None:
    """Return the stored result, of the full budget if available, and its time."""
    known = kept_results(store())
    for budget in reversed(BUDGETS):
        if (artefact.name, budget) in known:
            result = kept_result(store(), artefact.name, budget)
            return None if result is None else (result, known[artefact.name, budget].created)
        if unfinished(artefact, budget, store()):
            *_, last = run_and_keep(artefact, budget, store, lambda: True)
            return last.to_dict(), time.time()
    return None


def without_paths(result: dict) -> dict:
    """Return a result with the path of the data folder shortened to its last component."""
    folder = Path(os.environ.get("FMVIZ_DATA") or "data")
    words = [text.replace(str(folder), folder.name) for text in result["differences"]]
    return {**result, "differences": words}


def keep_shipped(result: dict, created: float, picture: str) -> Path:
    """Write a result, of `Result.to_dict`, with its time in seconds since the epoch and its picture."""
    wanted = result["settings"].get("data", ())
    head = {
        **{name: result[name] for name in ("artefact", "budget", "seconds")},
        "created": round(created),
        "verdicts": verdicts_of(result),
        "without": [name for name in wanted if name not in result["data"]],
        "picture": picture,
    }
    if result["state"] != "complete":
        head["parts"] = [result["done"], result["total"]]
    lines = (json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in (head, result))
    path = path_of(result["artefact"])
    # Without a timestamp in the header, to make equal results equal files.
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    heads.cache_clear()
    return path


def run(artefact: Artefact) -> None:
    """Run an artefact, store the result, and print the progress."""
    budget = "full" if artefact.minutes["full"] <= MINUTES else "quick"
    for result in run_and_keep(artefact, budget, store):
        print(f"{artefact.name}, {budget}: {result.done}/{result.total} {result.message}", flush=True)


def main() -> None:
    """Run the named artefacts, or all, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="artefacts (default: all)")
    parser.add_argument("--from-store", action="store_true", help="run nothing, use the stored results")
    arguments = parser.parse_args()
    for name in arguments.names or ARTEFACTS:
        artefact = ARTEFACTS[name]
        if not arguments.from_store:
            run(artefact)
        if (last := stored(artefact)) is None:
            print(f"{name}: no stored result.")
            continue
        result, created = last
        picture = sketch.thumbnail(papers.draw(result["tables"], **artefact.picture))
        path = keep_shipped(without_paths(result), created, picture)
        print(f"{name}: {result['budget']} budget, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
