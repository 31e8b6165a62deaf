"""The group lasso: groups of features, such as the columns of a table, are in or out as a whole."""

from __future__ import annotations

from dataclasses import replace

import cvxpy
import numpy as np
import pytest
from by_name import iterate
from oracles import slow_fm
from signatures import recompiled, signatures

import fmviz
from fmviz import Experiment
from fmviz.engine.fit import Budget
from fmviz.engine.penalties import L21, Group
from fmviz.engine.problem import Problem
from fmviz.lab.experiment import suggested
from fmviz.lab.runner import Run
from fmviz.lab.runs.program import experiment_source

COLUMNS = ((0, 3, 5), (1, 2), (4, 6))
NUMBERED = (0, 1, 1, 0, 2, 0, 2)
GROUPS = [COLUMNS, NUMBERED, ("a", "b", "b", "a", "c", "a", "c")]


def one_hot_problem(n: int = 80, **more) -> Problem:
    """Return a problem on the levels of three columns, interleaved; the third does not enter y."""
    rng = np.random.default_rng(3)
    levels = [rng.integers(0, len(g), n) for g in COLUMNS]
    X = np.zeros((n, 7))
    for g, level in zip(COLUMNS, levels, strict=True):
        X[np.arange(n), np.array(g)[level]] = 1.0
    y = 4.0 * (levels[0] == 1) * (levels[1] == 0) + 0.1 * rng.normal(size=n)
    return Problem.build(
        X, y, **{"penalty": Group(COLUMNS), "rank": 2, "lambda_w": 0.01, "lambda_p": 0.01, **more}
    )


@pytest.mark.parametrize("groups", GROUPS, ids=repr)
def test_forms_of_groups_are_one_penalty(groups, rng):
    penalty = Group(groups)
    P = rng.normal(size=(7, 3)) * 10.0 ** rng.integers(-150, 150)
    assert penalty.value(P) == pytest.approx(slow_fm.omega(Group(COLUMNS), P), rel=1e-12)
    for strength in (0.0, 0.3, 1.0):
        strength *= np.abs(P).max()
        Q = fmviz.prox(penalty, P, strength)
        assert pytest.approx(fmviz.prox(Group(COLUMNS), P, strength)) == Q
        assert fmviz.certificate(penalty, P, Q, strength) <= 1e-12
        if np.abs(P).max() < 1e100:
            M = np.ascontiguousarray(P.T)
            view = penalty.for_features(range(7)).matrix
            view.shrink(M, strength, view.theta, np.empty((3, 7)))
            assert pytest.approx(Q, rel=1e-12) == M.T
        assert pytest.approx(fmviz.prox(L21(), P, strength), rel=1e-12) == fmviz.prox(Group(), P, strength)
    assert len({*penalty.for_features(range(7)).of_features(np.array([0, 2, 3])).groups}) == 2


def test_the_objective_is_lowest_in_every_group_by_a_generic_solver():
    problem = one_hot_problem(lambda_sparse=0.03)
    start, ends = problem.start(0.3, np.random.default_rng(0)), {}
    for solver in ("apgd", "pgd", "nmapgd", "mb_katyusha"):
        *_, ends[solver] = iterate(problem, solver, Budget(5_000, tol=1e-11, report_every=None), start=start)
    assert {name: end.objective for name, end in ends.items()} == pytest.approx(
        dict.fromkeys(ends, ends["apgd"].objective), rel=1e-6
    )
    assert ends["apgd"].certificate <= 1e-8
    X, y, fit = problem.design.matrix, problem.y, ends["apgd"].parameters
    assert {tuple(bool(fit.P[j].any()) for j in g) for g in COLUMNS} == {
        (True,) * 3,
        (True,) * 2,
        (False,) * 2,
    }
    # Levels exclude each other: f is linear in the rows of P of a column, and the objective convex.
    for g in map(list, COLUMNS):
        others = [j for j in range(7) if j not in g]
        fixed = fit.replace(P=fit.P * np.isin(range(7), others)[:, None])
        Q = cvxpy.Variable((len(g), 2))
        f = problem.predict(fixed)
        f = f + cvxpy.sum(cvxpy.multiply(X[:, g] @ Q, X[:, others] @ fit.P[others]), axis=1)
        risk = cvxpy.sum_squares(f - y) / (2.0 * y.size)
        size = problem.lambda_p * cvxpy.sum_squares(Q) + 0.03 * np.sqrt(len(g)) * cvxpy.norm(Q, "fro")
        generic = cvxpy.Problem(cvxpy.Minimize(risk + size))
        generic.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        assert generic.value + sum(problem.penalties(fixed).values()) == pytest.approx(
            problem.objective(fit), abs=1e-8
        )


