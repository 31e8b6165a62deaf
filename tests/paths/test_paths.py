from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from by_name import build_problem, iterate

import fmviz
from fmviz.datasets import make_sparse_interactions
from fmviz.engine import drive
from fmviz.engine.design import Design
from fmviz.engine.drive import Budget
from fmviz.paths import iterate_path

X, Y, W = make_sparse_interactions(200, 20, 2, 5, random_state=0)
PLAIN = {
    "rank": 8,
    "lambda_p": 0.01,
    "fit_linear": False,
    "fit_intercept": False,
    "random_state": 0,
    "standardize": False,
}


def test_a_path_has_a_row_for_every_fit():
    lambdas = [1.0, 0.01, 0.1]
    path = fmviz.regularization_path(
        X[:150], Y[:150], lambdas, orders=("cold", "down", "up"), validation=(X[150:], Y[150:]), **PLAIN
    )
    assert path["order"].tolist() == ["cold"] * 3 + ["down"] * 3 + ["up"] * 3
    assert path["lambda_sparse"].tolist() == [0.01, 0.1, 1.0, 1.0, 0.1, 0.01, 0.01, 0.1, 1.0]
    assert np.isfinite(path[["objective", "validation_loss", "certificate"]]).all(axis=None)
    # The first fit of every order begins at the same point.
    cold, up = path.query("order == 'cold'"), path.query("order == 'up'")
    assert cold["objective"].iloc[0] == up["objective"].iloc[0]
    assert (path["status"] == "converged").all()


def test_a_path_upwards_escapes_the_dead_start():
    # With ℓ1 a cold start at λ = 5 ends at P = 0; the path from below keeps the interactions.
    settings = {**PLAIN, "regularizer": "l1", "lambda_p": 0.01}
    path = fmviz.regularization_path(X, Y, [0.05, 0.5, 5.0], orders=("cold", "up", "down"), **settings)
    last = path.query("lambda_sparse == 5.0").set_index("order")
    assert last.loc["cold", "used_interactions"] == 0
    assert last.loc["up", "used_interactions"] > 0
    assert last.loc["up", "objective"] < 0.5 * last.loc["cold", "objective"]
    assert path.query("order == 'down'")["used_features"].tolist() == [0, 0, 0]  # and comes down empty


def test_a_cold_fit_of_an_informed_path_is_the_fit_of_its_strength_alone():
    X, y, _ = make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    settings = {"rank": 5, "regularizer": "cs", "lambda_w": 0.1, "lambda_p": 0.1, "init_scale": 0.01}
    strengths = [0.1, 0.2]
    path = fmviz.regularization_path(
        X, y, strengths, orders=["cold", "up"], start="informed", fall=0.0, random_state=0, **settings
    )
    alone = [
        fmviz.FactorizationMachineRegressor(lambda_sparse=strength, random_state=0, **settings).fit(X, y)
        for strength in strengths
    ]
    cold, up = (path[path["order"] == order] for order in ("cold", "up"))
    ends = [machine.history_["objective"].iloc[-1] for machine in alone]
    assert cold["objective"].tolist() == pytest.approx(ends, rel=1e-4)
    # Warm starts stay what they were.
    assert up["objective"].iloc[0] > 1.1 * ends[0]


def test_a_path_does_nothing_twice(monkeypatch):
    certified, designs = [], []
    real, init = drive.certificates, Design.__init__
    monkeypatch.setattr(drive, "certificates", lambda *args: certified.append(args) or real(*args))

    def counted(self, given, *args):
        if np.shape(given) == X.shape:  # Not those by which kernels are made ready.
            designs.append(given)
        init(self, given, *args)

    monkeypatch.setattr(Design, "__init__", counted)
    lambdas = [0.01 * 1.5**i for i in range(20)]
    path = fmviz.regularization_path(X, Y, lambdas, orders=("up",), max_iter=20, **PLAIN)
    assert len(path) == len(certified) == 20
    assert len(designs) == 1


