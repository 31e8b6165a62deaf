"""Why a pair has its weight, and λ_max: thresholds, pulls and products against the definitions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from by_name import build_problem, iterate
from small_data import differences

from fmviz.engine.counting import used_mask
from fmviz.engine.fit import Budget
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.starts.zero_threshold import zero_threshold
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation import threshold
from fmviz.lab.interpretation.comparison import compare_supports
from fmviz.lab.interpretation.why_zero import why_zero
from fmviz.lab.runner import Run

NAMES = [f"x{j}" for j in range(6)]


def fitted(regularizer: str, strength: float = 0.05) -> tuple[Problem, Parameters]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + 0.1 * rng.normal(size=80)
    problem = build_problem(X, y, regularizer=regularizer, rank=4, lambda_p=0.01, lambda_sparse=strength)
    *_, last = iterate(problem, "auto", Budget(3000, tol=1e-9), init_scale=0.5, rng=rng)
    return problem, last.parameters


def slopes(problem: Problem, parameters: Parameters) -> np.ndarray:
    """Return the gradient of the risk in P by differences."""
    return differences(
        lambda P: problem.empirical_risk(problem.predict(parameters.replace(P=P))), parameters.P
    )


@pytest.mark.parametrize("regularizer", ["l1", "ti", "omega_ti"])
def test_zero_entries_of_a_minimum_are_held_by_their_thresholds(regularizer):
    problem, parameters = fitted(regularizer)
    zero = parameters.P == 0
    assert zero.any()
    for j in range(5):
        story = why_zero(problem, parameters, j, 5)
        assert not story.by_norm
        row = story.first
        assert row.stays_zero[zero[j]].all()
        pull = np.abs(slopes(problem, parameters)[j, zero[j]])
        assert row.pull[zero[j]] == pytest.approx(pull, abs=1e-6)
        others = np.abs(parameters.P).sum(axis=0) - np.abs(parameters.P[j])
        weight = {"l1": np.ones(4), "ti": 2 * others, "omega_ti": others}[regularizer]
        np.testing.assert_allclose(row.threshold, 0.05 * weight, atol=1e-12)
        assert story.weight == pytest.approx(float(parameters.P[j] @ parameters.P[5]))


@pytest.mark.parametrize("regularizer", ["l21", "cs"])
def test_zero_rows_are_held_by_their_norms(regularizer):
    problem, parameters = fitted(regularizer, 0.15 if regularizer == "l21" else 0.02)
    norms = np.linalg.norm(parameters.P, axis=1)
    dead = np.flatnonzero(norms == 0)
    assert dead.size
    j = int(dead[0])
    story = why_zero(problem, parameters, j, int(norms.argmax()))
    assert story.by_norm
    pull = np.linalg.norm(slopes(problem, parameters)[j])
    assert story.first.pull[0] == pytest.approx(pull, abs=1e-5)
    expected = 0.15 if regularizer == "l21" else 0.02 * 2 * (norms.sum() - norms[j])
    assert story.first.threshold[0] == pytest.approx(expected)
    assert story.first.stays_zero.all()
    assert "is zero in every column of P" in story.sentence(NAMES)
    assert "within the threshold" in story.reason(NAMES)


def test_supports_are_compared_by_structure():
    P = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    learned = used_mask(P)
    truth = np.zeros((4, 4))
    truth[0, 1] = truth[1, 0] = truth[0, 3] = truth[3, 0] = -2.0
    support = compare_supports(truth, learned)
    assert support.counts == (3, 1, 1, 1)
    assert support.codes[0, 1] == 1
    assert support.codes[0, 3] == 2
    assert support.codes[1, 2] == 3
    assert support.f1 == 0.5
    assert compare_supports(truth, learned, excluded=(3,)).counts == (1, 1, 0, 1)
    assert compare_supports(truth, truth).f1 == 1.0


def test_lambda_max_is_that_of_the_problem_and_found_once(monkeypatch):
    experiment = Experiment(dataset="monks1", loss="logistic", lambda_p=0.001)
    interval = zero_threshold(Run.prepare(experiment).problem)
    assert threshold.lambda_max(experiment) == pytest.approx((interval.lower, interval.upper))
    monkeypatch.setattr(threshold, "zero_threshold", None)
    moved = dataclasses.replace(experiment, lambda_sparse=0.3, rank=7, max_epochs=5, start="informed")
    assert threshold.lambda_max(moved) == pytest.approx((interval.lower, interval.upper))


@pytest.mark.parametrize("given", [{"regularizer": "l1"}, {"model": "hofm"}, {"loss": "logistic"}])
def test_there_may_be_no_lambda_max(given):
    assert threshold.lambda_max(Experiment(**given)) is None
