"""Quadratic regression: the model, its operators, its two solvers and its duality gap."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import SMOOTH, build_problem, iterate
from oracles.generic_convex import generic_optimum

from fmviz.engine import memory
from fmviz.engine.certificates import duality
from fmviz.engine.design import Design
from fmviz.engine.drive import Budget
from fmviz.engine.interactions.pairs import GivenPairs
from fmviz.engine.linalg.spectral import (
    TRACE_NORM,
    prox_trace_l1,
    soft_threshold,
    spectral_norm,
    spectral_prox,
    spectral_value,
)
from fmviz.engine.losses import LOSSES, Huber, QuantileHuber
from fmviz.engine.models import MODELS, quadratic
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.metrics import estimation_error, interaction_weights, support_f1, support_recovered

QR = MODELS["qr"]
# (λ_tr, λ): SLQR twice, QR with ℓ1, QR with the trace norm.
STRENGTHS = [(0.1, 0.05), (0.02, 0.02), (0.0, 0.05), (0.1, 0.0)]


def symmetric(rng: np.random.Generator, d: int) -> np.ndarray:
    W = rng.normal(size=(d, d))
    return W + W.T


def build(loss="squared", trace=0.1, entries=0.05, *, n=30, d=7, storage="dense", seed=0, **more) -> Problem:
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
        model="qr",
        regularizer="l1",
        lambda_p=trace,
        lambda_sparse=entries,
        **settings,
    )


def solve(problem: Problem, solver: str = "exact_pgd", epochs: int = 5000, tol: float = 1e-10, **more):
    return list(iterate(problem, solver, Budget(epochs=epochs, tol=tol, certify_every=10**6), **more))


def factors_of(W: np.ndarray) -> np.ndarray:
    """Return a P, shape (d, number of used pairs), whose PPᵀ equals W off the diagonal ([A] Theorem 5).

    Every pair i < j with w_ij ≠ 0 has a column of its own with the entries √|w_ij| in row i and
    sign(w_ij)√|w_ij| in row j. So Ω_TI(P) = Σ_{i<j}|w_ij|, and used pairs and features are those of W.
    """
    i, j = np.nonzero(np.triu(W, 1))
    P = np.zeros((W.shape[0], i.size))
    column = np.arange(i.size)
    root = np.sqrt(np.abs(W[i, j]))
    P[i, column] = root
    P[j, column] = np.sign(W[i, j]) * root
    return P


@pytest.mark.parametrize("storage", ["dense", "sparse", "binary"])
def test_prediction_is_the_double_sum(storage, monkeypatch):
    monkeypatch.setattr("fmviz.engine.models.quadratic._BLOCK", 70)  # several blocks of columns
    problem = build(storage=storage)
    rng = np.random.default_rng(1)
    here = Parameters.of_weights(symmetric(rng, 7), rng.normal(size=7), 0.4)
    X = problem.design.matrix
    X = X.toarray() if sp.issparse(X) else X
    expected = [
        0.4 + x @ here.w + sum(here.W[i, j] * x[i] * x[j] for i in range(7) for j in range(i + 1, 7))
        for x in X
    ]
    assert problem.predict(here) == pytest.approx(expected, abs=1e-12)
    W = here.W
    by_hand = (
        problem.mean(0.5 * np.square(np.asarray(expected) - problem.y))
        + 0.02 * (here.w**2).sum()
        + 0.1 * np.linalg.norm(W, "nuc")
        + 0.05 * np.abs(W).sum()
    )
    assert problem.objective(here) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("storage", ["dense", "sparse", "binary"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_gradient_is_the_finite_difference(loss, storage):
    problem = build(loss, storage=storage)
    rng = np.random.default_rng(2)
    W, w = symmetric(rng, 7) * 0.3, rng.normal(size=7) * 0.3
    slope = LOSSES[loss].derivative(problem.predict(Parameters.of_weights(W, w, 0.1)), problem.y)
    in_W, in_w, in_b = QR.gradient(problem.design, Parameters.of_weights(W, w, 0.1), slope / 30)
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


def test_operators_are_certified():
    rng = np.random.default_rng(3)
    for trial in range(60):
        d = int(rng.integers(1, 12))
        V = symmetric(rng, d) * 10.0 ** rng.uniform(-3, 3)
        if trial % 3 == 0:
            V[0] = V[:, 0] = 0.0
        t, size = float(10.0 ** rng.uniform(-3, 1)) * np.abs(V).max(), max(1e-300, np.abs(V).max())
        W = spectral_prox(TRACE_NORM, V, t)
        S = V - W
        # S is in t·∂‖W‖_tr: in the ball, and ⟨S, W⟩ = t‖W‖_tr.
        assert spectral_norm(S) <= t * (1 + 1e-10)
        assert abs(np.vdot(S, W) - t * spectral_value(TRACE_NORM, W)) <= 1e-9 * size**2 * d
        assert not W[~V.any(axis=1)].any()
        T = V - soft_threshold(V, t)
        assert np.abs(T).max() <= t + 1e-15 * size
        assert ((soft_threshold(V, t) == 0) == (np.abs(V) <= t)).all()
        if t == 0:
            continue
        found = prox_trace_l1(V, 0.4 * t, 0.3 * t, most=5000)
        assert spectral_norm(found.S) <= 0.4 * t * (1 + 1e-8)
        rest = V - found.W - found.S
        assert np.abs(rest).max() <= 0.3 * t * (1 + 1e-8) + 1e-14 * size
        assert abs(np.vdot(rest, found.W) - 0.3 * t * np.abs(found.W).sum()) <= 1e-8 * size**2 * d
        assert (
            abs(np.vdot(found.S, found.W) - 0.4 * t * spectral_value(TRACE_NORM, found.W))
            <= 1e-7 * size**2 * d
        )


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize(("trace", "entries"), STRENGTHS)
def test_optimum_is_that_of_a_generic_solver(loss, trace, entries):
    problem = build(loss, trace, entries, d=6, storage="sparse" if trace == 0.02 else "dense")
    expected = generic_optimum(problem)
    *_, last = solve(problem)
    assert last.objective == pytest.approx(expected, rel=1e-6)
    assert last.certificate < 1e-5
    # The bound is one: the optimum is not below what the dual promises.
    assert duality.dual_value(problem, last.parameters) <= expected * (1 + 1e-7)


@pytest.mark.parametrize(
    "more",
    [
        {"sample_weight": np.arange(30.0)},
        {"fit_linear": False},
        {"fit_intercept": False, "fit_linear": False},
        {"lambda_w": 0.0},
    ],
    ids=["weights", "no linear term", "pairs only", "free linear term"],
)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_variants_agree_with_a_generic_solver(loss, more):
    problem = build(loss, 0.03, 0.03, d=5, **more)
    *_, last = solve(problem)
    assert last.objective == pytest.approx(generic_optimum(problem), rel=1e-6)
    assert last.certificate < 1e-5


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("solver", ["exact_pgd", "incremental_pgd"])
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize(("trace", "entries"), STRENGTHS)
def test_objective_never_rises_and_the_gap_bounds_it(solver, loss, trace, entries):
    problem = build(loss, trace, entries, n=40)
    rng = np.random.default_rng(5)
    start = Parameters.of_weights(symmetric(rng, 7), rng.normal(size=7), 1.0)
    budget = Budget(epochs=60, tol=0.0)
    snapshots = list(iterate(problem, solver, budget, start=start))
    objective = np.array([s.objective for s in snapshots])
    assert (np.diff(objective) <= 1e-14 * objective[:-1]).all()
    best = solve(problem)[-1].objective
    for s in snapshots[::10]:
        assert s.certificate >= (s.objective - best) / s.objective - 1e-12
    assert snapshots[-1].certificate < snapshots[0].certificate <= 1.0


@pytest.mark.parametrize("allowance", [0.0, 7.0**3, 10 * 7.0**3])
def test_a_certificate_with_less_to_spend_is_looser_and_still_a_bound(monkeypatch, allowance):
    problem = build(trace=0.1, entries=0.05, n=40)
    start = Parameters.of_weights(symmetric(np.random.default_rng(5), 7), np.zeros(7), 0.0)
    here = list(iterate(problem, "exact_pgd", Budget(epochs=30, tol=0.0), start=start))[-1]
    best = solve(problem)[-1].objective
    spent = []

    def counted(*args, **options):
        found = prox_trace_l1(*args, **options)
        spent.append(found.rounds)
        return found

    monkeypatch.setattr(quadratic, "prox_trace_l1", counted)
    monkeypatch.setattr(quadratic, "_THOROUGH", allowance)
    gap = duality.relative_gap(problem, here.parameters)
    assert sum(spent) <= allowance / 7**3
    assert gap >= max(here.certificate, (here.objective - best) / here.objective) * (1 - 1e-9)


def test_the_incremental_operator_ends_near_the_optimum_with_both_penalties():
    problem = build(trace=0.1, entries=0.05, n=60)
    exact = solve(problem)[-1]
    turns = solve(problem, "incremental_pgd")[-1]
    assert exact.objective <= turns.objective * (1 + 1e-12)
    assert turns.objective == pytest.approx(exact.objective, rel=1e-3)
    alone = build(trace=0.0, entries=0.05)
    ends = [solve(alone, name)[-1].objective for name in ("exact_pgd", "incremental_pgd")]
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)


def test_zeros_are_exact_and_counted_in_the_upper_triangle():
    problem = build(trace=0.05, entries=0.1, n=60)
    *_, last = solve(problem)
    W = last.parameters.W
    assert (W == W.T).all()
    assert last.used_interactions == np.count_nonzero(W[np.triu_indices(7, 1)])
    assert 2 <= last.used_interactions < 21
    W = np.diag(np.ones(7))
    assert QR.used_interactions(Parameters.of_weights(W)) == QR.used_features(Parameters.of_weights(W)) == 0
    W[0, 3] = W[3, 0] = 5e-324
    assert QR.used_interactions(Parameters.of_weights(W)) == 1
    assert QR.used_features(Parameters.of_weights(W)) == 2


def test_large_strengths_give_nothing_with_a_gap_of_zero():
    for trace, entries in ((10.0, 10.0), (0.0, 10.0), (10.0, 0.0)):
        *_, last = solve(build(trace=trace, entries=entries))
        assert not last.parameters.W.any()
        assert last.certificate < 1e-8


def test_theorem_5():
    # With λ_p = 0 and a column for each pair, an Ω_TI-sparse machine is as good as QR with ℓ1 on W; both
    # triangles of W count, so λ = 2λ.
    problem = build(trace=0.0, entries=0.05, n=50)
    *_, last = solve(problem)
    there = last.parameters
    P = factors_of(there.W)
    assert np.triu(P @ P.T, 1) == pytest.approx(np.triu(there.W, 1), abs=1e-14)
    assert (there.W[np.triu_indices(7, 1)] < 0).any()
    rank = 7 * 6 // 2
    start = Parameters(np.hstack([P, np.zeros((7, rank - P.shape[1]))]), there.w, there.intercept)
    machine = build_problem(
        problem.design, problem.y, regularizer="omega_ti", rank=rank, lambda_w=0.02, lambda_sparse=0.1
    )
    assert machine.objective(start) == pytest.approx(last.objective, rel=1e-12)
    end = list(iterate(machine, "pcd", Budget(epochs=500, tol=1e-10), start=start))[-1]
    assert end.objective <= last.objective * (1 + 1e-12)
    assert end.objective == pytest.approx(last.objective, rel=1e-6)
    assert end.used_interactions == last.used_interactions


def test_slqr_is_never_above_the_ti_machine_with_the_same_strengths():
    problem = build(trace=0.05, entries=0.05, n=50)
    best = solve(problem)[-1].objective
    machine = build_problem(
        problem.design,
        problem.y,
        regularizer="ti",
        rank=7,
        lambda_w=0.02,
        lambda_p=0.05,
        lambda_sparse=0.05,
    )
    rng = np.random.default_rng(0)
    ends = [list(iterate(machine, "pcd", Budget(epochs=300), init_scale=0.3, rng=rng))[-1] for _ in range(3)]
    for end in ends:
        P = end.parameters.P
        same = Parameters.of_weights(P @ P.T, end.parameters.w, end.parameters.intercept)
        assert best <= problem.objective(same) * (1 + 1e-9) <= end.objective * (1 + 1e-8)


@pytest.mark.parametrize(
    "loss", [*(x for x in LOSSES.values() if x.convex), Huber(0.7), QuantileHuber(0.9, 0.4)], ids=repr
)
def test_conjugates_meet_fenchel_and_young(loss):
    rng = np.random.default_rng(6)
    f, y = 3 * rng.normal(size=500), np.sign(rng.normal(size=500))
    slope = loss.derivative(f, y)
    value, conjugate = loss.value(f, y), loss.conjugate(slope, y)
    assert value + conjugate == pytest.approx(slope * f, abs=1e-12)
    other = conjugate + loss.value(f[::-1].copy(), y)
    assert (other >= slope * f[::-1] - 1e-12).all()
    if loss.name != "squared":
        assert np.isinf(loss.conjugate(50.0 * y, y)).all()


def test_bad_input_is_a_sentence(monkeypatch):
    with pytest.raises(ValueError, match="no W"):
        solve(build(), start=Parameters(np.zeros((7, 0)), np.zeros(7), 0.0))
    with pytest.raises(ValueError, match=r"W of shape \(3, 3\)"):
        solve(build(), start=Parameters(np.zeros((7, 0)), np.zeros(7), 0.0, W=np.zeros((3, 3))))
    with pytest.raises(ValueError, match="hold P, not W"):
        QR.predict(Design(np.eye(3)), Parameters(np.zeros((3, 1)), np.zeros(3), 0.0))
    monkeypatch.setattr("fmviz.engine.models.quadratic.available_bytes", lambda: 8e9)
    wide = sp.csr_array((np.ones(2), ([0, 1], [0, 199_999])), shape=(2, 200_000))
    with pytest.raises(ValueError, match=r"needs 16 matrices of .*5.12 TB, and 8 GB are free"):
        build_problem(wide, [1.0, -1.0], model="qr", regularizer="l1")
    assert memory.available_bytes() > 0


def test_metrics_take_the_parameters_of_either_model():
    W = np.zeros((4, 4))
    W[0, 1] = W[1, 0] = 2.0
    W[2, 3] = W[3, 2] = -1.0
    found = Parameters.of_weights(W + np.diag([9.0] * 4))
    assert (interaction_weights(found) == W).all()
    assert estimation_error(W, found) == 0.0
    assert support_f1(W, found) == 1.0
    assert support_recovered(W, found)
    P = factors_of(W)
    for machine in (P, Parameters(P, np.zeros(4), 0.0)):
        assert estimation_error(W, machine) == pytest.approx(0.0, abs=1e-15)
        assert support_recovered(W, machine)
        assert interaction_weights(machine) == pytest.approx(W)
    with pytest.raises(ValueError, match="learned W has shape"):
        support_f1(W, Parameters.of_weights(np.eye(3)))
    first = GivenPairs.of(found.W).ranked(1)
    assert (first.i.tolist(), first.j.tolist(), first.weight.tolist()) == ([0], [1], [2.0])


def test_the_strongest_of_many_pairs_are_the_first_of_all():
    rng = np.random.default_rng(0)
    W = symmetric(rng, 30).round(0)  # with ties
    whole = GivenPairs.of(W).ranked()
    assert whole.weight.size == whole.total == np.count_nonzero(np.triu(W, 1))
    for top in (1, 7, 100, 1000):
        few = GivenPairs.of(W).ranked(top)
        for name in ("i", "j", "weight"):
            assert getattr(few, name).tolist() == getattr(whole, name)[:top].tolist()
    assert GivenPairs.of(np.eye(3)).ranked(5).weight.size == 0


def test_edges():
    one = build_problem([[1.0], [2.0]], [1.0, 2.0], model="qr", regularizer="l1", lambda_sparse=0.1)
    assert solve(one)[-1].objective < 1e-8
    zero = build_problem(np.zeros((3, 2)), [1.0, 2.0, 3.0], model="qr", regularizer="l1", lambda_p=0.1)
    last = solve(zero)[-1]
    assert last.parameters.intercept == pytest.approx(2.0)
    assert last.certificate < 1e-10
