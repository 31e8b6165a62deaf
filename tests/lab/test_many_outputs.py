"""Targets of several outputs: encoding, metrics, stored runs, reports and programs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.target import Target
from fmviz.lab.catalog import load
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.reading import pair_table
from fmviz.lab.runner import Run
from fmviz.lab.search.strength_path import PathPlan, trace
from fmviz.lab.store.packing import pack_parameters, unpack_parameters
from fmviz.lab.uploads.library import Size
from fmviz.metrics import Predictions, measured
from fmviz.tables.encoded import encode
from fmviz.tables.recipe import Choice, Recipe
from fmviz.tables.source import Source
from fmviz.tables.target import TargetEncoding

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)).round(3)
_S = X[:, 0] * X[:, 1]
TABLE = pd.DataFrame(X, columns=list("abc")).assign(
    kind=np.array(["low", "mid", "top"])[(_S > -0.3).astype(int) + (_S > 0.3)],
    stars=1 + np.searchsorted(np.quantile(_S, [0.25, 0.5, 0.75]), _S),
    u=_S.round(3),
    v=(X[:, 1] * X[:, 2]).round(3),
    hot=np.where(_S > 0, "yes", "no"),
    wet=(X[:, 2] > 0).astype(int),
)
TARGETS = ("kind", "stars", "u", "v", "hot", "wet")
IRIS = Experiment(
    **{"dataset": "iris", "loss": "logistic", "rank": 2, "max_epochs": 12, "validation": 0.3, "seed": 1},
    **{"lambda_sparse": 0.01, "lambda_p": 0.01, "init_scale": 0.1},
)


def recipe(target, *also, **others):
    columns = tuple(Choice(name, "number") for name in "abc")
    return Recipe(columns=columns, target=target, also=also, **others)


def encoded(*args, **others):
    chosen = recipe(*args, **others)
    return encode(Source(chosen.reading, TABLE), chosen)


@pytest.mark.parametrize(
    ("chosen", "task", "outputs", "shape"),
    [
        (recipe("kind"), "class", ("low", "mid", "top"), (120,)),
        (recipe("kind", positive="mid"), "binary", (), (120,)),
        (recipe("stars", task="class"), "class", ("1", "2", "3", "4"), (120,)),
        (recipe("stars", task="ordinal"), "ordinal", ("≤ 1", "≤ 2", "≤ 3"), (120,)),
        (recipe("kind", task="ordinal", order=("top", "mid", "low")), "ordinal", ("≤ top", "≤ mid"), (120,)),
        (recipe("stars"), "regression", (), (120,)),
        (recipe("u", "v"), "regression", ("u", "v"), (120, 2)),
        (recipe("hot", "wet"), "several", ("hot", "wet"), (120, 2)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_columns_become_targets(chosen, task, outputs, shape):
    encoding = encode(Source(chosen.reading, TABLE), chosen)
    data = Dataset.of_table(encoding, "own", "Own")
    assert (data.task, data.outputs, data.y.shape) == (task, outputs, shape)
    assert TargetEncoding.from_dict(json.loads(json.dumps(encoding.target.to_dict()))) == encoding.target
    size = Size.of(encoding)
    # The cost that is promised is that of all machines.
    assert (size.rows, size.outputs) == (120, max(1, len(outputs)))
    target = Target.of(data.target_of(data.y))
    assert len(target.outputs) == max(1, len(outputs))
    for c in range(len(outputs)):
        part = data.of_output(c)
        assert part.outputs == ()
        assert part.y.shape == (120,)


def test_several_targets_are_of_one_kind():
    with pytest.raises(ValueError, match=r"must all be numeric or all binary; they are u \(a number\), hot"):
        encoded("u", "hot")
    with pytest.raises(ValueError, match=r"kind \(more classes\)"):
        encoded("hot", "kind")
    with pytest.raises(ValueError, match="does not contain each of them once"):
        encoded("kind", task="ordinal", order=("low", "top"))
    with pytest.raises(ValueError, match=r"has 3 classes .* or predict all of them"):
        encoded("kind", task="binary")


@pytest.mark.parametrize(
    ("arguments", "columns"),
    [
        (("--target", "kind"), ["prediction", *(f"probability of {k}" for k in ("low", "mid", "top"))]),
        (
            ("--target", "stars", "--task", "ordinal"),
            ["prediction", *(f"probability of {k}" for k in range(1, 5))],
        ),
        (("--target", "u,v"), ["prediction of u", "prediction of v"]),
        (
            ("--target", "hot,wet"),
            ["prediction of hot", "probability of hot", "prediction of wet", "probability of wet"],
        ),
    ],
    ids=["class", "ordinal", "numbers", "labels"],
)
def test_a_file_is_fitted_and_predicted(arguments, columns, tmp_path, command):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    others = [name for name in TARGETS if name not in arguments[1].split(",")]
    ignored = [word for name in others for word in ("--ignore", name)]
    settings = ["--lambda-sparse", "0.01", "--lambda-w", "0.001", "--rank", "2", "--max-epochs", "15"]
    out = str(tmp_path / "out")
    text = command("fit", tmp_path / "t.csv", *arguments, *ignored, *settings, "--output", out).out
    assert "fitted separately" in text or "machine" in text
    message = command("predict", out, tmp_path / "t.csv", "--output", tmp_path / "p.csv").err
    assert "known in 120 of these rows" in message
    predicted = pd.read_csv(tmp_path / "p.csv")
    assert predicted.columns.tolist() == ["row", *columns]
    assert predicted.notna().all(axis=None)
    if columns[0] == "prediction":
        assert np.allclose(predicted[columns[1:]].sum(axis=1), 1.0)
    pairs = pd.read_csv(tmp_path / "out" / "interactions.csv")
    assert pairs.columns[0] == "output"
    assert "The interactions: " in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_figures_of_predictions_are_those_of_scikit_learn():
    y, f = RNG.integers(0, 3, 50).astype(float), RNG.normal(size=(50, 3))
    p = 1.0 / (1.0 + np.exp(-f))
    figures = measured("class", Predictions(Target(y, "class", np.array(["a", "b", "c"])), f, p))
    shares = p / p.sum(axis=1, keepdims=True)
    assert figures["accuracy"] == pytest.approx(accuracy_score(y, f.argmax(axis=1)))
    assert figures["log_loss"] == pytest.approx(log_loss(y, shares))
    each = [roc_auc_score(y == c, f[:, c]) for c in range(3)]
    assert figures["auc"] == pytest.approx(np.mean(each))
    ordered = Target(y, "ordinal", np.array([1, 2, 3]))
    q = np.sort(p[:, :2], axis=1)
    expected = 3.0 - q.sum(axis=1)
    figures = measured("ordinal", Predictions(ordered, f[:, :2], p[:, :2], np.array([1.0, 2.0, 3.0])))
    assert figures["rmse"] == pytest.approx(np.sqrt(np.mean((expected - (y + 1.0)) ** 2)))
    labels = Target(np.where(f > 0.3, 1.0, -1.0), "several")
    assert measured("several", Predictions(labels, f, p))["auc"] == 1.0


@pytest.fixture(scope="module")
def run():
    return Run.prepare(IRIS)


def test_a_run_of_classes_has_their_metrics_and_resumes(run):
    kept = []
    snapshots = [*run.snapshots(keep=lambda take: kept.append(take().to_bytes()))]
    end = snapshots[-1]
    assert {"train_accuracy", "validation_auc", "validation_log_loss"} <= end.metrics.keys()
    counts, rows = run.confusion(end.parameters)
    assert rows == "validation"
    assert np.trace(counts) / counts.sum() == pytest.approx(end.metrics["validation_accuracy"])
    *_, again = run.snapshots(resume=Checkpoint.from_bytes(kept[0]))
    assert np.array_equal(again.parameters.P, end.parameters.P)
    stored = unpack_parameters(pack_parameters(end.parameters))
    assert stored.n_machines == 3
    assert np.array_equal(stored.intercept, end.parameters.intercept)
    table = pair_table(run.problem.model, end.parameters, run.dataset, 2)
    assert set(table["output"]) <= set(run.dataset.outputs)
    assert table.groupby("output").size().max() <= 2


def test_a_run_is_read_one_output_at_a_time(run):
    part = run.of_output(1)
    assert part.of_output(0) is part
    assert set(part.validation[1]) == {-1.0, 1.0}
    assert np.array_equal(part.problem.y, np.where(run.problem.y == 1, 1.0, -1.0))
    parameters = run.problem.start(0.1, RNG).of_output(1)
    assert {"train_accuracy", "validation_auc"} <= part.measure(parameters).keys()


def test_recovery_is_the_mean_over_the_classes():
    data = load("planted_classes")
    run = Run.prepare(replace(IRIS, dataset="planted_classes", max_epochs=1, lambda_sparse=0.0))
    parameters = run.problem.start(0.0, RNG)
    measured = run.measure(parameters)
    assert measured["support_f1"] == 0.0
    assert measured["estimation_error"] == pytest.approx(1.0)
    assert data.of_output(2).truth.shape == (24, 24)


def test_paths_search_one_strength_for_all_outputs():
    plan = PathPlan(replace(IRIS, max_epochs=8), ("ti",), (0.001, 10.0))
    few, none = trace(plan)
    assert few.values["used_interactions"] > 0 == none.values["used_interactions"]
    assert few.values["validation_accuracy"] > 0.5
