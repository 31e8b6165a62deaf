"""The λ from which on a machine has no interaction, as pages tell it."""

from __future__ import annotations

import dataclasses

import pytest

from fmviz.engine.starts.zero_threshold import zero_threshold
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation import threshold
from fmviz.lab.runner import Run


def test_it_is_that_of_the_problem_and_found_once(monkeypatch):
    experiment = Experiment(dataset="monks1", loss="logistic", lambda_p=0.001)
    interval = zero_threshold(Run.prepare(experiment).problem)
    assert threshold.lambda_max(experiment) == pytest.approx((interval.lower, interval.upper))
    monkeypatch.setattr(threshold, "zero_threshold", None)
    moved = dataclasses.replace(experiment, lambda_sparse=0.3, rank=7, max_epochs=5, start="informed")
    assert threshold.lambda_max(moved) == pytest.approx((interval.lower, interval.upper))


@pytest.mark.parametrize("given", [{"regularizer": "l1"}, {"model": "hofm"}, {"loss": "logistic"}])
def test_there_may_be_none(given):
    assert threshold.lambda_max(Experiment(**given)) is None
