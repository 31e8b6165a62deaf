"""Compare epoch times and start-up times with those of an older commit.

    python -m bench.same_speed                      # against 2c2cf81, in a work tree made for it
    python -m bench.same_speed --against COMMIT
    python -m bench.same_speed --old PATH           # against a checkout that is there
    python -m bench.same_speed --quick              # two shapes, few rounds
    python -m bench.same_speed --every 10           # a sample of the cells
    python -m bench.same_speed --only epochs        # or startup, pages

Two processes, one a checkout, take turns: a lap of some epochs in one, the same epochs in the other, then in
the other order, from the same start with the same generator. The ratio of a cell is the median over the
turns of new / old processor seconds. Cells above 1.05 are measured five times more, each time with processes
of their own (how memory happens to lie stays with a process, and can be worth 5 %); where the median of the
five is still above 1.05, the cell is slower.

Cells are those of the table of epochs (`bench.epochs`): every solver and penalty with the squared loss, the
sweeps with every loss; and order 3, all subsets, polynomial networks and lifted expansions, one solver for
every way of stepping. As there, epochs that are predicted to take longer than 5 s are not tried; they are
listed.

Beside them, by turns as well: import plus first fit with compiled kernels, which may take 1.5 times the
import of scikit-learn's base and 0.5 s; and with nothing compiled, readying the kernels of the first pages
and the time from starting the dashboard to its start page and to painted operators, which may not take
longer than before (medians; measured again like cells). Pages need Playwright and a Chromium, and their wall
time has that of other programs in it.

The exit code is 1 where a bar is missed. Everything is kept in bench/results/same_speed.json.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import cases
from .adapter import Case
from .checkouts import Checkout, FailedError, chosen, fitting, lasted, parser, together
from .epochs import SWEEPS, pairs_seconds
from .report import RESULTS, keep, pick
from .startup import FMVIZ, SCIKIT_LEARN, allowed, stages, to_first_fit, warmup
from .timing import median_ratio, repeats

Roots = tuple[Path, Path]
Turn = Callable[[int], float]

MOST, AGAIN = 1.05, 5
PARTS = ("epochs", "startup", "pages")
LAP = 0.04
SIDES = ("old", "new")


def by_turns(turn: Turn, rounds: int) -> tuple[list[float], list[float]]:
    """Return the times of both sides, 0 and 1, which take turns at going first."""
    times: tuple[list[float], list[float]] = ([], [])
    for n in range(rounds):
        for side in (0, 1) if n % 2 == 0 else (1, 0):
            times[side].append(turn(side))
    return times


def verdict(ratio: float, again: list[float]) -> str:
    """Return whether a ratio, measured again where it was too large, is that of something slower."""
    if ratio <= MOST:
        return "same"
    if not again:
        return "to be measured again"
    return "slower" if float(np.median(again)) > MOST else "same, measured again"


def rounds_for(seconds: float, quick: bool) -> int:
    """Return how many turns a cell of such epochs is given: an odd number."""
    most, budget = (5, 1.0) if quick else (11, 4.0)
    return int(np.clip(budget / max(seconds, LAP) / 2.0, 3, most)) // 2 * 2 + 1


def measure(old: Checkout, new: Checkout, case: Case, quick: bool) -> dict[str, Any]:
    """Time a cell by turns; return the seconds of an epoch of both, and the ratios."""
    both = (old, new)
    seconds = together(both, "prepare", case)
    count = repeats(min(seconds), LAP)
    times = by_turns(lambda side: both[side].ask("lap", count), rounds_for(max(seconds), quick))
    return {
        "old": float(np.median(times[0])),
        "new": float(np.median(times[1])),
        "ratio": median_ratio(times[1], times[0]),
        "rounds": len(times[0]),
    }


def predicted(old: Checkout, case: Case) -> float | None:
    """Return what an epoch may take, where that can be too much to try it out; else None."""
    if case["penalty"] == "omega_star":
        return pairs_seconds(case["shape"][1], case["solver"])
    if cases.thinned(case)["samples"] is None:
        return None
    return float(old.ask("prepare", cases.thinned(case))) * cases.ONE_IN


def cells(folder: Path, names: dict[str, list[str]], quick: bool) -> list[Case]:
    """Return every combination there is, fitting or not."""
    selected = []
    for stored in cases.stored_shapes(folder, quick):
        selected += list(cases.table_of_epochs(stored, names, ("squared",)))
        losses = [loss for loss in names["losses"] if loss != "squared"]
        selected += [
            cases.case(stored, loss, penalty, solver) for loss in losses for penalty, solver in SWEEPS
        ]
    for data in cases.middle_sets()[: 1 if quick else 2]:
        stored = cases.save(data, folder)
        models = cases.of_models(stored, names, cases.TIMED_MODELS, ("squared",))
        selected += [case for case in models if (case["solver"], case["penalty"]) in cases.SAMPLE]
    return [cases.with_small_steps(case) for case in selected]


def time_cells(
    roots: Roots, every: Callable[[dict[str, list[str]]], list[Case]], quick: bool, step: int = 1
) -> dict[str, Any]:
    """Time every cell; measure those again that are too slow."""
    rows: list[dict[str, Any]] = []
    skipped: list[dict[str, Any]] = []
    with Checkout(roots[0]) as old, Checkout(roots[1]) as new:
        fit, lost = fitting(old, new, every(old.ask("names")))
        fit = fit[::step]
        for case in fit:
            row: dict[str, Any] = {"case": case["name"], "again": []}
            try:
                seconds = predicted(old, case)
                if seconds is not None and seconds > cases.LONGEST:
                    skipped.append({"case": case["name"], "predicted": seconds})
                    continue
                row |= measure(old, new, case, quick)
            except FailedError as error:
                row |= {"ratio": float("inf"), "error": str(error)}
            rows.append(row)
            print(f"  {row['case']}: {row['ratio']:.3f}", flush=True)
    over = {row["case"]: row for row in rows if row["ratio"] > MOST and "error" not in row}
    for n in range(AGAIN):
        if not over:
            break
        print(f"  Again, {n + 1} of {AGAIN}: {len(over)} cells.", flush=True)
        with Checkout(roots[0]) as old, Checkout(roots[1]) as new:
            for case in fit:
                if case["name"] in over:
                    over[case["name"]]["again"].append(measure(old, new, case, quick)["ratio"])
    for row in rows:
        row["verdict"] = "failed" if "error" in row else verdict(row["ratio"], row["again"])
    return {"rows": rows, "skipped": skipped, "lost": lost}


def time_startup(roots: Roots, quick: bool) -> list[dict[str, Any]]:
    """Time import and first fit of both checkouts, and the import of scikit-learn's base, by turns."""
    rounds = 3 if quick else 7
    with tempfile.TemporaryDirectory() as cache:
        for root in roots:
            stages(FMVIZ, cache, root=root)
        # scikit-learn has the turn between the two.
        base: list[float] = []

        def turn(side: int) -> float:
            if side == 0:
                base.append(stages(SCIKIT_LEARN, "")["class"])
            return to_first_fit(stages(FMVIZ, cache, root=roots[side]))

        old, new = by_turns(turn, rounds)
    most = allowed({"class": float(np.median(base))})
    measured = float(np.median(new))
    return [
        {
            "case": "import and first fit, CPU s",
            "old": float(np.median(old)),
            "new": measured,
            "ratio": median_ratio(new, old),
            "allowed": most,
            "verdict": "within" if measured <= most else "slower",
        }
    ]


