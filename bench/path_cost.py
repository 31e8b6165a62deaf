"""Measure paths of 25 strengths and searches by cross-validation in units of single fits.

    python -m bench.path_cost [--sets movielens_100k,a9a] [--rank 10] [--folds 3]

A single fit has an informed start and the accuracy of fits on a path: it ends when an epoch decreases the
objective by a fraction of less than 1e-5. Its cost is the mean over seven strengths of the same path. Costs
are CPU seconds and epochs. The excess is the maximum and mean distance of the objectives of a path above
those of the single fits.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

import fmviz
from fmviz.engine.fit import Budget, chosen_solver
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.informed import QUICK, fit_from
from fmviz.engine.starts.strengths import References, fill_strengths
from fmviz.lab import catalog
from fmviz.paths import iterate_path
from fmviz.paths.path import FALL
from fmviz.paths.validation import default_folds

EVERY = 4


class Cost:
    """CPU time and epochs."""

    def __init__(self) -> None:
        self.seconds, self.epochs = 0.0, 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Add the cost of the enclosed block."""
        begin = time.process_time()
        yield
        self.seconds += time.process_time() - begin


def single(problem: Problem, solver: Solver, size: float, budget: Budget, cost: Cost) -> Snapshot:
    """Fit from an informed start."""
    with cost.counted():
        fit = fit_from("informed", problem, solver, size, np.random.default_rng(0))
        end = replace(fit, budget=budget).end()
    cost.epochs += end.epoch
    return end


def measure(name: str, rank: int, folds: int) -> None:
    """Measure and print."""
    data = catalog.load(name)
    binary = data.task == "binary"
    problem = Problem.build(data.X, data.y, loss="logistic" if binary else "squared", rank=rank)
    problem, size = fill_strengths(
        problem, dict.fromkeys(("lambda_w", "lambda_p", "lambda_sparse", "init_scale"))
    )
    method = chosen_solver(problem, "auto").having(**QUICK)
    budget = Budget(1_000, fall=FALL, report_every=None)
    grid = References(problem).grid()
    # Kernels are compiled or loaded before timing.
    single(problem, method, size, Budget(1, report_every=None), Cost())
    some = grid[::EVERY]
    alone, path, excess = Cost(), Cost(), []
    ends = {value: single(problem.at(lambda_sparse=value), method, size, budget, alone) for value in some}
    with path.counted():
        for point in iterate_path(
            problem, grid, start="informed", budget=budget, init_scale=size, random_state=0
        ):
            path.epochs += point.snapshot.epoch
            if point.lambda_sparse in ends:
                excess.append(point.snapshot.objective / ends[point.lambda_sparse].objective - 1.0)
    print(f"{name}, rank {rank}")
    mean = alone.seconds / len(some)
    fits = f"{path.seconds / mean:.1f} single fits, {path.epochs / alone.epochs * len(some):.1f} by epochs"
    print(f"  single fit  {mean:8.2f} s {alone.epochs / len(some):8.0f} epochs")
    print(
        f"  path        {path.seconds:8.2f} s {path.epochs:8d} epochs: {fits}; "
        f"excess at most {max(excess):.1e}, mean {np.mean(excess):.1e}",
        flush=True,
    )
    kind = fmviz.FactorizationMachineClassifierCV if binary else fmviz.FactorizationMachineRegressorCV
    rng = np.random.default_rng(0)
    cv = folds if folds > 1 else default_folds(problem.y, binary, rng)
    search = Cost()
    with search.counted():
        machine = kind(rank=rank, cv=cv, standardize=False, random_state=0).fit(data.X, data.y)
    print(
        f"  {folds} fold(s)   {search.seconds:8.2f} s, {len(machine.path_)} strengths: "
        f"{search.seconds / path.seconds:.1f} paths",
        flush=True,
    )


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="movielens_100k,a9a")
    parser.add_argument("--rank", type=int, default=10)
    parser.add_argument("--folds", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.sets.split(","):
        if (reason := catalog.dataset_spec(name).unavailable()) is not None:
            print(f"{name}: {reason}")
            continue
        measure(name, given.rank, given.folds)


if __name__ == "__main__":
    main()
