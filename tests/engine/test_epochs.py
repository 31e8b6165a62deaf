"""Epochs of every solver of factorization machines equal slow, obvious ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import SMOOTH, build_problem, make_solver
from oracles import slow_batch, slow_fm
from oracles import slow_stochastic as slow
from pairwise import sampled
from small_data import STORAGES, agree, pairs, stored, table, target

from fmviz.choices import why_not
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES, get_penalty
from fmviz.engine.solvers.stochastic.psgd import SCHEDULES, batch_size, step_sizes

READINGS = [(r, {}) for r in PENALTIES] + [("ti", {"axis": "rows"})]
SWEEPS = ("cd", "pcd", "pbcd", "pbcd_ls")
BATCH = ("pgd", "apgd", "nmapgd", "subgd", "lbfgs")
STOCHASTIC = ("sgd", "psgd", "mb_psgd", "katyusha", "mb_katyusha")
# Linear weights, bias, λ, λ_p, weighted rows.
VARIANTS = (
    (True, True, 0.05, 0.02, False),
    (False, False, 0.3, 0.0, False),
    (True, False, 0.0, 0.1, False),
    (False, True, 0.1, 0.02, True),
)


def cases(*solvers: str) -> list:
    """Return the penalties that each solver takes."""
    return [
        (name, params, solver)
        for (name, params), solver in product(READINGS, solvers)
        if why_not(get_penalty(name, params), solver) is None
    ]


def case_name(value: object) -> str | None:
    return "".join(value.values()) if isinstance(value, dict) else None


def data(storage: str, loss: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a table with a column of zeros, and without dense storage also a row, and y."""
    X = pairs() if storage == "pairs" else table(storage, share=0.5)
    if storage != "pairs":
        X[:, 2] = 0.0
        X[5] *= storage == "dense"
    return X, target(np.random.default_rng(7).normal(size=len(X)), loss)


def begin(d: int = 5, linear: bool = True, bias: bool = True) -> Parameters:
    """Return a start with a row of zeros, two dead components, and one with a single live entry."""
    rng = np.random.default_rng(1)
    P = rng.normal(size=(d, 5)) * 0.6
    P[1] = 0.0
    P[3, 1] = 0.0
    P[:, [0, 3]] = 0.0
    P[:, 4] *= np.arange(d) == 4 + (d > 5) * 2
    return Parameters(P, rng.normal(size=d) * 0.2 * linear, 0.3 * bias)