def first_pages(root: Path) -> dict[str, float]:
    """Return the wall seconds from the start of a dashboard that has nothing compiled to its first pages."""
    from playwright.sync_api import sync_playwright

    from .serve import browser_of, first_visit, served, visit

    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        browser = browser_of(playwright)
        window = browser.new_context(viewport={"width": 1440, "height": 900})
        begin = time.perf_counter()
        with served({"FMVIZ_CACHE_DIR": place, "FMVIZ_STORE": f"{place}/runs.sqlite"}, root) as url:
            first_visit(window, url)
            start = time.perf_counter() - begin
            visit(window, url)
            painted = time.perf_counter() - begin
        browser.close()
    return {"start page, wall s": start, "operators painted, wall s": painted}


def first_kernels(root: Path) -> dict[str, float]:
    """Return the processor seconds of readying the first pages' kernels, with nothing compiled."""
    with tempfile.TemporaryDirectory() as cache:
        return {"kernels of the first pages, CPU s": warmup(cache, root)["cpu"]}


def time_beginnings(
    roots: Roots, once: Callable[[Path], dict[str, float]], rounds: int
) -> list[dict[str, Any]]:
    """Time something that takes seconds, by turns; measure it again where it is slower."""

    def taken(count: int) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
        times: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])

        def turn(side: int) -> float:
            times[side].append(once(roots[side]))
            return 0.0

        by_turns(turn, count)
        return times

    old, new = taken(rounds)
    rows = []
    for name in old[0]:
        before, after = ([lap[name] for lap in side] for side in (old, new))
        rows.append(
            {
                "case": f"nothing compiled: {name}",
                "old": float(np.median(before)),
                "new": float(np.median(after)),
                "ratio": median_ratio(after, before),
                "again": [],
            }
        )
    if any(row["ratio"] > MOST for row in rows):
        old, new = taken(AGAIN)
        for row, name in zip(rows, old[0], strict=True):
            row["again"] = [b[name] / a[name] for a, b in zip(old, new, strict=True)]
    return [row | {"verdict": verdict(row["ratio"], row["again"])} for row in rows]


