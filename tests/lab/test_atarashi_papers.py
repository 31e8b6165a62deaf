"""The protocols of the artefacts of atarashi2021, and what their checks follow from."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.lab.operators import sample
from fmviz.lab.papers import ARTEFACTS, Result, find
from fmviz.lab.papers.atarashi2021 import fig4, fig10
from fmviz.lab.papers.protocols import operators
from fmviz.lab.runner import Run

FIG2 = "atarashi2021_fig2"


@pytest.fixture(scope="module")
def fig2() -> Result:
    *_, last = ARTEFACTS[FIG2].run("quick", matrices=2)
    return last


def test_short_names():
    assert find("fig2") is find(FIG2) is ARTEFACTS[FIG2]
    assert find("table3a") is find("table3b") is ARTEFACTS["atarashi2021_table3"]
    assert find("blondel2016_fig2") is ARTEFACTS["blondel2016_fig2"]
    with pytest.raises(ValueError, match=r"no 'fig99'; there are atarashi2021_fig1, "):
        find("fig99")


def test_the_operators_of_fig_2_are_those_of_the_paper(fig2):
    """ℓ₁, ℓ₂,₁ and the squares by their definitions, at strengths of both kinds."""
    P = np.random.default_rng(0).standard_normal((200, 30))
    assert np.array_equal(P, sample(200, 30, "normal", 0))

    def squared(p, lam):  # [A] Eq. 30: the largest θ with |p_(θ)| ≥ 2λ S_θ
        size = np.sort(np.abs(p))[::-1]
        sums = np.cumsum(size) / (1 + 2 * lam * np.arange(1, p.size + 1))
        theta = np.flatnonzero(size >= 2 * lam * sums)[-1]
        return np.sign(p) * np.maximum(np.abs(p) - 2 * lam * sums[theta], 0)

    norms = np.linalg.norm(P, axis=1)
    oracle = {
        "L1": lambda lam: np.sign(P) * np.maximum(np.abs(P) - lam, 0),
        "L21": lambda lam: P * np.maximum(1 - lam / norms, 0)[:, None],
        "TI by columns (Eq. 30)": lambda lam: np.apply_along_axis(squared, 0, P, lam),
        "TI by rows": lambda lam: np.apply_along_axis(squared, 1, P, lam),
        "CS": lambda lam: P * (squared(norms, lam) / norms)[:, None],
    }
    rows = [row for row in fig2.tables["counts"] if row["seed"] == 0]
    assert {row["log2_lambda"] for row in rows} == set(range(-7, 8))
    for row in rows:
        Q = oracle[row["method"]](2.0 ** row["log2_lambda"])
        used = np.triu((Q != 0).astype(int) @ (Q != 0).T.astype(int), 1) > 0
        assert (row["interactions"], row["features"]) == (used.sum(), Q.any(axis=1).sum()), row
        assert row["certificate"] <= 1e-10


def test_both_readings_of_ti_are_told_apart(fig2):
    verdicts = {(check.statement, check.case): check.verdict for check in fig2.checks}
    assert verdicts["ti_features", operators.LABELS["ti"]] == "does not hold"
    assert verdicts["ti_features", operators.LABELS["ti_rows"]] == "holds"
    ours = [row["ours"] for row in ARTEFACTS[FIG2].compared(fig2.tables)]
    assert ours == [200, 30, 200, 200]
    ends = {
        (row["method"], row["log2_lambda"]): row["interactions"]
        for row in fig2.tables["counts"]
        if row["seed"] == 0
    }
    assert ends[operators.LABELS["ti"], -7] == 19_870
    assert ends[operators.LABELS["ti"], 7] == 3
    assert ends[operators.LABELS["ti_rows"], -7] == 19_900
    assert ends[operators.LABELS["ti_rows"], 7] == 670


def test_pictures_hold_every_pair(fig2):
    rows = [r for r in fig2.tables["W"] if (r["method"], r["log2_lambda"]) == ("CS", -3)]
    assert [row["first"] for row in rows] == list(range(0, 200, 5))
    shares = np.array([row["shares"] for row in rows])
    assert np.array_equal(shares, shares.T)
    pairs = shares * (25 - 5 * np.eye(40))
    (count,) = [
        r["interactions"]
        for r in fig2.tables["counts"]
        if (r["method"], r["log2_lambda"], r["seed"]) == ("CS", -3, 0)
    ]
    assert pairs.sum() == pytest.approx(2 * count, rel=1e-3)


def counts(method: str, shares, features, seed: int = 0):
    return [
        {
            "method": operators.LABELS[method], "seed": seed, "log2_lambda": e, "interactions": 0,
            "features": f, "share": s,
        }
        for e, (s, f) in enumerate(zip(shares, features, strict=True))
    ]  # fmt: skip


def test_checks_of_the_operators_follow_from_counts():
    tables = {
        "counts": [
            *counts("l1", (1, 1, 0.5, 0), (9, 9, 9, 0)),
            *counts("l21", (1, 0.5, 0.5, 0), (9, 9, 9, 0)),
            *counts("ti", (1, 0.5, 0.2, 0.1), (10, 10, 10, 10)),
            *counts("ti_rows", (1, 0.5, 0.2, 0), (10, 10, 9, 10)),
            *counts("cs", (1, 0.5, 0.2, 0.1), (10, 8, 3, 1)),
        ]
    }
    settings = {"d": 10}

    def verdicts(judge, tables):
        return [verdict for _, verdict, _ in judge(tables, settings)]

    assert verdicts(operators.all_or_nothing, tables) == ["holds", "does not hold"]
    assert verdicts(operators.moderately_sparse, tables) == ["holds", "does not hold", "holds"]
    assert verdicts(operators.keeps_all_features, tables) == ["holds", "does not hold"]
    assert verdicts(operators.falls_gradually, tables) == ["holds"]
    for course in ((10, 4, 3, 1), (10, 8, 9, 1), (10, 10, 10, 10)):
        sudden = {"counts": counts("cs", (1, 0.5, 0.2, 0.1), course)}
        assert verdicts(operators.falls_gradually, sudden) == ["does not hold"]


def times(**paths):
    return {
        "times": [
            {"panel": "σ = 1, λ = 0.1", "method": fig10.METHODS[name], "d": d, "microseconds": t}
            for name, path in paths.items()
            for d, t in path.items()
        ]
    }


@pytest.mark.parametrize(
    ("sort", "mostly", "small"),
    [
        ({16: 0.5, 64: 2.0, 256: 3.0, 1024: 9.0}, "holds", "holds"),
        ({16: 0.5, 64: 0.5, 256: 3.0, 1024: 9.0}, "does not hold", "does not hold"),
        ({16: 1.0, 64: 1.02, 256: 0.98, 1024: 1.0}, "does not hold", "holds"),
        ({16: 2.0}, "holds", "not settled"),
    ],
)
def test_checks_of_fig_10_follow_from_times(sort, mostly, small):
    random = dict.fromkeys(sort, 1.0)
    settings = {"sigma": [1.0], "lambda": [0.1]}
    checks = list(ARTEFACTS["atarashi2021_fig10"].judge(times(sort=sort, random=random), settings))
    assert {check.statement: check.verdict for check in checks} == {"mostly": mostly, "small": small}


def test_fig_10_times_the_algorithms_on_the_vectors_of_the_paper():
    asked = iter([False] * 3)
    given = {
        "rounds": 1,
        "entries": 64,
        "vectors": 4,
        "log2_d": [3, 4],
        "sigma": [1.0, 10.0],
        "lambda": [0.1],
    }
    *_, last = ARTEFACTS["atarashi2021_fig10"].run("quick", should_stop=lambda: next(asked, True), **given)
    assert last.state == "stopped"
    assert (last.done, last.total) == (3, 4)
    assert [(row["n"], row["d"]) for row in last.tables["data"]] == [(8, 8), (4, 16)]
    assert len(last.tables["times"]) == 3 * len(fig10.METHODS)
    assert all(row["microseconds"] > 0 and 0 < row["alive"] < 1 for row in last.tables["times"])


def test_fig_4_fits_what_the_paper_says():
    one = fig4.fit_of(ARTEFACTS["atarashi2021_fig4"].configured(), "CS", -10, 7, 2)
    run = Run.prepare(one)
    assert run.dataset.X.shape == (200, 100)
    assert (one.rank, one.lambda_p, one.lambda_sparse, one.fit_linear) == (30, 0.1, 2.0**-10, False)


def scores(panel: str, **courses):
    return [
        {"panel": panel, "method": method, "lambda_sparse": 2.0**e, "value": value}
        for method, values in courses.items()
        for e, value in enumerate(values)
    ]


def test_checks_of_fig_4_follow_from_scores():
    one = ARTEFACTS["atarashi2021_fig4"]
    rows = [
        *scores("Estimation error", TI=(1, 0.3, 1), CS=(0.2, 0.3, 1), L21=(0.9, 0.25, 1), L1=(1, 0.2, 1)),
        *scores("F1", TI=(0.95, 1, 0.1), CS=(1, 1, 1), L21=(0, 0.8, 0), L1=(0.9, 0.9, 0)),
        *scores("PSSR", TI=(1, 1, 0), CS=(0, 1, 0), L21=(0, 1, 0), L1=(0, 0, 0)),
    ]
    settings = one.configured(log2_lambda=[0, 2])
    checks = list(one.judge({"scores": rows}, settings))
    assert [(check.statement, check.case, check.verdict) for check in checks] == [
        ("cs_widest", "Estimation error", "holds"),
        ("cs_widest", "F1", "holds"),
        ("cs_widest", "PSSR", "does not hold"),
        ("ti_next", "F1", "not settled"),
        ("ti_next", "PSSR", "holds"),
    ]
    assert checks[2].measured.endswith("TI 2, CS 1, L21 1, L1 0.")
    nobody = scores("PSSR", TI=(0, 0, 0), CS=(0, 0, 0), L21=(0, 0, 0), L1=(0, 0, 0))
    for unsettled, given in ((nobody, settings), (rows, one.configured(log2_lambda=[0, 3]))):
        assert {check.verdict for check in one.judge({"scores": unsettled}, given)} == {"not settled"}
