"""A run that goes on from a checkpoint, in whatever process, has the iterates of the uninterrupted one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from by_name import build_problem, iterate
from small_data import assert_resumable

from fmviz.choices import why_not
from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.fit import Budget
from fmviz.engine.models import get_model
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import SOLVERS

EPOCHS = 33
MODELS = [
    ("fm", {}),
    ("hofm", {"order": 3}),
    ("all_subsets", {}),
    ("expansion", {"coefficients": "fitted"}),
    ("expansion", {"coefficients": "signs", "kernel": "polynomial"}),
    ("lifted", {}),
    ("qr", {}),
    ("convex_fm", {}),
]
OWN = {
    "pcd": ({}, {"active_sweeps": 5, "anderson": 3}),
    "pbcd": ({}, {"active_sweeps": 5, "anderson": 3}),
    "psgd": ({}, {"monotone": False}),
}
ORDERS = ({"order": "features"}, {"order": "mixed"})
SECOND_ORDER = {"cd": ORDERS, "pcd": (*ORDERS, {"revive": True})}


def cases():
    for model, model_params in MODELS:
        weights = model in ("qr", "convex_fm")  # Their penalty is no choice.
        for solver in SOLVERS:
            for regularizer in ("l2",) if weights else ("l2", "ti", "cs", "omega_ti", "omega_star"):
                if why_not(regularizer, solver, model=get_model(model, model_params)) is None:
                    more = SECOND_ORDER.get(solver, ()) if model == "fm" else ()
                    for own in (*OWN.get(solver, ({},)), *more):
                        yield model, model_params, solver, regularizer, own


CASES = list(cases())


def build(model, model_params, regularizer) -> Problem:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.7)
    y = 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3] * X[:, 4] + X[:, 5] + 0.1 * rng.normal(size=40)
    return build_problem(
        sp.csr_array(X) if regularizer in ("ti", "cs") else X,
        y,
        model=model,
        model_params=model_params,
        regularizer=regularizer,
        rank=3,
        lambda_w=0.01,
        lambda_p=0.02,
        lambda_sparse=0.0 if regularizer == "l2" and model not in ("qr",) else 0.01,
    )


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("model", "model_params", "solver", "regularizer", "own"),
    CASES,
    ids=["-".join(map(str, (m, *p.values(), s, r, *o.values()))) for m, p, s, r, o in CASES],
)
def test_resumed_runs_have_the_same_iterates(model, model_params, solver, regularizer, own):
    problem = build(model, model_params, regularizer)
    if solver.endswith("sgd") or "katyusha" in solver:
        own = {**own, "eta0": 0.01}
    budget = Budget(EPOCHS, tol=0.0, certify_every=4)
    uninterrupted, kept = assert_resumable(problem, solver, budget, init_scale=0.3, **own)
    assert bool(kept) == bool(SOLVERS[solver].on(problem).memory)
    assert uninterrupted[-1].epoch == EPOCHS


def test_a_checkpoint_costs_nothing_until_it_is_taken():
    asked = []
    for _ in iterate(build("fm", {}, "ti"), "pcd", Budget(25, tol=0.0), keep=asked.append):
        pass
    assert len(asked) == 2  # sweeping solvers rest where they compute their predictions anew


@pytest.mark.parametrize("solver", ["pcd", pytest.param("psgd", marks=pytest.mark.slow)])
def test_a_taken_checkpoint_stays_what_it_was_while_the_run_goes_on(solver):
    taken = []

    def keep(take):
        checkpoint = take()
        taken.append((checkpoint, checkpoint.to_bytes()))

    for _ in iterate(build("fm", {}, "ti"), solver, Budget(25, tol=0.0), keep=keep):
        pass
    assert len({packed for _, packed in taken}) == len(taken) >= 2
    for checkpoint, packed in taken:
        assert checkpoint.to_bytes() == packed


def test_checkpoints_of_other_solvers_are_refused():
    kept = []
    problem = build("fm", {}, "l2")
    list(iterate(problem, "sgd", Budget(2, tol=0.0), keep=lambda take: kept.append(take())))
    with pytest.raises(ValueError, match="comes from another solver"):
        iterate(problem, "apgd", resume=kept[0])


@pytest.mark.parametrize("data", [b"", b"PK", b"not an archive"])
def test_what_is_no_checkpoint_is_said_to_be_none(data):
    with pytest.raises(ValueError, match="This is not a checkpoint of a run"):
        Checkpoint.from_bytes(data)


def test_nothing_is_unpickled():
    import io

    class Hostile:
        def __reduce__(self):
            return (print, ("executed",))

    buffer = io.BytesIO()
    np.savez(buffer, tree=np.array([Hostile()], dtype=object))
    with pytest.raises(ValueError, match="This is not a checkpoint"):
        Checkpoint.from_bytes(buffer.getvalue())
