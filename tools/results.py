"""Make the results anew that come with the package, of the papers and of the start page: `make results`.

    python -m tools.results [--from-store] [NAME ...]

Each runs at the full budget where that takes at most ten minutes on two cores, else at the quick one, into
the run store, so that what was stopped goes on. With --from-store nothing runs: what the store has is taken,
of the full budget if it can be, and of an unfinished run what it has found so far. The fits of the start page
are named start.
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
from fmviz.lab.search import arena
from fmviz.lab.search.strength_path import trace
from fmviz.lab.store import store

START = "start"
MINUTES = 10.0


def stored(artefact: Artefact) -> tuple[dict, float] | None:
    """Return the result that the run store has, of the full budget if it can be, and when it was made."""
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
    """Return a result in whose words the folder of data sets has its last name alone."""
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
    write(path, *lines)
    heads.cache_clear()
    return path


def write(path: Path, *lines: str) -> None:
    """Write lines to a compressed file; equal lines make equal files, without a time in their head."""
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def run(artefact: Artefact) -> None:
    """Run an artefact into the run store, telling how far it is."""
    budget = "full" if artefact.minutes["full"] <= MINUTES else "quick"
    for result in run_and_keep(artefact, budget, store):
        print(f"{artefact.name}, {budget}: {result.done}/{result.total} {result.message}", flush=True)


def main() -> None:
    """Run what is named, or everything, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="artefacts, or start; all without one")
    parser.add_argument("--from-store", action="store_true", help="run nothing, take what the store has")
    arguments = parser.parse_args()
    for name in arguments.names or (START, *ARTEFACTS):
        if name == START:
            fits = [[*trace(arena.arena_plan(seed))] for seed in arena.SEEDS]
            write(arena.SHIPPED, json.dumps(arena.to_json(fits), separators=(",", ":")))
            print(f"{name}: {arena.SHIPPED.stat().st_size:,} bytes")
            continue
        artefact = ARTEFACTS[name]
        if not arguments.from_store:
            run(artefact)
        if (last := stored(artefact)) is None:
            print(f"{name}: the store has none.")
            continue
        result, created = last
        picture = sketch.thumbnail(papers.draw(result["tables"], **artefact.picture))
        path = keep_shipped(without_paths(result), created, picture)
        print(f"{name}: {result['budget']} budget, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
