"""Compare iterates and objectives with those of an older commit, case by case.

    python -m bench.same_numbers                      # against 2c2cf81, in a work tree made for it
    python -m bench.same_numbers --against COMMIT
    python -m bench.same_numbers --old PATH           # against a checkout that is there
    python -m bench.same_numbers --quick              # small data
    python -m bench.same_numbers --every 10           # a sample of the cases

Two processes, one a checkout, make the same epochs from the same start with the same generator, one after the
other, and are compared; there is such a pair for every core. Two bars:

- all arrays of parameters after one epoch, to 1e-12 of the largest entry of each;
- the objective after 12 epochs, to 1e-10 of itself; where it misses that, to ten times the largest difference
  that the old code itself shows between this start and five that are one unit in the last place away.
  Coordinate descent on dense data is chaotic: it enlarges rounding errors, and no other order of operations
  could pass.

Cases are the table of epochs (`bench.epochs`) with the squared and the logistic loss; models beyond the
second order, and the convex ones, on small data; and small cases of other settings: weights, linear terms,
other losses, single precision, the parameters of penalties and solvers. Penalties, losses and solvers that
the old commit has not are left out. Solvers that visit samples singly see a hundredth of the samples of
shapes of 2,500 or more, as in that table's predictions; inexact steps with Ω_* make a single epoch where one
is predicted to take longer than 5 s. Steps of stochastic solvers are larger than in the table, so that P
moves. A commit whose kernels are not compiled yet takes several times as long as one whose are.

The exit code is 1 where a bar is missed. The summary is kept in bench/results/same_numbers.json, with the
cases that are beyond a hundredth of a bar.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from . import cases
from .adapter import Case
from .checkouts import Checkout, FailedError, chosen, fitting, lasted, parser
from .report import RESULTS, keep, pick

AFTER_ONE, AT_END, TIMES_OWN = 1e-12, 1e-10, 10.0
# Of a bar: what is nearer to the old numbers is told by the summary alone.
KEPT = 0.01
STARTS = 5


def farthest(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> float:
    """Return the largest difference of an entry, relative to the largest entry of its array in `a`.

    Infinite where names or shapes differ, or only one is a finite number; 0 where both arrays are 0.
    """
    if set(a) != set(b):
        return float("inf")
    return max((_apart(a[name], b[name]) for name in a), default=0.0)


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        return float("inf")
    if a.size == 0 or np.array_equal(a, b, equal_nan=True):
        return 0.0
    largest = float(np.abs(a).max())
    difference = float(np.abs(a - b).max())
    # Not a number, where only one of them is: as far apart as can be.
    return difference / largest if largest > 0.0 and np.isfinite(difference / largest) else float("inf")


def relative(a: float, b: float) -> float:
    """Return |a − b| / |a|; 0 where both have left the finite numbers."""
    if a == b or not (np.isfinite(a) or np.isfinite(b)):
        return 0.0
    difference = abs(a - b) / abs(a) if a else float("inf")
    return difference if np.isfinite(difference) else float("inf")


@dataclass
class Comparison:
    """What two checkouts made of one case.

    Attributes
    ----------
    case : str
        Its name.
    start, first, end : float
        How far apart the starts are, the parameters after one epoch, and the objectives at the end.
    own_first, own_end : float or None
        What the old code's own differences are, from starts one unit in the last place away; None where that
        was not measured.
    still : bool
        Whether the first epoch moved nothing, so that it shows little.
    epochs : tuple of int
        How many epochs each made; fewer than were asked for where it left the finite numbers.
    error : str
        What went wrong, if anything.
    """

    case: str
    start: float = 0.0
    first: float = 0.0
    end: float = 0.0
    own_first: float | None = None
    own_end: float | None = None
    still: bool = False
    epochs: tuple[int, int] = (0, 0)
    error: str = ""

    def misses(self) -> list[str]:
        """Return which bars are missed."""
        if self.error:
            return [self.error]
        lines = []
        if self.start > 0.0:
            lines.append("start")
        if not self.first <= AFTER_ONE:
            lines.append("one epoch")
        if self.epochs[0] != self.epochs[1]:
            lines.append("epochs made")
        if not self.end <= max(AT_END, TIMES_OWN * (self.own_end or 0.0)):
            lines.append("objective")
        return lines

    def is_reported(self) -> bool:
        """Return whether the case is kept beside the summary."""
        return bool(self.misses()) or self.first > KEPT * AFTER_ONE or self.end > KEPT * AT_END


def compare(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    """Compare the answers of two checkouts to `bench.adapter.Worker.follow`."""
    return Comparison(
        name,
        farthest(old["start"], new["start"]),
        farthest(old["first"], new["first"]),
        relative(old["objective"], new["objective"]),
        still=farthest(old["start"], old["first"]) == 0.0,
        epochs=(old["epochs"], new["epochs"]),
    )


def follow(old: Checkout, new: Checkout, case: Case) -> Comparison:
    """Run a case in both; where it misses a bar, see how far the old code is from itself."""
    name = case["name"]
    answers, errors = [], []
    for checkout in (old, new):
        try:
            answers.append(checkout.ask("follow", case))
        except FailedError as error:
            errors.append(str(error))
    if errors:
        which = "both" if not answers else "one"
        return Comparison(name, error=f"{which} raised {' / '.join(errors)}")
    comparison = compare(name, *answers)
    if comparison.first > AFTER_ONE or comparison.end > AT_END:
        near = [old.ask("follow", case, seed) for seed in range(STARTS)]
        comparison.own_first = max(farthest(answers[0]["first"], other["first"]) for other in near)
        comparison.own_end = max(relative(answers[0]["objective"], other["objective"]) for other in near)
    return comparison


def list_of_cases(folder: Path, names: Mapping[str, list[str]], quick: bool) -> list[Case]:
    """Return every combination there is, fitting or not; if it has to be quick, few and with small data."""
    small = [cases.save(data, folder) for data in cases.small_sets()]
    if quick:
        first = cases.save(cases.quick_shape(), folder)
        table = [cases.with_steps(case, first) for case in cases.table_of_epochs(first, names, ("squared",))]
        models = cases.of_models(small[0], names, cases.TIMED_MODELS, ("logistic",))
        few = [case for case in models if (case["solver"], case["penalty"]) in cases.SAMPLE]
        return table + [cases.with_steps(case, small[0]) for case in few]
    selected = []
    for stored in cases.stored_shapes(folder):
        for case in cases.table_of_epochs(stored, names, cases.LOSSES):
            felt = cases.with_steps(case, stored)
            selected.append(cases.shortened(cases.thinned(felt)))
    for stored in small[:2]:
        models = cases.of_models(stored, names, cases.MODELS, cases.LOSSES)
        selected += [cases.with_steps(case, stored) for case in models]
    for stored in small:
        selected += [cases.with_steps(case, stored) for case in cases.of_layouts(stored)]
    for stored in small[:2]:
        selected += [cases.with_steps(case, stored) for case in cases.of_settings(stored)]
    return selected


COLUMNS = {
    "case": "case",
    "missed": "missed",
    "start": "start",
    "first": "after one epoch",
    "own_first": "the old code's own",
    "end": "objective at the end",
    "own_end": "the old code's own",
}


def summary(rows: list[Comparison]) -> list[str]:
    """Return sentences on how far apart the checkouts are."""
    ran = [row for row in rows if not row.error]
    excused = [row for row in ran if not row.misses() and row.end > AT_END]
    equal = {bar: sum(getattr(row, bar) == 0.0 for row in ran) for bar in ("first", "end")}
    worst = {bar: max((getattr(row, bar) for row in ran), default=0.0) for bar in ("first", "end")}
    lines = [
        f"{len(rows):,} cases, {sum(bool(row.misses()) for row in rows):,} with a miss.",
        f"After one epoch: {equal['first']:,} equal to the last bit, largest difference "
        f"{worst['first']:.1e}.",
        f"Objectives at the end: {equal['end']:,} equal to the last bit, largest difference "
        f"{worst['end']:.1e}; {len(excused):,} beyond {AT_END:g} but within {TIMES_OWN:g} times the old "
        "code's own.",
    ]
    if still := sum(row.still for row in ran):
        lines.append(f"{still:,} cases did not move in their first epoch.")
    if ended := sum(row.epochs[0] < cases.EPOCHS and row.epochs[0] != 1 for row in ran):
        lines.append(f"{ended:,} cases left the finite numbers.")
    return lines


def follow_all(roots: tuple[Path, Path], every: list[Case]) -> Iterator[Comparison]:
    """Run all cases, as many at a time as there are cores, and yield what came of them in their order."""
    with contextlib.ExitStack() as stack:
        free: SimpleQueue[tuple[Checkout, Checkout]] = SimpleQueue()
        workers = os.cpu_count() or 1
        for _ in range(workers):
            old, new = (stack.enter_context(Checkout(root)) for root in roots)
            free.put((old, new))

        def compare_case(case: Case) -> Comparison:
            pair = free.get()
            try:
                return follow(*pair, case)
            finally:
                free.put(pair)

        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(compare_case, every)


def main() -> int:
    """Compare, print and keep; return the exit code."""
    arguments = parser("bench.same_numbers", str(__doc__)).parse_args()
    begin = time.perf_counter()
    rows: list[Comparison] = []
    with tempfile.TemporaryDirectory() as folder, chosen(arguments) as roots:
        with Checkout(roots[0]) as old, Checkout(roots[1]) as new:
            every = list_of_cases(Path(folder), old.ask("names"), arguments.quick)
            fit, lost = fitting(old, new, every)
        fit = fit[:: arguments.every]
        for row in follow_all(roots, fit):
            rows.append(row)
            if missed := row.misses():
                print(f"  {row.case}: {', '.join(missed)}", flush=True)
            if len(rows) % 50 == 0:
                seconds = time.perf_counter() - begin
                print(f"  {len(rows):,} of {len(fit):,} cases, {seconds:.0f} s", flush=True)
    bad = [row for row in rows if row.misses()]
    lines = [*summary(rows), *lost, lasted(begin)]
    if bad:
        print(pick([asdict(row) | {"missed": ", ".join(row.misses())} for row in bad], COLUMNS))
    print("\n".join(lines))
    result: dict[str, Any] = {"against": arguments.against, "summary": lines}
    result |= {"quick": arguments.quick, "every": arguments.every}
    result["rows"] = [asdict(row) | {"missed": row.misses()} for row in rows if row.is_reported()]
    keep("same_numbers", result, RESULTS / "same_numbers.json")
    return int(bool(bad or lost))


if __name__ == "__main__":
    sys.exit(main())
