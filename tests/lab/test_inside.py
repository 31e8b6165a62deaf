"""Epochs taken apart: stops by grain, words with the numbers of the step, what is too large to follow."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.epoch_trace import (
    block_name,
    formula,
    headline,
    look_inside,
    meaning,
    why_no_grain,
)
from fmviz.lab.runner import Run

BASE = Experiment(
    dataset="balance_scale", rank=3, lambda_p=1e-3, lambda_sparse=0.05, init_scale=0.3, tol=0.0, max_epochs=9
)
NAMES = ("a", "b", "c", "d")


def parameters(experiment: Experiment, epoch: int):
    return next(s.parameters for s in Run.prepare(experiment).snapshots() if s.epoch == epoch)


@pytest.mark.parametrize(
    ("changes", "block", "stops"),
    [
        ({}, "column", (5, 9, 13, 17)),
        ({"solver": "pcd", "solver_params": (("order", "features"),)}, "row", (5, 8, 11, 14, 17)),
        ({"regularizer": "cs"}, "row", (5, 6, 7, 8, 9)),
        ({"solver": "pgd"}, "half", (1, 2)),
    ],
)
def test_stops_are_rows_columns_or_halves(changes, block, stops):
    experiment = dataclasses.replace(BASE, **changes)
    assert block_name(experiment) == block
    assert why_no_grain(experiment, 4, "block") is None
    start = parameters(experiment, 0)
    result = look_inside(experiment, start, 0, "block")
    assert result.stops == stops
    np.testing.assert_allclose(result.at(len(stops)).P, parameters(experiment, 1).P, rtol=1e-9, atol=1e-12)
    assert result.at(0).P.tolist() == start.P.tolist()
    taken = [step for stop in range(1, len(stops) + 1) for step in result.steps_of(stop)]
    assert len(taken) == len(result.steps)
    for stop in range(1, len(stops) + 1):
        assert headline(result.steps_of(stop), NAMES)
        assert all(isinstance(text, str) for text in formula(result.steps_of(stop)[-1]))


def test_steps_after_a_change_have_the_new_strength():
    experiment = dataclasses.replace(BASE, changes=((3, "lambda_sparse", 0.5),))
    result = look_inside(experiment, parameters(experiment, 3), 3, "entry")
    np.testing.assert_allclose(result.at(17).P, parameters(experiment, 4).P, rtol=1e-9, atol=1e-12)


def test_words_tell_why_an_entry_is_zero_or_not():
    experiment = dataclasses.replace(BASE, lambda_sparse=0.5)
    result = look_inside(experiment, parameters(experiment, 0), 0, "entry")
    entries = [step for step in result.steps if step.kind == "entry"]
    for step in entries:
        zero = step.after[0] == 0.0
        assert ("exactly zero" in meaning(step)) == zero
        assert ("exceeds" in meaning(step)) == (not zero)
    assert {step.after[0] == 0.0 for step in entries} == {True, False}


def test_what_is_too_large_is_stepped_more_coarsely():
    big = dataclasses.replace(BASE, rank=30)
    assert why_no_grain(big, 30, "entry") is None
    assert "Step by column" in (why_no_grain(big, 100, "entry") or "")
    assert why_no_grain(big, 100, "block") is None
    assert "Step by epoch" in (why_no_grain(big, 1000, "block") or "")
    assert why_no_grain(big, 10**6, "epoch") is None
    assert "row" in (why_no_grain(dataclasses.replace(big, regularizer="cs"), 4, "entry") or "")
    assert "half" in (why_no_grain(dataclasses.replace(big, solver="pgd"), 4, "entry") or "")
    assert why_no_grain(dataclasses.replace(big, solver="psgd"), 4, "entry") is not None
