"""Counts: the Poisson deviance from the kernels to saved models."""

from __future__ import annotations

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from by_name import build_problem, iterate
from sklearn import metrics as sklearn_metrics
from sklearn.linear_model import PoissonRegressor

import fmviz
from fmviz.engine.fit import Budget
from fmviz.engine.parameters import Parameters
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.outliers import errors_of
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.saved_model import SavedModel


def counts(kind: str = "dense", n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Return a table and counts that depend on products; "pairs" has two ones in a row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6)) * (rng.random((n, 6)) < (1.0 if kind == "dense" else 0.5))
    if kind == "pairs":
        X = np.eye(7)[rng.integers(0, 3, n)] + np.eye(7)[rng.integers(3, 7, n)]
    f = 1.0 + 0.5 * X[:, 0] + 0.8 * X[:, 1] * X[:, 2] - 0.6 * X[:, 0] * X[:, 4]
    return X, rng.poisson(np.exp(f)).astype(float)


def test_the_linear_fit_is_that_of_scikit_learn():
    X, y = counts()
    fit = PoissonRegressor(alpha=0.1, tol=1e-12, max_iter=1_000).fit(X, y)
    problem = build_problem(X, y, loss="poisson", regularizer="l2", rank=0, lambda_w=0.05)
    expected = problem.objective(Parameters(np.zeros((6, 0)), fit.coef_, float(fit.intercept_)))
    for solver in ("pcd", "pbcd", "apgd", "lbfgs"):
        *_, end = iterate(problem, solver, Budget(500, tol=1e-10))
        assert end.objective == pytest.approx(expected, rel=1e-6), solver
        assert end.certificate <= 1e-8


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("kind", ["dense", "sparse", "pairs"])
@pytest.mark.parametrize(
    ("regularizer", "solvers"),
    [("l2", ("pcd", "pbcd", "apgd", "lbfgs")), ("ti", ("pcd", "apgd")), ("l21", ("pbcd", "apgd"))],
)
def test_solvers_meet_and_never_rise(kind, regularizer, solvers):
    X, y = counts(kind)
    X = X if kind == "dense" else sp.csr_array(X)
    size = 0.002 if kind == "pairs" else 0.02
    strengths = {"lambda_w": 0.01, "lambda_p": size, "lambda_sparse": 0.5 * size * (regularizer != "l2")}
    problem = build_problem(X, y, loss="poisson", regularizer=regularizer, rank=2, **strengths)
    *_, near = iterate(problem, "apgd", Budget(3_000, tol=1e-9, report_every=None), init_scale=0.3)
    assert near.parameters.P.any()
    rng = np.random.default_rng(1)
    start = near.parameters.replace(P=near.parameters.P + 1e-2 * rng.normal(size=near.parameters.P.shape))
    ends = []
    for solver in solvers:
        snapshots = list(iterate(problem, solver, Budget(3_000, tol=1e-9), start=start))
        objectives = np.array([snapshot.objective for snapshot in snapshots])
        assert (np.diff(objectives) <= 1e-13 * objectives[-1]).all(), solver
        assert snapshots[-1].certificate <= 1e-5
        ends.append(objectives[-1])
    assert max(ends) <= min(ends) * (1 + 1e-6)


@pytest.mark.parametrize("solver", ["pcd", "pbcd"])
def test_steps_from_a_point_of_tiny_curvature_descend(solver):
    X, y = counts()
    problem = build_problem(X, y, loss="poisson", regularizer="l2", rank=2, lambda_w=0.01, lambda_p=0.02)
    start = problem.start(0.3, np.random.default_rng(0)).replace(intercept=-30.0)
    objectives = [s.objective for s in iterate(problem, solver, Budget(100), start=start)]
    assert np.isfinite(objectives).all()
    assert (np.diff(objectives) <= 1e-13 * objectives[-1]).all()
    assert objectives[-1] < 0.2 * objectives[0]


