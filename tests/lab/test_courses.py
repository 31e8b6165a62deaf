"""Courses of objectives: when methods come close to the lowest of all, and which is first."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fmviz.lab.papers.courses import ahead, median_times, times_to


def trace(panel, times, seeds=(0,)):
    """Every method comes down from 100 to 1, and is there at its time."""
    return [
        {"panel": panel, "method": method, "seed": seed, "epoch": epoch, "seconds": seconds, "objective": o}
        for method, time in times.items()
        for seed in seeds
        for epoch, seconds, o in ((0, 0.0, 100.0), (1, time / 2, 50.0), (2, time, 1.0))
    ]


def test_times_are_read_off_the_way_down():
    rows = [
        {"panel": "p", "method": m, "epoch": e, "seconds": float(e), "objective": o}
        for m, path in (("a", (1.0, 0.109, 0.1)), ("b", (1.0, 0.5, 0.2)))
        for e, o in enumerate(path)
    ]
    times = times_to({"trace": rows}, panel="p")
    assert times.T.to_dict() == {"early": {"a": 1.0, "b": np.inf}, "late": {"a": 2.0, "b": np.inf}}
    assert times_to({}, panel="p").empty


def test_what_nobody_reached_settles_nothing():
    never, once = {"a": np.inf, "b": np.inf}, {"a": 1.0, "b": np.inf}
    assert ahead(pd.DataFrame([never, never]), ["a"], ["b"]) == "not settled"
    times = pd.DataFrame([once, never])
    assert ahead(times, ["a"], ["b"], 100.0) == "holds"
    assert ahead(times, ["b"], ["a"]) == "does not hold"
    assert ahead(pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]}), ["a"], ["b"]) == "not settled"


def test_times_of_several_starts_are_medians():
    rows = [
        row
        for seed, time in enumerate((1.0, 2.0, 9.0))
        for row in trace("p", {"a": time, "b": 10.0}, seeds=(seed,))
    ]
    ended = [{"panel": "p", "method": name, "seed": seed} for name in ("a", "b") for seed in range(3)]
    needed = {"a": 1, "b": 1}
    assert median_times({"trace": rows, "ends": ended[:3]}, "p", needed).empty
    times = median_times({"trace": rows, "ends": ended}, "p", needed)
    assert times.T.to_dict() == {"early": {"a": 2.0, "b": 10.0}, "late": {"a": 2.0, "b": 10.0}}
