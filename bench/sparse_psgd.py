"""Time PSGD for TI and CS on one-hot data: exact sparse steps against dense ones.

    python -m bench.sparse_psgd

100,000 samples of 943 users and 1,682 items (d = 2,625, two ones per row, like MovieLens 100K), rank 30. A
full epoch of sparse steps is timed; dense steps are timed for about a second and scaled to an epoch. Then
sparse epochs with d from 1,000 to 32,000.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fmviz.engine.problem import Problem

from .data import one_hot
from .ours import Ours, alive
from .report import alone, pick
from .timing import RANK

SAMPLES, USERS, ITEMS = 100_000, 943, 1_682
WIDTHS = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
# The paper's choice for MovieLens 100K (C.2), and a weak one at which almost all of P stays non-zero.
STRENGTHS = (("l1", 5e-5), ("ti", 5e-5), ("cs", 5e-5), ("ti", 1e-9), ("cs", 1e-9))
DENSE_STEPS = 2_000


def started(X: Any, y: np.ndarray, regularizer: str, lam: float, operator: str) -> Ours:
    """Return a run on the problem of the paper's Fig. 9 (a) with these data."""
    problem = Problem.build(
        X, y, penalty=regularizer, rank=RANK, lambda_w=5e-5, lambda_p=5e-5, lambda_sparse=lam
    )
    start = problem.start(0.1, np.random.default_rng(0))
    return Ours(problem, "psgd", start, operator=operator, eta0=0.1, monotone=False)


def measured(X: Any, y: np.ndarray, regularizer: str, lam: float, dense: bool) -> dict[str, Any]:
    """Time three epochs of sparse steps and, optionally, some dense steps."""
    run = started(X, y, regularizer, lam, "sparse")
    epochs = [run.advance() for _ in range(3)]
    row: dict[str, Any] = {"regularizer": regularizer, "strength": lam, "d": X.shape[1], "epochs": epochs}
    row |= {"epoch": float(np.median(epochs)), "alive": alive(run.parameters()), "diverged": run.diverged}
    if dense:
        part = started(X[:DENSE_STEPS], y[:DENSE_STEPS], regularizer, lam, "dense")
        row["dense"] = float(np.median([part.advance() for _ in range(3)])) * X.shape[0] / DENSE_STEPS
        row["ratio"] = row["dense"] / row["epoch"]
    return row


def run(quick: bool) -> dict[str, Any]:
    """Measure."""
    rng = np.random.default_rng(0)
    X, y = one_hot(SAMPLES, USERS, ITEMS, rng)
    rows = [measured(X, y, name, lam, True) for name, lam in STRENGTHS]
    for d in WIDTHS[:2] if quick else WIDTHS:
        X, y = one_hot(SAMPLES, d // 3, d - d // 3, rng)
        rows += [measured(X, y, name, lam, False) for name, lam in STRENGTHS[1:]]
    return {"rows": rows}


def markdown(result: dict[str, Any]) -> str:
    """Return the table."""
    columns = {
        "regularizer": "regularizer",
        "strength": "λ̃",
        "d": "d",
        "epoch": "sparse epoch, s",
        "dense": "dense epoch, scaled, s",
        "ratio": "ratio",
        "alive": "alive",
    }
    about = f"The dense operator was timed on epochs of {DENSE_STEPS:,} steps, scaled to {SAMPLES:,}."
    return f"{pick(result['rows'], columns)}\n\n{about}"


if __name__ == "__main__":
    alone("sparse_psgd", run, markdown)
