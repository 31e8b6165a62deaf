"""One epoch of every solver equals a slow, obvious one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import SMOOTH, build_problem, make_solver
from oracles import slow_fm

from fmviz.choices import why_not
from fmviz.engine.losses import LOSSES
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES

CASES = [
    (regularizer, params, solver, "")
    for regularizer, params in [(r, {}) for r in PENALTIES] + [("ti", {"axis": "rows"})]
    for solver in ("cd", "pcd", "pbcd", "pbcd_ls")  # the others: test_batch.py
    if why_not(regularizer, solver, regularizer_params=params) is None
]
CASES += [(*case[:3], "features") for case in CASES if case[2] in ("cd", "pcd")]
IDS = [f"{r}{''.join(p.values())}-{s}{o}" for r, p, s, o in CASES]


def data(storage: str, loss: str, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(14, 5))
    if storage != "dense":
        X *= rng.random(X.shape) < 0.5
    if storage == "binary":
        X = (X != 0).astype(float)
    X[:, 2] = 0.0  # a constant column
    y = rng.normal(size=14)
    if LOSSES[loss].task == "binary":
        y = np.sign(y)
    return X, y


def start(seed: int = 1) -> Parameters:
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(5, 3)) * 0.6
    P[1] = 0.0
    P[3, 1] = 0.0
    return Parameters(P, rng.normal(size=5) * 0.2, 0.3)


@pytest.mark.sample(2)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize(("regularizer", "params", "solver", "order"), CASES, ids=IDS)
def test_epoch_equals_the_oracle(regularizer, params, solver, order, loss):
    name = "ti_rows" if params else regularizer
    storages = {"squared": ("dense", "sparse", "binary"), "logistic": ("dense", "sparse")}
    # Compiling takes most of the time: by features, every loss and storage meets one regularizer.
    if order and regularizer != "ti":
        if loss not in ("squared", "logistic"):
            return
        storages = {}
    for storage in storages.get(loss, ("dense",)):
        X, y = data(storage, loss)
        for linear, bias, lam, lam_p, weighted in (
            (True, True, 0.05, 0.02, False),
            (False, False, 0.3, 0.0, False),
            (True, False, 0.0, 0.0, False),
            (False, True, 0.1, 0.02, True),
        ):
            if regularizer.startswith("omega") and lam_p == 0.0:
                # A lone live entry is then free of loss and penalty: any value is a minimum.
                lam_p = 0.01
            if weighted and (storage != "dense" or loss not in ("squared", "logistic")):
                continue
            weights = np.linspace(0.0, 2.0, y.size) if weighted else None
            begin = start()
            begin = Parameters(begin.P, begin.w if linear else 0 * begin.w, begin.intercept if bias else 0.0)
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
            assert problem.design.storage.name == storage
            method = make_solver(solver, problem, **({"order": order} if order else {}))
            method.start(begin, np.random.default_rng(0))
            method.epoch()
            found = method.parameters()

            w, b = slow_fm.linear_epoch(
                X,
                y,
                begin.w,
                begin.P,
                begin.intercept,
                loss=loss,
                lam_w=0.04,
                fit_linear=linear,
                fit_intercept=bias,
                weights=weights,
            )
            settings = {"loss": loss, "name": name, "lam_p": lam_p, "lam": lam, "weights": weights}
            if solver in ("cd", "pcd"):
                by_features = order == "features"
                P = slow_fm.pcd_epoch(X, y, w, begin.P, b, **settings, by_features=by_features)
            else:
                search = (0.01, 0.5) if solver == "pbcd_ls" else None
                P = slow_fm.pbcd_epoch(X, y, w, begin.P, b, **settings, search=search)
            assert found.w == pytest.approx(w, abs=1e-11)
            assert found.intercept == pytest.approx(b, abs=1e-11)
            assert pytest.approx(P, abs=1e-10) == found.P
            # What the threshold kills is exactly 0. What only the quadratic part of Ω draws to 0, the last
            # live entry of a column, may be off by a rounding error on either side.
            assert ((np.abs(found.P) > 1e-14) == (np.abs(P) > 1e-14)).all()
            if regularizer in ("l1", "l21"):
                assert ((found.P != 0) == (P != 0)).all()


@pytest.mark.sample(2)
@pytest.mark.parametrize("solver", ["pcd", "pbcd", "pbcd_ls"])
@pytest.mark.parametrize("regularizer", ["omega_ti", "omega_cs"])
def test_a_lone_entry_without_curvature_stays_put(regularizer, solver):
    # Nothing but rounding errors is left of its slope and its curvature: their ratio must not be a step.
    if why_not(regularizer, solver) is not None:
        return
    X, y = data("dense", "squared")
    problem = build_problem(X, y, regularizer=regularizer, rank=3, lambda_sparse=0.3)
    method = make_solver(solver, problem)
    method.start(start(), np.random.default_rng(0))
    last = problem.objective(start())
    for _ in range(60):
        method.epoch()
        objective = problem.objective(method.parameters())
        assert objective <= last + 1e-12
        assert np.abs(method.parameters().P).max() < 10.0
        last = objective