def test_predictions_are_means_and_other_targets_are_refused():
    X, y = counts()
    machine = fmviz.FactorizationMachineRegressor(loss="poisson", rank=3, random_state=0).fit(X, y)
    assert machine.predict(X).mean() == pytest.approx(y.mean(), rel=1e-4)
    assert sklearn_metrics.d2_tweedie_score(y, machine.predict(X), power=1) > 0.5
    assert (machine.predict(X) > 0.0).all()
    assert machine.unit == "log mean"
    both = fmviz.FactorizationMachineRegressor(loss="poisson", rank=3, random_state=0)
    both = both.fit(X, np.column_stack([y, y + 1.0])).predict(X)
    assert both.mean(axis=0) == pytest.approx([y.mean(), y.mean() + 1.0], rel=1e-4)
    for wrong in (np.where(y > 0, y, -1.0), np.column_stack([y, -y])):
        with pytest.raises(ValueError, match=r"y contains -\d+, but loss 'poisson' needs counts"):
            machine.fit(X, wrong)
    with pytest.raises(ValueError, match="loss 'poisson' needs counts"):
        fmviz.FactorizationMachineClassifier(loss="poisson").fit(X, np.arange(200) % 3)
    with pytest.raises(ValueError, match="needs labels -1 and"):
        build_problem(X, y, loss="logistic")
    reason = Experiment(dataset="monks1", loss="poisson").why_not()
    assert f"loss needs {fmviz.losses.Poisson.needs}, but " in reason
    assert "has classes" in reason


def test_runs_take_counts_unscaled():
    experiment = Experiment(
        dataset="bike",
        loss="poisson",
        rank=2,
        max_epochs=3,
        lambda_sparse=1e-3,
        lambda_p=0.1,
        validation=0.25,
    )
    run, scaled = Run.prepare(experiment), load_dataset("bike")
    scaling = scaled.target_scaling
    assert (run.dataset.y == np.round(run.dataset.y)).all()
    assert run.dataset.y == pytest.approx(scaling.mean + scaling.scale * scaled.y)
    assert run.dataset.target_scaling is None
    end = run.end()
    f = run.problem.predict(end.parameters)
    assert end.metrics["train_deviance"] == pytest.approx(
        sklearn_metrics.mean_poisson_deviance(run.problem.y, np.exp(f))
    )
    assert end.metrics["train_rmse"] == pytest.approx(fmviz.metrics.rmse(run.problem.y, np.exp(f)))
    design, y = run.validation
    mean = np.exp(run.problem.model.scores(design, end.parameters))
    assert end.metrics["validation_d2"] == pytest.approx(sklearn_metrics.d2_tweedie_score(y, mean, power=1))
    assert errors_of(run, end.parameters).signed == pytest.approx(np.exp(f) - run.problem.y)
    squared = Run.prepare(Experiment(dataset="bike", max_epochs=1)).end().metrics
    assert not {"train_d2", "train_deviance"} & squared.keys()


def test_commands_fit_and_predict_counts(tmp_path, command):
    X, y = counts(n=300)
    table = pd.DataFrame(X, columns=list("abcdef")).assign(hires=y, a=np.where(X[:, 0] > 0.0, "old", "new"))
    file, folder = tmp_path / "hires.csv", tmp_path / "out"
    table.to_csv(file, index=False)
    given = ("--target", "hires", "--task", "regression", "--loss", "poisson")
    fixed = ("--lambda-sparse", "0.003", "--rank", "3", "--numbers", "line")
    text = command("fit", file, *given, *fixed, "--output", folder).out
    assert "f is the logarithm of the mean of hires" in text
    assert "log hires" in text
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "the logarithm of the prediction" in page
    assert "(prediction × " in page
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["metrics"]["D², validation"] > 0.3
    model = SavedModel.load(folder / "model.npz")
    predicted = model.predict(table)
    assert predicted == pytest.approx(np.exp(model.scores(table)[0]))
    assert predicted.mean() == pytest.approx(y.mean(), rel=0.1)
    ran = command("predict", folder, file)
    assert "D² " in ran.err
    assert pd.read_csv(StringIO(ran.out))["prediction"].to_numpy() == pytest.approx(predicted)
    table.assign(hires=y - 1.0).to_csv(file, index=False)
    assert "needs counts" in command("fit", file, *given, *fixed, code=2).err
