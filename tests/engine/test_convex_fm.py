"""Convex factorization machine: the model, greedy coordinate descent, the duality gap, [B] Theorem 2."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import SMOOTH, build_problem, iterate
from oracles.generic_convex import generic_optimum
from scipy.optimize import minimize
from scipy.sparse.linalg import ArpackNoConvergence

from fmviz.engine.certificates import duality
from fmviz.engine.certificates.duality import dual_value, relative_gap
from fmviz.engine.drive import Budget
from fmviz.engine.interactions.of_order import pairs_of
from fmviz.engine.linalg import lowrank
from fmviz.engine.linalg.lowrank import (
    PairGradient,
    eigenform,
    eigenform_of_weights,
    features_of_pairs,
)
from fmviz.engine.losses import LOSSES
from fmviz.engine.models import MODELS, get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Reason
from fmviz.engine.solvers._flat_problem import Joint
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.runner import Run
from fmviz.metrics import interaction_weights, support_f1, used_pairs

STORAGES = ["dense", "sparse", "binary"]
READINGS = [False, True]


def build(
    loss="squared", trace=0.05, *, diagonal=False, n=40, d=7, rank=14, storage="dense", seed=0, **more
) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if storage != "dense":
        X *= rng.random(X.shape) < 0.6
    if storage == "binary":
        X = (X != 0).astype(float)
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + X[:, 1] + 0.3 * rng.normal(size=n) + 0.2
    settings = {"lambda_w": 0.02, **more}
    return build_problem(
        X if storage == "dense" else sp.csr_array(X),
        np.where(y > 0, 1.0, -1.0) if LOSSES[loss].task == "binary" else y,
        loss=loss,
        model="convex_fm",
        regularizer="l2",
        rank=rank,
        lambda_p=trace,
        lambda_sparse=0.0,
        model_params={"diagonal": diagonal},
        **settings,
    )


def solve(problem: Problem, epochs: int = 200, tol: float = 1e-10, seed: int = 0, **more):
    budget = Budget(epochs=epochs, tol=tol, certify_every=10**6)
    return list(iterate(problem, "gcd", budget, rng=np.random.default_rng(seed), **more))


def weights_of(found: Parameters) -> np.ndarray:
    return (found.P * found.multipliers) @ found.P.T


def dense(problem: Problem) -> np.ndarray:
    X = problem.design.matrix
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def random_point(problem: Problem, seed: int = 1) -> Parameters:
    rng = np.random.default_rng(seed)
    d, k = problem.model.shapes(problem.design.n_features, problem.rank)["P"]
    coefficients = rng.normal(size=k)
    coefficients[::3] = 0.0
    return Parameters(0.3 * rng.normal(size=(d, k)), 0.3 * rng.normal(size=d), 0.4, coefficients=coefficients)


# ------------------------------------------------------------------------------------------------- the model


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("diagonal", READINGS)
def test_prediction_and_objective_are_those_of_the_matrix(diagonal, storage):
    problem = build(diagonal=diagonal, storage=storage)
    here = random_point(problem)
    W = weights_of(here)
    expected = []
    for x in dense(problem):
        pairs = sum(W[i, j] * x[i] * x[j] for i in range(7) for j in range(i + 1, 7))
        squares = sum(W[i, i] * x[i] ** 2 for i in range(7))
        expected.append(0.4 + x @ here.w + (2 * pairs + squares if diagonal else pairs))
    assert problem.predict(here) == pytest.approx(expected, abs=1e-12)
    by_hand = (
        problem.mean(0.5 * np.square(np.asarray(expected) - problem.y))
        + 0.02 * (here.w**2).sum()
        + 0.05 * np.linalg.norm(W, "nuc")
    )
    assert problem.objective(here) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("diagonal", READINGS)
def test_it_is_the_kernel_expansion_of_degree_two(diagonal, storage):
    problem = build(diagonal=diagonal, storage=storage)
    here = random_point(problem)
    kernel = "polynomial" if diagonal else "anova"
    expansion = get_model("expansion", {"kernel": kernel})
    assert problem.predict(here) == pytest.approx(expansion.predict(problem.design, here), abs=1e-12)
    slope = np.random.default_rng(0).normal(size=40)
    for ours, theirs in zip(
        problem.model.gradient(problem.design, here, slope),
        expansion.gradient(problem.design, here, slope),
        strict=True,
    ):
        assert ours == pytest.approx(theirs, abs=1e-12)
    # Σ|λ_s|‖p_s‖² is never below the trace norm, and is it for orthonormal columns.
    assert expansion.shrinkage(here) >= problem.model.shrinkage(here)
    Q, values = eigenform(here.P, here.multipliers)
    there = Parameters(Q, here.w, here.intercept, coefficients=values)
    assert expansion.shrinkage(there) == pytest.approx(problem.model.shrinkage(here), rel=1e-12)


@pytest.mark.parametrize("small", [0, 200], ids=["lanczos", "dense"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("diagonal", READINGS)
def test_gradient_operator_is_the_dense_gradient(diagonal, storage, small, monkeypatch):
    monkeypatch.setattr(lowrank, "_SMALL", small)
    problem = build(diagonal=diagonal, storage=storage, d=30, n=50)
    X = dense(problem)
    rng = np.random.default_rng(3)
    slope = rng.normal(size=50)
    G = X.T @ (slope[:, None] * X)
    if not diagonal:
        G = 0.5 * (G - np.diag(np.diagonal(G)))
    operator = PairGradient(problem.design, slope, diagonal)
    V = rng.normal(size=(30, 3))
    assert operator.dot(V) == pytest.approx(G @ V, abs=1e-12)
    assert operator.dot(V[:, 0]) == pytest.approx(G @ V[:, 0], abs=1e-12)
    true = np.linalg.eigvalsh(G)
    true = true[np.argsort(-np.abs(true))]
    values, vectors = operator.leading(4, np.arange(30), rng.normal(size=30), 1e-12)
    assert values == pytest.approx(true[:4], rel=1e-9)
    assert G @ vectors == pytest.approx(values * vectors, abs=1e-7 * abs(true[0]))
    assert vectors.T @ vectors == pytest.approx(np.eye(4), abs=1e-9)
    assert abs(true[0]) * (1 - 1e-12) <= operator.norm(1e-9) <= abs(true[0]) * (1 + 1e-7)
    live = np.arange(5, 25)
    values, vectors = operator.leading(2, live, rng.normal(size=30), 1e-12)
    block = np.linalg.eigvalsh(G[np.ix_(live, live)])
    assert abs(values[0]) == pytest.approx(np.abs(block).max(), rel=1e-9)
    assert not vectors[:5].any()
    assert not vectors[25:].any()
    nothing = PairGradient(problem.design, np.zeros(50), diagonal)
    assert nothing.leading(3, live, rng.normal(size=30), 1e-9)[0].size == 0
    assert operator.leading(3, np.arange(0), rng.normal(size=30), 1e-9)[1].shape == (30, 0)
    assert nothing.norm(1e-9) == 0.0


@pytest.mark.parametrize("diagonal", READINGS)
def test_norm_without_convergence_is_a_bound_still(diagonal, monkeypatch):
    problem = build(diagonal=diagonal, storage="sparse", d=30)
    operator = PairGradient(problem.design, np.random.default_rng(3).normal(size=40), diagonal)
    exact = operator.norm(1e-9)

    def fails(*_, **__):
        raise ArpackNoConvergence("no", np.zeros(0), np.zeros((30, 0)))

    monkeypatch.setattr(lowrank, "_SMALL", 0)
    monkeypatch.setattr("scipy.sparse.linalg.eigsh", fails)
    assert exact <= operator.norm(1e-9) < 100 * exact


def test_eigenform_keeps_the_matrix_and_the_zeros():
    rng = np.random.default_rng(4)
    for d, k in ((8, 3), (5, 9), (6, 6)):
        P, coefficients = rng.normal(size=(d, k)), rng.normal(size=k)
        coefficients[0] = 0.0
        P[2] = 0.0
        W = (P * coefficients) @ P.T
        Q, values = eigenform(P, coefficients)
        assert pytest.approx(np.eye(values.size), abs=1e-13) == Q.T @ Q
        assert (Q * values) @ Q.T == pytest.approx(W, abs=1e-12)
        assert (np.diff(np.abs(values)) <= 0).all()
        assert not Q[2].any()
        assert np.abs(values).sum() == pytest.approx(np.linalg.norm(W, "nuc"))
        assert values.size == min(d - 1, k - 1)
        again = eigenform_of_weights(W)
        assert again[1][: values.size] == pytest.approx(values, abs=1e-12)
        assert not again[0][2].any()
        best = eigenform_of_weights(W, rank=1)
        assert (best[0].shape, best[1].shape) == ((d, 1), (1,))
    assert eigenform(np.ones((4, 2)), np.zeros(2))[0].shape == (4, 0)
    assert eigenform(np.zeros((4, 2)), np.ones(2))[1].shape == (0,)
    assert eigenform_of_weights(np.zeros((4, 4)))[0].shape == (4, 0)
    # The lifted form: S(UVᵀ) = ½(UVᵀ + VUᵀ), of rank up to 2r.
    U, V = rng.normal(size=(9, 2)), rng.normal(size=(9, 2))
    Q, values = eigenform(0.5 * np.hstack([U + V, U - V]), np.repeat([1.0, -1.0], 2))
    assert (Q * values) @ Q.T == pytest.approx(0.5 * (U @ V.T + V @ U.T), abs=1e-13)


def test_counts_are_structural_and_skip_columns_without_weight():
    model = MODELS["convex_fm"]
    P = np.zeros((6, 3))
    P[[0, 1], 0] = 1.0
    P[[1, 2, 3], 1] = 5e-324
    P[[4, 5], 2] = 1.0
    found = Parameters(P, np.zeros(6), 0.0, coefficients=np.array([1.0, -2.0, 0.0]))
    assert model.used_features(found) == 4
    assert model.used_interactions(found) == 4
    assert model.used_by_order(found) == {2: 4}
    assert used_pairs(found).sum() == 8
    ranked = pairs_of(model, found, entries=True).ranked()
    assert list(zip(ranked.i.tolist(), ranked.j.tolist(), strict=True)) == [(0, 1), (1, 2), (1, 3), (2, 3)]
    assert ranked.weight[0] == 1.0
    P[[1, 2, 3], 1] = 1.0
    assert interaction_weights(found)[1, 2] == -2.0
    W = weights_of(found) - np.diag(np.diagonal(weights_of(found)))
    assert support_f1(W, found) == 1.0


# ---------------------------------------------------------------------------------------------- the optimum


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("diagonal", READINGS)
@pytest.mark.parametrize("refit", ["factors", "matrix"])
def test_optimum_is_that_of_a_generic_solver(loss, diagonal, refit):
    problem = build(loss, diagonal=diagonal, d=6, rank=6, storage="sparse" if refit == "matrix" else "dense")
    expected = generic_optimum(problem, diagonal)
    *_, last = solve(problem, refit=refit)
    assert last.objective == pytest.approx(expected, rel=1e-6)
    assert last.certificate < 1e-5
    assert duality.dual_value(problem, last.parameters) <= expected * (1 + 1e-7)
    P, coefficients = last.parameters.P, last.parameters.multipliers
    found = coefficients != 0
    assert P[:, found].T @ P[:, found] == pytest.approx(np.eye(found.sum()), abs=1e-12)
    assert not P[:, ~found].any()
    assert last.penalty_p == pytest.approx(0.05 * np.abs(coefficients).sum(), rel=1e-12)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(
    "more",
    [
        {"sample_weight": np.arange(40.0)},
        {"fit_linear": False},
        {"fit_intercept": False},
        {"fit_intercept": False, "fit_linear": False},
        {"lambda_w": 0.0},
    ],
    ids=["weights", "no linear term", "no bias", "pairs only", "free linear term"],
)
@pytest.mark.parametrize("diagonal", READINGS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_variants_agree_with_a_generic_solver(loss, diagonal, more):
    problem = build(loss, 0.05, diagonal=diagonal, d=5, rank=5, **more)
    *_, last = solve(problem)
    assert last.objective == pytest.approx(generic_optimum(problem, diagonal), rel=1e-6)
    assert last.certificate < 1e-5
    assert problem.fit_linear or not last.parameters.w.any()
    assert problem.fit_intercept or last.parameters.intercept == 0.0


@pytest.mark.parametrize("storage", STORAGES)
def test_it_is_quadratic_regression_with_the_trace_norm_alone(storage):
    problem = build(storage=storage, rank=7)
    *_, last = solve(problem)
    qr = build_problem(
        problem.design,
        problem.y,
        model="qr",
        regularizer="l1",
        lambda_w=0.02,
        lambda_p=0.05,
        lambda_sparse=0.0,
    )
    *_, other = iterate(qr, "exact_pgd", Budget(epochs=5000, tol=1e-10, certify_every=10**6))
    assert last.objective == pytest.approx(other.objective, rel=1e-8)
    W = weights_of(last.parameters)
    assert pytest.approx(other.parameters.W, abs=1e-3) == W
    same = Parameters.of_weights(W, last.parameters.w, last.parameters.intercept)
    assert qr.objective(same) == pytest.approx(last.objective, rel=1e-12)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("refit", ["factors", "matrix", "diagonal"])
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("diagonal", READINGS)
def test_objective_never_rises_and_the_gap_bounds_it(refit, loss, diagonal):
    problem = build(loss, diagonal=diagonal)
    stream = iterate(
        problem,
        "gcd",
        Budget(epochs=12, tol=0.0),
        start=random_point(problem),
        rng=np.random.default_rng(0),
        refit=refit,
        bases=2,
    )
    snapshots = list(stream)
    objective = np.array([s.objective for s in snapshots])
    assert (np.diff(objective) <= 1e-14 * objective[:-1]).all()
    best = solve(problem)[-1].objective
    for s in snapshots:
        assert s.certificate >= (s.objective - best) / s.objective - 1e-10
    assert snapshots[-1].certificate < snapshots[0].certificate <= 1.0
    assert snapshots[-1].objective < objective[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("diagonal", READINGS)
def test_one_new_column_an_epoch_and_its_weights_alone_get_near(diagonal):
    problem = build(diagonal=diagonal)
    best = solve(problem)[-1].objective
    snapshots = solve(problem, refit="diagonal", bases=1, epochs=60)
    ranks = [np.count_nonzero(s.parameters.coefficients) for s in snapshots]
    assert all(b <= a + 1 for a, b in itertools.pairwise(ranks))
    assert best <= snapshots[-1].objective <= best * 1.02


def test_where_a_run_starts_does_not_matter():
    problem = build()
    fresh = solve(problem)[-1]
    *_, again = solve(problem, start=random_point(problem))
    assert again.objective == pytest.approx(fresh.objective, rel=1e-9)
    warm = solve(problem, start=fresh.parameters)
    assert warm[0].objective == pytest.approx(fresh.objective, rel=1e-13)
    assert warm[-1].epoch <= 3
    one, two = (solve(build(d=250, n=60, trace=0.2), 3, seed=4)[-1].parameters for _ in range(2))
    assert np.array_equal(one.P, two.P)


def test_lanczos_finds_the_same_optimum(monkeypatch):
    problem = build(d=60, n=80, trace=0.3, rank=20)
    exact = solve(problem)[-1]
    assert exact.certificate < 1e-5
    monkeypatch.setattr(lowrank, "_SMALL", 0)
    other = solve(problem)[-1]
    assert other.objective == pytest.approx(exact.objective, rel=1e-8)
    assert other.certificate < 1e-5
    assert duality.relative_gap(problem, other.parameters, thorough=False) < 1e-3


@pytest.mark.slow
def test_many_features_need_no_matrix_of_theirs():
    # W would take 80 GB.
    n, d = 300, 100_000
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(n), 3), rng.integers(0, d, 3 * n)
    columns[:: 3 * 2], columns[1 :: 3 * 2] = 5, 7
    X = sp.csr_array((np.ones(3 * n), (rows, columns)), shape=(n, d))
    y = np.where(np.arange(n) % 2 == 0, 3.0, -1.0)
    problem = build_problem(
        X, y, model="convex_fm", regularizer="l2", rank=5, lambda_p=0.05, lambda_sparse=0.0, lambda_w=1.0
    )
    *_, last = solve(problem)
    assert last.certificate < 1e-4
    first = pairs_of(problem.model, last.parameters).ranked(1)
    assert (first.i.tolist(), first.j.tolist()) == ([5], [7])
    assert last.used_features < 1000


# ------------------------------------------------------------------------------------------- [B] Theorem 2


@pytest.mark.parametrize("diagonal", READINGS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_theorem_2_expansion(loss, diagonal):
    problem = build(loss, diagonal=diagonal, d=6, rank=12)
    best = solve(problem)[-1]
    expansion = build_problem(
        problem.design,
        problem.y,
        loss=loss,
        model="expansion",
        regularizer="l2",
        rank=12,
        lambda_w=0.02,
        lambda_p=0.05,
        lambda_sparse=0.0,
        model_params={"kernel": "polynomial" if diagonal else "anova", "coefficients": "signs"},
    )
    # The optimum is a point of the expansion with the same value.
    assert expansion.objective(best.parameters) == pytest.approx(best.objective, rel=1e-12)
    # And with columns enough of either sign nothing is below it, from anywhere.
    rng = np.random.default_rng(0)
    signs = np.repeat([1.0, -1.0], 6)
    for _ in range(2):
        start = Parameters(0.3 * rng.normal(size=(6, 12)), np.zeros(6), 0.0, coefficients=signs)
        joint = Joint(expansion)

        def value_and_gradient(theta, joint=joint):
            gradient = joint.risk_and_gradient(theta)[1] + joint.quadratic_gradient(theta)
            return expansion.objective(joint.unpack(theta)), gradient

        end = minimize(
            value_and_gradient,
            joint.pack(start),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 10_000, "ftol": 0.0},
        )
        assert end.fun >= best.objective * (1 - 1e-9)
        assert end.fun == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("diagonal", READINGS)
def test_theorem_2_lifted(diagonal):
    problem = build(diagonal=diagonal, d=6, rank=6, fit_linear=False, fit_intercept=False)
    best = solve(problem)[-1]
    model, design, y, trace = problem.model, problem.design, problem.y, problem.lambda_p

    def lifted(flat: np.ndarray) -> tuple[float, np.ndarray]:
        U, V = flat.reshape(2, 6, 6)
        P, coefficients = 0.5 * np.hstack([U + V, U - V]), np.repeat([1.0, -1.0], 6)
        r = model.predict(design, Parameters(P, np.zeros(6), 0.0, coefficients=coefficients)) - y
        G = PairGradient(design, r / y.size, diagonal)
        value = 0.5 * float(r @ r) / y.size + 0.5 * trace * float(flat @ flat)
        return value, np.concatenate([(G.dot(V) + trace * U).ravel(), (G.dot(U) + trace * V).ravel()])

    start = 0.3 * np.random.default_rng(0).normal(size=72)
    slope = lifted(start)[1]
    step = 1e-6 * np.eye(72)[17]
    assert slope[17] == pytest.approx((lifted(start + step)[0] - lifted(start - step)[0]) / 2e-6, rel=1e-5)
    end = minimize(lifted, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 0.0})
    assert end.fun >= best.objective * (1 - 1e-9)
    assert end.fun == pytest.approx(best.objective, rel=1e-6)
    # From (λ, P) to (U, V): λ_s p_s p_sᵀ = u_s v_sᵀ with ‖u_s‖² = ‖v_s‖² = |λ_s|.
    P, values = best.parameters.P, best.parameters.multipliers
    U = P * np.sqrt(np.abs(values))
    assert lifted(np.concatenate([U.ravel(), (U * np.sign(values)).ravel()]))[0] == pytest.approx(
        best.objective, rel=1e-12
    )


# ------------------------------------------------------------------------------------- limits and zeros


@pytest.mark.sample(1)
@pytest.mark.parametrize("refit", ["factors", "matrix", "diagonal"])
def test_a_rank_below_the_optimum_still_descends_and_is_told(refit):
    full = solve(build())[-1]
    assert np.count_nonzero(full.parameters.coefficients) == 4
    problem = build(rank=2)
    snapshots = solve(problem, refit=refit)
    last = snapshots[-1]
    objective = np.array([s.objective for s in snapshots])
    assert (np.diff(objective) <= 1e-14 * objective[:-1]).all()
    assert last.parameters.P.shape == (7, 2)
    assert np.count_nonzero(last.parameters.coefficients) == 2
    assert full.objective < last.objective < full.objective * 2
    assert last.certificate >= (last.objective - full.objective) / last.objective


def test_a_rank_of_exactly_the_optimum_is_enough():
    full = solve(build())[-1]
    last = solve(build(rank=4))[-1]
    assert last.objective == pytest.approx(full.objective, rel=1e-8)
    assert last.certificate < 1e-5


@pytest.mark.parametrize("diagonal", READINGS)
def test_a_strong_trace_norm_leaves_nothing(diagonal):
    *_, last = solve(build(trace=10.0, diagonal=diagonal))
    assert not last.parameters.P.any()
    assert not last.parameters.multipliers.any()
    assert last.used_interactions == 0
    assert last.certificate < 1e-8
    assert last.status.reason is Reason.CONVERGED


@pytest.mark.parametrize("small", [0, 200])
def test_features_without_a_pair_get_exact_zeros(small, monkeypatch):
    monkeypatch.setattr(lowrank, "_SMALL", small)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 12))
    X[:, 3] = 0.0
    X[:, 8] = 0.0
    X[7] = 0.0
    X[7, 8] = 2.0  # never beside another one
    y = X[:, 0] * X[:, 1] + X[:, 3] + 0.1 * rng.normal(size=60)
    for diagonal, dead in ((False, [3, 8]), (True, [3])):
        problem = build_problem(
            sp.csr_array(X),
            y,
            model="convex_fm",
            regularizer="l2",
            rank=8,
            lambda_p=0.05,
            lambda_sparse=0.0,
            model_params={"diagonal": diagonal},
        )
        live = features_of_pairs(problem.design, diagonal)
        assert live.tolist() == [j for j in range(12) if j not in dead]
        found = solve(problem)[-1]
        assert np.flatnonzero(~found.parameters.P.any(axis=1)).tolist() == dead
        assert found.used_features == 12 - len(dead)
        assert found.certificate < 1e-5


@pytest.mark.slow
def test_edges():
    settings = {"model": "convex_fm", "regularizer": "l2", "lambda_sparse": 0.0}
    one = build_problem([[1.0], [2.0], [4.0]], [1.0, 4.0, 16.0], lambda_p=1e-6, lambda_w=10.0, **settings)
    last = solve(one)[-1]
    assert not last.parameters.P.any()  # a single feature has no pair
    squares = build_problem(
        [[1.0], [2.0], [4.0]],
        [1.0, 4.0, 16.0],
        lambda_p=1e-6,
        lambda_w=10.0,
        model_params={"diagonal": True},
        **settings,
    )
    last = solve(squares)[-1]
    assert weights_of(last.parameters)[0, 0] == pytest.approx(1.0, abs=1e-4)
    zero = build_problem(np.zeros((3, 2)), [1.0, 2.0, 3.0], lambda_p=0.1, **settings)
    last = solve(zero)[-1]
    assert last.parameters.intercept == pytest.approx(2.0)
    assert last.certificate < 1e-10
    free = build(trace=0.0, n=15, rank=7)
    snapshots = solve(free, epochs=30)
    assert snapshots[-1].objective < 0.1 * snapshots[0].objective
    # Without a penalty the gap is that to all W of no larger trace norm: small at the minimum just there.
    many = build(trace=0.0, n=80, rank=7)
    end = solve(many, epochs=200)[-1]
    assert end.certificate < 1e-6
    inner = end.parameters.replace(coefficients=0.5 * end.parameters.multipliers)
    assert relative_gap(many, inner) > 1e-3
    best = solve(build(trace=1e-9, n=80, rank=7), epochs=200)[-1].objective
    assert dual_value(many, end.parameters) <= best * (1 + 1e-6)
    nothing = build(trace=10.0, fit_linear=False, fit_intercept=False)
    assert solve(nothing)[-1].objective == pytest.approx(nothing.mean(0.5 * nothing.y**2))


# ------------------------------------------------------------------------------------------- what fits what


def test_bad_input_is_a_sentence(monkeypatch):
    with pytest.raises(ValueError, match="no coefficients"):
        solve(build(), start=Parameters(np.zeros((7, 14)), np.zeros(7), 0.0))
    monkeypatch.setattr("fmviz.engine.models.base.available_bytes", lambda: 1e8)
    with pytest.raises(ValueError, match=r"rank = 30 and 100,000 features need 768 MB, and 100 MB are free"):
        MODELS["convex_fm"].check_size(100_000, 30)


def test_an_experiment_runs():
    experiment = suggested("planted_interactions", "convex_fm")
    assert (experiment.regularizer, experiment.lambda_sparse) == ("l2", 0.0)
    assert experiment.why_not() is None
    *_, last = Run.prepare(experiment).snapshots()
    assert last.certificate < 1e-3
    assert last.metrics["estimation_error"] < 0.7
    squares = Experiment.from_query(
        {"model": "convex_fm", "regularizer": "l2", "lambda_sparse": "0.0", "model_diagonal": "1"}
    )[0]
    assert squares.model_params == (("diagonal", True),)
    assert Run.prepare(squares).problem.model.settings["diagonal"]
