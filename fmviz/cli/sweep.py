"""``fmviz sweep``: run a declared sweep."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmviz.cli._terminal import STORE, Progress, bar, declare, open_store, print_json, text_table, to_stderr
from fmviz.typography import counted, duration, with_spread

if TYPE_CHECKING:
    from fmviz.lab.search.sweep_plan import SweepPlan
    from fmviz.lab.store import RunStore, StoredRun

HELP = "run a sweep declared in a TOML or JSON file, skipping finished fits"


add = partial(
    declare,
    {
        "": {
            "file": {"type": Path, "metavar": "FILE", "help": "the sweep, TOML or JSON"},
            "--jobs": {"type": int, "default": -1, "help": "parallel fits (default: one per core)"},
            "--dask": {"metavar": "ADDRESS", "help": "a Dask scheduler, such as tcp://…:8786"},
            "--dry-run": {"action": "store_true", "help": "print the number of fits and exit"},
            "--json": {"action": "store_true", "help": "print the table as JSON"},
            **STORE,
        }
    },
)


def run(arguments: argparse.Namespace) -> int:
    """Print the number of fits, run them, and print the table; return 1 if one fails, 130 after Ctrl-C."""
    from fmviz.lab.background.workers import checked_jobs
    from fmviz.lab.search.sweep_plan import SweepPlan
    from fmviz.lab.search.sweep_run import results

    plan = SweepPlan.from_file(arguments.file)
    checked_jobs(arguments.jobs)
    store = open_store(arguments)
    try:
        finished = results(plan, store)
        to_stderr(f"{counted(len(plan.cells), 'fit')}; {len(finished):,} are already in the store.")
        if arguments.dry_run:
            return 0
        stopped = _carry_out(plan, store, arguments, finished)
        _report(plan, finished, arguments.json)
    finally:
        store.close()
    if stopped:
        remaining = len(plan.cells) - len(finished)
        to_stderr(f"Stopped with {remaining:,} fits remaining; repeat the command to resume.")
        return 130
    return 1 if any(run.status == "failed" for run in finished.values()) else 0


def _carry_out(
    plan: SweepPlan, store: RunStore, arguments: argparse.Namespace, finished: dict[int, StoredRun]
) -> bool:
    """Run the fits, add them to the store and to `found`; return whether Ctrl-C stopped it."""
    from fmviz.lab.search.sweep_run import carry_out

    total, known = len(plan.cells), len(finished)
    begin = time.monotonic()
    try:
        with (
            Progress(60.0) as progress,
            closing(carry_out(plan, store, n_jobs=arguments.jobs, dask=arguments.dask)) as fits,  # type: ignore[type-var]
        ):
            for fit in fits:
                finished[fit.index] = fit.run
                if fit.fresh:
                    remaining = (time.monotonic() - begin) / (len(finished) - known) * (total - len(finished))
                    progress.tell(f"{bar(len(finished), total)}, {duration(remaining)} to go")
    except KeyboardInterrupt:
        return True
    return False


def _report(plan: SweepPlan, finished: dict[int, StoredRun], as_json: bool) -> None:
    from fmviz.lab.search.sweep_run import (
        fits_table,
        main_metric,
        means_table,
    )
    from fmviz.metrics import COLUMNS

    failed = Counter(run.message for run in finished.values() if run.status == "failed")
    rows: list[dict[Any, Any]] = []
    metric = "objective"
    if finished:
        table = fits_table(plan, sorted(finished.items()))
        metric = main_metric(table)
        rows = means_table(table, list(plan.grid), metric).to_dict("records")
    if as_json:
        print_json({"title": plan.title, "metric": metric, "rows": rows, "failures": failed})
        return
    if plan.title:
        print(f"{plan.title}\n")
    if rows:
        one_set = len({row["dataset"] for row in rows}) == 1
        shown = [
            {
                **({} if one_set else {"dataset": row["dataset"]}),
                **{name: row[name] for name in ("method", *plan.grid, "fits")},
                COLUMNS[metric].label: with_spread(row["mean"], row["std"]),
                "interactions": with_spread(row["interactions"], row["interactions_std"]),
            }
            for row in rows
        ]
        print(text_table(shown))
        print("\nMean ± standard deviation over the seeds.")
    else:
        print("No fit succeeded.")
    for sentence, count in failed.items():
        print(f"{count:,} fit{'' if count == 1 else 's'} failed: {sentence}")