def spread(rows: list[dict[str, Any]]) -> str:
    """Return a sentence on how the ratios are distributed."""
    ratios = [row["ratio"] for row in rows if np.isfinite(row["ratio"])]
    at = np.quantile(ratios, (0.0, 0.05, 0.5, 0.95, 1.0))
    return (
        f"{len(ratios):,} cells, new / old: median {at[2]:.3f}, 5 % to 95 % {at[1]:.3f} to {at[3]:.3f}, "
        f"least {at[0]:.3f}, largest {at[4]:.3f}; "
        f"{sum(ratio > MOST for ratio in ratios)} above {MOST:g} at first."
    )


COLUMNS = {
    "case": "case",
    "old": "old, s",
    "new": "new, s",
    "ratio": "new / old",
    "median again": "again, median",
    "allowed": "allowed",
    "verdict": "verdict",
}


def parts(text: str) -> list[str]:
    """Return the parts named in a comma-separated list."""
    named = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in named if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(PARTS)}")
    return named


def main() -> int:
    """Measure, print and keep; return the exit code."""
    options = parser("bench.same_speed", str(__doc__))
    options.add_argument("--only", type=parts, default=list(PARTS), help=", ".join(PARTS))
    arguments = options.parse_args()
    quick, begin = arguments.quick, time.perf_counter()
    rows: list[dict[str, Any]] = []
    result: dict[str, Any] = {"against": arguments.against, "quick": quick, "every": arguments.every}
    result |= {"skipped": [], "lost": []}
    with chosen(arguments) as roots:
        if "startup" in arguments.only:
            rows += time_startup(roots, quick)
        if "pages" in arguments.only:
            rows += time_beginnings(roots, first_kernels, 1 if quick else 3)
            if importlib.util.find_spec("playwright") is not None:
                rows += time_beginnings(roots, first_pages, 1 if quick else 3)
            else:
                print("Playwright is not there; pages are left out.", file=sys.stderr)
        beginnings = len(rows)
        if "epochs" in arguments.only:
            with tempfile.TemporaryDirectory() as folder:
                timed = time_cells(
                    roots, lambda names: cells(Path(folder), names, quick), quick, arguments.every
                )
            rows += timed["rows"]
            result |= {"skipped": timed["skipped"], "lost": timed["lost"]}
    for row in rows:
        row["median again"] = float(np.median(row["again"])) if row.get("again") else None
    bad = [row for row in rows if row["verdict"] in ("slower", "failed")]
    lines = [f"{len(bad)} slower.", lasted(begin)]
    if result["skipped"]:
        named = ", ".join(f"{row['case']} ({row['predicted']:.0f} s)" for row in result["skipped"])
        lines.insert(0, f"Not tried, since an epoch is predicted to take long: {named}.")
    if rows[beginnings:]:
        lines.insert(0, spread(rows[beginnings:]))
    shown = rows[:beginnings] + [row for row in rows[beginnings:] if row["ratio"] > MOST]
    print(pick(shown, COLUMNS))
    print("\n".join([*lines, *result["lost"]]))
    keep("same_speed", result | {"rows": rows, "summary": lines}, RESULTS / "same_speed.json")
    return int(bool(bad or result["lost"]))


if __name__ == "__main__":
    sys.exit(main())
