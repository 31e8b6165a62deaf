"""Sums over blocks of rows: equal to those over all rows, and to the bit for any number of threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import fmviz
from fmviz.engine import design as designs
from fmviz.engine.certificates.stationarity import certify
from fmviz.engine.compatibility import best_solver, why_not
from fmviz.engine.fit import Budget, Fit
from fmviz.engine.parts import Parts
from fmviz.engine.problem import Problem, predictions
from fmviz.engine.solvers import SOLVERS
from fmviz.engine.target import Target
from fmviz.engine.threads import Threads, count_cores
from fmviz.estimators.cluster import Cluster

N, D = 90, 7


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 11 rows."""
    monkeypatch.setattr(designs, "_BLOCK_ROWS", 11)


def data(storage="dense"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    if storage != "dense":
        X[rng.random((N, D)) < 0.6] = 0.0
        X = sp.csr_array(X if storage == "sparse" else 1.0 * (X != 0.0))
    y = rng.normal(size=N)
    targets = {
        "squared": y,
        "huber": y,
        "logistic": np.sign(y),
        "poisson": rng.poisson(2.0, N).astype(float),
        "classes": Target.of_labels(rng.integers(3, size=N)),
        "outputs": np.column_stack([y, -y]),
    }
    return X, targets, rng.uniform(0.5, 2.0, N)


def build(storage="dense", target="squared", weighted=False, **settings):
    X, targets, weights = data(storage)
    loss = {"classes": "logistic", "outputs": "squared"}.get(target, target)
    about = {"loss": loss, "rank": 3, "lambda_p": 0.01, "lambda_w": 0.01, "lambda_sparse": 1e-3, **settings}
    return Problem.build(X, targets[target], sample_weight=weights if weighted else None, **about)


def numbers(problem):
    """Return everything that solvers and certificates ask of the rows, flat."""
    here = problem.start(0.5, np.random.default_rng(1))
    totals = [problem.risk(here), problem.predict(here), certify(problem, here)]
    for machine, at in zip(problem.machines, problem.split(here), strict=True):
        sums = machine.evaluated(at)
        totals += [machine.objective(at), sums.risk, *sums.gradient, *sums.linear_curvature]
        if machine.model.certificate == "stationarity":
            totals.append(sums.curvature)
    return np.concatenate([np.ravel(part) for part in totals])


CASES = [
    ("dense", "squared", True, {}),
    ("dense", "poisson", False, {}),
    ("dense", "classes", True, {}),
    ("dense", "outputs", False, {}),
    ("sparse", "huber", True, {}),
    ("binary", "logistic", False, {}),
    ("sparse", "squared", False, {"model": "hofm", "penalty": "l1"}),
    ("dense", "squared", True, {"model": "hofm", "penalty": "l1"}),
    ("sparse", "logistic", True, {"model": "lifted", "penalty": "l2"}),
    ("dense", "squared", False, {"model": "qr", "penalty": "l1"}),
]


@pytest.mark.parametrize(("storage", "target", "weighted", "settings"), CASES)
@pytest.mark.parametrize("by_rows", [False, True])
def test_sums_over_blocks_are_those_over_all_rows(storage, target, weighted, settings, by_rows, monkeypatch):
    if by_rows:
        monkeypatch.setattr(designs, "_MOST_NUMBERS", 0)
    together = numbers(build(storage, target, weighted, **settings))
    monkeypatch.setattr(designs, "_BLOCK_ROWS", 11)
    problem = build(storage, target, weighted, **settings)
    assert [block.design.n_samples for block in problem.row_blocks] == [11, 11, 11, 12] * 2
    in_turn = numbers(problem)
    np.testing.assert_allclose(in_turn, together, rtol=1e-10, atol=1e-12)
    for n_jobs in (2, 3):
        assert np.array_equal(numbers(replace(problem, mapper=Threads(n_jobs))), in_turn)


FITS = [
    *(("pgd", "ti", "fm"), ("apgd", "ti", "fm"), ("nmapgd", "cs", "fm"), ("lbfgs", "l2", "fm")),
    *(("cd", "l2", "fm"), ("pcd", "ti", "fm"), ("pbcd", "cs", "fm"), ("psgd", "l1", "fm")),
    *(("mb_psgd", "ti", "fm"), ("katyusha", "l1", "fm"), ("subgd", "omega_star", "fm")),
    *(("gcd", "l2", "convex_fm"), ("incremental_pgd", "l1", "qr"), ("pcd", "l1", "hofm")),
]


@pytest.mark.parametrize(("solver", "penalty", "model"), FITS)
@pytest.mark.usefixtures("small_blocks")
def test_fits_do_not_depend_on_the_number_of_threads(solver, penalty, model):
    def fit(n_jobs):
        about = {"penalty": penalty, "model": model, "lambda_sparse": 0.0 if model == "convex_fm" else 1e-3}
        problem = build("sparse", "classes", True, **about, mapper=Threads(n_jobs))
        budget = Budget(epochs=6, tol=0.0, report_every=2)
        return [*Fit.of(problem, solver, budget, init_scale=0.1, rng=np.random.default_rng(2)).epochs()]

    alone = fit(1)
    for n_jobs in (2, 3):
        for snapshot, other in zip(alone, fit(n_jobs), strict=True):
            assert snapshot.objective == other.objective
            assert snapshot.certificate == pytest.approx(other.certificate, rel=0, abs=0, nan_ok=True)
            for name, array in snapshot.parameters.items():
                assert np.array_equal(array, other.parameters[name]), name


def test_blocks_follow_from_the_data_alone():
    sizes = {19_999: 1, 20_000: 2, 39_999: 2, 40_000: 4, 159_999: 8, 160_000: 16, 1_000_000: 16}
    for n, count in sizes.items():
        for X in (np.ones((n, 1)), sp.csr_array(np.ones((n, 1)))):
            assert len(designs.Design(X).row_blocks) == count
    # Gradients of as many features as entries would cost more than the sums over the rows.
    rows = np.arange(40_000)
    for d, count in ((40_000, 1), (20_000, 2), (5_000, 4)):
        X = sp.csr_array((np.ones(40_000), (rows, rows % d)), shape=(40_000, d))
        assert len(designs.Design(X).row_blocks) == count


@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_a_dense_design_share_its_memory():
    X, _, _ = data()
    design = designs.Design(X)
    for block in design.row_blocks:
        assert np.shares_memory(block.matrix, design.matrix)
        assert np.shares_memory(block.rows.data, design.rows.data)


@pytest.mark.usefixtures("small_blocks")
def test_predictions_run_in_threads_with_the_error_handling_of_the_caller():
    names = set()

    class Noted(Threads):
        def __call__(self, function, items):
            def noted(item):
                names.add(threading.current_thread().name)
                return function(item)

            return super().__call__(noted, items)

    problem, mapper = build(), Noted(2)
    here = problem.start(1e200, np.random.default_rng(0))
    # Warnings are errors in the tests.
    with np.errstate(over="ignore", invalid="ignore"):
        f = predictions(problem.model, problem.design, here, mapper)
    assert f.shape == (N,)
    assert not np.isfinite(f).all()
    assert names
    assert all(name.startswith("fmviz-rows") for name in names)
    assert mapper.seconds > 0.0


@pytest.mark.usefixtures("small_blocks")
def test_estimators_run_in_threads(monkeypatch):
    X, targets, weights = data("sparse")
    used = []
    monkeypatch.setattr(
        "fmviz.engine.threads.ThreadPoolExecutor",
        lambda n, name: used.append(n) or ThreadPoolExecutor(n, name),
    )

    def f(n_jobs):
        machine = fmviz.FactorizationMachineRegressor(3, solver="apgd", random_state=0, n_jobs=n_jobs)
        return machine.fit(X, targets["squared"], weights).predict(X)

    alone = f(None)
    assert not used
    assert np.array_equal(f(3), alone)
    assert set(used) == {3}
    with pytest.raises(ValueError, match="n_jobs = 0 leaves no thread"):
        f(0)
    cores = count_cores()
    assert [Threads.of(n).n_jobs for n in (None, -1, -cores - 5)] == [1, cores, 1]


def one_hot(levels=(9, 6, 4)):
    """Return one-hot fields with these numbers of levels, the last of them empty, and a binary column."""
    rng = np.random.default_rng(3)
    fields = [np.eye(m)[rng.integers(m - 1, size=N)] for m in levels]
    return sp.csr_array(np.hstack([*fields, rng.integers(2, size=(N, 1))]))


def test_fields_are_ranges_of_columns_without_a_common_row():
    assert designs.Design(one_hot()).fields == [0, 9, 15, 19, 20]
    assert designs.Design(sp.csr_array(np.eye(4))).fields == [0, 4]
    assert designs.Design(sp.csr_array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]])).fields == [
        0,
        1,
        2,
        3,
    ]


