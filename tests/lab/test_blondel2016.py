"""The protocols of the artefacts of blondel2016, and what their checks follow from."""

from __future__ import annotations

import numpy as np
import pytest
from lab.tiny_papers import TINY

from fmviz.engine.design import Design
from fmviz.engine.problem import Problem
from fmviz.lab.papers import ARTEFACTS, blondel2016
from fmviz.lab.papers.blondel2016 import (
    AFTER,
    ANOVA,
    DRAWN,
    HOMOGENEOUS,
    KERNEL,
    KERNELS,
    LIFTED,
    NYSTROEM,
    RANDOM,
    RATERS,
    SETS,
    fit_fig3,
    fit_fig4,
    halves,
    panel_of_fig1,
    predict_fig4,
    problem_of_fig1,
    ratings,
    rows_of,
    rows_of_fig1,
    rows_of_fig2,
    starts_of_fig2,
    tuned,
)
from fmviz.lab.papers.reproduction import Reproduction


def test_objectives_of_fig_1_are_those_of_the_paper():
    settings = ARTEFACTS["blondel2016_fig1"].configured()
    X, y = rows_of_fig1("unit", "raw", 0)
    assert X.shape == (331, 10)
    problem = problem_of_fig1(X, y, "polynomial", "signs", settings)
    at = problem.start(settings["init_sd"], np.random.default_rng(0))
    f = np.square(X @ at.P) @ at.coefficients
    paper = 0.5 * np.square(y - f).sum() + 10.0 * (np.abs(at.coefficients) @ np.square(at.P).sum(axis=0))
    assert y.size * problem.objective(at) == pytest.approx(paper)
    # All methods start at the same P, and fitting after fixing is never worse than what was fixed.
    *_, last = ARTEFACTS["blondel2016_fig1"].run("quick", n_jobs=1, **TINY["blondel2016_fig1"])
    rows = last.tables
    for row in rows["ends"]:
        assert row[AFTER] <= min(row["λ = 1"], row["λ = ±1"]) * (1 + 1e-12)
    starts = {(row["panel"], row["method"]): row["objective"] for row in rows["trace"] if row["epoch"] == 0}
    panel = panel_of_fig1("anova", "standard", "centred")
    assert starts[panel, "fit λ"] == starts[panel, "λ = 1"]


@pytest.mark.parametrize("features", ["unit", "standard"])
def test_features_of_fig_1_are_scaled_as_said(features):
    from sklearn.datasets import load_diabetes

    X, _ = rows_of_fig1(features, "raw", 3)
    order = np.random.default_rng([3, 0]).permutation(442)[:331]
    known = load_diabetes().data[np.sort(order)]
    assert (X if features == "unit" else X / np.sqrt(442)) == pytest.approx(known, abs=1e-12)
    assert rows_of_fig1(features, "centred", 3)[1].mean() == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_methods_of_fig_2_start_at_the_same_function(kernel):
    settings = ARTEFACTS["blondel2016_fig2"].configured(**TINY["blondel2016_fig2"])
    X, y = rows_of_fig2(settings)
    assert X.shape == (80, 151)
    assert np.asarray(X[:, [150]].todense()).ravel() == pytest.approx(np.ones(80))
    begins = starts_of_fig2(Design(X), y, kernel, settings)
    lifted, at = begins.pop(LIFTED)
    assert lifted.lambda_p == 100.0 / 16_087
    for problem, start in begins.values():
        assert problem.predict(start) == pytest.approx(lifted.predict(at), abs=1e-10)
        # The eigendecomposition has the least penalty of all factorisations of W (Lemma 10).
        assert problem.objective(start) <= lifted.objective(at) * (1 + 1e-12)
        assert start.P.shape[1] == 2 * settings["r"]


class _CaptureError(Exception):
    pass


def captured(monkeypatch, fit, **trial):
    """Return how a trial with β = 6 on 90 rows builds its problem."""
    given = {}

    def build(X, y, **own):
        given.update(own, shape=X.shape, problem=Problem.build(X, y, **own))
        raise _CaptureError

    monkeypatch.setattr(blondel2016, "Problem", type("Stub", (), {"build": staticmethod(build)}))
    own = {"drawn": 600, "epochs": 1, "tol": 0.0}
    with pytest.raises(_CaptureError):
        fit({"seed": 0, "beta": 6.0, **trial}, np.arange(90), np.arange(90, 120), own)
    return given