def test_each_fit_goes_on_where_the_last_one_ended():
    problem = build_problem(X, Y, rank=4, lambda_p=0.01, fit_linear=False)
    points = list(iterate_path(problem, [0.01, 0.1, 1.0], orders=("up",), random_state=3))
    start = problem.start(0.01, np.random.default_rng(3))
    for point in points:
        at_strength = replace(problem, lambda_sparse=point.lambda_sparse)
        # A path's own settings of the solver, see `iterate_path`.
        *_, end = iterate(
            at_strength, "pcd", budget=Budget(epochs=1_000), start=start, active_sweeps=10, anderson=5
        )
        start = end.parameters
        assert np.array_equal(start.P, point.snapshot.parameters.P)
        assert end.certificate == point.snapshot.certificate


def test_search_finds_the_planted_number():
    probes = list(fmviz.find_lambda(X, Y, 90, (80, 100), grid=[10.0**e for e in range(-4, 2)], **PLAIN))
    last = probes[-1]
    assert [p.status for p in probes[:-1]] == ["searching"] * (len(probes) - 1)
    assert last.status == "found"
    assert 80 <= last.used_interactions <= 100
    assert "interactions" in last.message
    assert probes[0].lambda_sparse == 10.0


def test_searches_that_cannot_succeed_say_so():
    (probe,) = fmviz.find_lambda(X, Y, 0, (0, 0), grid=[1e-6], max_iter=3, **PLAIN)
    assert probe.status == "not reachable"
    assert "larger strengths" in probe.message
    *_, probe = fmviz.find_lambda(X, Y, 5_000, (4_000, 6_000), grid=[1.0, 10.0], **PLAIN)
    assert probe.status == "not reachable"
    assert "smaller strengths" in probe.message
    # ℓ2,1 keeps whole features: 7 interactions lie between C(4, 2) = 6 and C(5, 2) = 10.
    *probes, probe = fmviz.find_lambda(
        X, Y, 7, (7, 7), grid=[1e-4, 1e-2, 1e3], narrowest=1e-3, regularizer="l21", **PLAIN
    )
    # Once there is a bracket it is halved, and no more of the grid is tried.
    assert [p.lambda_sparse for p in probes[:3]] == [1e3, 1e-2, 0.5 * (1e3 + 1e-2)]
    widths = [probe.high - probe.low for probe in probes if np.isfinite(probe.high - probe.low)]
    assert widths == sorted(widths, reverse=True)
    assert min(widths) > 0
    assert probe.status == "not reachable"
    assert "jumps over 7" in probe.message


def test_a_stopped_search_has_no_last_word():
    seen = []
    grid = [10.0**e for e in range(-4, 2)]
    search = fmviz.find_lambda(X, Y, 7, (7, 7), grid=grid, should_stop=lambda: len(seen) >= 2, **PLAIN)
    for probe in search:
        seen.append(probe)
        assert probe.status == "searching"
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fmviz.regularization_path(X, Y, [-1.0]), "lambdas = -1"),
        (lambda: fmviz.regularization_path(X, Y, [1.0], validation=(X[:, :3], Y)), "3 features"),
        (lambda: fmviz.regularization_path(X, Y, [1.0], validation=(X, Y[:3])), "one value per row"),
        (lambda: next(fmviz.find_lambda(X, Y, 10, (20, 30))), "does not contain the target"),
        (lambda: next(fmviz.find_lambda(X, Y, -3)), "target_interactions = -3"),
    ],
)
def test_bad_settings_get_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lambdas": 0.1}, r"lambdas = 0.1 must be a sequence"),
        ({"lambdas": []}, "lambdas is empty"),
        ({"orders": "up"}, r"orders = 'up' must be a sequence of cold, down, up: write \['up'\]"),
        ({"orders": ["sideways"]}, "orders = 'sideways'"),
        ({"regularisation": "ti"}, "keyword = 'regularisation' is not known; .* Did you mean 'regularizer'"),
        ({"lambda_sparse": 0.1}, "varies along a path"),
    ],
)
def test_bad_input_of_paths_is_a_sentence(given, words):
    with pytest.raises(ValueError, match=words):
        fmviz.regularization_path(np.eye(3), np.ones(3), **given)
    if "orders" not in given:
        asked = {"grid" if name == "lambdas" else name: value for name, value in given.items()}
        with pytest.raises(ValueError, match=words.replace("lambdas", "grid")):
            list(fmviz.find_lambda(np.eye(3), np.ones(3), 1, **asked))
