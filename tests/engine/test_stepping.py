"""The steps inside an epoch, made one at a time, lead where the compiled epoch leads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem, iterate, make_solver

from fmviz.choices import why_not
from fmviz.engine.checkpoint import remember
from fmviz.engine.drive import Budget
from fmviz.engine.epoch_trace import (
    HALVES,
    SWEEPS,
    replay,
    steps_of_epoch,
    why_no_steps,
)
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import PCD, PGD, PSGD, get_solver
from fmviz.engine.stopping import without_rounding

CASES = [
    (solver, regularizer, {})
    for solver in SWEEPS
    for regularizer in PENALTIES
    if why_not(regularizer, solver) is None
]
CASES += [("pcd", "ti", {"order": "features"}), ("pcd", "l1", {"order": "mixed"})]


def build(regularizer="ti", loss="squared", layout="dense", weighted=False, **more) -> Problem:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 5))
    if layout != "dense":
        X *= rng.random(X.shape) < 0.6
    if layout == "binary":
        X = (X != 0).astype(float)
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] + 0.1 * rng.normal(size=30)
    if loss != "squared":
        y = np.where(y > np.median(y), 1.0, -1.0)
    return build_problem(
        X if layout == "dense" else sp.csr_array(X),
        y,
        loss=loss,
        regularizer=regularizer,
        rank=3,
        sample_weight=rng.random(30) if weighted else None,
        **{"lambda_w": 0.01, "lambda_p": 0.02, "lambda_sparse": 0.0 if regularizer == "l2" else 0.02, **more},
    )


def epochs(problem, solver, count=6, **own):
    rng, budget = np.random.default_rng(0), Budget(count, tol=0.0)
    return [s.parameters for s in iterate(problem, solver, budget, init_scale=0.5, rng=rng, **own)]


def close(item: Parameters, other: Parameters) -> None:
    np.testing.assert_allclose(item.P, other.P, rtol=1e-10, atol=1e-12)
    # What is next to nothing may be a rounding error in either.
    assert np.array_equal(np.abs(item.P) > 1e-12, np.abs(other.P) > 1e-12)
    np.testing.assert_allclose(item.w, other.w, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(item.intercept, other.intercept, rtol=1e-10, atol=1e-12)


@pytest.mark.pairwise(1)
@pytest.mark.parametrize(("solver", "regularizer", "own"), CASES, ids=["-".join(map(str, c)) for c in CASES])
def test_all_steps_of_a_sweep_make_the_compiled_epoch(solver, regularizer, own):
    # Compiling takes most of the time: every layout meets one regularizer of entries and one of rows.
    more = ({"layout": "sparse"}, {"layout": "binary"}, {"loss": "logistic"}, {"weighted": True})
    for setting in ({}, *(more if regularizer in ("ti", "cs") and solver != "cd" and not own else ())):
        problem = build(regularizer, **setting)
        result = epochs(problem, solver, **own)
        for done, (before, after) in enumerate(itertools.pairwise(result)):
            steps = list(steps_of_epoch(problem, get_solver(solver, own), before, epochs=done))
            reached = replay(before, steps)
            # At its end a run drops the entries below the rounding of f.
            close(without_rounding(problem, reached) if after is result[-1] else reached, after)
            each = 15 if SWEEPS[solver] == "entry" else 5
            assert len(steps) == 1 + 5 + each
            assert len({(step.kind, step.j, step.s) for step in steps}) == len(steps)


def test_every_step_is_what_its_numbers_say():
    problem = build("ti", lambda_sparse=0.1)
    before = epochs(problem, "pcd", 2)[-1]
    for step in steps_of_epoch(problem, "pcd", before):
        if step.kind == "entry":
            u = step.bend * step.before[0] - step.slope[0]
            q = np.sign(u) * max(abs(u) - step.threshold[0], 0.0) / (step.bend + step.shrink)
            assert q == step.after[0]
            assert step.moved == (step.before[0] != step.after[0])
    rows = [s for s in steps_of_epoch(build("cs"), "pbcd", before) if s.kind == "row"]
    for step in rows:
        u = step.bend * step.before - step.slope
        factor = max(1 - step.threshold[0] / np.linalg.norm(u), 0.0)
        np.testing.assert_allclose(step.after, factor * u / (step.bend + step.shrink))
        assert step.by_norm


@pytest.mark.parametrize("regularizer", ["l1", "ti", "cs"])
@pytest.mark.parametrize("solver", HALVES)
def test_the_halves_of_a_proximal_gradient_step_are_the_solvers_own(solver, regularizer):
    problem = build(regularizer)
    method = make_solver(solver, problem)
    start = problem.start(0.5, np.random.default_rng(0))
    method.start(start, np.random.default_rng(0))
    kinds = set()
    for _ in range(30):
        before = method.parameters()
        memory = remember(method)
        steps = list(steps_of_epoch(problem, solver, before, memory=memory))
        method.epoch()
        after, result = method.parameters(), replay(before, steps)
        assert np.array_equal(result.P, after.P)
        assert np.array_equal(result.w, after.w)
        assert result.intercept == after.intercept
        kinds |= {step.kind for step in steps}
        # The gradient half sets nothing to zero; the operator does.
        halfway = next(step for step in steps if step.kind == "gradient")
        assert (halfway.after[:15] != 0).all() or not halfway.before[:15].all()
    assert kinds >= {"gradient", "prox"} | ({"extrapolate"} if solver == "apgd" else set())


def test_what_cannot_be_stepped_says_why():
    fm, hofm = get_model("fm"), get_model("hofm")
    assert why_no_steps(fm, PCD()) is None
    assert why_no_steps(hofm, PGD()) is None
    for model, solver, code in (
        (fm, PSGD(), "no_steps"),
        (fm, PCD(active_sweeps=3), "several_sweeps"),
        (fm, PCD(revive=True), "saddle_escape"),
        (hofm, PCD(), "pairs_only"),
    ):
        assert why_no_steps(model, solver).code == code
    assert "active sweeps = 3" in why_no_steps(fm, PCD(active_sweeps=3))
    problem = build()
    with pytest.raises(ValueError, match="solver"):
        next(steps_of_epoch(problem, "psgd", problem.start(0.1, np.random.default_rng(0))))