@pytest.mark.parametrize("method", RATERS)
def test_the_four_models_of_fig_3(monkeypatch, method):
    result = captured(monkeypatch, fit_fig3, method=method, data=DRAWN, bases=8)
    X, y = ratings(DRAWN, 600)
    assert result["rank"] == 4
    assert result["fit_linear"] is ("linear" in method)
    assert result["shape"] == (90, X.shape[1] + ("augment" in method))
    problem = result["problem"]
    at = problem.start(0.1, np.random.default_rng(0))
    at.w[:] = 0.3 if "linear" in method else 0.0
    # β/2 of U, V and w, with losses that are summed.
    paper = 0.5 * np.square(problem.predict(at) - y[:90]).sum()
    paper += 3.0 * (np.square(at.P).sum() + (0.0 if "free" in method else np.square(at.w).sum()))
    assert 90 * problem.objective(at) == pytest.approx(paper)
    assert problem.model.distinct is method.startswith("A²")


def test_the_machines_of_fig_4(monkeypatch):
    cubic = captured(monkeypatch, fit_fig4, method=HOMOGENEOUS, data="diabetes", bases=12)
    assert (cubic["rank"], cubic["shape"]) == (4, (90, 11))
    at = cubic["problem"].start(0.1, np.random.default_rng(0))
    target = rows_of(SETS, "diabetes")[1][:90]
    remaining = cubic["problem"].predict(at) - (target - target.mean())
    paper = 0.5 * np.square(remaining).sum() + 3.0 * np.square(at.P).sum()
    assert 90 * cubic["problem"].objective(at) == pytest.approx(paper)
    monkeypatch.undo()
    direct = captured(monkeypatch, fit_fig4, method=ANOVA, data="diabetes", bases=12)
    assert (direct["rank"], direct["shape"]) == (12, (90, 12))


def test_peers_of_fig_4_minimise_what_they_should():
    rng = np.random.default_rng(0)
    X, y, Z = rng.normal(size=(30, 3)), rng.normal(size=30), rng.normal(size=(5, 3))

    def predicted(method):
        return predict_fig4({"method": method, "bases": 30, "seed": 0, "beta": 0.7}, X, y, Z, {})

    kernel = (1.0 + X @ X.T) ** 3
    dual = (1.0 + Z @ X.T) ** 3 @ np.linalg.solve(kernel + 0.7 * np.eye(30), y)
    assert predicted(KERNEL) == pytest.approx(dual, rel=1e-6)
    # With all rows as bases Nyström is the kernel machine itself.
    assert predicted(NYSTROEM) == pytest.approx(dual, rel=1e-4)
    weights = np.linalg.solve(kernel.T @ kernel + 0.7 * np.eye(30), kernel.T @ y)
    assert predicted(RANDOM) == pytest.approx((1.0 + Z @ X.T) ** 3 @ weights, rel=1e-4)


def test_a_failed_fit_is_left_out():
    def fit(trial, train, test, own):
        if trial["beta"] > 0.5 or trial["method"] == "bad":
            raise ValueError("too large")
        return float(len(train))

    def run(kind):
        repro = Reproduction({"folds": 5, "folds_used": 2, "seeds": 1})
        rows = np.zeros((100, 1)), np.zeros(100)
        list(tuned(repro, lambda name: rows, ["x"], [kind], [0.1, 1.0], fit, max))
        return repro.tables

    tables = run(("m", 3))
    assert [row["score"] for row in tables["validation"]] == [60.0, None]
    assert "too large" in tables["validation"][1]["failure"]
    assert [(row["beta"], row["score"]) for row in tables["test"]] == [(0.1, 75.0)]
    with pytest.raises(ValueError, match="No β worked for bad with 3 bases on x"):
        run(("bad", 3))


def test_splits_are_three_quarters():
    train, test = halves(4_177, 0.75, 0)
    assert (train.size, test.size) == (3_132, 1_045)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(4_177))