SWEEPS = [
    *(("cd", "l2", "squared", {}), ("pcd", "l1", "logistic", {}), ("pcd", "mcp", "huber", {})),
    *(("pcd", "elastic_net", "poisson", {}), ("pcd", "l1", "outputs", {"fit_linear": False})),
    *(("pbcd", "cs", "squared", {}), ("pcd", "ti", "squared", {})),
]


@pytest.mark.parametrize(("solver", "penalty", "target", "settings"), SWEEPS)
@pytest.mark.parametrize("weighted", [False, True])
def test_sweeps_over_fields_do_not_depend_on_threads(
    solver, penalty, target, settings, weighted, monkeypatch
):
    monkeypatch.setattr("fmviz.engine.solvers._sweeping._MANY_ROWS", 50)
    _, targets, weights = data()
    X = one_hot()

    def fit(n_jobs, lambda_sparse):
        problem = Problem.build(
            X,
            targets[target],
            loss={"outputs": "squared"}.get(target, target),
            penalty=penalty,
            rank=3,
            lambda_p=1e-3,
            lambda_sparse=lambda_sparse,
            sample_weight=weights if weighted else None,
            mapper=Threads(n_jobs),
            **settings,
        )
        run = Fit.of(problem, solver, Budget(5, tol=0.0), init_scale=0.3, rng=np.random.default_rng(2))
        return [snapshot.parameters for snapshot in run.epochs()], problem.mapper

    # The strongest leave columns of P with a single entry, or none.
    for lambda_sparse in (1e-4, 3e-2, 0.2):
        alone, _ = fit(1, lambda_sparse)
        for n_jobs in (2, 3):
            epochs, mapper = fit(n_jobs, lambda_sparse)
            for before, after in zip(alone, epochs, strict=True):
                assert all(np.array_equal(before[name], array) for name, array in after.items())
            # With PBCD and TI, only sweeps over w run in threads.
            assert mapper.seconds > 0.0


