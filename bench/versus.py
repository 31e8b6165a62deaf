"""Time one epoch against sparsepoly and libFM.

    python -m bench.versus

The programs alternate on the same data, from the same start, with the same objective (`bench.peers` converts
the strengths). Both objectives after the same epochs are saved: they agree up to rounding, except that
coordinate descent on correlated features amplifies rounding errors (changing the start by 1e-15 changes our
objective after an epoch by up to 1e-3), and that our PCD sweeps a large dense X in another order after two
epochs (`order` in fmviz.engine.solvers.pcd). The shares of non-zero P show that no program benefits from
collapsed factors. We skip entries that stay 0, sparsepoly does not: the sweeps are therefore also measured at
strengths so small that no entry is 0 (`lively`). Each program shuffles the samples of PSGD in its own way.

Not compared: polylearn, myFM and nimfm.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np

from .data import SHAPES, Data, shapes
from .epochs import SMALL_STEP, SWEEPS, settings, started
from .ours import Ours, alive
from .peers import LibFM, SparsePoly, libfm_binary, sparsepoly_python
from .report import alone, at_least, pick
from .timing import Lap, floor_lap, in_turns, median_ratio, repeats

# Cases with bars come first.
CASES = (
    *SWEEPS,
    ("l1", "pcd"),
    ("l21", "pbcd"),
    ("omega_ti", "pcd"),
    ("omega_cs", "pbcd"),
    ("l1", "pbcd"),
    ("ti", "psgd"),
    ("cs", "psgd"),
    ("l1", "psgd"),
    ("l21", "psgd"),
)
# The required speed-up of an epoch over sparsepoly.
SPEEDUPS = {
    ("ti", "pcd"): {
        "dense 200 × 100": 12.0,
        "dense 20,000 × 100": 12.0,
        "dense 2,500 × 1,000": 9.0,
        "dense 2,500 × 4,000": 6.0,
        "one-hot 100,000 × 2,625": 3.0,
    },
    ("cs", "pbcd"): {name: 6.0 if name.startswith("dense") else 4.0 for name in list(SHAPES)[:5]},
}


# The fraction of λ̃ at which all of P stays non-zero.
SMALL_SHARE = 1e-4


def lively(data: Data) -> Data:
    """Return the same data with strengths so small that no entry of P becomes 0."""
    return replace(data, lambda_sparse={name: SMALL_SHARE * x for name, x in data.lambda_sparse.items()})


def against_sparsepoly(
    data: Data, floor: Lap, peer: SparsePoly, regularizer: str, solver: str, rounds: int
) -> dict[str, Any]:
    """Time the same epochs of both programs in alternating rounds."""
    problem = data.problem(regularizer)
    start = problem.start(data.init_scale, np.random.default_rng(0))
    # Its PSGD uses batches of Nd / nnz samples: single samples for dense X.
    batches = solver == "psgd" and problem.design.nnz < problem.design.n_samples * problem.design.n_features
    mine = "mb_psgd" if batches else solver
    run = Ours(problem, mine, start, **settings(mine))
    step = {"eta0": SMALL_STEP, "learning_rate": "constant"} if solver == "psgd" else {}
    peer.begin(problem, solver, start, **step)
    run.advance()
    seconds = run.advance()
    theirs = peer.advance()["seconds"]
    count = repeats(seconds)
    times = in_turns(
        {
            "floor": floor,
            "ours": lambda: run.advance(count) / count,
            # Both run the same epochs.
            "peer": lambda: peer.advance(count)["seconds"] / count,
        },
        max(2, min(rounds, int(20.0 / (theirs * count)))),
    )
    here, there = run.parameters(), peer.parameters()
    peer.end()
    run.close()
    return {
        "data": data.name,
        "regularizer": regularizer,
        "solver": mine,
        "program": f"sparsepoly {solver}",
        "epoch": float(np.median(times["ours"])),
        "peer": float(np.median(times["peer"])),
        "speedup": median_ratio(times["peer"], times["ours"]),
        "floor_ratio": median_ratio(times["ours"], times["floor"]),
        "epochs": run.epochs,
        "alive": alive(here),
        "peer_alive": alive(there),
        "objective": problem.objective(here),
        "difference": problem.objective(there) / problem.objective(here) - 1.0,
    }


def against_libfm(data: Data, floor: Lap, rounds: int) -> dict[str, Any]:
    """Time CD between two runs of libFM's ALS, which is the same method."""
    problem = data.problem("l2")
    run, lap, seconds = started(problem, data, "cd")
    epochs = repeats(seconds, 0.2)
    with LibFM(problem) as peer:
        laps = {"floor": floor, "ours": lap, "peer": lambda: peer.epoch(epochs)}
        times = in_turns(laps, min(rounds, 3))
    return {
        "data": data.name,
        "regularizer": "l2",
        "solver": "cd",
        "program": "libFM als",
        "epoch": float(np.median(times["ours"])),
        "peer": float(np.median(times["peer"])),
        "speedup": median_ratio(times["peer"], times["ours"]),
        "floor_ratio": median_ratio(times["ours"], times["floor"]),
        "epochs": run.epochs,
        "alive": alive(run.parameters()),
    }


