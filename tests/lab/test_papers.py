"""Artefacts of papers: what all of them promise, and the protocol of each."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from lab.tiny_papers import TINY

from fmviz.engine.problem import Problem
from fmviz.figures.papers import KINDS
from fmviz.lab.papers import ARTEFACTS, BUDGETS, Published, Result, shipped
from fmviz.lab.papers.blondel2016 import fig1, fig2, fig3, fig4
from fmviz.lab.papers.protocols.descent import times_to
from fmviz.lab.papers.protocols.tuning import Trial, halves, tuned
from fmviz.lab.papers.references import SUMS
from fmviz.lab.papers.reproduction import Reproduction, plain
from fmviz.lab.papers.results import last_shipped
from fmviz.lab.papers.statements import agreed, by_balance, by_majority

# Those of other artefacts compile many kernels of their own.
CHEAP = ("atarashi2021_fig3",)
RUN = [pytest.param(name, marks=() if name in CHEAP else pytest.mark.slow) for name in ARTEFACTS]


@functools.cache
def tiny_results(name: str) -> list[Result]:
    return list(ARTEFACTS[name].run("quick", n_jobs=1, **TINY[name]))


@pytest.mark.parametrize("name", ARTEFACTS)
def test_an_artefact_tells_what_it_is(name):
    one = ARTEFACTS[name]
    assert one.name == name
    assert one.paper
    assert one.title
    assert one.statements
    assert len({statement.key for statement in one.statements}) == len(one.statements)
    assert all(statement.text and statement.where for statement in one.statements)
    assert one.differences
    assert all(text.endswith(".") for text in one.differences)
    assert set(one.budgets) == set(BUDGETS)
    assert set(one.minutes) == set(BUDGETS)
    assert set(one.configured("quick")) == set(one.configured("full"))
    assert one.picture.kind in KINDS


def test_our_results_are_of_the_protocols_of_today():
    assert shipped.shipped_results()
    for name, budget in shipped.shipped_results():
        result = last_shipped(ARTEFACTS[name], budget)
        assert result is not None
        assert result.checks
        assert KINDS[ARTEFACTS[name].picture.kind]
        assert shipped.shipped_picture(name).startswith("<svg ")
        assert not re.search(r"(?<![\w/:.])/(work|tmp|home|root)\b", json.dumps(result.to_dict()))
    assert sum(path.stat().st_size for path in shipped.FOLDER.glob("*.gz")) < 1_500_000


def test_a_result_is_shipped_and_read_back(monkeypatch, tmp_path):
    ours = last_shipped(ARTEFACTS["atarashi2021_fig10"], "full")
    last = replace(ours, settings={"data": ["here", "elsewhere"]}, data={"here": "1f"})
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    try:
        shipped._heads.cache_clear()
        shipped.keep_shipped(last.to_dict(), 5.2, "<svg></svg>")
        assert shipped.shipped_result(last.artefact, "quick") is None
        assert Result.from_dict(shipped.shipped_result(last.artefact, "full")) == last
        (kept,) = shipped.shipped_results().values()
        assert (kept.created, kept.without, kept.shipped) == (5, ("elsewhere",), True)
        assert sum(kept.verdicts.values()) == len(last.checks)
        with pytest.raises(ValueError, match="another protocol"):
            last_shipped(ARTEFACTS[last.artefact], "full")
    finally:
        shipped._heads.cache_clear()


@pytest.mark.sample(1)
@pytest.mark.xdist_group("papers")  # One process makes the results.
@pytest.mark.parametrize("name", RUN)
def test_a_tiny_run_grows_and_completes(name):
    *before, last = tiny_results(name)
    assert before
    assert all(result.state == "running" for result in before)
    assert last.state == "complete"
    assert last.done == last.total > 0
    done = [result.done for result in tiny_results(name)]
    assert done == sorted(done)
    assert last.tables["data"]
    assert set(last.data) == {row["data"] for row in last.tables["data"]}
    assert {check.statement for check in last.checks} == {one.key for one in ARTEFACTS[name].statements}
    assert all(check.measured.endswith(".") for check in last.checks)
    assert {"python", "numpy", "fmviz"} <= set(last.versions)


@pytest.mark.xdist_group("papers")  # One process makes the results.
@pytest.mark.parametrize("name", RUN)
def test_results_survive_json(name):
    last = tiny_results(name)[-1]
    text = json.dumps(last.to_dict(), allow_nan=False)
    back = Result.from_dict(json.loads(text))
    assert json.dumps(back.to_dict(), allow_nan=False) == text
    assert tuple(ARTEFACTS[name].judge(back.tables, back.settings)) == last.checks
    with pytest.raises(ValueError, match="'odd' is unknown"):
        Result.from_dict({**last.to_dict(), "odd": 1})
    with pytest.raises(ValueError, match="'seconds' is missing"):
        Result.from_dict({k: v for k, v in last.to_dict().items() if k != "seconds"})


@pytest.mark.parametrize("name", ARTEFACTS)
def test_without_numbers_nothing_is_settled(name):
    one = ARTEFACTS[name]
    checks = one.judge({}, one.configured("full"))
    assert {check.statement for check in checks} == {statement.key for statement in one.statements}
    assert {check.verdict for check in checks} == {"not settled"}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ARTEFACTS)
def test_a_run_stops_when_asked(name):
    results = list(ARTEFACTS[name].run("quick", n_jobs=1, should_stop=lambda: True, **TINY[name]))
    assert results[-1].state == "stopped"
    assert results[-1].done < results[-1].total


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["blondel2016_fig1", "blondel2016_fig2"])
def test_a_fit_that_was_stopped_counts_for_nothing(name):
    asked = iter([False] * 4)
    results = list(ARTEFACTS[name].run("quick", should_stop=lambda: next(asked, True), **TINY[name]))
    assert results[-1].state == "stopped"
    assert results[-1].tables["trace"]
    assert "ends" not in results[-1].tables
    assert {check.verdict for check in results[-1].checks} == {"not settled"}


def test_settings_are_checked():
    one = ARTEFACTS["blondel2016_fig1"]
    with pytest.raises(ValueError, match="budget"):
        one.run("huge")
    with pytest.raises(ValueError, match="sedes"):
        one.run("quick", sedes=3)
    with pytest.raises(ValueError, match="n_jobs"):
        one.run("quick", n_jobs=0)


def test_published_numbers_stand_beside_ours():
    last = tiny_results("blondel2016_fig1")[-1]
    one = ARTEFACTS["blondel2016_fig1"]
    known = {"data": "diabetes, standardised"}
    wrong = replace(
        one,
        published=(
            Published("data", known, "n", 300, "Table 1", 0.05),
            Published("data", known, "d", 10, "Table 1"),
            Published("data", {"data": "other"}, "n", 5, "Table 1"),
        ),
    )
    first, second, third = wrong.compared(last.tables)
    assert first["deviation"] == pytest.approx(31 / 300)
    assert first["within"] is False
    assert second["within"] is True
    assert third["ours"] is third["deviation"] is third["within"] is None


def test_plain_values():
    given = {"a": np.float64("nan"), "b": [np.int64(2), (np.bool_(True), None)], 3: 1.5}
    assert plain(given) == {"a": None, "b": [2, [True, None]], "3": 1.5}


@pytest.mark.parametrize(
    ("wins", "total", "verdict"),
    [
        (0, 0, "not settled"),
        (3, 4, "holds"),
        (2, 4, "does not hold"),
        (2, 3, "not settled"),
        (5, 5, "holds"),
        (0, 1, "does not hold"),
    ],
)
def test_majorities(wins, total, verdict):
    assert by_majority(wins, total) == verdict


def test_ties_settle_nothing():
    assert by_balance([0.2, 0.3, -0.2, 0.4], 0.1) == ("holds", 3, 1)
    assert by_balance([0.2, 0.05, 0.05, 0.05], 0.1) == ("not settled", 1, 0)
    assert by_balance([-0.2, -0.3, 0.05], 0.1) == ("does not hold", 0, 2)
    assert by_balance([], 0.1) == ("not settled", 0, 0)
    assert [agreed(each) for each in ([True], [True, False], [False, False], [])] == [
        "holds", "not settled", "does not hold", "not settled"
    ]  # fmt: skip


def test_times_are_read_off_the_way_down():
    rows = [
        {"panel": "p", "method": m, "epoch": e, "seconds": float(e), "objective": o}
        for m, path in (("a", (1.0, 0.109, 0.1)), ("b", (1.0, 0.5, 0.2)))
        for e, o in enumerate(path)
    ]
    times = times_to({"trace": rows}, 0.01, panel="p")
    assert times == {"early": {"a": 1.0, "b": np.inf}, "late": {"a": 2.0, "b": np.inf}}
    assert times_to({}, 0.01, panel="p") == {"early": {}, "late": {}}


# Protocols


def test_objectives_of_fig_1_are_those_of_the_paper():
    settings = ARTEFACTS["blondel2016_fig1"].configured()
    X, y = fig1._rows("unit", "raw", 0)
    assert X.shape == (331, 10)
    problem = fig1._problem(X, y, "polynomial", "signs", settings)
    at = problem.start(settings["init_sd"], np.random.default_rng(0))
    f = np.square(X @ at.P) @ at.coefficients
    paper = 0.5 * np.square(y - f).sum() + 10.0 * (np.abs(at.coefficients) @ np.square(at.P).sum(axis=0))
    assert y.size * problem.objective(at) == pytest.approx(paper)
    # All methods start at the same P, and fitting after fixing is never worse than what was fixed.
    rows = tiny_results("blondel2016_fig1")[-1].tables
    for row in rows["ends"]:
        assert row[fig1.AFTER] <= min(row["λ = 1"], row["λ = ±1"]) * (1 + 1e-12)
    starts = {(row["panel"], row["method"]): row["objective"] for row in rows["trace"] if row["epoch"] == 0}
    panel = fig1.panel_of("anova", "standard", "centred")
    assert starts[panel, "fit λ"] == starts[panel, "λ = 1"]


@pytest.mark.parametrize("features", ["unit", "standard"])
def test_features_of_fig_1_are_scaled_as_said(features):
    from sklearn.datasets import load_diabetes

    X, _ = fig1._rows(features, "raw", 3)
    order = np.random.default_rng([3, 0]).permutation(442)[:331]
    known = load_diabetes().data[np.sort(order)]
    assert (X if features == "unit" else X / np.sqrt(442)) == pytest.approx(known, abs=1e-12)
    assert fig1._rows(features, "centred", 3)[1].mean() == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("kernel", fig2.KERNELS)
def test_all_methods_of_fig_2_start_at_the_same_function(kernel):
    settings = ARTEFACTS["blondel2016_fig2"].configured(**TINY["blondel2016_fig2"])
    X, y = fig2._data(settings)
    assert X.shape == (80, 151)
    assert np.asarray(X[:, [150]].todense()).ravel() == pytest.approx(np.ones(80))
    begins = fig2.starts_of(fig2.Design(X), y, kernel, settings)
    lifted, at = begins.pop(fig2.LIFTED)
    assert lifted.lambda_p == 100.0 / 16_087
    for problem, start in begins.values():
        assert problem.predict(start) == pytest.approx(lifted.predict(at), abs=1e-10)
        # The eigendecomposition has the least penalty of all factorisations of W (Lemma 10).
        assert problem.objective(start) <= lifted.objective(at) * (1 + 1e-12)
        assert start.P.shape[1] == 2 * settings["r"]


class _CaptureError(Exception):
    pass


def captured(monkeypatch, module, method, **trial):
    """Return how a module builds the problem of a trial with β = 6 on 90 rows."""
    found = {}

    def build(X, y, **given):
        found.update(given, shape=X.shape, problem=Problem.build(X, y, **given))
        raise _CaptureError

    monkeypatch.setattr(module, "Problem", type("Stub", (), {"build": staticmethod(build)}))
    fixed = {"drawn": 600} if module is fig3 else {}
    with pytest.raises(_CaptureError):
        module.fit(
            Trial(method=method, seed=0, beta=6.0, **trial), np.arange(90), np.arange(90, 120),
            epochs=1, tol=0.0, **fixed,
        )  # fmt: skip
    return found


@pytest.mark.parametrize("method", fig3.METHODS)
def test_the_four_models_of_fig_3(monkeypatch, method):
    found = captured(monkeypatch, fig3, method, data=fig3.DRAWN, bases=8)
    X, y = fig3.ratings(fig3.DRAWN, 600)
    assert found["rank"] == 4
    assert found["fit_linear"] is ("linear" in method)
    assert found["shape"] == (90, X.shape[1] + ("augment" in method))
    problem = found["problem"]
    at = problem.start(0.1, np.random.default_rng(0))
    at.w[:] = 0.3 if "linear" in method else 0.0
    # β/2 of U, V and w, with losses that are summed.
    paper = 0.5 * np.square(problem.predict(at) - y[:90]).sum()
    paper += 3.0 * (np.square(at.P).sum() + (0.0 if "free" in method else np.square(at.w).sum()))
    assert 90 * problem.objective(at) == pytest.approx(paper)
    assert problem.model.distinct is method.startswith("A²")


def test_the_machines_of_fig_4(monkeypatch):
    cubic = captured(monkeypatch, fig4, fig4.HOMOGENEOUS, data="diabetes", bases=12)
    assert (cubic["rank"], cubic["shape"]) == (4, (90, 11))
    at = cubic["problem"].start(0.1, np.random.default_rng(0))
    target = fig4._rows("diabetes")[1][:90]
    left = cubic["problem"].predict(at) - (target - target.mean())
    paper = 0.5 * np.square(left).sum() + 3.0 * np.square(at.P).sum()
    assert 90 * cubic["problem"].objective(at) == pytest.approx(paper)
    monkeypatch.undo()
    direct = captured(monkeypatch, fig4, fig4.ANOVA, data="diabetes", bases=12)
    assert (direct["rank"], direct["shape"]) == (12, (90, 12))


def test_peers_of_fig_4_minimise_what_they_should():
    rng = np.random.default_rng(0)
    X, y, Z = rng.normal(size=(30, 3)), rng.normal(size=30), rng.normal(size=(5, 3))
    kernel = (1.0 + X @ X.T) ** 3
    trial = Trial("diabetes", fig4.KERNEL, 30, 0, 0.7)
    dual = np.linalg.solve(kernel + 0.7 * np.eye(30), y)
    assert fig4._kernel_ridge(trial, X, y, Z) == pytest.approx((1.0 + Z @ X.T) ** 3 @ dual, rel=1e-6)
    # With all rows as bases Nyström is the kernel machine itself.
    assert fig4._nystroem(trial, X, y, Z) == pytest.approx((1.0 + Z @ X.T) ** 3 @ dual, rel=1e-4)
    features = (1.0 + X @ X.T) ** 3
    weights = np.linalg.solve(features.T @ features + 0.7 * np.eye(30), features.T @ y)
    assert fig4._random(trial, X, y, Z) == pytest.approx((1.0 + Z @ X.T) ** 3 @ weights, rel=1e-4)


def test_statements_of_fig_2_follow_from_times():
    def rows(panel, **paths):
        for method, path in paths.items():
            for epoch, (seconds, objective) in enumerate(path):
                yield {
                    "panel": panel, "method": names[method], "seed": 0, "epoch": epoch, "seconds": seconds,
                    "objective": objective,
                }  # fmt: skip

    names = {"cd": fig2.LIFTED, "direct": fig2.DIRECT, "lbfgs": fig2.LBFGS, "sgd": "Direct (SGD), η₀ = 0.1"}
    trace = [
        *rows("A²", cd=[(0, 1), (2, 0.1)], direct=[(0, 1), (3, 0.1)], lbfgs=[(0, 1), (9, 0.1)]),
        *rows("H²", cd=[(0, 1), (2, 0.1)], lbfgs=[(0, 1), (1, 0.1)], sgd=[(0, 1), (1, 0.108), (9, 0.105)]),
    ]
    ends = [
        {"panel": panel, "method": method} for panel, method in {(r["panel"], r["method"]) for r in trace}
    ]
    checks = ARTEFACTS["blondel2016_fig2"].judge({"trace": trace, "ends": ends}, {"eta0": [0.1]})
    assert {check.statement: check.verdict for check in checks} == {
        "anova_similar": "holds",
        "anova_lbfgs": "holds",
        "homogeneous_lbfgs": "does not hold",
        "homogeneous_sgd": "not settled",
    }


def test_statements_of_fig_3_and_4_follow_from_scores():
    better = {
        "A² (augment)": 0.90, "A² (linear combination)": 0.91, "A² (linear combination, w free)": 0.92,
        "H² (augment)": 0.95, "H² (linear combination)": 0.92, "H² (linear combination, w free)": 0.96,
    }  # fmt: skip
    rows = [
        {"data": "x", "method": m, "bases": k, "seed": 0, "score": s}
        for m, s in better.items()
        for k in (2, 4)
    ]
    checks = ARTEFACTS["blondel2016_fig3"].judge({"data": [{"data": "x"}], "test": rows}, {"bases": [2, 4]})
    assert [check.verdict for check in checks] == ["holds"] * 3 + ["does not hold", "holds"]
    close = [row | {"score": 0.9} for row in rows]
    checks = ARTEFACTS["blondel2016_fig3"].judge({"data": [{"data": "x"}], "test": close}, {"bases": [2, 4]})
    assert [check.verdict for check in checks] == ["not settled"] + ["holds"] * 4
    scores = {
        fig4.HOMOGENEOUS: (0.5, 0.55, 0.56), fig4.ANOVA: (0.4, 0.5, 0.54), fig4.NYSTROEM: (0.1, 0.2, 0.552),
        fig4.RANDOM: (0.1, 0.2, 0.3),
    }  # fmt: skip
    rows = [
        {"data": "x", "method": m, "bases": k, "seed": 0, "score": s}
        for m, path in scores.items()
        for k, s in zip((3, 6, 12), path, strict=True)
    ]
    rows.append({"data": "x", "method": fig4.KERNEL, "bases": 0, "seed": 0, "score": 0.555})
    checks = ARTEFACTS["blondel2016_fig4"].judge(
        {"data": [{"data": "x"}], "test": rows}, {"bases": [3, 6, 12]}
    )
    assert [check.verdict for check in checks] == ["holds", "holds"]
    assert "(lifted) 6" in checks[0].measured


def test_a_failed_fit_is_left_out(monkeypatch):
    def fit(trial, train, test, **fixed):
        if trial.beta > 0.5 or trial.seed:
            raise ValueError("too large")
        return float(len(train))

    repro = Reproduction({"folds": 5, "folds_used": 2}, 1, lambda: False)
    list(tuned(repro, [Trial("x", "m", 3, 0)], [0.1, 1.0], fit, {"x": 100}, highest=True))
    assert [row["score"] for row in repro.tables["validation"]] == [60.0, None]
    assert "too large" in repro.tables["validation"][1]["failure"]
    assert [(row["beta"], row["score"]) for row in repro.tables["test"]] == [(0.1, 75.0)]
    with pytest.raises(ValueError, match="No β worked for m with 3 bases"):
        list(tuned(repro, [Trial("x", "m", 3, 1)], [0.1], fit, {"x": 100}, highest=True))


# Data


def test_splits_are_three_quarters():
    train, test = halves(4_177, 0.75, 0)
    assert (train.size, test.size) == (3_132, 1_045)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(4_177))


def test_what_is_not_here_is_replaced_and_said(monkeypatch):
    monkeypatch.delenv("FMVIZ_DATA", raising=False)
    for name in ("blondel2016_fig3", "blondel2016_fig4"):
        given = {k: v for k, v in TINY[name].items() if k != "data"}
        stop = iter([False, False])
        results = ARTEFACTS[name].run("quick", n_jobs=1, should_stop=lambda s=stop: next(s, True), **given)
        last = list(results)[-1]
        assert "FMVIZ_DATA is not set" in last.differences[-1]
        assert list(last.data) == ([fig3.DRAWN] if name == "blondel2016_fig3" else ["diabetes"])
        assert SUMS in last.differences