def pieces(X):
    """Return functions that return the rows of the blocks of `X`, see `small_blocks`."""
    edges = [block.n_samples for block in designs.Design(X).row_blocks]
    ends = np.cumsum([0, *edges])
    return [partial(X.__getitem__, slice(*pair)) for pair in pairwise(ends.tolist())]


def in_parts(problem, X, mapper=None):
    return replace(problem, design=Parts(pieces(X), problem.design.dtype, mapper), mapper=mapper or Threads())


@pytest.mark.parametrize(("storage", "target", "weighted", "settings"), CASES[:-1])
@pytest.mark.usefixtures("small_blocks")
def test_rows_that_are_read_part_by_part_give_the_same_numbers(storage, target, weighted, settings):
    problem = build(storage, target, weighted, **settings)
    parts = in_parts(problem, data(storage)[0])
    assert parts.design.storage is problem.design.storage
    for name in ("shape", "counts", "squares", "largest", "nnz"):
        np.testing.assert_allclose(getattr(parts.design, name), getattr(problem.design, name), rtol=1e-12)
    assert np.array_equal(numbers(parts), numbers(problem))
    assert np.array_equal(numbers(replace(parts, mapper=Threads(3))), numbers(problem))
    rows = np.array([2, 3, 40, 41, 88])
    some = parts.of_rows(rows), problem.of_rows(rows)
    np.testing.assert_allclose(*map(numbers, some), rtol=1e-10, atol=1e-12)
    assert parts.reference.design.n_samples == 11


FIT = {"rank": 3, "random_state": 0, "max_iter": 8, "tol": 0.0, "init_scale": 0.1}
STRENGTHS = {"lambda_w": 0.01, "lambda_p": 0.01, "lambda_sparse": 0.001}


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize(
    "settings",
    [{"n_jobs": 2}, {"standardize": True}, {"early_stopping": True}, {"start": "random", "dtype": "float32"}],
)
@pytest.mark.usefixtures("small_blocks")
def test_estimators_take_parts(storage, settings):
    X, targets, weights = data(storage)
    parts = fmviz.Parts(pieces(X), settings.get("dtype", "float64"))
    machine = fmviz.FactorizationMachineRegressor(solver="apgd", **FIT, **STRENGTHS, **settings)
    here, there = (clone(machine).fit(rows, targets["squared"], weights) for rows in (X, parts))
    # X is rounded before or after it is scaled.
    about = 1e-6 if "dtype" in settings else 1e-12
    np.testing.assert_allclose(there.P_, here.P_, atol=about)
    np.testing.assert_allclose(there.predict(parts), here.predict(X), atol=10 * about)
    assert there.n_features_in_ == D
    assert there.score(parts, targets["squared"]) == pytest.approx(
        here.score(X, targets["squared"]), abs=1e-6
    )


