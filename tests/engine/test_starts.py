"""Where runs begin: the strength that empties P, strengths that follow the data, escapes and choices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import iterate
from oracles.generic_convex import generic_threshold
from sklearn.base import clone

import fmviz
from fmviz.engine.design import Design
from fmviz.engine.fit import Budget
from fmviz.engine.linalg import lowrank
from fmviz.engine.linalg.lowrank import pair_gradient
from fmviz.engine.models import get_model
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import get_solver
from fmviz.engine.starts import zero_threshold as module
from fmviz.engine.starts.informed import informed_solver, why_empty
from fmviz.engine.starts.strengths import References, _different_rows, fill_strengths
from fmviz.engine.starts.zero_threshold import linear_fit, zero_threshold

NAMES = ("lambda_w", "lambda_p", "lambda_sparse", "init_scale")
HARD = ("ti", "omega_ti", "cs", "omega_cs")


def drawn(seed, loss="squared", d=None):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 31)) if d is None else d
    X = rng.normal(size=(int(rng.integers(20, 200)), d)) * (rng.random(d) + 0.2)
    y = rng.normal(size=len(X)) + X[:, 0] * X[:, 1]
    return X, (np.sign(y) if loss == "logistic" else y)


def planted():
    return fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)[:2]


def matrix_of(problem, linear):
    """Return M = −½G − λ_p I."""
    slope = problem.slope(problem.predict(linear))
    G = 2.0 * pair_gradient(problem.design, slope, diagonal=False)
    return -0.5 * G - problem.lambda_p * np.eye(len(G))


@pytest.mark.sample(6)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_the_interval_is_proved_from_both_sides(seed, share):
    loss = ("squared", "logistic")[seed % 2]
    X, y = drawn(seed, loss)
    base = Problem.build(X, y, penalty="l2", loss=loss, lambda_w=1e-3, rank=2)
    linear = linear_fit(base)
    spectral = zero_threshold(base, linear).lower
    for name in HARD:
        problem = Problem.build(
            X, y, penalty=name, loss=loss, lambda_w=1e-3, lambda_p=share * spectral, rank=2
        )
        result = zero_threshold(problem, linear)
        assert 0.0 < result.lower <= result.upper <= 2.0 * result.lower
        # Below the lower end the objective falls along the direction.
        below = problem.at(lambda_sparse=0.999 * result.lower)
        at_zero = below.objective(linear)
        falls = [
            below.objective(linear.replace(P=np.outer(size * result.direction, [1.0, 0.0]))) < at_zero
            for size in 10.0 ** np.arange(-4.0, 0.0)
        ]
        assert any(falls)
        # At the upper end no P of any rank gains: M + S is small enough, and S is positive semidefinite.
        M = matrix_of(problem, linear)
        S = np.zeros_like(M) if result.dual is None else result.dual
        assert np.linalg.eigvalsh(S)[0] >= -1e-12 * np.abs(M).max()
        remaining = M + S
        if result.dual is None:
            # The bound of the pairs alone: λ_p takes the diagonal.
            remaining = remaining + problem.lambda_p * np.eye(len(M))
        off = ~np.eye(len(M), dtype=bool)
        if name.startswith("omega"):
            assert 2.0 * np.abs(remaining[off]).max() <= result.upper * (1 + 1e-9)
            assert remaining.diagonal().max() <= 1e-12 * np.abs(M).max()
        elif result.upper < 0.999 * (spectral - problem.lambda_p):
            assert max(np.abs(remaining[off]).max(), remaining.diagonal().max()) <= result.upper * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", HARD)
def test_the_upper_end_is_that_of_a_generic_solver(name, share):
    for seed in range(3):
        X, y = drawn(seed, d=10)
        base = Problem.build(X, y, penalty="l2", lambda_w=1e-3, rank=2)
        linear = linear_fit(base)
        lambda_p = share * zero_threshold(base, linear).lower
        problem = Problem.build(X, y, penalty=name, lambda_w=1e-3, lambda_p=lambda_p, rank=2)
        result = zero_threshold(problem, linear)
        M = matrix_of(problem, linear)
        scale = np.abs(M).max()
        best = scale * generic_threshold(M / scale, name.startswith("omega"))
        assert best * (1.0 - 1e-5) <= result.upper <= best * (1.0 + 1e-2)


def test_the_exact_ones_and_those_that_are_none():
    X, y = drawn(1)
    problem = Problem.build(X, y, penalty="l2", lambda_w=1e-3)
    linear = linear_fit(problem)
    lowest = -np.linalg.eigvalsh(-matrix_of(problem, linear))[0]
    assert zero_threshold(problem).lower == pytest.approx(lowest)
    raw = {"lambda_w": 1e-3, "standardize": False}
    rows = fmviz.lambda_max(X, y, regularizer=fmviz.penalties.TI(axis="rows"), lambda_p=0.01, **raw)
    assert rows.exact
    assert rows.lower == pytest.approx(lowest - 0.01)
    none = fmviz.lambda_max(X, y, lambda_p=1.001 * lowest, **raw)
    assert (none.lower, none.upper) == (0.0, 0.0)
    pairs = fmviz.lambda_max(X, y, regularizer="omega_star", **raw)
    assert pairs.exact
    for given in (
        {"regularizer": "l1"},
        {"model": "hofm"},
        {"model": "all_subsets", "regularizer": "omega_ti"},
    ):
        with pytest.raises(ValueError, match="P = 0"):
            fmviz.lambda_max(X, y, **given)


def test_many_features_get_the_simple_bounds(monkeypatch):
    X, y = drawn(2, d=12)
    raw = {"lambda_w": 0.1, "standardize": False}
    full = {name: fmviz.lambda_max(X, y, regularizer=name, **raw) for name in ("l2", *HARD)}
    monkeypatch.setattr(module, "SMALL", 2)
    monkeypatch.setattr(module, "DENSE", 3)
    monkeypatch.setattr(lowrank, "DENSE", 3)
    monkeypatch.setattr(lowrank, "_BLOCK", 5)
    for kind in (np.asarray, sp.csr_array):
        for name, sharp in full.items():
            simple = fmviz.lambda_max(kind(X), y, regularizer=name, **raw)
            assert simple.lower <= sharp.lower * (1 + 1e-6)
            assert sharp.upper <= simple.upper * (1 + 1e-6)
            assert simple.loose == (name in ("ti", "cs"))


@pytest.mark.parametrize(
    ("model", "settings", "orders"),
    [
        ("expansion", {"kernel": "polynomial", "degree": 2, "coefficients": "fitted"}, (1, 2)),
        ("expansion", {"kernel": "polynomial", "degree": 3, "coefficients": "ones"}, (1, 3)),
        ("lifted", {"kernel": "polynomial", "degree": 3}, (1, 3)),
        ("hofm", {"order": 3}, (2, 3)),
        ("all_subsets", {}, (2, 2)),
    ],
)
def test_strengths_of_products_follow_the_units(model, settings, orders):
    """Of one order, fits are the same; of several, λ_p follows X, and λ that of the order that counts."""
    X, y = drawn(3, d=8)
    y = y + 50.0 * X[:, 1] * X[:, 2] * (X[:, 3] if orders[1] == 3 else 1.0)

    def filled(a, b):
        penalty = "omega_ti" if orders[0] > 1 else "l2"
        chosen = get_model(model, settings)
        problem = Problem.build(a * X, b * y, penalty=penalty, model=chosen, rank=2)
        return fill_strengths(problem, dict.fromkeys(NAMES))

    plain, size = filled(1.0, 1.0)
    assert min(plain.lambda_w, plain.lambda_p, size) > 0.0
    assert (plain.lambda_sparse > 0.0) == (orders[0] > 1)
    m = orders[1]
    for a, b in ((8.0, 1.0), (1.0, 64.0), (8.0, 64.0)):
        other, other_size = filled(a, b)
        power = 2.0 / m if other.model.shrinkage_power == 2 else 1.0
        assert other.lambda_w == pytest.approx(a**2 * plain.lambda_w, rel=1e-9)
        assert other_size == pytest.approx(b ** (1.0 / m) / a * size, rel=1e-9)
        assert other.lambda_p == pytest.approx(a**2 * b ** (2.0 - power) * plain.lambda_p, rel=1e-9)
        if plain.model.order is not None:
            assert other.lambda_sparse == pytest.approx(a**m * b * plain.lambda_sparse, rel=1e-9)
        if orders[0] == 1:
            ends = []
            for problem, scale in ((plain, size), (other, other_size)):
                start = problem.start(scale, np.random.default_rng(0))
                method = informed_solver(get_solver("cd"), problem)
                *_, end = iterate(problem, method, Budget(20, report_every=None), start=start)
                ends.append(problem.predict(end.parameters) / (1.0 if problem is plain else b))
            assert np.abs(ends[1] - ends[0]).max() <= 1e-9 * np.abs(ends[0]).max()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "solver", "share"),
    [
        *(("ti", "pcd", 0.8), ("cs", "pbcd", 0.8), ("omega_cs", "pbcd", 0.8), ("l2", "cd", 0.8)),
        # Just below the threshold, too.
        ("ti", "pcd", 0.98),
        # Those that move all of P at once.
        *(("ti", "pgd", 0.5), ("cs", "nmapgd", 0.5), ("l2", "lbfgs", 0.5), ("ti", "psgd", 0.5)),
    ],
)
def test_a_collapse_is_left(name, solver, share, seed):
    X, y = planted()
    problem = Problem.build(X, y, penalty=name, rank=3, lambda_w=0.01, lambda_p=0.05)
    problem = problem.at(lambda_sparse=share * zero_threshold(problem).lower)
    nothing = linear_fit(problem)
    ends = []
    for method in (get_solver(solver), informed_solver(get_solver(solver), problem)):
        rng = np.random.default_rng(seed)
        *_, end = iterate(problem, method, Budget(100, report_every=None), start=nothing, rng=rng)
        ends.append(end)
    assert [end.used_interactions > 0 for end in ends] == [False, True]
    assert ends[1].objective < (0.95 if share == 0.5 else 1.0) * ends[0].objective
    assert ends[1].status.converged or share != 0.8


def test_paths_pass_through_the_planted_pairs():
    X, y = planted()
    grid = list(np.geomspace(10.0, 1e-3, 13))
    for name in ("ti", "l1"):
        path = fmviz.regularization_path(
            X, y, grid, regularizer=name, lambda_p=0.1, rank=10, fit_linear=False, random_state=0
        )
        used = path.sort_values("lambda_sparse", ascending=False)["used_interactions"].tolist()
        assert used[0] == 0
        assert 18 in used
        assert used[-1] > 18


def test_an_empty_fit_says_what_would_leave_it():
    X, y = planted()
    problem = Problem.build(X, y, rank=3, lambda_w=0.01, lambda_p=0.1)
    empty = linear_fit(problem)

    def why(**given):
        return why_empty(problem.at(**given), empty)

    limit = zero_threshold(problem).lower
    assert f"below {limit:.3g}" in why(lambda_sparse=2.0 * limit)
    assert "with a lower objective" in why(lambda_sparse=0.5 * limit)
    assert "λ_p below" in why(lambda_p=100.0)
    # Below the largest λ_p, a small λ suffices, although no bound proves it.
    assert "Decrease λ, or" in why(lambda_sparse=1.0, lambda_p=3.3)
    assert "local minimum" in why_empty(Problem.build(X, y, penalty="l1", rank=3, lambda_sparse=9.0), empty)
    nothing = Problem.build(X, 0.0 * y, rank=3)
    assert why_empty(nothing, linear_fit(nothing)) is None
    nothing = Problem.build(X, 0.0 * y, rank=3, fit_intercept=False)
    assert "no pair" in why_empty(nothing, linear_fit(nothing))
    assert References(nothing).lambda_sparse == 0.0
    assert why_empty(problem, problem.start(1.0, np.random.default_rng(0))) is None


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_cs_begins_where_its_fit_ends_lower(n_outputs):
    """Of the random start and a fit with TI: the former ended at a third more."""
    X, y = planted()
    y = y if n_outputs == 1 else np.column_stack([y, X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]])
    machine = fmviz.FactorizationMachineRegressor(5, regularizer="cs", random_state=0).fit(X, y)
    other = clone(machine).set_params(warm_start=True)
    other.P_ = clone(machine).set_params(regularizer="ti").fit(X, y).P_
    ends = [fit.history_["objective"].iloc[-1] for fit in (machine, other.fit(X, y))]
    assert ends[0] == pytest.approx(ends[1], rel=1e-3)


@pytest.mark.parametrize("solver", ["pbcd_ls", "pcd"])
def test_a_trace_of_p_is_none(solver):
    """What a line search left at 2e-35 was counted as a pair, and the run as converged."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 8))
    y = np.sign(X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=60))
    problem = Problem.build(X, y, loss="logistic", rank=5, lambda_w=1e-3, lambda_p=1e-3, lambda_sparse=0.03)
    start = problem.start(0.01, np.random.default_rng(6))
    *_, end = iterate(problem, solver, Budget(200), start=start, rng=rng)
    assert end.status.converged
    assert end.certificate < 1e-3
    assert end.used_interactions == np.count_nonzero(end.parameters.P) == 0


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_rows_that_differ_are_counted(kind, rng):
    pairs = np.unique(rng.integers(0, 60, size=(900, 2)), axis=0)
    X = np.zeros((len(pairs), 120))
    X[np.arange(len(pairs)), pairs[:, 0]] = 1.0
    X[np.arange(len(pairs)), 60 + pairs[:, 1]] = 1.0
    design = Design(kind(np.vstack([X, X[:100]])))
    counted = np.ones(len(X) + 100, dtype=bool)
    assert _different_rows(design, counted) == len(X)
    counted[:50] = counted[-100:-50] = False
    assert _different_rows(design, counted) == len(X) - 50
