"""PSGD for TI and CS on one-hot data: exact sparse steps against the operator on all of P at every step.

    python -m bench.sparse_psgd

100,000 samples of 943 users and 1,682 items (d = 2,625, two ones a row, as MovieLens 100K), rank 30. A whole
epoch of sparse steps is timed; of dense steps only so many that it takes about a second, scaled to an epoch.
Then sparse epochs with d from 1,000 to 32,000. Times are medians, in CPU seconds of the one thread, which
other programs on the machine disturb less than they do a clock.
"""

from __future__ import annotations

import json
import platform
import time
from datetime import date
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fmviz.engine.problem import Problem
from fmviz.engine.solvers import get_solver

SAMPLES, USERS, ITEMS, RANK = 100_000, 943, 1_682, 30
WIDTHS = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
# The paper's choice for MovieLens 100K (C.2), and one so weak that almost all of P stays alive.
STRENGTHS = (("l1", 5e-5), ("ti", 5e-5), ("cs", 5e-5), ("ti", 1e-9), ("cs", 1e-9))
DENSE_STEPS = 2_000
HERE = Path(__file__).parent / "results"


def one_hot(n: int, users: int, items: int, rng: np.random.Generator) -> tuple[sp.csr_array, np.ndarray]:
    """Return user and item indicators, items by a long-tailed law, and ratings that depend on both."""
    user = rng.integers(0, users, n)
    item = np.minimum((items * rng.random(n) ** 2).astype(int), items - 1)
    columns = np.column_stack([user, users + item]).reshape(-1)
    X = sp.csr_array((np.ones(2 * n), columns, np.arange(n + 1) * 2), shape=(n, users + items))
    U, V = rng.normal(size=(users, 4)), rng.normal(size=(items, 4))
    return X, (U[user] * V[item]).sum(axis=1) / 2.0 + 0.5 * rng.normal(size=n)


def problem_of(X, y, regularizer: str, lam: float) -> Problem:
    """Return the problem of the paper's Fig. 9 (a) with these data."""
    return Problem.build(
        X, y, regularizer=regularizer, rank=RANK, lambda_w=5e-5, lambda_p=5e-5, lambda_sparse=lam
    )


def seconds(problem: Problem, operator: str, epochs: int) -> tuple[list[float], int]:
    """Return the time of every epoch, after a short run that is not timed, and the live entries of P."""
    n = min(200, problem.design.n_samples)
    small = problem_of(
        problem.design.matrix[:n], problem.y[:n], problem.regularizer.name, problem.lambda_sparse
    )
    times: list[float] = []
    method = None
    for this, count in ((small, 1), (problem, epochs)):
        # The steps alone, without the safeguard's look at the objective.
        method = get_solver("psgd")(this, operator=operator, eta0=0.1, monotone=False)
        rng = np.random.default_rng(0)
        method.start(this.start(0.1, rng), rng)
        times.clear()
        for _ in range(count):
            begin = time.thread_time()
            change = method.epoch()
            times.append(time.thread_time() - begin)
            assert np.isfinite(change)
    assert method is not None
    return times, int(np.count_nonzero(method.parameters().P))


def main() -> None:
    """Print the tables and keep them."""
    rng = np.random.default_rng(0)
    lines = [f"PSGD on one-hot data, {SAMPLES:,} samples, rank {RANK}: CPU seconds an epoch", ""]
    lines += [
        "| penalty | λ̃ | d | sparse | dense, scaled | ratio | entries of P alive |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = []

    def line(name: str, lam: float, d: int, epochs: list[float], dense: float | None, alive: int) -> None:
        sparse = float(np.median(epochs))
        rows.append(
            {
                "penalty": name,
                "strength": lam,
                "d": d,
                "sparse": epochs,
                "dense_scaled": dense,
                "alive": alive,
            }
            | ({"ratio": dense / sparse} if dense else {})
        )
        text = f"{dense:.1f} | {dense / sparse:.0f}" if dense else "– | –"
        lines.append(f"| {name} | {lam:g} | {d:,} | {sparse:.3f} | {text} | {alive / (d * RANK):.1%} |")
        print(lines[-1], flush=True)

    X, y = one_hot(SAMPLES, USERS, ITEMS, rng)
    for name, lam in STRENGTHS:
        problem = problem_of(X, y, name, lam)
        epochs, alive = seconds(problem, "sparse", 3)
        part = problem_of(X[:DENSE_STEPS], y[:DENSE_STEPS], name, lam)
        dense = float(np.median(seconds(part, "dense", 3)[0])) * SAMPLES / DENSE_STEPS
        line(name, lam, X.shape[1], epochs, dense, alive)
    for d in WIDTHS:
        X, y = one_hot(SAMPLES, d // 3, d - d // 3, rng)
        for name, lam in STRENGTHS[1:]:
            epochs, alive = seconds(problem_of(X, y, name, lam), "sparse", 3)
            line(name, lam, d, epochs, None, alive)
    lines += ["", f"The dense operator was timed on epochs of {DENSE_STEPS:,} steps, scaled to {SAMPLES:,}."]
    HERE.mkdir(exist_ok=True)
    report = {"date": date.today().isoformat(), "machine": platform.processor() or platform.machine()}
    (HERE / "sparse_psgd.json").write_text(json.dumps({**report, "rows": rows}, indent=1) + "\n")
    (HERE / "sparse_psgd.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