def oracle(problem, X, y, weights, solver, start, epochs, order="columns", **own):
    """Return P, w and the bias after each epoch."""
    same = {
        "loss": problem.loss.name,
        "penalty": problem.penalty,
        "weights": weights,
        "lam_p": problem.lambda_p,
        "lam": problem.lambda_sparse,
    }
    fitted = {"linear": problem.fit_linear, "bias": problem.fit_intercept, "lam_w": problem.lambda_w}
    P, w, b = start.P, start.w, start.intercept
    if solver in BATCH:
        slow_problem = slow_batch.Setting(X, y, **same, **fitted)
        solve = getattr(slow_batch, solver)
        theta = [P, w, np.array([b])]
        return [solve(slow_problem, theta, number, **own) for number in range(1, 1 + epochs)]
    n, draw, path = y.size, np.random.default_rng(4), []
    if solver in STOCHASTIC:
        own |= {"batch": batch_size(problem, 0) if solver.startswith("mb_") else 1}
        orders = [
            draw.integers(0, n, n) if "katyusha" in solver else draw.permutation(n) for _ in range(epochs)
        ]
    if "katyusha" in solver:
        return [slow.katyusha(X, y, w, P, b, orders[: i + 1], **same, **fitted, **own) for i in range(epochs)]
    for i in range(epochs):
        if solver in STOCHASTIC:
            own |= {"explicit": solver == "sgd", "first": i * -(-n // own["batch"])}
            P, w, b = slow.psgd_epoch(X, y, w, P, b, orders[i], **same, **fitted, **own)
        else:
            w, b = slow_fm.linear_epoch(X, y, w, P, b, loss=problem.loss.name, weights=weights, **fitted)
            if solver in ("cd", "pcd"):
                P = slow_fm.pcd_epoch(X, y, w, P, b, by_features=order == "features", **same)
            else:
                search = (0.01, 0.5) if solver == "pbcd_ls" else None
                P = slow_fm.pbcd_epoch(X, y, w, P, b, search=search, **same)
        path.append((P, w, b))
    return path


def compare(regularizer, params, solver, loss, storage, epochs, **own):
    """Run some epochs of every variant beside the oracle's."""
    X, y = data(storage, loss)
    for at, (linear, bias, lam, lam_p, weighted) in enumerate(VARIANTS):
        if regularizer.startswith("omega") and lam_p == 0.0:
            # A lone live entry is then free of loss and penalty: any value is a minimum.
            lam_p = 0.01
        # Compiling takes most of the time: few sweeps meet both weights and none.
        if weighted and solver in SWEEPS and (storage != "dense" or loss not in ("squared", "logistic")):
            continue
        weights = np.linspace(0.0, 2.0, y.size) if weighted else None
        problem = build_problem(
            sp.coo_array(X) if storage == "sparse" else stored(X, storage),
            y,
            loss=loss,
            regularizer=regularizer,
            rank=5,
            lambda_w=0.04,
            lambda_p=lam_p,
            lambda_sparse=lam,
            fit_linear=linear,
            fit_intercept=bias,
            regularizer_params=params,
            sample_weight=weights,
        )
        assert problem.design.layout == storage
        start = begin(X.shape[1], linear, bias)
        steps = {"schedule": SCHEDULES[at]} if solver in ("sgd", "psgd", "mb_psgd") else {}
        free = {"monotone": False} if solver in STOCHASTIC else {}
        method = make_solver(solver, problem, **own, **steps, **free)
        method.start(start, np.random.default_rng(4))
        for P, w, b in oracle(problem, X, y, weights, solver, start, epochs, **own, **steps):
            assert np.isfinite(method.epoch())
            result = method.parameters()
            agree(result, P, w, b, abs=1e-11 if solver not in BATCH else 1e-10, in_P=1e-10)
            if solver not in BATCH:
                # What the threshold kills is exactly 0. What only the quadratic part of Ω draws to 0, the
                # last live entry of a column, may be off by a rounding error on either side.
                assert ((np.abs(result.P) > 1e-13) == (np.abs(P) > 1e-13)).all()
            if solver in SWEEPS and regularizer in ("l1", "l21") and (lam or storage != "pairs"):
                assert ((result.P != 0) == (P != 0)).all()
        method.close()


SWEPT = [
    (*case, loss, storage, order)
    for case, loss, order in product(cases(*SWEEPS), SMOOTH, ("columns", "features"))
    for storage in (*STORAGES, "pairs")
    # By features, every loss and storage meets one regularizer.
    if (order == "columns" or (case[2] in ("cd", "pcd") and (case[0] == "ti" or storage == "dense")))
    and (storage in ("dense", "pairs") or loss == "squared" or (storage, loss) == ("sparse", "logistic"))
    and (
        loss in ("squared", "logistic") or case[::2] in (("ti", "pcd"), ("cs", "pbcd")) or storage == "dense"
    )
    and (
        storage != "pairs"
        or (order == "columns" and (case[2] != "pbcd_ls" or (case[0] == "cs" and loss == "squared")))
    )
]


COLUMNS = ("regularizer", "params", "solver", "loss", "storage")


@pytest.mark.parametrize(
    (*COLUMNS, "order"),
    # Of entries and of rows; those of a dense table row by row are compared in test_sweeping.
    sampled(
        *(
            (
                [case for case in SWEPT if case[4] == storage and (case[2] in ("cd", "pcd")) == entries],
                (storage, entries) not in (("dense", False), ("binary", True)),
            )
            for storage, entries in product((*STORAGES, "pairs"), (True, False))
        )
    ),
    ids=case_name,
)
def test_sweeps_equal_the_oracle(regularizer, params, solver, loss, storage, order):
    own = {"order": order} if solver in ("cd", "pcd") else {}
    compare(regularizer, params, solver, loss, storage, 3 if storage == "pairs" else 1, **own)


@pytest.mark.pairwise
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize(("regularizer", "params", "solver"), cases(*BATCH), ids=case_name)
def test_steps_of_all_parameters_at_once_equal_the_oracle(regularizer, params, solver, loss):
    storages = {"squared": STORAGES, "logistic": STORAGES[:2]}
    for storage in storages.get(loss, ("dense",)):
        compare(regularizer, params, solver, loss, storage, 3)


DRAWN = [
    (*case, "squared", storage)
    for case in cases(*STOCHASTIC)
    for storage in (STORAGES if case[2] in ("sgd", "psgd") else ("sparse",))
]
DRAWN += [
    (name, {}, solver, loss, "sparse")
    for loss in SMOOTH
    if loss != "squared"
    for name, solver in (
        *(("l2", "sgd"), ("l1", "psgd"), ("l21", "psgd"), ("ti", "psgd"), ("cs", "psgd")),
        *(("l1", "mb_psgd"), ("ti", "katyusha")),
    )
]


@pytest.mark.parametrize(
    COLUMNS,
    # Of late steps of rows and of entries, and of averages over epochs.
    sampled(
        ([case for case in DRAWN if case[0] == "l21" and case[2] == "psgd"], 1),
        ([case for case in DRAWN if case[0] != "l21" and "katyusha" not in case[2]], 1),
        ([case for case in DRAWN if "katyusha" in case[2]], 1),
    )
    + [
        pytest.param(*case, marks=pytest.mark.slow)
        for case in DRAWN
        if case[0] == "l21" and case[2] == "mb_psgd"
    ],
    ids=case_name,
)
def test_stochastic_epochs_equal_the_oracle(regularizer, params, solver, loss, storage):
    own = {"eta0": 0.1} | ({"tau": 0.3} if "katyusha" in solver else {})
    compare(regularizer, params, solver, loss, storage, 2, **own)


def test_step_sizes():
    for schedule, lam in product(SCHEDULES, (0.0, 0.3)):
        etas = step_sizes(schedule, 0.5, 0.7, lam, 3, 5)
        assert etas == pytest.approx([slow.eta(schedule, 0.5, 0.7, lam, t) for t in range(3, 8)])
    assert [step_sizes("optimal", 0.5, 0.7, lam, t, 1)[0] for lam, t in ((0.3, 0), (0.0, 9))] == [0.5, 0.5]


@pytest.mark.sample(2)
@pytest.mark.parametrize("solver", ["pcd", "pbcd", "pbcd_ls"])
@pytest.mark.parametrize("regularizer", ["omega_ti", "omega_cs"])
def test_a_lone_entry_without_curvature_stays_put(regularizer, solver):
    # Nothing but rounding errors is left of its slope and its curvature: their ratio must not be a step.
    if why_not(regularizer, solver) is not None:
        return
    X, y = data("dense", "squared")
    problem = build_problem(X, y, regularizer=regularizer, rank=5, lambda_sparse=0.3)
    method = make_solver(solver, problem)
    method.start(begin(), np.random.default_rng(0))
    last = problem.objective(begin())
    for _ in range(60):
        method.epoch()
        objective = problem.objective(method.parameters())
        assert objective <= last + 1e-12
        assert np.abs(method.parameters().P).max() < 10.0
        last = objective


@pytest.mark.parametrize("scheme", ["function", "gradient"])
def test_restarts_equal_the_oracle(scheme):
    X, y = data("dense", "squared")
    problem = build_problem(X, y, regularizer="ti", rank=5, lambda_w=0.04, lambda_p=0.03, lambda_sparse=0.05)
    method = make_solver("apgd", problem, restart=scheme)
    method.start(begin(), np.random.default_rng(0))
    for P, w, b in oracle(problem, X, y, None, "apgd", begin(), 25, scheme=scheme):
        method.epoch()
        agree(method.parameters(), P, w, b, abs=1e-9)


@pytest.mark.parametrize(("lam_p", "lam_w"), [(2.5, 2.5), (4.0, 5.5)])
def test_sgd_survives_a_decay_that_changes_sign(lam_p, lam_w):
    # 2ηλ = 1 wipes everything out, 2ηλ > 1 flips all signs: as Algorithm 5 says, without division by 0.
    X, y = data("sparse", "squared")
    problem = build_problem(sp.csr_array(X), y, regularizer="l2", rank=5, lambda_p=lam_p, lambda_w=lam_w)
    more = {"eta0": 0.2, "schedule": "constant"}
    method = make_solver("sgd", problem, monotone=False, **more)
    method.start(begin(), np.random.default_rng(4))
    method.epoch()
    ((P, w, b),) = oracle(problem, X, y, None, "sgd", begin(), 1, **more)
    agree(method.parameters(), P, w, b, abs=1e-11)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("regularizer", "solver", "loss", "eta0"),
    [
        ("l2", "sgd", "squared", 0.3),
        ("l1", "psgd", "logistic", 3.0),
        ("l21", "psgd", "squared", 1.0),
        ("cs", "psgd", "squared", 0.5),
        ("ti", "psgd", "squared", 0.5),
        ("omega_ti", "psgd", "huber", 1.0),
        ("cs", "mb_psgd", "squared", 1.5),
        ("ti", "katyusha", "squared", 0.5),
        ("l1", "mb_katyusha", "squared_hinge", 0.7),
    ],
)
def test_safeguarded_epochs_equal_the_oracle(regularizer, solver, loss, eta0):
    X, y = data("sparse", loss)
    weights, n = np.linspace(0.5, 1.5, y.size), y.size
    strengths = {"lambda_w": 0.04, "lambda_p": 0.02, "lambda_sparse": 0.05, "rank": 5}
    problem = build_problem(
        sp.coo_array(X), y, loss=loss, regularizer=regularizer, sample_weight=weights, **strengths
    )
    same = {
        "loss": loss,
        "penalty": regularizer,
        "lam_w": 0.04,
        "lam_p": 0.02,
        "lam": 0.05,
        "weights": weights,
    }
    batch, draw = batch_size(problem, 0) if solver.startswith("mb_") else 1, np.random.default_rng(4)
    deal = (lambda: draw.integers(0, n, n)) if "katyusha" in solver else (lambda: draw.permutation(n))
    orders = [deal() for _ in range(14)]
    katyusha = slow.Katyusha(X, y, batch=batch, eta0=eta0, **same) if "katyusha" in solver else None

    def advance(point, state, order, scale):
        if katyusha is not None:
            return katyusha.epoch(state, order, scale)[::-1]
        P, w, b = point
        own = {"batch": batch, "explicit": solver == "sgd", "eta0": eta0, "first": state, "scale": scale}
        return [*slow.psgd_epoch(X, y, w, P, b, order, **own, **same)], state + -(-n // batch)

    def again(point, state):
        return (point,) * 3 if katyusha is not None else state or 0

    start, ways = begin(), set()
    at = [start.P, start.w, start.intercept]
    for operator in ("sparse", "dense") if solver == "psgd" else (None,):
        with np.errstate(all="ignore"):
            path, stayed = slow.safeguarded(slow_batch.Setting(X, y, **same), at, orders, advance, again)
        ways |= set(stayed)
        method = make_solver(solver, problem, eta0=eta0, **({"operator": operator} if operator else {}))
        method.start(start, np.random.default_rng(4))
        for P, w, b in path:
            assert np.isfinite(method.epoch())
            agree(method.parameters(), P, w, b, abs=1e-9)
    # Epochs of both kinds: kept, and undone.
    assert ways == {False, True}
