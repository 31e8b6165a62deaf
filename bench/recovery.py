"""Support recovery on planted data: atarashi2021, 8.2.1 and Fig. 3 at N = 200.

    python -m bench.recovery                      # 10 validation and 30 test data sets
    python -m bench.recovery --validation 20 --test 100 --jobs 2

As in the paper, λ_p and λ̃ are chosen among 10^-2 ... 10^2 on validation data sets (which know the truth)
and reported on unseen ones, each metric under the strengths that are best for it: no single pair wins
both estimation error and recovery. No linear term, rank 30, start N(0, 0.01²). Counts are structural: a
pair is used where its rows share a column in which both are non-zero.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from datetime import date
from itertools import product
from pathlib import Path

from fmviz.lab.papers.protocols.recovery import (
    METHODS,
    METRICS,
    SETTINGS,
    Study,
    mean,
    strengths,
)
from fmviz.lab.papers.reproduction import Row

CHOICES = [name for name, method in METHODS.items() if not method.dense and name != "FM"]


def study(one: Study, jobs: int) -> list[Row]:
    """Tune on validation data sets, then measure on unseen ones; one row a metric."""
    found: list[Row] = []
    for _ in one.run(found, n_jobs=jobs):
        pass
    rows = [
        {
            "setting": one.setting,
            "method": METHODS[one.method].regularizer,
            "tuned for": chosen["metric"],
            "lambda_p": chosen["lambda_p"],
            "lambda_sparse": chosen["lambda_sparse"],
            "validation": chosen["validation"],
            **{metric: mean(chosen["test"], name) for metric, name in METRICS.items()},
            "epochs": mean(chosen["test"], "epoch"),
            "seconds": mean(chosen["test"], "seconds"),
            "converged": mean(chosen["test"], "converged"),
        }
        for chosen in found
    ]
    for row in rows:
        print(markdown(row), flush=True)
    return rows


def markdown(row: dict) -> str:
    """Return a line of the table."""
    return (
        f"| {row['setting']} | {row['method']} | {row['tuned for']} "
        f"| {row['lambda_p']:g}, {row['lambda_sparse']:g} | {row['estimation error']:.4f} | {row['F1']:.4f} "
        f"| {row['PSSR']:.3f} | {row['epochs']:.0f} | {row['seconds']:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--validation", type=int, default=10, help="validation data sets")
    parser.add_argument("--test", type=int, default=30, help="unseen data sets")
    parser.add_argument("--inits", type=int, default=1, help="starts for each unseen data set")
    parser.add_argument("--methods", nargs="+", default=CHOICES, choices=CHOICES)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "recovery.json")
    arguments = parser.parse_args()
    print("| setting | method | tuned for | λ_p, λ̃ | estimation error | F1 | PSSR | epochs | seconds |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    begin = time.time()
    rows = []
    for setting, method in product(arguments.settings, arguments.methods):
        counts = (arguments.validation, arguments.test, arguments.inits)
        rows += study(Study(setting, method, 200, strengths(method), *counts), arguments.jobs)
    report = {
        "date": date.today().isoformat(),
        "machine": platform.machine(),
        "validation": arguments.validation,
        "test": arguments.test,
        "inits": arguments.inits,
        "minutes": (time.time() - begin) / 60,
        "rows": rows,
    }
    arguments.out.parent.mkdir(exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
