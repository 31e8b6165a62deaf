"""Time one epoch of every solver with every regularizer, and sweeps with every loss, against a floor.

    python -m bench.epochs

Rank 30, no linear term. The floor is 60 matrix-vector products with the same matrix: the multiplications of
an epoch with 30 components, once for the slopes and once for the update. PBCD reads X once for all
components, the products read it 60 times; it can therefore be below the floor if X exceeds the caches. Each
case alternates with the floor, after a first epoch that is not timed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fmviz.choices import why_not
from fmviz.engine.losses import LOSSES
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import SOLVERS, get_solver

from .data import Data, shapes
from .ours import Ours, alive
from .report import alone, at_most, pick
from .timing import RANK, Lap, floor_lap, in_turns, median_ratio, repeats

# Solvers whose epoch is a pass over single samples; its cost is predicted from fewer samples.
BY_SAMPLE = ("sgd", "psgd", "mb_psgd", "katyusha", "mb_katyusha")
SWEEPS = (("ti", "pcd"), ("cs", "pbcd"))
# The steps of the stochastic solvers are small here; only their time is measured.
SMALL_STEP = 1e-6


def settings(solver: str) -> dict[str, float]:
    """Return the parameters of a solver that prevent divergence, if any."""
    names = [spec.name for spec in SOLVERS[solver].params]
    return {"eta0": SMALL_STEP} if "eta0" in names else {}


def pairs_seconds(d: int, solver: str) -> float:
    """Return the expected time of an epoch with Ω_*, whose gradient compares all pairs of rows of P.

    An inexact proximal step does so 41 times.
    """
    return 2e-10 * d * d * RANK * (41 if solver == "nmapgd" else 1)


def predicted_seconds(data: Data, regularizer: str, solver: str) -> float | None:
    """Return the expected time of an epoch if it may be too long to measure, else None."""
    n, d = data.X.shape
    if regularizer == "omega_star":
        return pairs_seconds(d, solver)
    if solver in BY_SAMPLE and n >= 2_500:
        few = n // 100
        part = Data(data.name, data.X[:few], data.y[:few], data.lambda_p, data.lambda_sparse, data.init_scale)
        problem = part.problem(regularizer)
        run = Ours(
            problem, solver, problem.start(data.init_scale, np.random.default_rng(0)), **settings(solver)
        )
        seconds = 100.0 * run.advance()
        run.close()
        return seconds
    return None


def started(problem: Problem, data: Data, solver: str) -> tuple[Ours, Lap, float]:
    """Return a run after its first epoch, the lap that times further epochs, and the seconds of one."""
    run = Ours(problem, solver, problem.start(data.init_scale, np.random.default_rng(0)), **settings(solver))
    run.advance()
    seconds = run.advance()
    count = repeats(seconds)
    return run, lambda: run.advance(count) / count, seconds


def every_case(data: Data, floor: Lap, rounds: int, limit: float) -> list[dict[str, Any]]:
    """Time each solver with each supported regularizer; predict cases slower than `limit`."""
    rows = []
    for regularizer in PENALTIES:
        for solver in SOLVERS:
            if why_not(regularizer, solver) is not None:
                continue
            row: dict[str, Any] = {"data": data.name, "regularizer": regularizer, "solver": solver}
            predicted = predicted_seconds(data, regularizer, solver)
            if predicted is not None and predicted > limit:
                base = floor()
                rows.append(
                    row
                    | {
                        "epoch": predicted,
                        "floor": base,
                        "ratio": predicted / base,
                        "alive": None,
                        "how": "predicted",
                    }
                )
                continue
            run, lap, seconds = started(data.problem(regularizer), data, solver)
            affordable = max(1, min(rounds, int(limit / (3.0 * seconds))))
            times = in_turns({"floor": floor, "ours": lap}, affordable)
            rows.append(
                row
                | {
                    "epoch": float(np.median(times["ours"])),
                    "floor": float(np.median(times["floor"])),
                    "ratio": median_ratio(times["ours"], times["floor"]),
                    "alive": alive(run.parameters()),
                    "how": "diverged" if run.diverged else "at rest" if run.at_rest else "measured",
                }
            )
            run.close()
            print(f"  {data.name}: {solver} {regularizer} {rows[-1]['ratio']:.2f} of the floor", flush=True)
    return rows


def losses(data: Data, rounds: int) -> list[dict[str, Any]]:
    """Time the sweeps with each loss, alternating with the squared loss."""
    rows = []
    for regularizer, solver in SWEEPS:
        runs = {
            name: started(problem, data, solver)[:2]
            for name in LOSSES
            if get_solver(solver).why_not(problem := data.problem(regularizer, name)) is None
        }
        times = in_turns({name: lap for name, (_, lap) in runs.items()}, rounds)
        for name, (run, _) in runs.items():
            rows.append(
                {
                    "data": data.name,
                    "regularizer": regularizer,
                    "solver": solver,
                    "loss": name,
                    "epoch": float(np.median(times[name])),
                    "ratio": median_ratio(times[name], times["squared"]),
                    "alive": alive(run.parameters()),
                }
            )
    return rows


def run(quick: bool) -> dict[str, Any]:
    """Measure; seconds are those of one epoch."""
    rounds, limit = (5, 1.0) if quick else (9, 5.0)
    result: dict[str, Any] = {"losses": [], "every": []}
    for data in shapes(quick):
        floor = floor_lap(data.X)
        result["losses"] += losses(data, rounds)
        result["every"] += every_case(data, floor, rounds, limit)
    return result


def markdown(result: dict[str, Any]) -> str:
    """Return the tables."""
    milli = [row | {"epoch": 1e3 * row["epoch"], "floor": 1e3 * row["floor"]} for row in result["every"]]
    parts = [
        "The sweeps with each loss, as a ratio to the squared one.",
        pick(
            result["losses"],
            {
                "data": "data",
                "regularizer": "regularizer",
                "solver": "solver",
                "loss": "loss",
                "ratio": "ratio",
            },
        ),
        "Every solver and regularizer, as a ratio to 60 matrix-vector products. Predicted: from a hundredth "
        "of the samples, or for Ω_* from its d²k multiplications.",
        pick(
            milli,
            {
                "data": "data",
                "regularizer": "regularizer",
                "solver": "solver",
                "epoch": "epoch, ms",
                "floor": "floor, ms",
                "ratio": "ratio",
                "alive": "alive",
                "how": "how",
            },
        ),
    ]
    return "\n\n".join(parts)


def bars(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the losses and the ratios to the floor against their bars."""
    rows = []
    for row in result["losses"]:
        if row["loss"] != "squared":
            case = f"{row['solver']} {row['regularizer']}, {row['data']}: {row['loss']} over squared loss"
            rows.append(at_most("1", case, row["ratio"], 2.0))
    for row in result["every"]:
        if row["data"].startswith("dense") and (row["regularizer"], row["solver"]) in SWEEPS:
            case = f"{row['solver']} {row['regularizer']}, {row['data']}: epoch over 60 products"
            rows.append(at_most("2", case, row["ratio"], 3.0))
    return rows


if __name__ == "__main__":
    alone("epochs", run, markdown)
