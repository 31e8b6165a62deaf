"""Figs. 5 to 9 of atarashi2021: their protocols, and what follows from their numbers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from lab.tiny_papers import TINY

from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.lab.papers import ARTEFACTS
from fmviz.lab.papers.atarashi2021 import fig8, fig9
from fmviz.lab.papers.protocols import benchmarks, races, weights
from fmviz.lab.papers.protocols.descent import ahead, median_times, racing
from fmviz.lab.papers.reproduction import Reproduction

FIG5, FIG6, FIG7, FIG8, FIG9 = (ARTEFACTS[f"atarashi2021_fig{n}"] for n in range(5, 10))


def verdicts(artefact, tables, settings):
    return {(c.statement, c.case): c.verdict for c in artefact.judge(tables, settings)}


# Figures 5 and 7


def test_the_weights_of_both_models_are_measured_alike():
    P = np.random.default_rng(0).normal(size=(7, 3))
    W = P @ P.T
    machine = Parameters(P, np.zeros(7), 0.0)
    assert weights.weights_l1(machine) == pytest.approx(np.abs(W).sum())
    assert weights.weights_l1(Parameters.of_weights(W)) == pytest.approx(np.abs(W).sum())


@pytest.mark.parametrize("method", weights.METHODS)
def test_the_course_of_a_method_is_its_risk_and_its_weights(method, monkeypatch):
    built = []
    real = Problem.build
    monkeypatch.setattr(Problem, "build", lambda *a, **k: built.append(real(*a, **k)) or built[-1])
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 8)), rng.normal(size=30)
    repro = Reproduction({"epochs": 3, "tol": 0.0}, 1, lambda: False)
    given = {"panel": "p", "seed": 4, "data": "x", "lambda_p": 0.1, "lambda_sparse": 0.5, "seconds": 5.0}
    race = weights.race_of(lambda: (X, y), methods=[method], **given)
    list(racing(lambda repro: [race])(repro))
    problem = built[0]
    assert (problem.lambda_p, problem.lambda_sparse, problem.fit_linear) == (0.1, 0.5, False)
    trace = repro.tables["trace"]
    assert [row["epoch"] for row in trace] == [0, 1, 2, 3]
    at = problem.start(0.01, np.random.default_rng([4, 1]))
    first = 0.5 * np.mean((problem.predict(at) - y) ** 2) + 0.5 * weights.weights_l1(at)
    assert trace[0]["objective"] == pytest.approx(first)
    (end,) = repro.tables["ends"]
    assert end["objective"] == trace[-1]["objective"]


def test_to_settle_is_to_stay():
    course = [
        {"seconds": float(i), "objective": value} for i, value in enumerate((9.0, 1.0, 2.0, 1.005, 1.0))
    ]
    assert weights.settled(course) == 3.0
    assert weights.settled(course[-1:]) == 4.0


def ends(panel, objectives, settled=None, seeds=(0, 1, 2, 3)):
    base = dict.fromkeys(weights.METHODS, 5.0)
    late = dict.fromkeys(weights.METHODS, 2.0)
    return [
        {
            "panel": panel, "method": method, "seed": seed, "objective": (base | objectives)[method],
            "settled": (late | (settled or {}))[method],
        }
        for method in weights.METHODS
        for seed in seeds
    ]  # fmt: skip


def test_statements_of_fig_5_follow_from_ends():
    settings = FIG5.configured("full")
    of = weights.panel_of
    first, second = settings["settings"]
    tables = {
        "ends": [
            *ends(of(first, 0.1), {"TI": 1.0, "SLQR": 0.5}),
            *ends(of(first, 1.0), {"TI": 1.0, "SLQR": 1.05}),
            *ends(of(second, 0.1), {"TI": 1.0, "CS": 1.1}, {"TI": 1.0, "CS": 1.5}),
            *ends(of(second, 1.0), {"TI": 1.0, "CS": 5.5}, {"TI": 1.0, "CS": 2.5}),
        ]
    }
    assert verdicts(FIG5, tables, settings) == {
        ("ti_lowest", "λ = 0.1, all methods"): "does not hold",
        ("ti_lowest", "λ = 0.1, without SLQR"): "holds",
        ("ti_lowest", "λ = 1, all methods"): "holds",
        ("ti_lowest", "λ = 1, without SLQR"): "holds",
        ("remarkable", "λ = 1, all methods"): "does not hold",
        ("remarkable", "λ = 1, without SLQR"): "holds",
        ("both_lowest", "λ = 0.1, all methods"): "holds",
        ("both_lowest", "λ = 0.1, without SLQR"): "holds",
        ("both_lowest", "λ = 1, all methods"): "does not hold",
        ("both_lowest", "λ = 1, without SLQR"): "does not hold",
        ("both_fastest", "λ = 0.1"): "holds",
        ("both_fastest", "λ = 1"): "does not hold",
    }
    # Starts that lack the end of a method do not count.
    few = {"ends": [row for row in tables["ends"] if (row["method"], row["seed"]) != ("SLQR", 3)]}
    assert all(len(found) == 3 for found in weights.ends(few, of(first, 1.0), "objective").values())
    none = {"ends": [row for row in tables["ends"] if row["method"] != "SLQR"]}
    assert set(verdicts(FIG5, none, settings).values()) == {"not settled"}


def trace(panel, times, seeds=(0,)):
    """Every method comes down from 100 to 1, and is there at its time."""
    return [
        {"panel": panel, "method": method, "seed": seed, "epoch": epoch, "seconds": seconds, "objective": o}
        for method, time in times.items()
        for seed in seeds
        for epoch, seconds, o in ((0, 0.0, 100.0), (1, time / 2, 50.0), (2, time, 1.0))
    ]


def test_statements_of_fig_7_follow_from_times():
    settings = FIG7.configured("full", data=["x"])
    times = dict.fromkeys(weights.METHODS, 2.5) | {"TI": 1.0, "CS": 1.1}
    tables = {"trace": [], "ends": []}
    for strength in settings["lambda"]:
        panel = weights.panel_of("x", strength)
        tables["ends"] += ends(panel, {}, seeds=(0,))
        tables["trace"] += trace(panel, times)
        times = times | {"L1": 1.5}
    assert list(verdicts(FIG7, tables, settings).values()) == ["holds", "does not hold"]


# Figure 6


def test_fig_6_times_epochs_of_all_methods():
    *_, last = FIG6.run("quick", n_jobs=1, **TINY[FIG6.name])
    rows = last.tables["times"]
    assert {(row["method"], row["d"]) for row in rows} == set(product(weights.METHODS, (20, 40)))
    assert all(row["seconds"] > 0 for row in rows)
    assert [(row["n"], row["d"]) for row in last.tables["data"]] == [(30, 20), (30, 40)]


def epochs(powers, factors=None):
    return [
        {"method": method, "d": d, "seconds": (factors or {}).get(method, 1.0) * 1e-9 * d ** powers[method]}
        for method in weights.METHODS
        for d in (1_000, 2_000, 4_000)
    ]


def test_statements_of_fig_6_follow_from_times():
    powers = dict.fromkeys(weights.METHODS, 1.0) | {"Ω*-nmAPGD": 2.0, "Ω*-SubGD": 2.1, "SLQR": 3.0}
    settings = FIG6.configured("full", d=[1_000, 2_000, 4_000])
    assert set(verdicts(FIG6, {"times": epochs(powers)}, settings).values()) == {"holds"}
    other = powers | {"TI": 1.5, "SLQR": 2.3}
    found = verdicts(FIG6, {"times": epochs(other, {"L21": 1.6, "SLQR": 1e-4})}, settings)
    assert found["linear", "TI"] == found["cubic", "SLQR"] == "does not hold"
    assert found["overlap", "CS and L21"] == found["slqr", "d = 4,000"] == "does not hold"
    assert found["linear", "CS"] == found["quadratic", "Ω*-SubGD"] == "holds"
    small = FIG6.configured("quick", d=[1_000, 2_000])
    assert (
        verdicts(FIG6, {"times": epochs(powers, {"SLQR": 1e-6})}, small)["slqr", "d = 2,000"] == "not settled"
    )
    missing = {"times": epochs(powers)[:-1]}
    assert set(verdicts(FIG6, missing, settings).values()) == {"not settled"}


# Figures 8 and 9


def test_the_algorithms_are_those_of_the_paper():
    lines = {one.label: one for one in races.racers("ti", [1.0, 0.1], mini_batches=True)}
    assert list(lines) == ["PCD", "APGD", "nmAPGD", "PSGD", "MB-PSGD", "Katyusha", "MB-Katyusha"]
    assert [one["eta0"] for one in lines["MB-PSGD"].tries] == [1.0, 0.1]
    assert all(not own["monotone"] for name in ("PSGD", "Katyusha") for own in lines[name].tries)
    assert lines["PSGD"].tries[0]["operator"] == "dense"
    names = [one.label for one in races.racers("cs", [1.0], mini_batches=False)]
    assert names == ["PBCD", "APGD", "nmAPGD", "PSGD", "Katyusha"]


@pytest.mark.parametrize("letter", fig8.PANELS)
def test_the_problem_of_fig_8_is_that_of_the_paper(letter):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 9)), rng.normal(size=20)
    problem, scale = fig8.build(letter, 0.1, X, y)
    at = problem.start(0.5, rng)
    f = ((X @ at.P) ** 2 - (X**2) @ (at.P**2)).sum(axis=1) / 2
    omega = {"ti": (np.abs(at.P).sum(axis=0) ** 2).sum(), "cs": np.linalg.norm(at.P, axis=1).sum() ** 2}
    paper = 0.5 * np.mean((f - y) ** 2) + 0.1 * (at.P**2).sum() + 0.1 * omega[fig8.PANELS[letter][1]]
    assert scale * problem.objective(at) == pytest.approx(paper)


def test_strengths_of_fig_9():
    settings = FIG9.configured("full")
    X, y = benchmarks.whole(benchmarks.DRAWN, 600)
    problem, _ = fig9.build("cs", settings["strengths"][benchmarks.A9A], X, y)
    assert (problem.lambda_w, problem.lambda_p, problem.lambda_sparse) == (0.5e-2, 0.5e-3, 0.5e-3)
    assert (problem.fit_linear, problem.fit_intercept, problem.loss.name) == (True, True, "squared")


def test_of_several_steps_the_best_is_shown():
    *_, last = FIG9.run("quick", n_jobs=1, **TINY[FIG9.name])
    (panel,) = {row["panel"] for row in last.tables["ends"]}
    shown = {row["method"] for row in last.tables["trace"]}
    assert shown == {one.label for one in races.racers("ti", [1.0], mini_batches=True)}
    for name in ("PSGD", "MB-Katyusha"):
        tried = [row for row in last.tables["ends"] if row["method"] == name]
        assert [row["eta0"] for row in tried] == [1.0, 0.01]
        best = min(tried, key=lambda row: (row["diverged"], row["objective"]))
        course = [row for row in last.tables["trace"] if row["method"] == name]
        assert course[-1]["objective"] == pytest.approx(best["objective"])
        assert len({row["objective"] for row in course if row["epoch"] == 0}) == 1
    assert panel == f"{benchmarks.DRAWN}, TI"


def raced(artefact, settings, panel, lines, times, eta=None):
    rows = [
        {
            "panel": panel, "method": one.label, "seed": 0, "eta0": own.get("eta0"), "objective": 1.0,
            "diverged": own.get("eta0") == eta,
        }
        for one in lines
        for own in one.tries
    ]  # fmt: skip
    return {"ends": rows, "trace": trace(panel, {one.label: times[one.label] for one in lines})}


def merged(*tables):
    return {name: [row for one in tables for row in one[name]] for name in ("ends", "trace")}


SLOW = dict.fromkeys(("PCD", "PBCD", "APGD", "nmAPGD", "PSGD", "MB-PSGD", "Katyusha", "MB-Katyusha"), 4.0)


def test_statements_of_fig_8_follow_from_times():
    settings = FIG8.configured("full")
    tables = []
    for letter, n in product(fig8.PANELS, settings["N"]):
        fast = {"PCD": 1.0} if n == 200 else {"PSGD": 1.0, "Katyusha": 3.0 if letter != "c" else 9.0}
        panel, lines = fig8.panel_of(letter, n), fig8.lines_of(letter, settings)
        tables.append(raced(FIG8, settings, panel, lines, SLOW | fast))
    found = list(verdicts(FIG8, merged(*tables), settings).values())
    assert found == ["holds", "holds", "holds", "does not hold"]


def test_statements_of_fig_9_follow_from_times():
    settings = FIG9.configured("full")
    tables = []
    for name, regularizer in product((benchmarks.ML100K, benchmarks.A9A), ("ti", "cs")):
        fast = {"PCD": 1.0, "PBCD": 1.0, "MB-PSGD": 2.0, "MB-Katyusha": 2.0}
        if name == benchmarks.A9A:
            fast |= {"PSGD": 0.5, "nmAPGD": 1.5}
        panel, lines = fig9.panel_of(name, regularizer), fig9.lines_of(regularizer, settings)
        tables.append(raced(FIG9, settings, panel, lines, SLOW | fast, eta=1.0))
    found = verdicts(FIG9, merged(*tables), settings)
    by_set = {
        name: {key: verdict for (key, case), verdict in found.items() if case == f"{name}, TI"}
        for name in (benchmarks.ML100K, benchmarks.A9A)
    }
    assert by_set[benchmarks.ML100K] == dict.fromkeys(
        ("coordinate", "stochastic", "mini_batches", "behind"), "holds"
    )
    assert by_set[benchmarks.A9A] == {
        "coordinate": "does not hold",
        "stochastic": "does not hold",
        "mini_batches": "not settled",
        "behind": "holds",
    }
    assert ("behind", f"{benchmarks.A9A}, CS") not in found
    assert found["diverges", "all"] == "holds"


def test_what_nobody_reached_settles_nothing():
    never = {"a": np.inf, "b": np.inf}
    assert ahead({"early": never, "late": never}, ["a"], ["b"]) == "not settled"
    once = {"early": {"a": 1.0, "b": np.inf}, "late": never}
    assert ahead(once, ["a"], ["b"], 100.0) == "holds"
    assert ahead(once, ["b"], ["a"]) == "does not hold"
    assert ahead({"early": {"a": 1.0, "b": 2.0}, "late": {"a": 2.0, "b": 1.0}}, ["a"], ["b"]) == "not settled"


def test_times_of_several_starts_are_medians():
    rows = [
        row
        for seed, time in enumerate((1.0, 2.0, 9.0))
        for row in trace("p", {"a": time, "b": 10.0}, seeds=(seed,))
    ]
    ended = [{"panel": "p", "method": name, "seed": seed} for name in ("a", "b") for seed in range(3)]
    needed = {"a": 1, "b": 1}
    assert median_times({"trace": rows, "ends": ended[:3]}, "p", needed) is None
    times = median_times({"trace": rows, "ends": ended}, "p", needed)
    assert times == {"early": {"a": 2.0, "b": 10.0}, "late": {"a": 2.0, "b": 10.0}}
