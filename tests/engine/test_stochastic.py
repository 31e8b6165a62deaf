"""The stochastic solvers: epochs against a slow oracle, sparse steps against dense ones, divergence."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import SMOOTH, build_problem, iterate, make_solver
from oracles import slow_batch
from oracles import slow_stochastic as slow

import fmviz
from fmviz.engine.drive import Budget
from fmviz.engine.losses import LOSSES
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.snapshot import Reason
from fmviz.engine.solvers import SOLVERS
from fmviz.engine.solvers.stochastic.psgd import SCHEDULES, batch_size, step_sizes

STOCHASTIC = ("sgd", "psgd", "mb_psgd", "katyusha", "mb_katyusha")
READINGS = [(name, {}) for name in PENALTIES] + [("ti", {"axis": "rows"})]
CASES = [
    (regularizer, params, solver, "squared", storage)
    for regularizer, params in READINGS
    for solver in STOCHASTIC
    if fmviz.why_not(regularizer, solver, regularizer_params=params) is None
    for storage in (("dense", "sparse", "binary") if solver in ("sgd", "psgd") else ("sparse",))
]
CASES += [
    (regularizer, {}, solver, loss, "sparse")
    for loss in SMOOTH
    if loss != "squared"
    for regularizer, solver in (
        ("l2", "sgd"),
        ("l1", "psgd"),
        ("l21", "psgd"),
        ("ti", "psgd"),
        ("cs", "psgd"),
        ("l1", "mb_psgd"),
        ("ti", "katyusha"),
    )
]


def data(storage: str, loss: str, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(14, 5))
    if storage != "dense":
        X *= rng.random(X.shape) < 0.5
    if storage == "binary":
        X = (X != 0).astype(float)
    X[:, 2] = 0.0
    X[5] = 0.0
    y = rng.normal(size=14)
    return X, np.sign(y) if LOSSES[loss].task == "binary" else y


def begin(linear: bool, bias: bool) -> Parameters:
    rng = np.random.default_rng(1)
    P = rng.normal(size=(5, 3)) * 0.6
    P[1] = 0.0
    P[3, 1] = 0.0
    return Parameters(P, rng.normal(size=5) * 0.2 * linear, 0.3 * bias)


def expected(problem, X, y, solver, start, orders, more, weights):
    """Run the oracle for as many epochs as there are orders."""
    name = "ti_rows" if problem.penalty.settings.get("axis") == "rows" else problem.penalty.name
    settings = {
        "name": name,
        "loss": problem.loss.name,
        "lam_w": problem.lambda_w,
        "lam_p": problem.lambda_p,
        "lam": problem.lambda_sparse,
        "linear": problem.fit_linear,
        "bias": problem.fit_intercept,
        "weights": weights,
        "batch": batch_size(problem, 0) if solver.startswith("mb_") else 1,
        **more,
    }
    P, w, b = start.P, start.w, start.intercept
    if "katyusha" in solver:
        return slow.katyusha(X, y, w, P, b, orders, **settings)
    steps = -(-y.size // settings["batch"])
    for i, order in enumerate(orders):
        explicit = solver == "sgd"
        P, w, b = slow.psgd_epoch(X, y, w, P, b, order, explicit=explicit, first=i * steps, **settings)
    return P, w, b


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("regularizer", "params", "solver", "loss", "storage"),
    CASES,
    ids=["-".join([r, *p.values(), s, lo, st]) for r, p, s, lo, st in CASES],
)
def test_epochs_equal_the_oracle(regularizer, params, solver, loss, storage):
    X, y = data(storage, loss)
    schedules = iter(SCHEDULES)
    for linear, bias, lam, lam_p, weighted in (
        (True, True, 0.05, 0.02, False),
        (False, False, 0.3, 0.0, True),
        (True, False, 0.0, 0.1, False),
        (False, True, 0.1, 0.02, True),
    ):
        weights = np.linspace(0.0, 2.0, y.size) if weighted else None
        start = begin(linear, bias)
        problem = build_problem(
            X if storage == "dense" else sp.coo_array(X),
            y,
            loss=loss,
            regularizer=regularizer,
            rank=3,
            lambda_w=0.04,
            lambda_p=lam_p,
            lambda_sparse=lam,
            fit_linear=linear,
            fit_intercept=bias,
            regularizer_params=params,
            sample_weight=weights,
        )
        more = (
            {"eta0": 0.2, "tau": 0.3} if "katyusha" in solver else {"eta0": 0.2, "schedule": next(schedules)}
        )
        rng = np.random.default_rng(4)
        draw = np.random.default_rng(4)
        n = y.size
        orders = [draw.integers(0, n, n) if "katyusha" in solver else draw.permutation(n) for _ in range(2)]
        method = make_solver(solver, problem, monotone=False, **more)
        method.start(start, rng)
        method.epoch()
        change = method.epoch()
        found = method.parameters()
        P, w, b = expected(problem, X, y, solver, start, orders, more, weights)
        assert pytest.approx(P, abs=1e-11) == found.P
        assert found.w == pytest.approx(w, abs=1e-11)
        assert found.intercept == pytest.approx(b, abs=1e-11)
        assert ((np.abs(found.P) > 1e-13) == (np.abs(P) > 1e-13)).all()
        assert 0 <= change < np.inf


def random_problem(rng, regularizer: str, trial: int):
    """A small sparse problem; the trials walk through the odd cases."""
    d = 1 if trial % 20 == 0 else int(rng.integers(1, 30))
    k = 1 if trial % 7 == 0 else int(rng.integers(1, 6))
    n = int(rng.integers(1, 60))
    dense = 0.5 * rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.uniform(0.05, 0.5))
    if trial % 4 == 1:
        dense = (dense != 0).astype(float)
    if trial % 3 == 0:
        dense[:, rng.random(d) < 0.4] = 0.0
    X = sp.coo_array(dense)
    if trial % 5 == 0 and X.nnz:
        # Features that repeat within a sample: their values add up.
        X = sp.coo_array((np.tile(X.data, 2), tuple(np.tile(c, 2) for c in X.coords)), shape=X.shape)
    P = rng.normal(size=(d, k))
    if trial % 6 == 0:
        P = np.round(P * 2) / 2
    if trial % 6 == 1:
        P = np.sign(P)
    if trial % 6 == 2:
        P[rng.random(d) < 0.5] = 0.0
    # Larger steps diverge now and then, and then rounding errors grow as fast as all else.
    eta0 = 0.1 / max(1.0, float(np.square(X.toarray()).sum(axis=1).max())) ** 2
    strengths = (10.0 ** rng.uniform(-6, 0), 10.0 ** rng.uniform(-3, 0), 1e-9, 10.0 ** rng.uniform(0, 3), 0.0)
    strength = float(rng.choice(strengths, p=(0.4, 0.3, 0.1, 0.1, 0.1))) * 0.1 / eta0
    if regularizer.startswith("omega"):
        # Not convex: a step of strength λ drives entries apart by 1/(1 − λ), rounding errors of ties too.
        strength = min(strength, 0.05 / eta0)
    problem = build_problem(
        X,
        rng.normal(size=n),
        regularizer=regularizer,
        rank=k,
        lambda_w=float(rng.choice([0.0, 0.1])),
        lambda_p=float(rng.choice([0.0, 1e-3, 1.0])),
        lambda_sparse=strength,
        sample_weight=rng.random(n) + 0.1 if trial % 8 == 0 else None,
    )
    return eta0, problem, Parameters(P * rng.choice([0.01, 0.1, 0.3]), rng.normal(size=d) * 0.1, 0.1)


# The others compile kernels of their own.
@pytest.mark.parametrize(
    ("regularizer", "monotone"),
    [
        pytest.param(*case, marks=() if case == ("ti", True) else pytest.mark.slow)
        for case in product(("l2", "l1", "l21", "ti", "cs", "omega_ti", "omega_cs"), (False, True))
    ],
)
def test_exact_sparse_steps_equal_the_dense_operator(regularizer, monotone):
    rng = np.random.default_rng(7)
    alive = dead = 0
    for trial in range(200):
        eta0, problem, start = random_problem(rng, regularizer, trial)
        schedule = SCHEDULES[trial % 4]
        methods = []
        for operator in ("sparse", "dense"):
            settings = {"operator": operator, "eta0": eta0, "schedule": schedule, "monotone": monotone}
            method = make_solver("psgd", problem, **settings)
            method.start(start, np.random.default_rng(trial))
            methods.append(method)
        for _ in range(3):
            for method in methods:
                assert np.isfinite(method.epoch())
            one, two = (method.parameters() for method in methods)
            assert np.abs(two.P).max() < 100
            assert np.abs(one.P - two.P).max() < 1e-9
            assert np.abs(one.w - two.w).max() < 1e-9
            assert abs(one.intercept - two.intercept) < 1e-9
            assert ((np.abs(one.P) > 1e-12) == (np.abs(two.P) > 1e-12)).all()
        alive += np.count_nonzero(one.P)
        dead += np.count_nonzero(start.P) - np.count_nonzero(one.P)
    assert alive > 100
    assert dead > 100 or regularizer == "l2"


@pytest.mark.slow
@pytest.mark.parametrize("regularizer", ["ti", "cs"])
def test_many_steps_keep_their_digits(regularizer):
    # Long epochs, with all that makes digits scarce: decay, offsets that grow, lone survivors.
    rng = np.random.default_rng(2)
    for lam, lam_p, scale in ((0.5, 0.5, 1.0), (5.0, 0.0, 1.0), (1e-3, 5.0, 1e-3), (1e-2, 0.0, 10.0)):
        X = sp.random_array((4000, 40), density=0.04, rng=rng)
        problem = build_problem(
            X, rng.normal(size=4000), regularizer=regularizer, rank=2, lambda_p=lam_p, lambda_sparse=lam
        )
        start = problem.start(scale, rng)
        ends = []
        for operator in ("sparse", "dense"):
            method = make_solver(
                "psgd", problem, operator=operator, eta0=0.1, schedule="constant", monotone=False
            )
            method.start(start, np.random.default_rng(0))
            method.epoch()
            ends.append(method.parameters())
        assert np.abs(ends[0].P - ends[1].P).max() < 1e-12 * scale
        # Eq. 30 never kills the last entry, and rounding must not either.
        assert ends[0].P.any() == ends[1].P.any()


def test_the_path_follows_the_data_and_can_be_forced():
    def path(regularizer, X, params=None, **settings):
        problem = build_problem(
            X, [1.0, 2.0], regularizer=regularizer, lambda_sparse=2.0, regularizer_params=params
        )
        return make_solver("psgd", problem, **settings).settings["operator"]

    dense = np.eye(2)
    sparse = sp.csr_array(dense)
    assert path("ti", dense) == "dense"
    assert path("ti", sparse) == "sparse"
    assert path("ti", dense, operator="sparse") == "sparse"
    assert path("ti", sparse, operator="dense") == "dense"
    assert path("ti", sparse, {"axis": "rows"}) == "dense"
    assert path("omega_ti", sparse) == "sparse"
    assert path("omega_ti", sparse, eta0=0.5) == "dense"
    with pytest.raises(ValueError, match="pace of its own"):
        path("ti", sparse, {"axis": "rows"}, operator="sparse")
    with pytest.raises(ValueError, match="one entry or row only"):
        path("omega_cs", sparse, operator="sparse", eta0=0.5)


def test_step_sizes():
    for schedule in SCHEDULES:
        for lam in (0.0, 0.3):
            etas = step_sizes(schedule, 0.5, 0.7, lam, 3, 5)
            assert etas == pytest.approx([slow.eta(schedule, 0.5, 0.7, lam, t) for t in range(3, 8)])
    assert step_sizes("optimal", 0.5, 0.7, 0.3, 0, 1)[0] == 0.5
    assert step_sizes("optimal", 0.5, 0.7, 0.0, 9, 1)[0] == 0.5


def test_automatic_batches():
    problem = build_problem(
        sp.random_array((60, 30), density=0.1, rng=np.random.default_rng(0)), np.zeros(60)
    )
    assert batch_size(problem, 0) == 10
    assert batch_size(problem, 7) == 7
    assert batch_size(problem, 700) == 60
    assert batch_size(build_problem(np.ones((60, 30)), np.zeros(60)), 0) == 1


def test_sgd_survives_a_decay_that_changes_sign():
    # 2ηλ = 1 wipes everything out, 2ηλ > 1 flips all signs: as Algorithm 5 says, without division by 0.
    X, y = data("sparse", "squared")
    for lam_p, lam_w in ((2.5, 2.5), (4.0, 5.5)):
        problem = build_problem(sp.csr_array(X), y, regularizer="l2", rank=3, lambda_p=lam_p, lambda_w=lam_w)
        method = make_solver("sgd", problem, eta0=0.2, schedule="constant", monotone=False)
        start = begin(True, True)
        method.start(start, np.random.default_rng(4))
        method.epoch()
        order = np.random.default_rng(4).permutation(y.size)
        more = {"eta0": 0.2, "schedule": "constant"}
        P, w, b = expected(problem, X, y, "sgd", start, [order], more, None)
        assert pytest.approx(P, abs=1e-11) == method.parameters().P
        assert method.parameters().w == pytest.approx(w, abs=1e-11)
        assert method.parameters().intercept == pytest.approx(b, abs=1e-11)


@pytest.mark.sample(1)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("solver", STOCHASTIC)
def test_steps_that_are_too_long(solver, monotone):
    # Without the safeguard the run ends, and keeps its last finite state; with it, such epochs are undone.
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 6), density=0.8, rng=rng) * 3
    for regularizer in ("l2", "ti", "cs", "l21"):
        if fmviz.why_not(regularizer, solver) is not None:
            continue
        problem = build_problem(X, rng.normal(size=200), regularizer=regularizer, rank=3, lambda_sparse=1e-3)
        settings = {"eta0": 5.0, "monotone": monotone, "init_scale": 0.5, "rng": np.random.default_rng(0)}
        snapshots = list(iterate(problem, solver, Budget(50, tol=0.0), **settings))
        last = snapshots[-1]
        assert np.isfinite(last.parameters.P).all()
        assert np.isfinite(last.objective)
        if monotone:
            assert last.status.reason is Reason.EPOCHS
            assert last.objective < 0.5 * snapshots[0].objective
        else:
            assert last.status.reason is Reason.DIVERGED
            assert "Lower eta0" in last.status.message
            assert "monotone = True" in last.status.message


@pytest.mark.sample(2)
@pytest.mark.parametrize("solver", STOCHASTIC)
def test_a_start_without_a_finite_gradient_diverges(solver):
    # No step helps there, not even the one that stands in for an epoch.
    X, y = data("dense", "squared")
    problem = build_problem(X, y, regularizer="l2", rank=3, lambda_sparse=1e-3)
    large = Parameters(np.full((5, 3), 1e76), np.zeros(5), 0.0)
    last = list(iterate(problem, solver, Budget(5, tol=0.0), start=large))[-1]
    assert last.status.reason in (Reason.DIVERGED, Reason.EPOCHS)
    assert np.isfinite(last.objective)
    huge = Parameters(np.full((5, 3), 1e120), np.zeros(5), 0.0)
    last = list(iterate(problem, solver, Budget(5, tol=0.0), start=huge))[-1]
    assert last.status.reason is Reason.DIVERGED


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("regularizer", "solver", "loss", "eta0"),
    [
        ("l2", "sgd", "squared", 0.3),
        ("l1", "psgd", "logistic", 3.0),
        ("l21", "psgd", "squared", 1.0),
        ("ti", "psgd", "squared", 0.5),
        ("cs", "psgd", "squared", 0.5),
        ("omega_ti", "psgd", "huber", 1.0),
        ("cs", "mb_psgd", "squared", 1.5),
        ("ti", "katyusha", "squared", 0.5),
        ("l1", "mb_katyusha", "squared_hinge", 0.7),
    ],
)
def test_safeguarded_epochs_equal_the_oracle(regularizer, solver, loss, eta0):
    X, y = data("sparse", loss)
    ways = set()
    for operator in ("sparse", "dense") if solver == "psgd" else (None,):
        more = {"eta0": eta0} | ({"operator": operator} if operator else {})
        start = begin(True, True)
        weights = np.linspace(0.5, 1.5, y.size)
        strengths = {"lambda_w": 0.04, "lambda_p": 0.02, "lambda_sparse": 0.05}
        problem = build_problem(
            sp.coo_array(X), y, loss=loss, regularizer=regularizer, rank=3, sample_weight=weights, **strengths
        )
        same = {"loss": loss, "name": regularizer, "lam_w": 0.04, "lam_p": 0.02, "lam": 0.05}
        setting = slow_batch.Setting(X, y, weights=weights, **same)
        batch = batch_size(problem, 0) if solver.startswith("mb_") else 1
        count = -(-y.size // batch)
        draw = np.random.default_rng(4)
        n = y.size
        orders = [draw.integers(0, n, n) if "katyusha" in solver else draw.permutation(n) for _ in range(14)]
        if "katyusha" in solver:
            oracle = slow.Katyusha(X, y, weights=weights, batch=batch, eta0=eta0, **same)

            def advance(point, state, order, scale, oracle=oracle):
                return oracle.epoch(state, order, scale)[::-1]

            def again(point, state):
                return (point,) * 3
        else:

            def advance(point, first, order, scale, batch=batch, count=count, weights=weights, same=same):
                P, w, b = point
                P, w, b = slow.psgd_epoch(
                    X, y, w, P, b, order, weights=weights, batch=batch, explicit=solver == "sgd", eta0=eta0,
                    first=first, scale=scale, **same,
                )  # fmt: skip
                return [P, w, b], first + count

            def again(point, first):
                return first or 0

        with np.errstate(all="ignore"):
            path, stayed = slow.safeguarded(
                setting, [start.P, start.w, start.intercept], orders, advance, again
            )
        ways |= set(stayed)
        method = make_solver(solver, problem, **more)
        method.start(start, np.random.default_rng(4))
        for P, w, b in path:
            assert np.isfinite(method.epoch())
            found = method.parameters()
            assert pytest.approx(P, abs=1e-9) == found.P
            assert found.w == pytest.approx(w, abs=1e-9)
            assert found.intercept == pytest.approx(b, abs=1e-9)
    # Epochs of both kinds: kept, and undone.
    assert ways == {False, True}


@pytest.mark.parametrize("solver", STOCHASTIC)
def test_small_steps_lower_the_objective(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8)) * (rng.random((300, 8)) < 0.5)
    y = X[:, 0] * X[:, 1] + X[:, 2]
    regularizer = "l2" if solver == "sgd" else "ti"
    problem = build_problem(
        sp.csr_array(X), y, regularizer=regularizer, rank=3, lambda_p=1e-4, lambda_sparse=1e-3
    )
    run = list(iterate(problem, solver, Budget(60, tol=0.0), init_scale=0.3, rng=rng, eta0=0.03))
    assert run[-1].objective < 0.2 * run[0].objective


def test_equal_seeds_repeat_a_run():
    X, y = data("sparse", "squared")
    problem = build_problem(sp.csr_array(X), y, rank=3, lambda_sparse=0.01)
    for solver in ("psgd", "mb_psgd", "katyusha"):
        ends = [
            list(iterate(problem, solver, Budget(3), rng=np.random.default_rng(seed)))[-1].parameters.P
            for seed in (1, 1, 2)
        ]
        assert np.array_equal(ends[0], ends[1])
        assert not np.array_equal(ends[0], ends[2])


def test_reasons():
    assert fmviz.why_not("omega_ti", "katyusha").code == "not_convex"
    assert fmviz.why_not("ti", "sgd").code == "not_smooth"
    assert all(SOLVERS[name].monotone for name in STOCHASTIC)
    for name in PENALTIES:
        assert (fmviz.why_not(name, "psgd") is None) == PENALTIES[name].exact_prox
        assert (fmviz.why_not(name, "mb_psgd") is None) == PENALTIES[name].exact_prox
