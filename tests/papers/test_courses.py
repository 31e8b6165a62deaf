"""Courses of objectives: when methods come close to the lowest of all, and which is first."""

from __future__ import annotations

import numpy as np
import pandas as pd

from papers.courses import ahead, cut_short, times_to


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


def test_runs_are_cut_short_while_their_objective_falls():
    courses = {"fast": (1.0, 0.5, 0.5, 0.5, 0.5), "slow": (1.0, 0.9, 0.8, 0.7, 0.6)}
    rows = [
        {"panel": "p", "seed": 0, "method": m, "seconds": float(e), "objective": o}
        for m, path in courses.items()
        for e, o in enumerate(path)
    ]
    assert cut_short({"trace": rows}, "p", "all")
    assert not cut_short({"trace": rows}, "p", "lowest"), "the lowest objective is known"
    assert cut_short({"trace": [{**row, "objective": -row["seconds"]} for row in rows]}, "p", "lowest")
    assert not cut_short({}, "p", "all")
