"""The speed and objective claims of atarashi2021, Figs. 5, 6, 8, 9 and 10, measured with our implementations.

    python -m bench.claims                       # all; Fig. 9 needs FMVIZ_DATA (ml100k, a9a)
    python -m bench.claims fig6 fig10

Budgets are scaled down from the paper's and declared in each table. One thread; seconds are processor time
of the solver. Tables go to the screen, figures to bench/results/claims.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fmviz.datasets import load, make_sparse_interactions
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.problem import Problem
from fmviz.engine.regularizers import get_regularizer
from fmviz.engine.regularizers._squared_norm import ALGORITHMS, prox_each_row
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.datasets import DATASETS

from .report import table

PLAIN: dict[str, Any] = {"rank": 30, "fit_linear": False, "fit_intercept": False}
SETTINGS = {"interaction selection": (80, 8, 20), "feature selection": (20, 1, 80)}


def run(problem: Problem, solver: str, seconds: float, seed: int = 0, **params: Any) -> list[Snapshot]:
    """Return the snapshots of a run under a budget of solver seconds."""
    budget = Budget(epochs=10**7, seconds=seconds, tol=1e-7, certify_every=10**9)
    return list(iterate(problem, solver, budget, rng=np.random.default_rng(seed), **params))


def weights_l1(snapshot: Snapshot) -> float:
    """Return ‖W‖₁ over all entries: 2Ω_*(P) + ‖P‖² for a factorization machine."""
    W = snapshot.parameters.W
    if W is not None:
        return float(np.abs(W).sum())
    P = snapshot.parameters.P
    return 2.0 * get_regularizer("omega_star").value(P) + float(np.square(P).sum())


def show(title: str, heads: list[str], rows: list[list[Any]]) -> None:
    """Print a table."""
    print(f"\n{table(heads, rows, title)}", flush=True)


def fig5() -> list[list[Any]]:
    """‖W‖₁-regularised objective after 4 s (the paper's N/50): (a) TI lowest, (b) TI and CS lowest."""
    methods = [
        ("TI", {"regularizer": "ti"}, "pcd"),
        ("CS", {"regularizer": "cs"}, "pbcd"),
        ("L1", {"regularizer": "l1"}, "pcd"),
        ("L21", {"regularizer": "l21"}, "pbcd"),
        ("Ω_*, nmAPGD", {"regularizer": "omega_star"}, "nmapgd"),
        ("Ω_*, SubGD", {"regularizer": "omega_star"}, "subgd"),
        ("SLQR", {"model": "qr", "regularizer": "l1"}, "incremental_pgd"),
    ]
    rows = []
    for setting, (d_true, b, d_noise) in SETTINGS.items():
        for strength in (0.1, 1.0):
            for label, choice, solver in methods:
                values = []
                for seed in range(2):
                    X, y, _ = make_sparse_interactions(200, d_true, b, d_noise, random_state=5000 + seed)
                    problem = Problem.build(X, y, lambda_p=0.1, lambda_sparse=strength, **choice, **PLAIN)
                    last = run(problem, solver, 4.0, seed)[-1]
                    values.append(last.loss + strength * weights_l1(last))
                rows.append([setting, strength, label, float(np.mean(values))])
    show("Fig. 5: risk + λ̃‖W‖₁ at the end, 2 data sets", ["setting", "λ̃", "method", "value"], rows)
    return rows


def fig6() -> list[list[Any]]:
    """Seconds of an epoch against d: TI, CS, L1, L21 linear, Ω_* quadratic, SLQR cubic."""
    methods = [
        ("TI", {"regularizer": "ti"}, "pcd", (1000, 2000, 4000)),
        ("L1", {"regularizer": "l1"}, "pcd", (1000, 2000, 4000)),
        ("CS", {"regularizer": "cs"}, "pbcd", (1000, 2000, 4000)),
        ("L21", {"regularizer": "l21"}, "pbcd", (1000, 2000, 4000)),
        ("Ω_*, SubGD", {"regularizer": "omega_star"}, "subgd", (1000, 2000, 4000)),
        ("Ω_*, nmAPGD", {"regularizer": "omega_star"}, "nmapgd", (500, 1000, 2000)),
        ("SLQR", {"model": "qr", "regularizer": "l1"}, "incremental_pgd", (500, 1000, 2000)),
    ]
    rows = []
    for label, choice, solver, sizes in methods:
        seconds = []
        for d in sizes:
            X, y, _ = make_sparse_interactions(2500, d, max(1, d // 100), 0, random_state=0)
            problem = Problem.build(X, y, lambda_p=0.1, lambda_sparse=0.1, **choice, **PLAIN)
            times = [
                s.seconds for s in iterate(problem, solver, Budget(4, tol=0.0), rng=np.random.default_rng(0))
            ]
            seconds.append(float(np.median(np.diff(times))))
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        rows.append([label, " / ".join(map(str, sizes)), " / ".join(f"{s:.3g}" for s in seconds), slope])
    show("Fig. 6: N = 2,500, rank 30", ["method", "d", "seconds an epoch", "fitted exponent"], rows)
    return rows


def to_reach(snapshots: list[Snapshot], target: float) -> float:
    """Return the solver seconds at which a run first got there; infinite if it did not."""
    return next((s.seconds for s in snapshots if s.objective <= target), float("inf"))


def race(
    title: str, build: Callable[[str], Problem], runs: dict[str, list], seconds: float
) -> list[list[Any]]:
    """Run several solvers on one problem; tabulate the time to within 1 % of the best end."""
    rows = []
    for regularizer, solvers in runs.items():
        problem = build(regularizer)
        traces = {}
        for label, solver, params in solvers:
            options = [params] if isinstance(params, dict) else params
            tried = [run(problem, solver, seconds, **one) for one in options]
            traces[label] = min(tried, key=lambda trace: trace[-1].objective)
        best = min(trace[-1].objective for trace in traces.values())
        for label, trace in traces.items():
            rows.append(
                [
                    regularizer,
                    label,
                    trace[-1].objective / best,
                    to_reach(trace, 1.01 * best),
                    trace[-1].epoch,
                ]
            )
    show(title, ["penalty", "solver", "end / best", "s to 1 %", "epochs"], rows)
    return rows


STEPS = [{"eta0": 1.0}, {"eta0": 0.1}, {"eta0": 0.01}]


def fig8() -> list[list[Any]]:
    """Synthetic data: PCD beats APGD and nmAPGD at N = 200, the stochastic solvers win at N = 20,000."""
    rows = []
    for n, seconds in ((200, 3.0), (20_000, 12.0)):
        setting = SETTINGS["interaction selection"]
        X, y, _ = make_sparse_interactions(n, *setting, random_state=5000)
        d = X.shape[1]

        def build(regularizer: str, X: np.ndarray = X, y: np.ndarray = y, d: int = d) -> Problem:
            # The paper's scaling for the stochastic solvers, here for all: the same problem over d².
            strength = 0.1 / d**2
            return Problem.build(
                X / np.sqrt(d),
                y / d,
                regularizer=regularizer,
                lambda_p=strength,
                lambda_sparse=strength,
                **PLAIN,
            )

        others = [
            ("APGD", "apgd", {}),
            ("nmAPGD", "nmapgd", {}),
            ("PSGD", "psgd", STEPS),
            ("Katyusha", "katyusha", STEPS),
        ]
        runs = {"ti": [("PCD", "pcd", {}), *others], "cs": [("PBCD", "pbcd", {}), *others]}
        rows += [[n, *row] for row in race(f"Fig. 8: N = {n:,}, {seconds:g} s each", build, runs, seconds)]
    return rows


def fig9() -> list[list[Any]]:
    """Real data: PCD and PBCD much faster than APGD and nmAPGD; mini-batches help the stochastic ones."""
    names = {"ML100K": "movielens_100k", "a9a": "a9a"}
    for name in names.values():
        if (reason := DATASETS[name].unavailable()) is not None:
            print(f"\nFig. 9 is left out. {reason}")
            return []
    sets = {title: load(name) for title, name in names.items()}
    strengths = {"ML100K": (0.5e-4, 0.5e-4, 0.5e-4), "a9a": (0.5e-2, 0.5e-3, 0.5e-3)}
    rows = []
    for name, data in sets.items():

        def build(regularizer: str, data: Any = data, lams: Any = strengths[name]) -> Problem:
            return Problem.build(
                data.X,
                data.y,
                regularizer=regularizer,
                rank=30,
                lambda_w=lams[0],
                lambda_p=lams[1],
                lambda_sparse=lams[2],
            )

        others = [
            ("APGD", "apgd", {}),
            ("nmAPGD", "nmapgd", {}),
            ("MB-PSGD", "mb_psgd", STEPS[1:]),
            ("MB-Katyusha", "mb_katyusha", STEPS[1:]),
            ("PSGD, exact sparse", "psgd", STEPS[1:]),
        ]
        runs = {"ti": [("PCD", "pcd", {}), *others], "cs": [("PBCD", "pbcd", {}), *others]}
        rows += [[name, *row] for row in race(f"Fig. 9: {name}, 6 s each", build, runs, 6.0)]
    return rows


def fig10() -> list[list[Any]]:
    """Microseconds of the operator of λ‖·‖₁²: Sort, Random, and ours."""
    rng = np.random.default_rng(0)
    rows = []
    for strength in (0.001, 0.1, 10.0):
        for exponent in (3, 5, 8, 10, 12, 14):
            d = 2**exponent
            times = {}
            M = rng.normal(size=(max(4, 2**17 // d), d))
            out = np.empty_like(M)
            for name, algorithm in ALGORITHMS.items():
                kernel = prox_each_row(algorithm)
                kernel(M, strength, out)
                laps = []
                for _ in range(5):
                    begin = time.perf_counter()
                    kernel(M, strength, out)
                    laps.append(time.perf_counter() - begin)
                times[name] = float(np.median(laps)) / M.shape[0] * 1e6
            rows.append([strength, d, times["sort"], times["random"], times["filter"]])
    show("Fig. 10: microseconds, N(0, 1)", ["λ", "d", "Sort", "Random", "ours"], rows)
    return rows


FIGURES = {"fig5": fig5, "fig6": fig6, "fig8": fig8, "fig9": fig9, "fig10": fig10}


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("figures", nargs="*", default=[], help=", ".join(FIGURES))
    asked = parser.parse_args().figures or list(FIGURES)
    threadpool_limits(1, user_api="blas")
    out = Path(__file__).parent / "results" / "claims.json"
    report = json.loads(out.read_text()) if out.exists() else {}
    for name in asked:
        report[name] = {"date": date.today().isoformat(), "rows": FIGURES[name]()}
        out.parent.mkdir(exist_ok=True)
        out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
