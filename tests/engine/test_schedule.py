"""Strengths that change during a run: what the epochs then are, and that a run can be made again."""

from __future__ import annotations

import numpy as np
import pytest
from by_name import build_problem, iterate
from small_data import assert_resumable, same_iterates

from fmviz.choices import why_not
from fmviz.engine.fit import Budget
from fmviz.engine.problem import Problem
from fmviz.engine.schedule import Change, Schedule, changes_of
from fmviz.engine.snapshot import Reason
from fmviz.engine.solvers import SOLVERS

EPOCHS = 27
CHANGES = ((4, "lambda_sparse", 0.05), (15, "lambda_sparse", 0.002), (15, "lambda_p", 0.05))


def build(model="fm", regularizer="ti", **more) -> Problem:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6))
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] + X[:, 5] + 0.1 * rng.normal(size=40)
    strengths = {"lambda_w": 0.01, "lambda_p": 0.02, "lambda_sparse": 0.01}
    return build_problem(X, y, model=model, regularizer=regularizer, rank=3, **{**strengths, **more})


def run(problem, solver, schedule, **more):
    budget = Budget(EPOCHS, tol=0.0, certify_every=4)
    return list(
        iterate(
            problem,
            solver,
            budget,
            init_scale=0.3,
            rng=np.random.default_rng(0),
            schedule=schedule,
            **more,
        )
    )


CASES = [("fm", solver, "ti") for solver in SOLVERS if why_not("ti", solver) is None]
CASES += [("fm", "lbfgs", "l2"), ("fm", "cd", "l2"), ("qr", "incremental_pgd", "l1")]
CASES += [("convex_fm", "gcd", "l2"), ("hofm", "pcd", "omega_ti")]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("model", "solver", "regularizer"), CASES)
def test_changes_made_on_the_way_are_those_declared(model, solver, regularizer):
    traced = model == "convex_fm"
    problem = build(model, regularizer, **({"lambda_sparse": 0.0} if traced else {}))
    changes = ((4, "lambda_p", 0.05), (15, "lambda_p", 0.01)) if traced else CHANGES
    own = {"eta0": 0.01} if "sgd" in solver or "katyusha" in solver else {}
    budget, rng = Budget(EPOCHS, tol=0.0, certify_every=4), np.random.default_rng(0)
    # And from checkpoints before, between and after the changes.
    declared, kept = assert_resumable(
        problem, solver, budget, tried=EPOCHS, init_scale=0.3, schedule=Schedule(changes), **own
    )
    assert bool(kept) == bool(SOLVERS[solver].on(problem).memory)
    schedule, live = Schedule(), []
    for snapshot in iterate(problem, solver, budget, init_scale=0.3, rng=rng, schedule=schedule, **own):
        live.append(snapshot)
        schedule.add(c for c in changes if c[0] == snapshot.epoch)
    same_iterates(declared, live)
    assert declared[-1].epoch == EPOCHS
    plain, first = run(problem, solver, None, **own), changes[0][0]
    same_iterates(declared[: first + 1], plain[: first + 1])
    assert declared[first + 1].objective != plain[first + 1].objective


def test_an_epoch_belongs_to_the_strengths_under_which_it_was_made():
    problem = build()
    result = run(problem, "pcd", Schedule(CHANGES))
    for snapshot, strength in ((result[4], 0.01), (result[5], 0.05), (result[15], 0.05), (result[16], 0.002)):
        omega = problem.penalty.value(snapshot.parameters.P)
        assert snapshot.penalty_sparse == pytest.approx(strength * omega)
        assert snapshot.objective == pytest.approx(
            problem.at(lambda_sparse=strength, lambda_p=0.02 if snapshot.epoch <= 15 else 0.05).objective(
                snapshot.parameters
            )
        )


def test_a_run_does_not_converge_before_its_last_change():
    problem, budget = build(), Budget(2000, tol=1e-3)
    rng = np.random.default_rng
    *_, plain = iterate(problem, "pcd", budget, rng=rng(0), init_scale=0.3)
    assert plain.status.reason is Reason.CONVERGED
    late = plain.epoch + 30
    *_, end = iterate(
        problem, "pcd", budget, rng=rng(0), init_scale=0.3, schedule=Schedule([(late, "lambda_sparse", 0.1)])
    )
    assert end.status.reason is Reason.CONVERGED
    assert end.epoch > late
    # What never comes delays nothing.
    *_, end = iterate(
        problem, "pcd", budget, rng=rng(0), init_scale=0.3, schedule=Schedule([(2000, "lambda_sparse", 0.1)])
    )
    assert end.epoch == plain.epoch


def test_changes_are_checked_and_put_in_order():
    assert changes_of([[9, "lambda_p", 1], (3, "lambda_w", 0.5), (9, "lambda_p", 2.0)]) == (
        Change(3, "lambda_w", 0.5),
        Change(9, "lambda_p", 2.0),
    )
    for wrong, words in (
        ((-1, "lambda_p", 1.0), "epoch of a change"),
        ((1, "rank", 1.0), "is not known"),
        ((1, "lambda_p", -1.0), "out of range"),
        ((1, "lambda_p"), "is not a change of a strength"),
        (7, "is not a change of a strength"),
    ):
        with pytest.raises(ValueError, match=words):
            changes_of([wrong])
