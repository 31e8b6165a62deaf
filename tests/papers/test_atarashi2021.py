"""The protocols of the artefacts of atarashi2021, and what their checks follow from."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from by_name import iterate
from tiny_papers import TINY

import fmviz
from fmviz.engine.fit import Budget
from fmviz.engine.penalties import TI
from fmviz.engine.problem import Problem
from fmviz.lab.datasets import DATASETS
from fmviz.lab.operators import sample
from fmviz.lab.papers import Result
from fmviz.metrics.prediction import roc_auc
from papers import ARTEFACTS
from papers.atarashi2021 import (
    DRAWN,
    ERROR,
    F1,
    FEATURES,
    LABELS,
    LETTERS,
    METHODS,
    ML100K,
    OMEGA,
    PRINTED,
    PSSR,
    SETTINGS,
    SPARSE,
    WEIGHTED,
    best,
    fit,
    fit_planted,
    parts,
    problem_of_fig8,
    problem_of_table3,
    racers,
    scored,
    weighted,
    weights_l1,
)

FIG2, FIG3, FIG6, FIG7, FIG9, TABLE3 = (
    ARTEFACTS[f"atarashi2021_{name}"] for name in ("fig2", "fig3", "fig6", "fig7", "fig9", "table3")
)


def verdicts(artefact, tables, settings):
    return {(c.statement, c.case): c.verdict for c in artefact.judge(tables, settings)}


# Figures 1, 2, 4 and 10


@pytest.fixture(scope="module")
def fig2() -> Result:
    return FIG2.run("quick", matrices=2)


def test_the_operators_of_fig_2_are_those_of_the_paper(fig2):
    P = np.random.default_rng(0).standard_normal((200, 30))
    assert np.array_equal(P, sample(200, 30, "normal", 0))
    by_rows = TI(axis="rows")
    operators = {"L1": "l1", "L21": "l21", "TI by columns (Eq. 30)": "ti", "TI by rows": by_rows, "CS": "cs"}
    rows = [row for row in fig2.tables["counts"] if row["seed"] == 0]
    assert {row["log2_lambda"] for row in rows} == set(range(-7, 8))
    for row in rows:
        Q = fmviz.prox(operators[row["method"]], P, 2.0 ** row["log2_lambda"])
        used = np.triu((Q != 0).astype(int) @ (Q != 0).T.astype(int), 1) > 0
        assert (row["interactions"], row["features"]) == (used.sum(), Q.any(axis=1).sum()), row
        assert row["certificate"] <= 1e-10


def test_both_readings_of_ti_are_told_apart(fig2):
    verdicts = {(check.statement, check.case): check.verdict for check in fig2.checks}
    assert verdicts["ti_features", LABELS["ti"]] == "does not hold"
    assert verdicts["ti_features", LABELS["ti_rows"]] == "holds"
    ours = [row["ours"] for row in FIG2.compared(fig2.tables)]
    assert ours == [200, 30, 200, 200]


# Figure 3


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_fig_3(method):
    data = SETTINGS[FEATURES] | {"seed": 3, "n_samples": 20}
    end = fit_planted(method, data, 0, 1.0, max_epochs=1, lambda_p=1.0, lambda_sparse=float(method != "FM"))
    assert METHODS[method]["model"] != "fm" or end.parameters.P.shape == (100, 30)
    assert (end.parameters.w.any(), end.parameters.intercept) == (False, 0.0)


def test_a_study_tunes_on_other_data_than_it_tests():
    changes = {"settings": [FEATURES], "n_samples": [20], "methods": ["TI"], "grid": [0.1, 1.0]}
    changes |= {"validation": 2, "test": 3, "epochs": 2, "share": 2.5}
    last = FIG3.run("quick", n_jobs=1, **changes)
    # A fit made alone at the chosen strengths gives the same.
    row = next(row for row in last.tables["tuned"] if row["metric"] == ERROR)
    strengths = {name: row[name] for name in ("lambda_p", "lambda_sparse")}
    sets = [SETTINGS[FEATURES] | {"seed": 5_000 + i, "n_samples": 20} for i in range(3)]
    alone = [fit_planted("TI", data, 0, 1.0, max_epochs=2, tol=1e-4, **strengths) for data in sets]
    errors = [end.metrics["estimation_error"] for end in alone]
    assert [r["score"] for r in last.tables["test"] if r["data"].endswith(ERROR)] == errors


def test_strengths_are_chosen_for_each_metric():
    rows = [
        (0.1, 0.1, 0.1, 0.7, 0.0), (1.0, 0.1, 0.5, 0.9, 0.0), (1.0, 1.0, 0.6, 0.8, 0.2),
        (9.0, 9.0, np.nan, 0.8, 0.0),
    ]  # fmt: skip
    names = ["lambda_p", "lambda_sparse"]
    fits = pd.DataFrame(rows, columns=[*names, ERROR, F1, PSSR]).set_index(names)
    assert [best(fits, metric) for metric in (ERROR, F1, PSSR)] == [(0.1, 0.1), (1.0, 0.1), (1.0, 1.0)]
    assert best(fits.drop((1.0, 1.0)), PSSR) == (1.0, 0.1)


# Table 3


OWN = {
    "data": [DRAWN], "drawn": 600, "epochs": 3, "rank": 4, "lambda_w": [0.5e-4],
    "lambda_p": [0.5e-3], "grid": [1e-5, 1e-2], "target": 40, "accept": [20, 60],
}  # fmt: skip


def own(**changes):
    return TABLE3.configured("quick", **(OWN | changes))


def test_printed_numbers_of_table_3():
    printed = {
        (item["table"], *item["where"].values(), item["column"]): item["value"] for item in TABLE3.published
    }
    assert (len(printed), printed["table3a", "ML100K", "TI", "score"]) == (2 * (10 + 20), 0.93018)
    # All pairs of so many features.
    assert printed["table3b", "ML100K", "FM", "used"] == 2_640 * 2_639 / 2
    given = [{"data": "ML100K", "method": "TI", "score": 0.93018 + 0.0029, "used": 1_000.0}]
    rows = TABLE3.compared({"table3a": given})
    assert [row["within"] for row in rows if row["ours"] is not None] == [True, True]
    given[0]["score"] = 0.93018 - 0.0031
    assert [row["within"] for row in TABLE3.compared({"table3a": given})][:2] == [False, True]


def test_split_of_movielens_holds_as_many_features_as_the_paper_counts():
    if (reason := DATASETS["movielens_100k"].unavailable()) is not None:
        pytest.skip(reason)
    split = parts(ML100K, 0, 0)
    design, y = split["train"]
    assert (y.size, split["validation"][1].size, split["test"][1].size) == (64_000, 16_000, 20_000)
    assert design.n_features == 2_703
    live = np.count_nonzero(np.diff(design.columns.indptr))
    assert abs(live - 2_640) < 10


@pytest.mark.parametrize("method", [*SPARSE, "FM"])
def test_problems_of_table_3(method):
    strength = 0.0 if method == "FM" else 0.4
    strengths = {"lambda_w": 0.2, "lambda_p": 0.3, "lambda_sparse": strength}
    problem = problem_of_table3(own(), DRAWN, method, **strengths)
    assert (problem.loss.name, problem.fit_linear, problem.fit_intercept) == ("squared", True, True)
    at = problem.start(0.01, np.random.default_rng(0))
    assert not at.w.any()
    assert at.intercept == 0.0
    at.w[:] = 0.5
    omega = {
        "TI": (np.abs(at.P).sum(axis=0) ** 2).sum(),
        "CS": np.linalg.norm(at.P, axis=1).sum() ** 2,
        "L1": np.abs(at.P).sum(),
        "L21": np.linalg.norm(at.P, axis=1).sum(),
        "FM": 0.0,
    }[method]
    paper = 0.5 * np.square(problem.predict(at) - problem.y).mean()
    paper += 0.2 * np.square(at.w).sum() + 0.3 * np.square(at.P).sum() + strength * omega
    assert problem.objective(at) == pytest.approx(paper)


def test_a_fit_is_scored_on_rows_it_has_not_seen():
    strengths = {"lambda_w": 1e-3, "lambda_p": 1e-3, "lambda_sparse": 1e-4}
    result = next(row for _, row in fit(own(grid=[1e-4]), DRAWN, "TI", 2, lambda_w=1e-3, lambda_p=1e-3))
    problem = problem_of_table3(own(), DRAWN, "TI", **strengths)
    rng = np.random.default_rng([2, 1])
    *_, end = iterate(problem, "pcd", Budget(3, tol=1e-3), init_scale=0.01, rng=rng)
    split = parts(DRAWN, 0, 600)
    rows = {name: split[name] for name in ("validation", "test")}
    signs = {name: (design, np.where(y > 3, 1.0, -1.0)) for name, (design, y) in rows.items()}
    areas = scored(problem, end, {**signs, "score": "AUC"})
    for name, column in (("validation", "validation"), ("test", "score")):
        design, y = rows[name]
        f = problem.model.predict(design, end.parameters)
        assert result[column] == pytest.approx(np.sqrt(np.mean((f - y) ** 2)))
        assert areas[column] == pytest.approx(roc_auc(signs[name][1], f))
    assert result["used"] == end.used_interactions


def test_a_search_ends_in_the_accepted_range():
    settings = own(epochs=20, grid=[1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0])
    strengths = {"lambda_w": 1e-3, "lambda_p": 1e-3}
    *grid, (table, row) = fit(settings, DRAWN, "TI", 0, **strengths)
    assert [row["lambda_sparse"] for _, row in grid] == settings["grid"]
    assert table == "search"
    assert 20 <= row["used"] <= 60
    # The score is that of the fit at the strength of the search.
    (_, again), _ = fit(
        own(epochs=20, grid=[row["lambda_sparse"]]), DRAWN, "TI", 0, lambda_w=1e-3, lambda_p=1e-3
    )
    assert again["score"] == row["score"]
    *_, (_, nothing) = fit(
        own(accept=[40, 40], grid=[0.2, 0.1]), DRAWN, "L21", 0, lambda_w=1e-3, lambda_p=1e-3
    )
    assert nothing["score"] is None


def test_sparse_machines_have_a_tenth_of_the_fm_strength():
    last = TABLE3.run("quick", n_jobs=1, **OWN | {"seeds": 2, "lambda_p": [0.5e-4, 0.5e-3]})
    fm = last.tables["fm"]
    best = min((row for row in fm if row["seed"] == 0), key=lambda row: row["validation"])
    assert len(fm) == 3  # tuned on the first start, fitted from the second
    assert (fm[-1]["seed"], fm[-1]["lambda_p"]) == (1, best["lambda_p"])
    assert {row["lambda_p"] for row in last.tables["grid"]} == {best["lambda_p"] / 10.0}
    assert {row["lambda_w"] for row in last.tables["grid"]} == {best["lambda_w"]}
    (row,) = (row for row in last.tables["table3b"] if row["method"] == "FM")
    scores = [item["score"] for item in fm if item["lambda_p"] == best["lambda_p"]]
    assert (row["score"], row["starts"]) == (pytest.approx(np.mean(scores)), 2)


def test_statements_of_table_3_follow_from_the_printed_numbers():
    tables = {"table3a": [], "table3b": [], "data": []}
    live = {"ML100K": 2_640, "a9a": 123, "RCV1": 40_000, "FD": 643}
    for name, features in live.items():
        score = "RMSE" if name == "ML100K" else "AUC"
        tables["data"].append({"data": name, "features_in_training": features, "score": score})
    printed = {(row["table"], row["data"], row["method"]): row for row in PRINTED}
    for table, name, method in product(("table3a", "table3b"), live, ("TI", "CS", "L1", "L21", "FM")):
        cell = printed.get((table, name, method), {"score": None, "used": None})
        if cell["score"] is not None or (table, method) != ("table3a", "FM"):
            about = {"starts": 5, "reached": 0 if cell["score"] is None else 5}
            tables[table].append({"data": name, "method": method, **cell, **about})
    checks = TABLE3.judge(tables, TABLE3.configured("full"))
    assert {check.statement for check in checks} == {statement.key for statement in TABLE3.statements}
    odd = {(c.statement, c.case) for c in checks if c.verdict != "holds"}
    # On a9a the printed means are too close to settle which method is best; on RCV1 and FD there is no other.
    assert odd == {("proposed", case) for case in ("a9a, 3b", "RCV1, 3a", "FD, 3a")}
    assert {c.verdict for c in checks if (c.statement, c.case) in odd} == {"not settled"}


# Figures 5, 6 and 7


def test_exponents_are_judged_over_the_features_of_the_paper_alone():
    powers = {**dict.fromkeys(SPARSE, 1), **dict.fromkeys(OMEGA, 2), "SLQR": 3}
    for budget, verdict in (("quick", "not settled"), ("full", "holds")):
        own = FIG6.configured(budget)
        rows = [
            {"method": method, "d": d, "seconds": 1e-4 * d**power}
            for method, power in powers.items()
            for d in own["d"]
        ]
        judged = verdicts(FIG6, {"times": rows}, own)
        assert {judged[key] for key in judged if key[0] != "slqr"} == {verdict}
        assert judged["slqr", f"d = {max(own['d']):,}"] == "holds", "fewer features can confirm it"


@pytest.mark.parametrize(("falls", "verdict"), [(0.0, "holds"), (0.5, "not settled")])
def test_nobody_is_the_fastest_while_objectives_fall(falls, verdict):
    panel, own = "a9a, λ = 0.0001", FIG7.configured("quick", data=["a9a"])
    places = {"panel": panel, "seed": 0}
    trace, ends = [], []
    for method in WEIGHTED:
        first = 0.1 if method in ("TI", "CS") else 1.0
        # Its time limit ends one method before it comes to rest, above all others.
        high, last = (2.0, 2.0 - falls) if method == "L21" else (1.0, 1.0)
        course = ((0.0, 9.0), (first, high), (2.9, high), (3.0, last))
        for epoch, (seconds, objective) in enumerate(course):
            about = {"epoch": epoch, "seconds": seconds, "objective": objective}
            trace.append({**places, "method": method, **about})
        ends.append({**places, "method": method})
    judged = verdicts(FIG7, {"data": [{"data": "a9a"}], "trace": trace, "ends": ends}, own)
    assert judged["fastest", panel] == verdict


@pytest.mark.parametrize("method", WEIGHTED)
def test_the_course_of_a_method_is_its_risk_and_its_weights(method):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 8)), rng.normal(size=30)
    labels, limits = {"panel": "p", "seed": 4, "method": method}, {"epochs": 3, "tol": 0.0, "seconds": 5.0}
    rows = [item for item in weighted(limits, labels, "x", (X, y), 0.1, 0.5) if item]
    assert [table for table, _ in rows] == ["data", *["trace"] * 4, "ends"]
    trace, end = [row for _, row in rows[1:-1]], rows[-1][1]
    model = {"model": METHODS[method]["model"], "penalty": METHODS[method]["regularizer"], "rank": 30}
    problem = Problem.build(
        X, y, lambda_p=0.1, lambda_sparse=0.5, fit_linear=False, fit_intercept=False, **model
    )
    at = problem.start(0.01, np.random.default_rng([4, 1]))
    first = 0.5 * np.mean((problem.predict(at) - y) ** 2) + 0.5 * weights_l1(at)
    assert trace[0]["objective"] == pytest.approx(first)
    assert end["objective"] == trace[-1]["objective"]


# Figures 8 and 9


@pytest.mark.parametrize("letter", LETTERS)
def test_the_problem_of_fig_8_is_that_of_the_paper(letter):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 9)), rng.normal(size=20)
    problem = problem_of_fig8(letter, 0.1, X, y)
    at = problem.start(0.5, rng)
    f = ((X @ at.P) ** 2 - (X**2) @ (at.P**2)).sum(axis=1) / 2
    omega = {"ti": (np.abs(at.P).sum(axis=0) ** 2).sum(), "cs": np.linalg.norm(at.P, axis=1).sum() ** 2}
    paper = 0.5 * np.mean((f - y) ** 2) + 0.1 * (at.P**2).sum() + 0.1 * omega[LETTERS[letter][1]]
    assert 9**2 * problem.objective(at) == pytest.approx(paper)


def test_of_several_steps_the_best_is_shown():
    last = FIG9.run("quick", n_jobs=1, **TINY[FIG9.name])
    (panel,) = {row["panel"] for row in last.tables["ends"]}
    shown = {row["method"] for row in last.tables["trace"]}
    assert shown == {*racers("ti"), "MB-PSGD", "MB-Katyusha"}
    for name in ("PSGD", "MB-Katyusha"):
        tried = [row for row in last.tables["ends"] if row["method"] == name]
        assert [row["eta0"] for row in tried] == [1.0, 0.01]
        best = min(tried, key=lambda row: (row["diverged"], row["objective"]))
        course = [row for row in last.tables["trace"] if row["method"] == name]
        assert course[-1]["objective"] == pytest.approx(best["objective"])
        assert len({row["objective"] for row in course if row["epoch"] == 0}) == 1
    assert panel == f"{DRAWN}, TI"
