from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from by_name import build_problem, iterate

import fmviz
from fmviz.datasets import make_sparse_interactions
from fmviz.engine import fit
from fmviz.engine.design import Design
from fmviz.engine.fit import Budget
from fmviz.paths import choose, grid, iterate_path, iterate_selection, walk, weakest
from fmviz.paths.validation import default_folds

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
    real, init = fit.certificates, Design.__init__
    monkeypatch.setattr(fit, "certificates", lambda *args: certified.append(args) or real(*args))

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


def test_the_weakest_strength_with_the_number_is_chosen_from_one_grid():
    settings = {**PLAIN, "regularizer": "l1"}
    *fits, last = fmviz.find_lambda(X, Y, 90, (80, 100), **settings)
    assert [probe.status for probe in fits] == ["searching"] * len(fits)
    strengths, counts = zip(*last.tried, strict=True)
    assert strengths == tuple(probe.lambda_sparse for probe in fits) == grid(strengths[0], strengths[-1])
    inside = [strength for strength, used in last.tried if 80 <= used <= 100]
    assert last.status == "found"
    assert (last.lambda_sparse, *last.span) == (inside[0], inside[0], inside[-1])
    assert f"uses {last.used_interactions} interactions, the weakest λ with 80 to 100" in last.message
    # Nothing follows that could be in the range.
    assert counts[-1] == 0 or max(counts[-12:]) < 80
    # Each fit starts where that of the next weaker strength ended.
    place = strengths.index(last.lambda_sparse)
    assert np.array_equal(last.start.P, fits[place - 1].snapshot.parameters.P)


@pytest.mark.parametrize("n", [300, 6_000])
@pytest.mark.parametrize("stratified", [False, True])
def test_folds_keep_groups_together(n, stratified, rng):
    groups, y = rng.integers(0, 40, n), rng.choice([-1.0, 1.0], n)
    folds = default_folds(y, stratified, rng, groups)
    assert len(folds) == (5 if n == 300 else 1)
    for train, held_out in folds:
        assert not {*groups[train]} & {*groups[held_out]}
        assert sorted([*train, *held_out]) == [*range(n)]
        # Rows of a group follow each other: pieces of a part cut few groups.
        assert np.count_nonzero(np.diff(groups[held_out])) == len({*groups[held_out]}) - 1
    with pytest.raises(ValueError, match="of a single group"):
        default_folds(y, stratified, rng, np.zeros(n, dtype=int))


def test_a_fit_of_a_walk_depends_on_its_strength_alone():
    problem = build_problem(X, Y, rank=8, lambda_p=0.01, fit_linear=False)
    given = {"budget": Budget(epochs=50), "init_scale": 0.01, "random_state": 0}
    first = weakest(problem)
    chain = grid(first, 30.0 * first)
    every = {point.lambda_sparse: point.snapshot for _, point in walk(problem, chain, **given)}
    for asked in ([chain[-1]], [0.5 * first, 1.01 * chain[3], chain[-1]]):
        points = [point for _, point in walk(problem, asked, **given)]
        assert [point.lambda_sparse for point in points] == asked
        assert points[-1].snapshot.objective == every[chain[-1]].objective


@pytest.mark.parametrize(
    ("counts", "place", "inside"),
    [
        ([9, 5, 4, 7, 4, 1], 1, [1, 2, 4]),  # counts are not monotone
        ([10, 9, 2, 1], 2, []),  # the nearest, by the ratio
        ([9, *[1] * 12, 5], 0, []),  # a decade below the range ends a walk
        ([9, 0, 5], 0, []),  # and so does none
    ],
)
def test_what_is_chosen_of_a_walk(counts, place, inside):
    assert choose(counts, 4, (4, 6)) == (place, inside)


def test_searches_that_cannot_succeed_name_the_nearest():
    *_, probe = fmviz.find_lambda(X, Y, 5_000, (4_000, 6_000), max_iter=3, **PLAIN)
    assert (probe.status, probe.span) == ("nearest", ())
    assert probe.used_interactions == max(used for _, used in probe.tried)
    # ℓ2,1 keeps whole features: 7 interactions lie between C(4, 2) = 6 and C(5, 2) = 10.
    *_, probe = fmviz.find_lambda(X, Y, 7, (7, 7), regularizer="l21", **PLAIN)
    assert probe.status == "nearest"
    assert "No λ of the grid leaves 7 interactions; the nearest: λ = " in probe.message


def test_a_stopped_search_has_no_last_word():
    seen = []
    search = fmviz.find_lambda(X, Y, 7, (7, 7), should_stop=lambda: len(seen) >= 2, **PLAIN)
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
    if not {"orders", "lambdas"} & given.keys():
        with pytest.raises(ValueError, match=words):
            list(fmviz.find_lambda(np.eye(3), np.ones(3), 1, **given))


def test_true_pairs_are_selected_from_every_half_and_start_and_a_stop_ends_it():
    settings = {"lambda_p": 0.1, "random_state": 0}
    X, y, W = make_sparse_interactions(300, d_true=12, b=3, d_noise=8, random_state=0)
    table = fmviz.selection_frequencies(X, y, [0.2, 0.1], starts=2, halves=3, **settings)
    true = {(i, j) for i, j in np.argwhere(np.triu(W))}
    assert set(table.index[table[0.1] == 1.0]) == true
    assert (list(table), table.attrs["paths"]) == ([0.1, 0.2], 6)
    assert set(np.unique(table * 6).round(9)) <= set(range(7))
    again = fmviz.selection_frequencies(X, y, [0.1, 0.2], starts=2, halves=3, **settings)
    assert again.equals(table)
    with pytest.raises(ValueError, match="halves = 0"):
        fmviz.selection_frequencies(X, y, [0.1], halves=0)
    problem = build_problem(X, y, lambda_p=0.1)
    assert not [*iterate_selection(problem, [0.1], should_stop=lambda: True)]