@pytest.mark.usefixtures("small_blocks")
def test_defaults_of_parts_follow_from_the_first(recwarn):
    X, targets, _ = data()
    machine = fmviz.FactorizationMachineClassifier(3, random_state=0, max_iter=5).fit(
        Parts(pieces(X)), targets["logistic"] > 0.0
    )
    assert machine.lambda_p_ > 0.0
    assert np.isfinite(machine.decision_function(X)).all()
    rows = Parts(pieces(X)), targets["logistic"]
    for message, call in (
        ("not in one memory. Use APGD", lambda: clone(machine).set_params(solver="cd").fit(*rows)),
        ("RobustFMRegressor needs all rows in one", lambda: fmviz.RobustFMRegressor(3).fit(*rows)),
        ("RegressorCV needs all rows", lambda: fmviz.FactorizationMachineRegressorCV(3).fit(*rows)),
        ("BayesianFMRegressor needs all rows", lambda: fmviz.BayesianFMRegressor(3).fit(*rows)),
        ("parts with \\[6, 7\\] columns", lambda: Parts([lambda: X, lambda: X[:, 1:]])),
        ("0 parts", lambda: Parts([])),
        ("contains NaN", lambda: Parts([lambda: np.full((3, 2), np.nan)])),
        ("X has 6 features", lambda: machine.predict(Parts([lambda: X[:, 1:]]))),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    about = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**about) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.usefixtures("small_blocks")
def test_a_cluster_gives_the_same_numbers(client):
    for storage, target in (("dense", "classes"), ("sparse", "squared"), ("binary", "logistic")):
        problem = build(storage, target, True)
        parts = in_parts(problem, data(storage)[0], Cluster(client=client))
        assert np.array_equal(numbers(parts), numbers(problem))
        assert parts.mapper.seconds > 0.0


def test_estimators_take_dask_collections(client, monkeypatch):
    import dask.array as da
    import dask.dataframe as dd

    X, targets, weights = data()
    table = dd.from_pandas(pd.DataFrame(X, columns=[*"abcdefg"]), npartitions=3)
    y = targets["squared"]
    for solver, regularizer in (("apgd", "ti"), ("lbfgs", "l2")):
        machine = fmviz.FactorizationMachineRegressor(
            solver=solver, regularizer=regularizer, **FIT, **STRENGTHS
        )
        here = clone(machine).fit(X, y, weights)
        for rows in (da.from_array(X, chunks=(30, 4)), table):
            there = clone(machine).fit(rows, da.from_array(y, chunks=45), weights)
            np.testing.assert_allclose(there.P_, here.P_, atol=1e-12)
            np.testing.assert_allclose(there.predict(rows), here.predict(X), atol=1e-12)
    assert there.names().tolist() == [*"abcdefg"]

    def get_client():
        raise ValueError

    monkeypatch.setattr("distributed.get_client", get_client)
    with pytest.raises(ValueError, match=r"create a distributed\.Client first"):
        machine.fit(table, y)


def test_solvers_that_read_all_rows_refuse_rows_in_several_memories():
    class Elsewhere(designs.Design):
        in_memory = False

    X, targets, _ = data()
    design = Elsewhere(X)
    for penalty, able in (("l1", {"pgd", "apgd", "nmapgd"}), ("l2", {"pgd", "apgd", "nmapgd", "lbfgs"})):
        problem = Problem.build(design, targets["squared"], penalty=penalty, rank=2)
        reasons = {name: why_not(problem, name) for name in SOLVERS}
        assert {name for name, reason in reasons.items() if reason is None} == able
        assert "not in one memory. Use APGD" in reasons["psgd"]
        assert best_solver(problem) == ("lbfgs" if penalty == "l2" else "apgd")
        assert why_not(build(penalty=penalty), "pcd" if penalty == "l1" else "cd") is None
