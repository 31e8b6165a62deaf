"""Recompute the results shipped with the package, of the papers and of pages: `make results`.

    python -m tools.results [--from-store] [NAME ...]

NAME is an artefact of a paper, "start" for the start page, or "compare" for the page Compare. Each artefact
runs at the full budget if that takes at most ten minutes on two cores, otherwise at the quick one. Results go
to the run store, from which stopped runs resume. With --from-store, nothing runs: stored results are used,
of the full budget if available, otherwise the shipped results, with verdicts recomputed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from pathlib import Path

from fmviz.figures import papers, sketch
from fmviz.lab.papers import ARTEFACTS, BUDGETS, Artefact
from fmviz.lab.papers.results import (
    heads,
    kept_results,
    last_kept,
    path_of,
    run_and_keep,
    shipped_results,
    verdicts_of,
)
from fmviz.lab.search import arena, shipped
from fmviz.lab.search.strength_path import trace
from fmviz.lab.store import store

COMPARE, START = "compare", "start"
MINUTES = 10.0


def last_of(artefact: Artefact) -> tuple[dict, float] | None:
    """Return the stored result, of the full budget if available, else the shipped one, and its time."""
    for known in (kept_results(store()), shipped_results()):
        for budget in reversed(BUDGETS):
            if (artefact.name, budget) in known and (result := last_kept(artefact, budget, store())):
                return result.to_dict(), known[artefact.name, budget].created
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
    lines = (json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in (head, result))
    path = path_of(result["artefact"])
    write(path, *lines)
    heads.cache_clear()
    return path


def write(path: Path, *lines: str) -> None:
    """Write lines to a compressed file; equal lines make equal files, without a time in their head."""
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def run(artefact: Artefact) -> None:
    """Run an artefact, store the result, and print the progress."""
    budget = "full" if artefact.minutes["full"] <= MINUTES else "quick"
    for result in run_and_keep(artefact, budget, store):
        print(f"{artefact.name}, {budget}: {result.done}/{result.total} {result.message}", flush=True)


def main() -> None:
    """Run the named artefacts, or all, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="artefacts, or start; all without one")
    parser.add_argument("--from-store", action="store_true", help="run nothing, take what the store has")
    arguments = parser.parse_args()
    for name in arguments.names or (START, COMPARE, *ARTEFACTS):
        if name == COMPARE:
            shipped.keep(shipped.computed())
            print(f"{name}: {shipped.PATH.stat().st_size:,} bytes")
            continue
        if name == START:
            fits = [[*trace(arena.arena_plan(seed))] for seed in arena.SEEDS]
            write(arena.SHIPPED, json.dumps(arena.to_json(fits), separators=(",", ":")))
            print(f"{name}: {arena.SHIPPED.stat().st_size:,} bytes")
            continue
        artefact = ARTEFACTS[name]
        if not arguments.from_store:
            run(artefact)
        if (last := last_of(artefact)) is None:
            print(f"{name}: there is no result.")
            continue
        result, created = last
        picture = sketch.thumbnail(papers.draw(result["tables"], **artefact.picture))
        path = keep_shipped(without_paths(result), created, picture)
        print(f"{name}: {result['budget']} budget, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
