"""The protocols of the artefacts of blondel2016, and what their checks follow from."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_papers import TINY

from fmviz.engine.design import Design
from fmviz.engine.problem import Problem
from papers import ARTEFACTS, blondel2016
from papers.blondel2016 import (
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
    panel_of_fig1,
    predict_fig4,
    problem_of_fig1,
    rows_of,
    rows_of_fig1,
    rows_of_fig2,
    starts_of_fig2,
    tuned,
)


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
    last = ARTEFACTS["blondel2016_fig1"].run("quick", n_jobs=1, **TINY["blondel2016_fig1"])
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


def captured(monkeypatch, fit, X, y, **place):
    """Return how a fit with β = 6 on 90 rows builds its problem."""
    given = {}

    def build(X, y, **own):
        given.update(own, shape=X.shape, problem=Problem.build(X, y, **own))
        raise _CaptureError

    monkeypatch.setattr(blondel2016, "Problem", type("Stub", (), {"build": staticmethod(build)}))
    with pytest.raises(_CaptureError):
        fit({"epochs": 1, "tol": 0.0}, X, y, np.arange(90), np.arange(90, 120), 6.0, seed=0, **place)
    return given


@pytest.mark.parametrize("method", RATERS)
def test_the_four_models_of_fig_3(monkeypatch, method):
    X, y = rows_of(SETS, DRAWN, 600)
    result = captured(monkeypatch, fit_fig3, X, y, method=method, bases=8)
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
    assert problem.model.repeats is not method.startswith("A²")


def test_the_machines_of_fig_4(monkeypatch):
    X, y = rows_of(SETS, "diabetes")
    cubic = captured(monkeypatch, fit_fig4, X, y, method=HOMOGENEOUS, bases=12)
    assert (cubic["rank"], cubic["shape"]) == (4, (90, 11))
    at = cubic["problem"].start(0.1, np.random.default_rng(0))
    remaining = cubic["problem"].predict(at) - (y[:90] - y[:90].mean())
    paper = 0.5 * np.square(remaining).sum() + 3.0 * np.square(at.P).sum()
    assert 90 * cubic["problem"].objective(at) == pytest.approx(paper)
    monkeypatch.undo()
    direct = captured(monkeypatch, fit_fig4, X, y, method=ANOVA, bases=12)
    assert (direct["rank"], direct["shape"]) == (12, (90, 12))


def test_peers_of_fig_4_minimise_what_they_should():
    rng = np.random.default_rng(0)
    X, y, Z = rng.normal(size=(30, 3)), rng.normal(size=30), rng.normal(size=(5, 3))

    def predicted(method):
        return predict_fig4({}, X, y, Z, 0.7, method=method, bases=30, seed=0)

    kernel = (1.0 + X @ X.T) ** 3
    dual = (1.0 + Z @ X.T) ** 3 @ np.linalg.solve(kernel + 0.7 * np.eye(30), y)
    assert predicted(KERNEL) == pytest.approx(dual, rel=1e-6)
    # With all rows as bases Nyström is the kernel machine itself.
    assert predicted(NYSTROEM) == pytest.approx(dual, rel=1e-4)
    weights = np.linalg.solve(kernel.T @ kernel + 0.7 * np.eye(30), kernel.T @ y)
    assert predicted(RANDOM) == pytest.approx((1.0 + Z @ X.T) ** 3 @ weights, rel=1e-4)


def test_strengths_are_chosen_by_some_of_the_folds():
    place = {"data": "x", "method": "m", "bases": 3, "seed": 0}
    rows = np.zeros((100, 1)), np.zeros(100)

    def tested(fit):
        rows_of_all = tuned({"folds": 5, "folds_used": 2}, fit, place, rows, [0.1, 1.0], highest=True)
        return [(table, row["beta"], row["score"]) for table, row in [*rows_of_all][1:]]

    result = tested(lambda own, X, y, train, test, beta, **place: len(train) - beta)
    assert result == [("validation", 0.1, 59.9), ("validation", 1.0, 59.0), ("test", 0.1, 74.9)]
    with pytest.raises(ValueError, match=r"All β failed: 0\.1, 1"):
        tested(lambda *_, **place: np.nan)
