"""Recompute the results that are shipped with the package, of the papers and of the pages: `make results`.

    python -m tools.results [--no-runs] [NAME ...]

NAME is an artefact of a paper, "start" for the fits of the start page, or "compare" for the comparison with
which the page Compare opens; by default, all are recomputed. An artefact runs at the budget of its shipped
result, a new one at the quick budget. With --no-runs, results that `python -m papers` has written to
papers/results, else the shipped ones, get today's texts and checks.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fmviz.lab.experiment import Experiment
from fmviz.lab.papers import Result, Summary, path_of, shipped_result, summaries
from fmviz.lab.search import arena
from fmviz.lab.search.equal_sparsity import (
    REGULARIZERS,
    SEEDS,
    SHIPPED,
    TARGET,
    SearchFit,
    at_equal_sparsity,
    comparison_base,
)
from fmviz.lab.search.strength_path import PathFit, learn, trace
from papers import ARTEFACTS, Artefact
from papers.__main__ import RESULTS, reproduced
from tools.thumbnail import thumbnail

COMPARE, START = "compare", "start"


def recomputed(artefact: Artefact) -> tuple[Result, float]:
    """Run an artefact; return the result and its time in seconds since the epoch."""
    budget = summaries()[artefact.name].budget if artefact.name in summaries() else "quick"
    return reproduced(artefact, budget), time.time()


def last_of(artefact: Artefact) -> tuple[Result, float]:
    """Return the last result of `python -m papers`, else the shipped one, and its time."""
    path = RESULTS / f"{artefact.name}.json"
    if path.exists():
        return Result.from_dict(json.loads(path.read_text(encoding="utf-8"))), path.stat().st_mtime
    return shipped_result(artefact.name), summaries()[artefact.name].created


def judged(artefact: Artefact, result: Result) -> Result:
    """Return a result with today's texts and checks, and without the path of the folder of data sets."""
    folder = Path(os.environ.get("FMVIZ_DATA") or "data")
    return replace(
        result,
        **artefact.texts(),
        picture=artefact.drawn(result.tables),
        checks=tuple(artefact.judge(result.tables, result.settings)),
        compared=tuple(artefact.compared(result.tables)),
        differences=tuple(text.replace(str(folder), folder.name) for text in result.differences),
    )


def keep_shipped(result: Result, created: float) -> Path:
    """Write a result with its time in seconds since the epoch and its thumbnail."""
    summary = Summary(
        artefact=result.artefact,
        paper=result.paper,
        title=result.title,
        budget=result.budget,
        statement=result.statements[0],
        created=round(created),
        verdicts=dict(Counter(check.verdict for check in result.checks)),
        without=tuple(name for name in result.settings.get("data", ()) if name not in result.data),
        thumbnail=thumbnail(go.Figure(result.picture)),
    )
    parts = asdict(summary), result.to_dict()
    path = path_of(result.artefact)
    write(path, *(json.dumps(part, separators=(",", ":"), ensure_ascii=False) for part in parts))
    summaries.cache_clear()
    return path


def fits_of_default() -> list[SearchFit]:
    """Return the chosen fits of the default comparison, computed now."""
    base = comparison_base(Experiment().dataset.name, 0)
    fits = at_equal_sparsity(base, REGULARIZERS, TARGET, seeds=SEEDS)
    return [fit for fit in fits if fit.parameters is not None]


def compared() -> list[dict[str, Any]]:
    """Return the fits of the default comparison for JSON, their factors to five digits."""
    return [
        {
            **vars(fit),
            "experiment": fit.experiment.to_json(),
            "start": None,
            "parameters": rounded(fit.parameters.P, 5),
        }
        for fit in fits_of_default()
    ]


def started(starts: Sequence[Sequence[PathFit]]) -> dict[str, Any]:
    """Return the results of the start page for JSON, given the fits of the plan of each of its seeds."""
    f1 = {
        name: [
            [fit.values["support_f1"] for fit in fits if fit.experiment.regularizer.name == name]
            for fits in starts
        ]
        for name in arena.REGULARIZERS
    }
    middle = int(np.argsort(np.mean([*f1.values()], axis=(0, 2)))[(len(starts) - 1) // 2])
    plan, path = arena.arena_plan(arena.SEEDS[middle]), dict[str, Any]()
    for fit in starts[middle]:
        path.setdefault(fit.experiment.regularizer.name, []).append(rounded(fit.parameters.P, 3))
    film = {name: [rounded(P, 3) for P in factors] for name, factors in learn(plan, arena.STRENGTH)}
    return {"plan": arena.arena_plan().digest, "f1": f1, "seed": plan.base.seed, "path": path, "film": film}


def rounded(P: np.ndarray, digits: int) -> list[list[float]]:
    """Return factors to some digits; non-zero entries stay non-zero."""
    return [[float(f"{x:.{digits}g}") for x in row] for row in P]


def write(path: Path, *lines: str) -> None:
    """Write lines to a compressed file; equal lines make equal files, without a time in their head."""
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def main() -> None:
    """Recompute what is named, or everything, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="artefacts, start or compare; default: all")
    parser.add_argument("--no-runs", action="store_true", help="run nothing, judge again what there is")
    arguments = parser.parse_args()
    for name in arguments.names or (START, COMPARE, *ARTEFACTS):
        if name == COMPARE:
            write(SHIPPED, json.dumps(compared()))
            print(f"{name}: {SHIPPED.stat().st_size:,} bytes")
            continue
        if name == START:
            fits = [[*trace(arena.arena_plan(seed))] for seed in arena.SEEDS]
            write(arena.SHIPPED, json.dumps(started(fits), separators=(",", ":")))
            print(f"{name}: {arena.SHIPPED.stat().st_size:,} bytes")
            continue
        artefact = ARTEFACTS[name]
        result, created = (last_of if arguments.no_runs else recomputed)(artefact)
        if result.state == "stopped":
            raise SystemExit(f"{name} was stopped. Repeat the command to resume.")
        path = keep_shipped(judged(artefact, result), created)
        print(f"{name}: {result.budget} budget, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
