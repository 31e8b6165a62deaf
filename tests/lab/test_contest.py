"""The contest of candidates by folds: who wins, the table of errors, and the model that is saved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, prepare
from fmviz.lab.saved_model import SavedModel
from fmviz.lab.search import contest as module
from fmviz.lab.search.averaged import Sampling, sampled
from fmviz.lab.search.contest import Contest, announced, contest, in_every_basis
from fmviz.lab.search.first_fit import FirstFit, first_fit
from fmviz.paths.validation import finished
from fmviz.tables.curves import EVERY
from fmviz.tables.encoded import encode
from fmviz.tables.recipe import columns_of, first_recipe
from fmviz.tables.source import Reading, Source

FIT = Experiment(rank=4, lambda_w=1e-3, lambda_p=1e-3, lambda_sparse=1e-3, validation=0.0, tol=1e-2)


def run_of(table: pd.DataFrame, **changes) -> Run:
    source = Source(Reading(), table)
    recipe = replace(first_recipe(source, columns_of(source)), target="y")

    def dataset(numbers: str) -> Dataset:
        return Dataset.of_table(encode(source, replace(recipe, numbers=numbers)), "t", "t")

    data = replace(dataset("10 hats"), every=lambda: dataset(EVERY))
    loss = "squared" if data.task == "regression" else "logistic"
    return prepare(data, replace(FIT, loss=loss, **changes), np.arange(len(data.y)))


def table_of(rng, n: int, y) -> pd.DataFrame:
    table = pd.DataFrame({"a": rng.uniform(-2, 2, n), "b": rng.uniform(-2, 2, n), "c": rng.normal(size=n)})
    return table.assign(y=y(table) + rng.normal(0, 0.3, n))


def test_every_candidate_wins_on_its_own_data(rng):
    for best, sparsest, y in (
        (None, "mean", lambda t: 0.0 * t.a),
        (None, "columns", lambda t: np.cos(3 * t.a) + t.b),
        ("lines", "lines", lambda t: 2.0 * t.a * t.b),
        ("curves", "curves", lambda t: 2.0 * np.cos(3 * t.a) * np.sign(t.b)),
    ):
        result = finished(contest(run_of(table_of(rng, 400, y), lambda_sparse=1.0)))
        assert result.sparsest == sparsest
        assert best in (None, result.best)
        assert list(result.good) == ["mean", "columns", "pairs", "lines", "curves"]


def test_errors_are_those_of_predictions_for_rows_kept_out(rng, monkeypatch):
    run = run_of(table_of(rng, 90, lambda t: t.a * t.b))
    result = finished(contest(run))
    y, folds = run.problem.y, module.default_folds(run.problem.y, False, np.random.default_rng([0, 4]))
    squares = np.concatenate([np.square(y[out] - y.mean()) for _, out in folds])
    first = result.errors[0]
    scale = run.dataset.target_scaling.scale
    assert first["RMSE (in y)"] == pytest.approx(scale * np.sqrt(squares.mean()))
    error = squares.std() / np.sqrt(90) / (2.0 * np.sqrt(squares.mean()))
    assert first["standard error"] == pytest.approx(scale * error)
    assert result.errors[list(result.good).index(result.best)]["standard errors behind the best"] == 0.0
    ends = [prepare(run.dataset, run.experiment, train).end().parameters for train, _ in folds]
    slow = [
        -np.square(y[out] - run.problem.model.scores(run.problem.of_rows(out).design, end))
        for (_, out), end in zip(folds, ends, strict=True)
    ]
    assert result.good["pairs"] == pytest.approx(np.concatenate(slow), rel=1e-6)


def test_a_machine_of_one_basis_ignores_the_curves_of_others(rng):
    side = in_every_basis(run_of(table_of(rng, 80, lambda t: t.a)))
    bases = side.dataset.bases
    assert {*bases} == {"line", "10 hats", "20 hats", "32 bins", "8 hats and 32 bins"}
    assert bases["line"].sum() == 3
    posterior = finished(sampled(side.problem, Sampling(2, [bases["line"], bases["32 bins"]], 5, 7), 0))
    assert posterior.P.shape == (14, side.problem.design.n_features, 2)
    for place, name in ((slice(7), "line"), (slice(7, 14), "32 bins")):
        assert not posterior.P[place][:, ~bases[name]].any()
        assert posterior.w[place][:, bases[name]].all()


def test_rows_of_a_group_are_held_out_together(rng):
    rows = np.repeat(np.arange(30), 8)
    run = run_of(
        pd.DataFrame(
            {"a": rng.normal(size=30)[rows], "b": rng.normal(size=240), "y": rng.normal(size=30)[rows]}
        )
    )
    alone = finished(contest(run))
    assert alone.best != "mean"
    dataset = replace(run.dataset, group="who", row_groups=rows)
    grouped = finished(contest(replace(run, dataset=dataset)))
    assert grouped.sparsest == "mean"
    assert np.unique(grouped.row_groups).size == 30


def test_classes_are_compared_by_the_area(rng):
    table = table_of(rng, 300, lambda t: 3.0 * t.a * t.b)
    result = finished(contest(run_of(table.assign(y=np.where(table["y"] > 0, "yes", "no")))))
    assert result.errors[0]["AUC (yes against no)"] == pytest.approx(0.5)
    assert result.best in ("lines", "curves", "pairs")
    constant = finished(result.machine("mean"))
    share = (table["y"] > 0).mean()
    assert ndtr(constant.scores(result.run.dataset.X[:3])) == pytest.approx(share)


def test_a_saved_model_predicts_by_the_winner(rng, tmp_path, monkeypatch):
    table = table_of(rng, 300, lambda t: 2.0 * np.cos(3 * t.a) * np.sign(t.b))
    source = Source(Reading(), table)
    recipe = replace(first_recipe(source, columns_of(source)), target="y")
    *_, last = (step for step in first_fit(run_of(table)) if isinstance(step, FirstFit))
    assert last.chosen == "curves"
    numbers = []

    def encoding(asked: str):
        numbers.append(asked)
        return encode(source, replace(recipe, numbers=asked))

    last.saved_model(encoding).save(tmp_path / "m.npz")
    assert numbers == [EVERY]
    loaded = SavedModel.load(tmp_path / "m.npz")
    assert loaded.scores(table)[0] == pytest.approx(
        last.posterior.scores(last.contest.run.dataset.X), abs=1e-5
    )
    # The sparse machine is the same on the features of all bases.
    small = last.run.problem.model.scores(last.run.problem.design, last.end.parameters)
    alone = replace(loaded, averaged=None)
    assert alone.scores(table)[0] == pytest.approx(small, abs=1e-9)


def test_what_takes_too_long_is_left_out(rng, monkeypatch):
    run = run_of(table_of(rng, 60, lambda t: t.a))
    monkeypatch.setattr(module, "_MOST_ENTRIES", 10)
    assert list(finished(contest(run)).good) == ["mean", "columns", "pairs", "lines"]
    monkeypatch.setattr("fmviz.lab.search.averaged._MOST_VISITS", 90 * 200)
    result: Contest = finished(contest(run))
    assert list(result.good) == ["mean", "columns", "pairs"]
    left_out = "Too slow for so many rows and features, and left out: the average over samples and curves."
    assert result.message(result.best).endswith(left_out)
    assert announced(run) == ""
    monkeypatch.setattr(module, "_MANY_ENTRIES", 0)
    assert announced(run).startswith("60 rows and 33 features: strengths are chosen by about forty fits")
    assert announced(run).endswith(left_out)
    assert result.described("columns") == "pairs"
    monkeypatch.setattr(module, "_MOST_VISITS", 90 * 200)
    assert finished(contest(run)).folds == 1
