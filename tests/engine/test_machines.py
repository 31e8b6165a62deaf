"""Several outputs: each machine is as if alone; runs, checkpoints and counts are those of all."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from by_name import iterate
from small_data import assert_resumable

from fmviz.engine.certificates.stationarity import certify
from fmviz.engine.counting import used_mask
from fmviz.engine.fit import Budget
from fmviz.engine.interactions.weights import pairs_of
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Reason
from fmviz.engine.target import Target

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5))
CLASSES = Target.of_labels(np.array(["a", "b", "c"])[(X[:, 0] * X[:, 1] > 0) + 1 * (X[:, 2] > 0.5)])
ABOUT = {"loss": "logistic", "rank": 2, "lambda_w": 0.1, "lambda_p": 0.01, "lambda_sparse": 0.01}


def three_classes(**about):
    return Problem.build(X, CLASSES, **{**ABOUT, **about})


def test_one_output_needs_no_axis():
    assert Problem.build(X, X[:, 0]).n_machines is None
    assert Problem.build(X, Target.of_labels(X[:, 0] > 0), **ABOUT).n_machines is None
    assert Problem.build(X, CLASSES, model="shared_basis", penalty="l21", loss="logistic").n_machines is None
    result = three_classes()
    assert (result.n_machines, len(result.machines)) == (3, 3)
    assert len({id(machine.design) for machine in result.machines}) == 1
    assert result.shapes["P"] == (3, 5, 2)


@pytest.mark.parametrize(
    ("y", "about"),
    [
        (CLASSES, ABOUT),
        (Target.of_labels(CLASSES.values, ordered=True), ABOUT),
        (np.column_stack([X[:, 0] * X[:, 1], X[:, 2]]), {**ABOUT, "loss": "squared"}),
        (np.sign(X[:, :3]), {**ABOUT, "sample_weight": np.arange(1.0, 41.0)}),
    ],
    ids=["class", "ordinal", "real", "several"],
)
def test_each_machine_makes_the_epochs_that_it_would_make_alone(y, about):
    problem = Problem.build(X, y, **about)
    start = problem.start(0.1, np.random.default_rng(1))
    *_, end = iterate(problem, "pcd", Budget(epochs=4), start=start)
    alone = [
        [*iterate(item, "pcd", Budget(epochs=4), start=start.of_output(c))][-1]
        for c, item in enumerate(problem.machines)
    ]
    for name, array in end.parameters.items():
        assert np.array_equal(array, [item.parameters[name] for item in alone]), name
    assert end.objective == pytest.approx(np.mean([item.objective for item in alone]))
    assert end.certificate == max(item.certificate for item in alone) == certify(problem, end.parameters)
    assert problem.predict(end.parameters).shape == (40, len(alone))
    assert problem.empirical_risk(problem.predict(end.parameters)) == pytest.approx(end.loss)
    assert end.epoch == 4


def test_an_epoch_is_one_of_each_that_has_not_converged():
    problem = three_classes()
    strong = problem.at(lambda_sparse=[10.0, 0.01, 0.01])
    assert strong.lambda_sparse.tolist() == [10.0, 0.01, 0.01]
    assert problem.lambda_sparse == 0.01
    snapshots = [*iterate(strong, "pcd", Budget(epochs=400), rng=np.random.default_rng(0))]
    assert [snapshot.epoch for snapshot in snapshots] == [*range(len(snapshots))]
    end = snapshots[-1]
    assert end.status.converged
    assert end.status.message == f"All 3 outputs converged, the last one after {end.epoch} epochs."
    assert not end.parameters.P[0].any()
    assert all(snapshot.status is None for snapshot in snapshots[:-1])


def test_the_status_says_which_outputs_did_not_converge():
    problem = three_classes().at(lambda_sparse=[10.0, 0.0, 0.0])
    *_, end = iterate(problem, "pcd", Budget(epochs=60, tol=1e-9), rng=np.random.default_rng(0))
    assert end.status.reason is Reason.EPOCHS
    assert end.status.message.startswith("Outputs 'b', 'c' of 3 did not converge. Stopped at the limit of 60")
    asked = iter([False, False, False, True, True, True])
    *_, end = iterate(problem, "pcd", should_stop=lambda: next(asked), rng=np.random.default_rng(0))
    assert end.status.reason is Reason.STOPPED


@pytest.mark.parametrize("solver", ["pcd", "psgd"])
@pytest.mark.parametrize("strengths", [[0.01, 0.01, 0.01], [10.0, 0.01, 0.01]], ids=["together", "one ended"])
def test_checkpoints_resume_exactly(solver, strengths):
    problem = three_classes().at(lambda_sparse=strengths)
    assert_resumable(problem, solver, Budget(epochs=28, tol=1e-4), iterate, init_scale=0.1)


def test_runs_that_are_left_are_closed_and_tell_what_they_remember():
    ends = []
    run = iterate(
        three_classes(), "psgd", leave=lambda now, _: ends.append(now), rng=np.random.default_rng(0)
    )
    [*islice(run, 3)]
    run.close()
    assert len(ends[0].memory["machines"]) == 3


def test_rows_are_chosen_of_all_outputs():
    rows = np.array([0, 3, 5, 7])
    part = three_classes(sample_weight=np.arange(1.0, 41.0)).of_rows(rows)
    assert np.array_equal(part.y, CLASSES.values[rows])
    for full, item in zip(three_classes().machines, part.machines, strict=True):
        assert np.array_equal(item.y, full.y[rows])
        assert item.design is part.design
        assert item.unit_weights.mean() == pytest.approx(1.0)


def _sparse(shape, rng):
    return np.where(rng.random(shape) < 0.4, rng.normal(size=shape), 0.0)


@pytest.mark.parametrize(
    ("model", "rank"), [("fm", 2), ("expansion", 2), ("lifted", 2), ("convex_fm", 2), ("qr", 1)]
)
def test_what_any_machine_uses_is_counted_once(model, rank, rng):
    chosen, d = get_model(model), 6
    each = []
    for _ in range(3):
        result = {name: _sparse(shape, rng) for name, shape in chosen.shapes(d, rank).items()}
        if model == "qr":
            result["W"] = np.triu(result["W"], 1) + np.triu(result["W"], 1).T
        each.append(Parameters(**result))
    pairs = set()
    for item in each:
        table = pairs_of(chosen, item, entries=True).ranked(None)
        pairs |= set(map(tuple, table.sets.tolist()))
    used = chosen.union(Parameters.stacked(each))
    assert chosen.used_interactions(used) == len(pairs)
    assert chosen.used_features(used) == len({j for pair in pairs for j in pair}) or model != "qr"


def test_orders_keep_their_columns(rng):
    model = get_model("hofm", {"order": 3})
    each = [Parameters(_sparse((6, 4), rng), np.zeros(6), 0.0) for _ in range(2)]
    used = model.union(Parameters.stacked(each))
    both = used_mask(each[0].P[:, :2]) | used_mask(each[1].P[:, :2])
    assert model.used_by_order(used)[2] == np.count_nonzero(np.triu(both, 1))
