"""The robust machine against its bars: planted outliers, clean data, the cost of a mini-batch update.

    python -m bench.robust planted --seeds 10
    python -m bench.robust clean
    python -m bench.robust cost
    python -m bench.robust limits

Nothing is tuned: `RobustFMRegressor` with what it has by default, on seeds that nothing was chosen by.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings

import numpy as np
import scipy.sparse as sp

from fmviz import RobustFMRegressor
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.losses import CappedInsensitive, Squared
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import IncrementalSVD, TwoStage
from fmviz.lab.papers.robust_fm import CLUSTER, GROSS, MILD, ONE_SIDED, SECOND, planted

CASES = [
    *((f"gross errors, {share} %", share, GROSS) for share in (10, 20, 30, 40)),
    ("gross errors, 30 %, one-sided", 30, ONE_SIDED),
    ("mild errors, 30 %", 30, MILD),
]
FIRST_SEED = 1_000


def with_squared_loss(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return Z of the same machine with the squared loss and hardly any shrinkage."""
    given = {"model": RobustFM("squared"), "rank": X.shape[1], "lambda_w": 1e-6, "lambda_p": 1e-6}
    problem = Problem.build(X, y, loss=Squared(), penalty="l2", **given)
    *_, end = iterate(problem, TwoStage(), Budget(3, report_every=None))
    return (end.parameters.P * end.parameters.multipliers) @ end.parameters.P.T


def tell(**found) -> None:
    print(
        json.dumps({name: round(x, 5) if isinstance(x, float) else x for name, x in found.items()}),
        flush=True,
    )


def bars_of_planted(seeds: int) -> None:
    rows: dict[str, list[dict[str, float]]] = {name: [] for name, _, _ in CASES}
    # Seed by seed: a run that is cut off has seen all cases.
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for name, share, kind in CASES:
            X, y, Z, outlier = planted(seed, share, kind)
            begin = time.process_time()
            fitted = RobustFMRegressor(random_state=seed).fit(X, y)
            seconds = time.process_time() - begin
            found = (fitted.P_ * fitted.coefficients_) @ fitted.P_.T
            both, size = float((fitted.outlier_mask_ & outlier).sum()), float(np.linalg.norm(Z))
            plain = float(np.linalg.norm(with_squared_loss(X, y) - Z)) / size if share == 20 else 0.0
            rows[name].append(
                {
                    "error": float(np.linalg.norm(found - Z)) / size,
                    "rank": fitted.rank_,
                    "f1": 2.0 * both / float(fitted.outlier_mask_.sum() + outlier.sum()),
                    "squared": plain,
                    "seconds": seconds,
                }
            )
            tell(case=name, seed=seed, certificate=fitted.certificate_, **rows[name][-1])
    for name, found in rows.items():
        f1 = np.array([row["f1"] for row in found])
        tell(
            summary=name,
            error_and_rank=f"{sum(row['error'] <= 0.07 and row['rank'] == 3 for row in found)} of {f1.size}",
            worst_error=max(row["error"] for row in found),
            median_f1=float(np.median(f1)),
            f1_from_90=f"{int((f1 >= 0.9).sum())} of {f1.size}",
            times_nearer=min(row["squared"] / row["error"] for row in found),
            seconds=float(np.mean([row["seconds"] for row in found])),
        )


def bars_of_clean(seeds: int) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        X, y, _, _ = planted(seed, 0, n=3_000)
        train, test = slice(0, 1_500), slice(1_500, None)
        robust = RobustFMRegressor(random_state=seed).fit(X[train], y[train]).predict(X[test]) - y[test]
        given = {"rank": 30, "lambda_w": 1e-6, "lambda_p": 1e-6, "model": RobustFM("squared")}
        problem = Problem.build(X[train], y[train], loss=Squared(), penalty="l2", **given)
        *_, end = iterate(problem, TwoStage(), Budget(3, report_every=None))
        plain = Problem.build(X[test], y[test], loss=Squared(), penalty="l2", **given)
        squared = plain.predict(end.parameters) - y[test]
        tell(
            seed=seed,
            absolute=float(np.abs(robust).mean() / np.abs(squared).mean()),
            rmse=float(np.sqrt(np.square(robust).mean() / np.square(squared).mean())),
        )


def bars_of_cost() -> None:
    rng, rank, batch = np.random.default_rng(0), 10, 64
    sizes = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
    seconds = []
    for d in (*sizes, 47_236):
        n = 20 * batch
        X = sp.random_array((n, d), density=75 / d, format="csr", rng=rng)
        y = rng.normal(size=n)
        given = {"model": RobustFM(cap=0.1), "rank": rank, "lambda_w": 1e-4, "lambda_p": 1e-3}
        problem = Problem.build(X, y, loss=CappedInsensitive(0.1, 2.0), penalty="l2", **given)
        method = IncrementalSVD(batch_size=batch, uncapped=0).on(problem)
        method.start(problem.start(0.0, rng), rng)
        method._pass(0.1)
        times = []
        for begin in range(0, n, batch):
            start = time.thread_time()
            method._update(np.arange(begin, begin + batch), 0.1)
            times.append(time.thread_time() - start)
        seconds.append(float(np.median(times)))
        tell(
            d=d,
            milliseconds=1e3 * seconds[-1],
            peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        )
    tell(exponent=float(np.polyfit(np.log(sizes), np.log(seconds[: len(sizes)]), 1)[0]))


def limits(seeds: int) -> None:
    """Where the rule fails: features that are moved together, a false factor on rows of high leverage."""
    for name in (CLUSTER, SECOND):
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            X, y, Z, outlier = planted(seed, 0, name)
            fitted = RobustFMRegressor(random_state=seed).fit(X, y)
            found = (fitted.P_ * fitted.coefficients_) @ fitted.P_.T
            both = 2.0 * float((fitted.outlier_mask_ & outlier).sum())
            tell(
                case=name,
                seed=seed,
                error=float(np.linalg.norm(found - Z) / np.linalg.norm(Z)),
                rank=fitted.rank_,
                f1=both / float(fitted.outlier_mask_.sum() + outlier.sum()),
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("planted", "clean", "cost", "limits"))
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "cost":
        bars_of_cost()
    else:
        {"planted": bars_of_planted, "clean": bars_of_clean, "limits": limits}[given.what](given.seeds)


if __name__ == "__main__":
    main()
