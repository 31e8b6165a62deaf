from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from by_name import build_problem, iterate, make_solver

from fmviz.engine import fit
from fmviz.engine.fit import Budget
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Reason
from fmviz.engine.solvers import SOLVERS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 6))
Y = X[:, 0] * X[:, 1] + 0.1 * RNG.normal(size=50)


def build(**more) -> Problem:
    settings = {"rank": 3, "lambda_w": 0.01, "lambda_p": 0.01, "lambda_sparse": 0.01, **more}
    return build_problem(X, Y, **settings)


def run(problem=None, solver="auto", seed=0, **more):
    budget = more.pop("budget", Budget(epochs=200))
    return list(iterate(problem or build(), solver, budget, rng=np.random.default_rng(seed), **more))


def test_snapshots_are_recomputed_and_the_last_carries_the_status():
    problem = build()
    snapshots = run(problem)
    assert [s.epoch for s in snapshots] == list(range(len(snapshots)))
    assert all(s.status is None for s in snapshots[:-1])
    assert snapshots[-1].status.reason is Reason.CONVERGED
    assert snapshots[-1].status.message.startswith("Converged after")
    for s in snapshots:
        assert s.objective == pytest.approx(problem.objective(s.parameters), rel=1e-12)
        assert s.objective == pytest.approx(s.loss + s.penalty_w + s.penalty_p + s.penalty_sparse)
        assert set(s.record()) >= {"epoch", "seconds", "objective", "used_interactions", "certificate"}
    assert all(b.seconds >= a.seconds for a, b in itertools.pairwise(snapshots))


def test_the_start_is_shown_before_the_solver_is_made_ready(monkeypatch):
    ready = []
    monkeypatch.setattr(fit, "make_ready", lambda problem, method: ready.append(method.name))
    stream = iterate(build(), budget=Budget(epochs=2))
    assert next(stream).seconds == 0.0
    assert not ready
    assert next(stream).seconds > 0.0
    assert ready == ["pcd"]


def test_who_reads_the_end_alone_gets_no_more(monkeypatch):
    certified = []
    real = fit.certificates
    monkeypatch.setattr(fit, "certificates", lambda *args: certified.append(args) or real(*args))
    (last,) = run(budget=Budget(epochs=10, tol=0.0, report_every=None))
    assert last.epoch == 10
    assert len(certified) == 1
    assert last.certificate == run(budget=Budget(epochs=10, tol=0.0))[-1].certificate
    certified.clear()
    (only,) = run(budget=Budget(epochs=0, report_every=None))
    assert np.isfinite(only.certificate)
    assert len(certified) == 1
    (last,) = run(budget=Budget(epochs=10, tol=0.0, report_every=None, certify_every=None))
    assert np.isnan(last.certificate)
    assert len(certified) == 1


def test_a_start_that_overflows_is_the_last_finite_state_whoever_reads_it():
    for every in (1, None):
        *_, last = run(budget=Budget(epochs=3, report_every=every), init_scale=1e200)
        assert last.status.reason is Reason.DIVERGED
        assert last.epoch == 0


def test_budgets_and_stopping():
    assert run(budget=Budget(epochs=3, tol=0.0))[-1].status.reason is Reason.EPOCHS
    assert run(budget=Budget(epochs=0))[-1].epoch == 0
    late = run(budget=Budget(epochs=10**6, tol=0.0, seconds=0.02))[-1]
    assert late.status.reason is Reason.SECONDS
    assert "0.02 s" in late.status.message
    calls = iter(range(100))
    stopped = run(should_stop=lambda: next(calls) >= 5, budget=Budget(epochs=100, tol=0.0))
    assert stopped[-1].status.reason is Reason.STOPPED
    assert stopped[-1].epoch == 5
    sparse = run(budget=Budget(epochs=10, tol=0.0, report_every=4, certify_every=2))
    assert [s.epoch for s in sparse] == [0, 4, 8, 10]
    assert [bool(np.isnan(s.certificate)) for s in sparse] == [False, True, False, False]


def test_waiting_is_not_solver_time(monkeypatch):
    """A limit of seconds ends a run at the same epoch however much else the machine does."""
    real = SOLVERS["pcd"].epoch

    def slow(self):
        time.sleep(0.02)
        return real(self)

    monkeypatch.setattr(SOLVERS["pcd"], "epoch", slow)
    last = run(budget=Budget(epochs=20, tol=0.0, seconds=0.3))[-1]
    assert last.status.reason is Reason.EPOCHS
    assert last.seconds < 0.3


def test_incremental_predictions_do_not_drift(rng):
    problem = build(lambda_sparse=1e-4)

    method = make_solver("pcd", problem)
    method.start(problem.start(0.5, rng), rng)
    for _ in range(500):
        method.epoch()
    assert method._f + Y == pytest.approx(problem.predict(method.parameters()), abs=1e-11)


def test_starts_are_checked():
    for start, words in (
        (Parameters(np.zeros((5, 3)), np.zeros(6), 0.0), "P of shape"),
        (Parameters(np.zeros((6, 3)), np.zeros(2), 0.0), "w of shape"),
        (Parameters(np.full((6, 3), np.nan), np.zeros(6), 0.0), "NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            run(start=start)


def test_budget_rejects_nonsense():
    for settings, words in (({"epochs": -1}, "epochs"), ({"tol": -1.0}, "tol"), ({"seconds": -2}, "seconds")):
        with pytest.raises(ValueError, match=words):
            Budget(**settings)
