"""What the benchmarks compute from their times; the times themselves are not asserted."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp

import bench.__main__ as command
from bench import (
    data,
    epochs,
    memory,
    peers,
    report,
    scaling,
    time_to,
    timing,
)
from bench.ours import Ours, alive

EYE = sp.csr_array(np.eye(2))
LOG = "rmse\ttime_learn\n1\t0.5\n2\t0.25\n"
SMALL = data.Data("small", np.eye(3), np.ones(3), 0.5, {"": 0.1}, 0.01)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (report.cell(True), "yes"),
        (report.finite((1, math.inf)), [1, None]),
        (command.sections("epochs, path"), ["epochs", "path"]),
        (timing.median_ratio([1.0, 4.0, 9.0], [1.0, 2.0, 3.0]), 2.0),
        (timing.repeats(0.001, least=0.01), 10),
        (timing.repeats(1.0), 1),
        (epochs.settings("psgd"), {"eta0": epochs.SMALL_STEP}),
        (epochs.settings("pcd"), {}),
        (scaling.exponent([1, 2, 4, 8], [3.0, 12.0, 48.0, 192.0]), 2.0),
        (memory.size_of(np.zeros((3, 2))), 48),
        (memory.size_of(EYE), EYE.data.nbytes + EYE.indices.nbytes + EYE.indptr.nbytes),
        (
            peers.strengths_of(SMALL.problem("ti", lambda_w=0.2)),
            {"alpha": 0.4, "beta": 1.0, "gamma": 0.1},
        ),
        (peers.column(LOG, "time_learn"), [0.5, 0.25]),
    ],
)
def test_what_is_computed_from_times_and_arrays(result, expected):
    # Approximately, but what is exactly 0 exactly.
    assert result == (pytest.approx(expected, rel=1e-3, abs=0.0) if isinstance(expected, float) else expected)


def test_kept_results_are_json_and_replace_those_of_their_section(tmp_path):
    place = tmp_path / "results" / "bench.json"
    report.keep("epochs", {"rows": [math.nan, (1, math.inf)]}, place)
    report.keep("path", {"rows": []}, place)
    report.keep("epochs", {"rows": [2]}, place)
    kept = json.loads(place.read_text())
    assert kept["epochs"]["result"] == {"rows": [2]}
    assert set(kept) == {"epochs", "path"}
    assert {"date", "cpu", "cores"} <= set(kept["path"]["where"])


def test_a_run_of_ours_can_be_taken_a_few_epochs_at_a_time():
    sample = data.planted(20, 4, 2, 1)
    problem = sample.problem("ti")
    run = Ours(problem, "pcd", problem.start(0.1, np.random.default_rng(0)))
    assert run.advance(2) >= 0.0
    assert run.epochs == 2
    assert not run.diverged
    assert 0.0 <= alive(run.parameters()) <= 1.0
    run.close()


def trace(*objectives):
    reached = time_to.Trace()
    for objective in objectives:
        reached.add(10, 1.0, objective)
    return reached


def test_times_to_the_best_are_bounds_where_a_run_did_not_arrive():
    ours, theirs = time_to.summary(
        {"ours": trace(2.0, 1.0), "theirs": trace(2.0, 1.5, 1.2)}, "ours", 1.0, {"data": "x"}
    )
    assert (ours["to_1e-06"], ours["bound"]) == (2.0, False)
    assert (theirs["to_1e-06"], theirs["bound"]) == (math.inf, True)
    assert theirs["times_1e-06"] == theirs["times_own"] == 1.5
    assert theirs["above"] == pytest.approx(0.2)


def kept():
    """Return results as they are kept, of a made-up run."""
    dense = "dense 200 × 100"
    of = {"data": dense, "regularizer": "ti", "solver": "pcd"}
    steps = {"import": 0.6, "class": 0.3, "fit": 0.7}
    times = steps | {f"{step}_wall": seconds + 0.1 for step, seconds in steps.items()}
    results = {
        "versus": {
            "rows": [of | {"program": "sparsepoly pcd", "epoch": 1.0, "peer": 13.0, "speedup": 13.0}],
            "alive": [of | {"program": "sparsepoly pcd", "alive": 1.0, "speedup": 9.0}],
            "without": ["libFM"],
        },
        "epochs": {
            "losses": [of | {"loss": "huber", "ratio": 2.5}, of | {"loss": "squared", "ratio": 1.0}],
            "every": [of | {"epoch": 1.0, "floor": 0.5, "ratio": 2.0, "alive": 0.5, "how": "measured"}],
        },
        "time_to": {
            "rows": time_to.summary(
                {"ours pcd": trace(2.0, 1.0), "sparsepoly pcd": trace(3.0, 2.0, 1.0)}, "ours pcd", 1.0, of
            ),
            "without": [],
        },
        "scaling": {
            "rows": [
                of
                | {"in": "d", "sizes": [1, 2], "seconds": [1.0, 2.0], "exponent": 1.0, "floor_exponent": 1.0}
            ]
        },
        "startup": {"all compiled": times, "floor": times, "scikit-learn": times},
        "memory": {"rows": [of | {"peak": 2e6, "floor": 1e6, "ratio": 2.0}]},
        "path": {"rows": [of | {"seconds": 1.0, "ratio": 5.0}]},
        "sparse_psgd": {"rows": [of | {"epoch": 1.0, "d": 10, "strength": 0.1}]},
        "precision": {
            "rows": [
                of
                | {"epoch": 1.0, "single": 0.8, "ratio": 0.8, "values": {"float64": 8_000, "float32": 4_000}}
            ]
        },
    }
    where = {"date": "2026-01-01", "cpu": "a"}
    return {name: {"where": where, "result": report.finite(result)} for name, result in results.items()}


def test_bars_are_judged_in_order():
    bars = command.all_bars(kept())
    assert [(row["bar"], row["met"]) for row in bars] == [
        ("1", True),
        ("1", False),
        ("2", True),
        ("3", False),
        ("5", True),
        ("6", False),
    ]
    old = kept()
    del old["startup"]["result"]["scikit-learn"]
    assert "6" not in [row["bar"] for row in command.all_bars(old)]


def test_the_document_has_every_section():
    text = command.document(kept())
    assert "3 of 6 bars are met." in text
    assert "all of P stays alive" in text
    for section in kept():
        assert f"## {command.SECTIONS[section]}" in text
