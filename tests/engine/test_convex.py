"""Models convex in W: quadratic regression and the convex machine, their solvers and duality gaps."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import LIPSCHITZ, build_problem, iterate
from oracles.generic_convex import generic_optimum
from pairwise import sampled
from scipy.sparse.linalg import ArpackNoConvergence
from small_data import STORAGES, stored, table, target

from fmviz.engine import memory
from fmviz.engine.certificates import duality
from fmviz.engine.certificates.duality import dual_values, relative_gaps
from fmviz.engine.design import Design
from fmviz.engine.fit import Budget
from fmviz.engine.interactions.weights import GivenPairs, pairs_of
from fmviz.engine.linalg import lowrank
from fmviz.engine.linalg.lowrank import (
    PairGradient,
    eigenform,
    eigenform_of_weights,
    features_of_pairs,
)
from fmviz.engine.linalg.spectral import (
    prox_trace,
    prox_trace_l1,
    soft_threshold,
    spectral_norm,
    trace_norm,
)
from fmviz.engine.losses import LOSSES, Huber, QuantileHuber
from fmviz.engine.models import MODELS, quadratic
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Reason
from fmviz.metrics import (
    interaction_weights,
    support_f1,
    used_pairs,
)

QR = MODELS["qr"]
READINGS = [False, True]
# (λ_tr, λ): SLQR twice, QR with ℓ1, QR with the trace norm.
STRENGTHS = [(0.1, 0.05), (0.02, 0.02), (0.0, 0.05), (0.1, 0.0)]
# The machine without and with squares, and quadratic regression with both of its solvers.
KINDS = {
    "machine": {"model": "convex_fm", "regularizer": "l2", "model_params": {"diagonal": False}},
    "squares": {"model": "convex_fm", "regularizer": "l2", "model_params": {"diagonal": True}},
    "qr": {"model": "qr", "regularizer": "l1", "lambda_sparse": 0.05, "lambda_p": 0.1},
}


def symmetric(rng: np.random.Generator, d: int) -> np.ndarray:
    W = rng.normal(size=(d, d))
    return W + W.T


def build(
    kind: str = "machine", loss: str = "squared", *, n=40, d=7, storage="dense", seed=0, **more
) -> Problem:
    rng = np.random.default_rng(seed)
    X = table(storage, n, d, seed)
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + X[:, 1] + 0.3 * rng.normal(size=n) + 0.2
    given = {"lambda_w": 0.02, "lambda_p": 0.05, "lambda_sparse": 0.0, "rank": 14} | KINDS[kind] | more
    return build_problem(stored(X, storage), target(y, loss), loss=loss, **given)


def solve(problem: Problem, solver: str | None = None, epochs=5000, tol=1e-10, seed=0, **more):
    given = solver or ("exact_pgd" if problem.model.name == "qr" else "gcd")
    budget = Budget(epochs=epochs, tol=tol, certify_every=10**6)
    return list(iterate(problem, given, budget, rng=np.random.default_rng(seed), **more))


def weights_of(result: Parameters) -> np.ndarray:
    return (result.P * result.multipliers) @ result.P.T if result.W is None else result.W


def dense(problem: Problem) -> np.ndarray:
    X = problem.design.matrix
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def random_point(problem: Problem, seed: int = 1) -> Parameters:
    rng, d = np.random.default_rng(seed), problem.design.n_features
    w = 0.3 * rng.normal(size=d)
    if problem.model.name == "qr":
        return Parameters.of_weights(0.3 * symmetric(rng, d), w, 0.4)
    _, k = problem.model.shapes(d, problem.rank)["P"]
    coefficients = rng.normal(size=k)
    coefficients[::3] = 0.0
    return Parameters(0.3 * rng.normal(size=(d, k)), w, 0.4, coefficients=coefficients)


# ------------------------------------------------------------------------------------------------ the models


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_prediction_and_objective_are_those_of_the_matrix(kind, storage, monkeypatch):
    monkeypatch.setattr(quadratic, "_BLOCK", 70)  # several blocks of columns
    problem = build(kind, storage=storage)
    here = random_point(problem)
    W = weights_of(here)
    expected = []
    for x in dense(problem):
        pairs = sum(W[i, j] * x[i] * x[j] for i in range(7) for j in range(i + 1, 7))
        squares = sum(W[i, i] * x[i] ** 2 for i in range(7))
        expected.append(0.4 + x @ here.w + (2 * pairs + squares if kind == "squares" else pairs))
    assert problem.predict(here) == pytest.approx(expected, abs=1e-12)
    by_hand = (
        problem.mean(0.5 * np.square(np.asarray(expected) - problem.y))
        + 0.02 * (here.w**2).sum()
        + problem.lambda_p * np.linalg.norm(W, "nuc")
        + problem.lambda_sparse * np.abs(W).sum()
    )
    assert problem.objective(here) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("storage", ["dense", "sparse", "binary"])
@pytest.mark.parametrize("loss", LIPSCHITZ)
def test_gradient_is_the_finite_difference(loss, storage):
    problem = build("qr", loss, storage=storage)
    rng = np.random.default_rng(2)
    W, w = symmetric(rng, 7) * 0.3, rng.normal(size=7) * 0.3
    slope = LOSSES[loss].derivative(problem.predict(Parameters.of_weights(W, w, 0.1)), problem.y)
    in_W, in_w, in_b = QR.gradient(problem.design, Parameters.of_weights(W, w, 0.1), slope / 40)
    for _ in range(5):
        D, e, c = symmetric(rng, 7), rng.normal(size=7), rng.normal()
        h = 1e-6
        up, down = (
            problem.parts(Parameters.of_weights(W + s * h * D, w + s * h * e, 0.1 + s * h * c))["loss"]
            for s in (1, -1)
        )
        assert np.vdot(in_W, D) + in_w @ e + in_b * c == pytest.approx((up - down) / (2 * h), abs=1e-6)
    assert (in_W == in_W.T).all()
    assert not np.diagonal(in_W).any()


@pytest.mark.parametrize("small", [0, 200], ids=["lanczos", "dense"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("diagonal", READINGS)
def test_gradient_operator_is_the_dense_gradient(diagonal, storage, small, monkeypatch):
    monkeypatch.setattr(lowrank, "_SMALL", small)
    problem = build(storage=storage, d=30, n=50)
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
    problem = build(storage="sparse", d=30)
    operator = PairGradient(problem.design, np.random.default_rng(3).normal(size=40), diagonal)
    exact = operator.norm(1e-9)

    monkeypatch.setattr(lowrank, "_SMALL", 0)
    failure = ArpackNoConvergence("no", np.zeros(0), np.zeros((30, 0)))
    monkeypatch.setattr("scipy.sparse.linalg.eigsh", Mock(side_effect=failure))
    assert exact <= operator.norm(1e-9) < 100 * exact


def test_eigenform_keeps_the_matrix_and_the_zeros(rng):
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


def test_operators_are_certified(rng):
    for trial in range(60):
        d = int(rng.integers(1, 12))
        V = symmetric(rng, d) * 10.0 ** rng.uniform(-3, 3)
        if trial % 3 == 0:
            V[0] = V[:, 0] = 0.0
        t, size = float(10.0 ** rng.uniform(-3, 1)) * np.abs(V).max(), max(1e-300, np.abs(V).max())
        W = prox_trace(V, t)
        S = V - W
        # S is in t·∂‖W‖_tr: in the ball, and ⟨S, W⟩ = t‖W‖_tr.
        assert spectral_norm(S) <= t * (1 + 1e-10)
        assert abs(np.vdot(S, W) - t * trace_norm(W)) <= 1e-9 * size**2 * d
        assert not W[~V.any(axis=1)].any()
        T = V - soft_threshold(V, t)
        assert np.abs(T).max() <= t + 1e-15 * size
        assert ((soft_threshold(V, t) == 0) == (np.abs(V) <= t)).all()
        if t == 0:
            continue
        result = prox_trace_l1(V, 0.4 * t, 0.3 * t, most=5000)
        assert spectral_norm(result.S) <= 0.4 * t * (1 + 1e-8)
        residual = V - result.W - result.S
        assert np.abs(residual).max() <= 0.3 * t * (1 + 1e-8) + 1e-14 * size
        assert abs(np.vdot(residual, result.W) - 0.3 * t * np.abs(result.W).sum()) <= 1e-8 * size**2 * d
        assert abs(np.vdot(result.S, result.W) - 0.4 * t * trace_norm(result.W)) <= 1e-7 * size**2 * d


def test_counts_are_structural_and_skip_columns_without_weight():
    model = MODELS["convex_fm"]
    P = np.zeros((6, 3))
    P[[0, 1], 0] = 1.0
    P[[1, 2, 3], 1] = 5e-324
    P[[4, 5], 2] = 1.0
    result = Parameters(P, np.zeros(6), 0.0, coefficients=np.array([1.0, -2.0, 0.0]))
    assert model.used_features(result) == 4
    assert model.used_interactions(result) == 4
    assert model.used_by_order(result) == {2: 4}
    assert used_pairs(result).sum() == 8
    ranked = pairs_of(model, result, entries=True).ranked()
    assert ranked.sets.tolist() == [[0, 1], [1, 2], [1, 3], [2, 3]]
    assert ranked.weight[0] == 1.0
    P[[1, 2, 3], 1] = 1.0
    assert interaction_weights(result)[1, 2] == -2.0
    W = weights_of(result) - np.diag(np.diagonal(weights_of(result)))
    assert support_f1(W, result) == 1.0


# ---------------------------------------------------------------------------------------------- the optimum


def check_optimum(problem: Problem, **own) -> Parameters:
    """Assert that a run ends at the optimum of a generic solver, and that the dual bounds it."""
    expected = generic_optimum(problem, problem.model.settings.get("diagonal", False))
    *_, last = solve(problem, **own)
    assert last.objective == pytest.approx(expected, rel=1e-6)
    assert last.certificate < 1e-5
    # The bound is one: the optimum is not below what the dual promises.
    assert dual_values(problem, last.parameters)[0] <= expected * (1 + 1e-7)
    return last.parameters


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("loss", LIPSCHITZ)
@pytest.mark.parametrize("kind", ["machine", "squares"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_optimum_of_machines_is_that_of_a_generic_solver(loss, kind, storage):
    problem = build(kind, loss, d=6, rank=6, storage=storage)
    result = check_optimum(problem)
    used = result.multipliers != 0
    assert result.P[:, used].T @ result.P[:, used] == pytest.approx(np.eye(used.sum()), abs=1e-12)
    assert not result.P[:, ~used].any()
    shrunk = 0.05 * np.abs(result.multipliers).sum()
    assert problem.parts(result)["penalty_p"] == pytest.approx(shrunk, rel=1e-12)


@pytest.mark.pairwise(1, together=("trace", "entries"))
@pytest.mark.parametrize("loss", LIPSCHITZ)
@pytest.mark.parametrize(("trace", "entries"), STRENGTHS)
def test_optimum_of_quadratic_regression_is_that_of_a_generic_solver(loss, trace, entries):
    storage = "sparse" if trace == 0.02 else "dense"
    check_optimum(build("qr", loss, n=30, d=6, storage=storage, lambda_p=trace, lambda_sparse=entries))


@pytest.mark.pairwise
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
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_variants_agree_with_a_generic_solver(loss, kind, more):
    problem = build(
        kind, loss, **({"lambda_p": 0.03, "lambda_sparse": 0.03} if kind == "qr" else {}), d=5, rank=5, **more
    )
    result = check_optimum(problem)
    assert problem.fit_linear or not result.w.any()
    assert problem.fit_intercept or result.intercept == 0.0


@pytest.mark.parametrize(
    ("kind", "loss", "solver", "own"),
    sampled(
        (
            [
                ("qr", loss, solver, {"lambda_p": trace, "lambda_sparse": entries})
                for solver in ("exact_pgd", "incremental_pgd")
                for loss in LIPSCHITZ
                for trace, entries in STRENGTHS
            ],
            6,
        ),
        (
            [(kind, loss, "gcd", {"bases": 2}) for kind in ("machine", "squares") for loss in LIPSCHITZ],
            3,
        ),
    ),
)
def test_objective_never_rises_and_the_gap_bounds_it(kind, loss, solver, own, rng):
    problem = build(kind, loss, **(own if kind == "qr" else {}))
    budget, settings = Budget(epochs=60 if kind == "qr" else 12, tol=0.0), {} if kind == "qr" else own
    snapshots = list(iterate(problem, solver, budget, start=random_point(problem), rng=rng, **settings))
    objective = np.array([s.objective for s in snapshots])
    assert (np.diff(objective) <= 1e-14 * objective[:-1]).all()
    best = solve(problem)[-1].objective
    for s in snapshots[:: 10 if kind == "qr" else 1]:
        assert s.certificate >= (s.objective - best) / s.objective - (1e-12 if kind == "qr" else 1e-10)
    assert snapshots[-1].certificate < snapshots[0].certificate <= 1.0
    assert snapshots[-1].objective < objective[0]


@pytest.mark.parametrize(
    ("kind", "strengths"),
    [
        *((kind, {"lambda_p": 10.0}) for kind in ("machine", "squares")),
        *(
            ("qr", {"lambda_p": trace, "lambda_sparse": entries})
            for trace, entries in ((10.0, 10.0), (0.0, 10.0), (10.0, 0.0))
        ),
    ],
)
def test_large_strengths_leave_nothing_with_a_gap_of_zero(kind, strengths):
    *_, last = solve(build(kind, **strengths))
    assert not weights_of(last.parameters).any()
    assert not last.parameters.P.any()
    assert last.used_interactions == 0
    assert last.certificate < 1e-8
    assert last.status.reason is Reason.CONVERGED


@pytest.mark.parametrize("allowance", [0.0, 7.0**3, 10 * 7.0**3])
def test_a_certificate_with_less_to_spend_is_looser_and_still_a_bound(monkeypatch, allowance):
    problem = build("qr")
    start = Parameters.of_weights(symmetric(np.random.default_rng(5), 7), np.zeros(7), 0.0)
    here = list(iterate(problem, "exact_pgd", Budget(epochs=30, tol=0.0), start=start))[-1]
    best = solve(problem)[-1].objective
    spent = []

    def counted(*args, **options):
        result = prox_trace_l1(*args, **options)
        spent.append(result.rounds)
        return result

    monkeypatch.setattr(quadratic, "prox_trace_l1", counted)
    monkeypatch.setattr(quadratic, "_THOROUGH", allowance)
    gap = duality.relative_gaps(problem, here.parameters)[0]
    assert sum(spent) <= allowance / 7**3
    assert gap >= max(here.certificate, (here.objective - best) / here.objective) * (1 - 1e-9)


def test_the_incremental_operator_ends_near_the_optimum_with_both_penalties():
    problem = build("qr", n=60)
    exact = solve(problem)[-1]
    turns = solve(problem, "incremental_pgd")[-1]
    assert exact.objective <= turns.objective * (1 + 1e-12)
    assert turns.objective == pytest.approx(exact.objective, rel=1e-3)
    alone = build("qr", n=30, lambda_p=0.0)
    ends = [solve(alone, name)[-1].objective for name in ("exact_pgd", "incremental_pgd")]
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)


def test_zeros_are_exact_and_counted_in_the_upper_triangle():
    *_, last = solve(build("qr", n=60, lambda_p=0.05, lambda_sparse=0.1))
    W = last.parameters.W
    assert (W == W.T).all()
    assert last.used_interactions == np.count_nonzero(W[np.triu_indices(7, 1)])
    assert 2 <= last.used_interactions < 21
    W = np.diag(np.ones(7))
    assert QR.used_interactions(Parameters.of_weights(W)) == QR.used_features(Parameters.of_weights(W)) == 0
    W[0, 3] = W[3, 0] = 5e-324
    assert QR.used_interactions(Parameters.of_weights(W)) == 1
    assert QR.used_features(Parameters.of_weights(W)) == 2


@pytest.mark.parametrize(
    "loss", [*(x for x in LOSSES.values() if x.convex), Huber(0.7), QuantileHuber(0.9, 0.4)], ids=repr
)
def test_conjugates_meet_fenchel_and_young(loss):
    rng = np.random.default_rng(6)
    f, y = 3 * rng.normal(size=500), target(np.sign(rng.normal(size=500)), loss)
    slope = loss.derivative(f, y)
    value, conjugate = loss.value(f, y), loss.conjugate(slope, y)
    error = 1e-14 * np.maximum(1.0, np.abs(value) + np.abs(slope * f))
    assert (np.abs(value + conjugate - slope * f) <= error).all()
    other = conjugate + loss.value(f[::-1].copy(), y)
    assert (other >= slope * f[::-1] - error).all()
    for side in (-1.0, 1.0):
        # Beyond the slopes of all f, if they are bounded on this side.
        last = loss.derivative(np.full_like(f, side * 1e150), y)
        assert np.isinf(loss.conjugate(last + side, y)[np.abs(last) < 1e100]).all()


NOTHING = {name: Parameters(np.zeros((7, k)), np.zeros(7), 0.0) for name, k in (("qr", 0), ("machine", 14))}
WIDE = sp.csr_array((np.ones(2), ([0, 1], [0, 199_999])), shape=(2, 200_000))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: solve(build("qr"), start=NOTHING["qr"]), "no W"),
        (lambda: solve(build("qr"), start=NOTHING["qr"].replace(W=np.zeros((3, 3)))), r"W of shape \(3, 3\)"),
        (lambda: solve(build(), start=NOTHING["machine"]), "no coefficients"),
        (lambda: QR.predict(Design(np.eye(7)), NOTHING["machine"]), "with P instead of W"),
        (
            lambda: build_problem(WIDE, [1.0, -1.0], model="qr", regularizer="l1"),
            r"needs 16 matrices of .*5.12 TB, but only 100 MB are free",
        ),
        (
            lambda: MODELS["convex_fm"].check_size(100_000, 30),
            "rank = 30 and 100,000 features need 768 MB, but only 100 MB are free",
        ),
    ],
)
def test_bad_input_is_a_sentence(call, words, monkeypatch):
    assert memory.available_bytes() > 0
    for module in ("base", "quadratic"):
        monkeypatch.setattr(f"fmviz.engine.models.{module}.available_bytes", lambda: 1e8)
    with pytest.raises(ValueError, match=words):
        call()


def test_the_strongest_of_many_pairs_are_the_first_of_all(rng):
    W = symmetric(rng, 30).round(0)  # with ties
    full = GivenPairs.of(W).ranked()
    assert full.weight.size == full.total == np.count_nonzero(np.triu(W, 1))
    for top in (1, 7, 100, 1000):
        few = GivenPairs.of(W).ranked(top)
        for name in ("sets", "weight"):
            assert getattr(few, name).tolist() == getattr(full, name)[:top].tolist()
    assert GivenPairs.of(np.eye(3)).ranked(5).weight.size == 0


# -------------------------------------------------------------------------------- greedy coordinate descent


def test_where_a_run_starts_does_not_matter():
    problem = build()
    fresh = solve(problem)[-1]
    *_, again = solve(problem, start=random_point(problem))
    assert again.objective == pytest.approx(fresh.objective, rel=1e-9)
    warm = solve(problem, start=fresh.parameters)
    assert warm[0].objective == pytest.approx(fresh.objective, rel=1e-13)
    assert warm[-1].epoch <= 3
    first, two = (solve(build(d=250, n=60, lambda_p=0.2), epochs=3, seed=4)[-1].parameters for _ in range(2))
    assert np.array_equal(first.P, two.P)


def test_lanczos_finds_the_same_optimum(monkeypatch):
    problem = build(d=60, n=80, lambda_p=0.3, rank=20)
    exact = solve(problem)[-1]
    assert exact.certificate < 1e-5
    monkeypatch.setattr(lowrank, "_SMALL", 0)
    other = solve(problem)[-1]
    assert other.objective == pytest.approx(exact.objective, rel=1e-8)
    assert other.certificate < 1e-5
    assert duality.relative_gaps(problem, other.parameters, thorough=False)[0] < 1e-3


@pytest.mark.sample(1)
def test_a_rank_below_the_optimum_still_descends_and_is_told():
    full = solve(build())[-1]
    assert np.count_nonzero(full.parameters.coefficients) == 4
    snapshots = solve(build(rank=2))
    last = snapshots[-1]
    objective = np.array([s.objective for s in snapshots])
    assert (np.diff(objective) <= 1e-14 * objective[:-1]).all()
    assert last.parameters.P.shape == (7, 2)
    assert np.count_nonzero(last.parameters.coefficients) == 2
    assert full.objective < last.objective < full.objective * 2
    assert last.certificate >= (last.objective - full.objective) / last.objective
    # A rank of exactly the optimum is enough.
    enough = solve(build(rank=4))[-1]
    assert enough.objective == pytest.approx(full.objective, rel=1e-8)
    assert enough.certificate < 1e-5


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
        assert features_of_pairs(problem.design, diagonal).tolist() == [j for j in range(12) if j not in dead]
        result = solve(problem)[-1]
        assert np.flatnonzero(~result.parameters.P.any(axis=1)).tolist() == dead
        assert result.used_features == 12 - len(dead)
        assert result.certificate < 1e-5


SQUARES = [[1.0], [2.0], [4.0]], [1.0, 4.0, 16.0]


@pytest.mark.parametrize("kind", KINDS)
def test_of_one_feature_there_are_squares_alone(kind):
    # On a line through the origin quadratic regression needs its linear term alone.
    y = SQUARES[1] if kind != "qr" else [1.0, 2.0, 4.0]
    given = KINDS[kind] | {"lambda_p": 1e-6, "lambda_w": 0.0 if kind == "qr" else 10.0}
    *_, last = solve(build_problem(SQUARES[0], y, **given))
    if kind == "squares":
        assert weights_of(last.parameters)[0, 0] == pytest.approx(1.0, abs=1e-4)
    else:
        assert not weights_of(last.parameters).any()
    assert kind != "qr" or last.objective < 1e-8


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_predicted_by_the_mean(kind):
    problem = build_problem(np.zeros((3, 2)), [1.0, 2.0, 3.0], **KINDS[kind])
    *_, last = solve(problem.at(lambda_p=0.1))
    assert last.parameters.intercept == pytest.approx(2.0)
    assert last.certificate < 1e-10


@pytest.mark.slow
def test_without_a_penalty_the_gap_is_that_to_all_of_no_larger_trace_norm():
    snapshots = solve(build(lambda_p=0.0, n=15, rank=7), epochs=30)
    assert snapshots[-1].objective < 0.1 * snapshots[0].objective
    # Small at the minimum just there.
    many = build(lambda_p=0.0, n=80, rank=7)
    end = solve(many, epochs=200)[-1]
    assert end.certificate < 1e-6
    inner = end.parameters.replace(coefficients=0.5 * end.parameters.multipliers)
    assert relative_gaps(many, inner)[0] > 1e-3
    best = solve(build(lambda_p=1e-9, n=80, rank=7), epochs=200)[-1].objective
    assert dual_values(many, end.parameters)[0] <= best * (1 + 1e-6)
    nothing = build(lambda_p=10.0, fit_linear=False, fit_intercept=False)
    assert solve(nothing)[-1].objective == pytest.approx(nothing.mean(0.5 * nothing.y**2))
