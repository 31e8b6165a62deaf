"""One epoch of every solver against the floor of 60 BLAS matrix-vector products with the same matrix.

    python -m bench.epochs

Rank 30, one core (BLAS limited to one thread), medians; the ratio is what carries over to other machines.
60 products read X as often as an epoch with 30 components must at least: once for the slopes, once for the
update.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from fmviz.datasets import make_sparse_interactions
from fmviz.engine.losses import LOSSES
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import get_solver

SHAPES = {
    "dense 200 × 100": (200, 80, 8, 20),
    "dense 20,000 × 100": (20_000, 80, 8, 20),
    "dense 2,500 × 1,000": (2_500, 1_000, 10, 0),
    "dense 2,500 × 4,000": (2_500, 4_000, 40, 0),
}
CASES = [
    ("ti", "pcd", "squared"),
    ("l1", "pcd", "squared"),
    ("l2", "cd", "squared"),
    ("cs", "pbcd", "squared"),
    ("cs", "pbcd_ls", "squared"),
    ("ti", "pcd", "logistic"),
    ("ti", "pcd", "huber"),
    ("ti", "pcd", "squared_hinge"),
]


def median_seconds(call: Callable[[], object], repeats: int = 9) -> float:
    """Return the median wall time of a call, after one that is not timed."""
    call()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def products(A: np.ndarray, times: int) -> None:
    """Multiply A by a vector so many times."""
    v = np.ones(A.shape[1])
    for _ in range(times):
        A @ v


def main() -> None:
    """Print the table and keep it."""
    threadpool_limits(1, user_api="blas")
    print("| data | regularizer | solver | loss | epoch, ms | 60 products, ms | ratio | entries of P alive |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for shape, (n, d_true, b, d_noise) in SHAPES.items():
        X, y, _ = make_sparse_interactions(n, d_true, b, d_noise, random_state=0)
        # The faster of the two layouts is the floor.
        layouts = (np.ascontiguousarray(X), np.asfortranarray(X))
        floor = min(median_seconds(lambda A=A: products(A, 60)) for A in layouts)
        for regularizer, solver, loss in CASES:
            problem = Problem.build(
                X,
                np.sign(y) if LOSSES[loss].task == "binary" else y,
                loss=loss,
                regularizer=regularizer,
                rank=30,
                lambda_p=0.01,
                lambda_sparse=0.001,
                fit_linear=False,
                fit_intercept=False,
            )
            method = get_solver(solver)(problem)
            rng = np.random.default_rng(0)
            method.start(problem.start(0.01, rng), rng)
            epoch = median_seconds(method.epoch)
            alive = np.count_nonzero(method.parameters().P)
            rows.append(
                {
                    "data": shape,
                    "regularizer": regularizer,
                    "solver": solver,
                    "loss": loss,
                    "epoch_ms": epoch * 1e3,
                    "floor_ms": floor * 1e3,
                    "ratio": epoch / floor,
                    "alive": int(alive),
                }
            )
            print(
                f"| {shape} | {regularizer} | {solver} | {loss} | {epoch * 1e3:.3f} | {floor * 1e3:.3f} "
                f"| {epoch / floor:.2f} | {alive} of {method.parameters().P.size} |",
                flush=True,
            )
    out = Path(__file__).parent / "results" / "epochs.json"
    out.parent.mkdir(exist_ok=True)
    report = {"date": date.today().isoformat(), "machine": platform.processor() or platform.machine()}
    out.write_text(json.dumps({**report, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