def run(quick: bool) -> dict[str, Any]:
    """Measure; seconds are those of one epoch."""
    rounds = 5 if quick else 9
    result: dict[str, Any] = {"rows": [], "alive": [], "without": []}
    if sparsepoly_python() is None:
        result["without"].append("sparsepoly")
    if libfm_binary() is None:
        result["without"].append("libFM")
    # A single process for all data sets, since sparsepoly recompiles its kernels in each process.
    with contextlib.ExitStack() as stack:
        peer = None if "sparsepoly" in result["without"] else stack.enter_context(SparsePoly())
        sets = [(data, floor_lap(data.X)) for data in shapes(quick)]
        kinds = (
            ("rows", sets, SWEEPS if quick else CASES),
            ("alive", [(lively(d), f) for d, f in sets], SWEEPS),
        )
        for kind, those, cases in kinds if peer is not None else ():
            for regularizer, solver in cases:
                for data, floor in those:
                    row = against_sparsepoly(data, floor, peer, regularizer, solver, rounds)
                    print(
                        f"  {data.name}: {solver} {regularizer} {row['speedup']:.1f} ×, "
                        f"{row['alive']:.1%} of P alive",
                        flush=True,
                    )
                    result[kind].append(row)
        if "libFM" not in result["without"]:
            result["rows"] += [against_libfm(data, floor, rounds) for data, floor in sets]
    return result


def markdown(result: dict[str, Any]) -> str:
    """Return the table."""
    columns = {
        "data": "data",
        "program": "program",
        "solver": "ours",
        "regularizer": "regularizer",
        "peer": "its epoch, s",
        "epoch": "our epoch, s",
        "speedup": "times faster",
        "floor_ratio": "ours over the floor",
        "epochs": "epochs made",
        "alive": "alive",
        "peer_alive": "its alive",
        "objective": "objective",
        "difference": "its objective, relative difference",
    }
    text = pick(result["rows"], columns)
    # Results that were kept before there were such cases have none.
    if alive_rows := result.get("alive"):
        text += f"\n\nUnder {SMALL_SHARE:g} of the strength λ̃, where all of P stays alive:\n\n"
        text += pick(alive_rows, columns)
    if result["without"]:
        text = f"Not on this machine, so not compared: {', '.join(result['without'])}.\n\n{text}"
    return text


def bars(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare the speed-ups with their bars."""
    rows = []
    for row in result["rows"]:
        required = SPEEDUPS.get((row["regularizer"], row["solver"]), {}).get(row["data"])
        if required is not None:
            case = f"{row['solver']} {row['regularizer']}, {row['data']}: times faster than sparsepoly"
            rows.append(at_least("1", case, row["speedup"], required))
    return rows


if __name__ == "__main__":
    alone("versus", run, markdown)