def test_columns_of_a_table_are_in_or_out():
    experiment = replace(
        suggested("monks1"), regularizer="group", start="informed", rank=5, lambda_p=1e-4, tol=1e-6
    )
    run = Run.prepare(replace(experiment, lambda_sparse=0.005, max_epochs=600))
    live = run.end().parameters.P.any(axis=1)
    columns = np.array(run.dataset.groups)
    used = {name for name in columns if live[columns == name].all()}
    assert used == {*columns[live]} == {"head_shape", "body_shape", "jacket_color"}
    # The experiment names no groups: they are those of the data.
    assert run.experiment.regularizer == Group()
    assert run.problem.penalty.chosen == Group(run.dataset.groups)


def test_estimators_take_groups():
    X, y = one_hot_problem().design.matrix, one_hot_problem().y
    for groups in (np.array(NUMBERED), [list(g) for g in COLUMNS]):
        machine = fmviz.FactorizationMachineRegressor(
            regularizer=fmviz.penalties.Group(groups), lambda_sparse=0.02, random_state=0, rank=2
        ).fit(X, y)
        live = machine.P_.any(axis=1)
        assert [live[list(g)].all() for g in COLUMNS] == [live[list(g)].any() for g in COLUMNS]
        assert live.any() != live.all()
    inhomogeneous = fmviz.FactorizationMachineRegressor(
        model=fmviz.models.PolynomialNetwork(coefficients="ones"),
        augment=True,
        regularizer=Group(NUMBERED),
        lambda_sparse=0.01,
        random_state=0,
    )
    assert inhomogeneous.fit(X, y).P_.shape[0] == 7


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (((0, 1), (1, 2)), "groups lists feature 1 twice; a feature is in one group at most"),
        ((0, (1, 2)), "groups mixes groups with lists of features; give"),
        (((0, "a"),), "A feature in groups = 'a' must be a whole number of at least 0"),
        (
            (0, 0, 1),
            "groups of the group lasso are those of 3 features, but there are 7; give one group per feature",
        ),
        ((*NUMBERED, 1), "are those of 8 features, but there are 7"),
        (((10**15,),), "are those of 1,000,000,000,000,001 features, but there are 7"),
        (((7,),), "are those of 8 features, but there are 7"),
        ("abc", "groups = 'abc' is not a list of numbers or names"),
    ],
)
def test_wrong_groups_are_refused(groups, words):
    with pytest.raises(ValueError, match=words):
        one_hot_problem(penalty=Group(groups))


@pytest.mark.parametrize("groups", GROUPS, ids=repr)
def test_groups_travel(groups):
    experiment = Experiment(regularizer=Group(groups), solver="apgd")
    assert Experiment.from_json(experiment.to_json()) == experiment
    assert Experiment.from_query(experiment.to_query()) == experiment
    assert eval(experiment_source(experiment), {"Experiment": Experiment}) == experiment
    with pytest.raises(ValueError, match=r"characters, but a link holds at most 1,500 of a setting"):
        replace(experiment, regularizer=Group(list(range(1_000)))).to_query()
    with pytest.raises(ValueError, match="is not a list of numbers or names"):
        Experiment.from_query({"regularizer": "group", "regularizer_groups": "[" * 1_400})


def test_other_groups_compile_nothing():
    before = signatures()
    for groups in (COLUMNS, NUMBERED[::-1], ()):
        problem = one_hot_problem(penalty=Group(groups), lambda_sparse=0.02)
        list(iterate(problem, "psgd", Budget(2, report_every=None)))
    assert signatures() != before
    assert recompiled(before) == []
