"""Figures and HTML forms of fits, paths and runs, from Python."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from plotly.io import _renderers
from programs import ROOT
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import fmviz
from fmviz.engine.fit import never
from fmviz.figures.palette import regularizer_color
from fmviz.lab.runner import Run
from fmviz.lab.store import store
from fmviz.lab.store.recorder import Recorder

X, Y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
NAMES = ["<b>first</b>", *map(str, range(1, 20))]
PATH = pd.DataFrame({"lambda_sparse": [1.0], "used_interactions": 3, "loss": 1.0})
SETTINGS = {"lambda_p": 0.1, "lambda_sparse": 0.1, "random_state": 0}


@pytest.fixture(scope="module")
def machine():
    return fmviz.FactorizationMachineRegressor(**SETTINGS).fit(pd.DataFrame(X, columns=NAMES), Y)


def test_the_matrix_has_the_weights_of_used_pairs_alone(machine):
    (heat,) = fmviz.plot.interactions(machine).data
    used = machine.used_features_
    weights = machine.P_[used] @ machine.P_[used].T
    drawn = np.isfinite(heat.z)
    np.testing.assert_allclose(heat.z[drawn], weights[drawn])
    assert drawn.sum() == 2 * machine.n_used_interactions_
    assert heat.x[0] == "&lt;b&gt;first&lt;/b&gt;"


def test_effects_are_those_of_the_columns_of_a_table():
    table = pd.DataFrame({"<i>x": X[:, 0], "word": np.where(X[:, 1] > 0, "a", "b"), "z": X[:, 2]})
    y = X[:, 0] * (X[:, 1] > 0)
    model = make_pipeline(
        fmviz.TableEncoder(numbers="line"), fmviz.FactorizationMachineRegressor(random_state=0)
    ).fit(table, y)
    assert fmviz.plot.effects(model, X=table).layout.xaxis.title.text == "&lt;i&gt;x"
    low, high = (fmviz.plot.effects(model, "word", "<i>x", X=table).data[i].y for i in (1, 0))
    assert abs(np.ptp(low - high)) > 1
    assert np.all(np.diff(fmviz.plot.effects(model, "<i>x", X=table).data[0].y) > 0)
    sampled = fmviz.BayesianFMRegressor(n_draws=20, burn_in=5, random_state=0).fit(X[:, :3], y)
    assert len(fmviz.plot.effects(sampled, "0", X=X[:, :3]).data) == 3  # with a band


def test_findings_are_tables_sentences_and_a_page(tmp_path):
    table = pd.DataFrame({"<i>x": X[:, 0], "word": np.where(X[:, 1] > 0, "a", "b"), "z": X[:, 2]})
    y = 3 * X[:, 0] * (X[:, 1] > 0) + 0.1 * X[:, 3]
    encoder = fmviz.TableEncoder(numbers="line").fit(table, y)
    machine = fmviz.FactorizationMachineRegressor(random_state=0).fit(encoder.transform(table), y)
    findings = fmviz.findings(machine, table, y, encoder=encoder)
    first = findings.pairs.iloc[0]
    assert (first["first"], first["second"], findings.pairs["stands_out"].sum()) == ("<i>x", "word", 1)
    assert first["counted"] == pytest.approx(first["effect"], rel=0.3)
    means = first[["both", "first_only", "second_only", "neither"]].to_numpy(float)
    assert means @ [1, -1, -1, 1] == pytest.approx(first["effect"])
    assert [*findings.columns["name"][findings.columns["stands_out"]]] == ["<i>x"]
    assert {*findings.surface("word", "<i>x").index} == {"a", "b"}
    assert (len(findings.curve("z")), findings.candidates.empty) == (60, True)
    assert {*re.findall(r"\Wi\W\w*x|&lt;i&gt;x", findings._repr_html_())} == {"&lt;i&gt;x"}
    page = findings.save(tmp_path / "page.html").read_text(encoding="utf-8")
    assert first["sentence"].replace("<", "&lt;").replace(">", "&gt;") in page
    assert fmviz.plot.effects(findings, "z").layout.xaxis.title.text == "z"


@pytest.mark.parametrize("kind", ["FactorizationMachineClassifier", "BayesianFMClassifier"])
def test_findings_on_classes_are_log_odds(kind):
    labels = np.where(X[:, 0] > 0.5, "high", np.where(X[:, 1] > 0, "mid", "low"))
    settings = {"n_draws": 20, "burn_in": 5} if kind.startswith("B") else {"lambda_p": 1e-3}
    machine = getattr(fmviz, kind)(**settings).set_params(random_state=0).fit(X[:, :4], labels)
    findings = fmviz.findings(machine, X[:, :4], labels, output="high")
    assert findings.columns["name"][findings.columns["stands_out"]].tolist() == ["0"]
    assert " log-odds (" in findings.columns["sentence"].iloc[0]


def test_paths_are_drawn_by_regularizer_and_order(machine):
    path = fmviz.regularization_path(X, Y, [0.5, 0.1], orders=["cold", "up"], lambda_p=0.1, random_state=0)
    lines = fmviz.plot.path({"ti": path, "<b>": path[:1]}, "loss").data
    assert [trace.name for trace in lines] == ["TI cold", "TI up", "&lt;b&gt;"]
    (down,) = fmviz.plot.path(path[:2]).data
    assert list(down.x) == [0.1, 0.5]
    assert list(down.y) == path["used_interactions"][:2].tolist()
    tuned = fmviz.FactorizationMachineRegressorCV(rank=2, random_state=0).fit(X[:60], Y[:60])
    assert sum(len(trace.x) for trace in fmviz.plot.path(tuned, "validation_loss").data) == len(tuned.path_)


def test_several_fits_of_one_problem_are_drawn_above_their_lowest_objective(machine):
    other = clone(machine).set_params(solver="pbcd", max_iter=20, tol=0.0).fit(X, Y)
    figure = fmviz.plot.training({"PCD": machine, "PBCD": other}, "seconds")
    assert [trace.name for trace in figure.data] == ["PCD", "PBCD"] * 2
    last = other.history_.iloc[-1]
    assert figure.data[1].y[-1] == pytest.approx(last["objective"] - machine.history_["objective"].min())
    assert figure.data[3].y[-1] == last["certificate"]
    assert "PCD at epoch" in figure.layout.xaxis2.title.text
    assert len(fmviz.plot.training([machine, other.history_]).data) == 4


def test_weights_along_a_path_and_frequencies_of_pairs_are_drawn():
    path = fmviz.regularization_path(X, Y, [0.5, 0.1], lambda_p=0.1, random_state=0)
    figure = fmviz.plot.path(path, "weights", truth=W)
    P = path.points[path["lambda_sparse"].tolist().index(0.1)].snapshot.parameters.P
    i, j = map(int, figure.data[-1].name.split(" × "))
    assert (list(figure.data[-1].x), figure.data[-1].y[0]) == ([0.1, 0.5], pytest.approx(P[i] @ P[j]))
    table = fmviz.selection_frequencies(X, Y, [0.1, 0.5], starts=1, halves=2, lambda_p=0.1, random_state=0)
    heat, strip = fmviz.plot.selection(table, 0.1, truth=W).data
    assert (heat.z[0][1], strip.z.shape) == (1.0, (12, 2))


def test_operators_act_on_the_factors_of_a_fit(machine):
    lines = fmviz.plot.operators(machine, ["l1", "ti"], "used features").data
    assert [line.name for line in lines] == ["ℓ₁", "TI"]
    assert lines[0].y[0] == np.any(fmviz.prox("l1", machine.P_, 2**-7), axis=1).sum()


@pytest.fixture(scope="module")
def stored():
    """A run of two columns of words in the default store, and its snapshots."""
    experiment = fmviz.Experiment(
        dataset="flights",
        loss="logistic",
        rank=3,
        max_epochs=5,
        validation=0.2,
        lambda_p=1e-4,
        lambda_sparse=1e-5,
    )
    recorder = Recorder(store, experiment)
    snapshots = [*recorder.snapshots(lambda: Run.prepare(experiment), never)]
    return store().get(recorder.id), snapshots


def test_runs_are_drawn_from_estimators_snapshots_records_and_the_store(machine, stored):
    run, snapshots = stored
    records = pd.DataFrame([snapshot.record() for snapshot in snapshots])
    for given in (run, iter(snapshots), records):
        figure = fmviz.plot.training(given)
        above = records["objective"] - records["objective"].min()
        np.testing.assert_allclose(figure.data[0].y, above.where(above > 0), rtol=1e-9)
        assert "this run at epoch 5" in figure.layout.xaxis5.title.text
        assert {"training", "validation"} <= {trace.name for trace in figure.data}
    figure = fmviz.plot.comparison([run, machine])
    assert [len(trace.x) for trace in figure.data] == [len(records), len(machine.history_)]
    assert figure.data[1].line.color == regularizer_color("ti")
    (line,) = fmviz.plot.comparison({"<b>": run, "other": machine}, "validation_accuracy").data
    assert line.name == "&lt;b&gt;"


def test_a_stored_run_is_read_with_its_data(stored):
    run, snapshots = stored
    assert any(name.startswith("carrier=") for name in fmviz.plot.interactions(run).data[0].x)
    assert fmviz.plot.effects(run, "carrier").layout.xaxis.title.text == "carrier"
    P = snapshots[-1].parameters.P
    assert fmviz.plot.operators(run, ["l1"]).data[0].y[0] == fmviz.plot.operators(P, ["l1"]).data[0].y[0]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: fmviz.plot.interactions(3), "int cannot be drawn.* a stored run"),
        (lambda: fmviz.plot.interactions(fit(rank=0)), "uses no pair.* smaller λ"),
        (lambda: fmviz.plot.effects(fit()), "X=X_train"),
        (lambda: fmviz.plot.effects(fit(), "20", X=X), "columns = '20'"),
        (lambda: fmviz.plot.effects(fit(), "1", "1", X=X), "one or two distinct"),
        (lambda: fmviz.plot.effects(fit(model="all_subsets", max_iter=3, tol=0), X=X), r"interactions\(\)"),
        (lambda: fmviz.findings(fit(), X, Y).curve("Z"), "column = 'Z' is not known; choose one of 0, 1"),
        (lambda: fmviz.findings(fit(), X, Y[:3]), "y has shape .3,., and X has 200 rows"),
        (lambda: fmviz.findings(classes(), X, ["none"] * 200), "'none'; the classes of this fit are a, b"),
        (lambda: fmviz.findings(fmviz.TableEncoder(), X, Y), "TableEncoder cannot be drawn"),
        (lambda: fmviz.plot.path(3), "fmviz.regularization_path"),
        (lambda: fmviz.plot.path(pd.DataFrame({"lambda_sparse": [1.0], "loss": 1.0})), "is not a path"),
        (lambda: fmviz.plot.path(PATH, "rmse"), "one of loss"),
        (lambda: fmviz.plot.selection(PATH), "smaller strengths"),
        (lambda: fmviz.plot.operators([1.0], ["l3"]), "choose one of l2, l1"),
        (lambda: fmviz.plot.training([1]), "not a run"),
        (lambda: fmviz.plot.training([]), "for at least one"),
        (lambda: fmviz.plot.comparison([fit()], "rmse"), "one of loss, objective"),
        (lambda: fmviz.plot.comparison(fit()), "one or more runs"),
        (lambda: fmviz.plot.path({}), "one or more paths"),
        (lambda: fmviz.plot.operators(fit(), []), "one or more names"),
        (lambda: fmviz.plot.effects(fit(rank=0), X=X), "rank of at least 1"),
        (lambda: fmviz.plot.training(fmviz.FactorizationMachineRegressor()), "not fitted yet"),
    ],
)
def test_errors_name_a_way_out(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def classes():
    return fmviz.BayesianFMClassifier(rank=1, n_draws=2, burn_in=0).fit(X, np.where(Y > 0, "a", "b"))


def fit(**settings):
    return fmviz.FactorizationMachineRegressor(**{**SETTINGS, **settings}).fit(X, Y)


# -------------------------------------------------------------------------------------------- in notebooks


def test_figures_are_shown_with_what_the_notebook_extra_installs(machine, monkeypatch):
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extra = dict(re.findall(r'"(\w+)>=([\d.]+)"', re.search("(?m)^notebook = .*$", project)[0]))
    monkeypatch.setattr(_renderers, "nbformat", SimpleNamespace(__version__=extra.get("nbformat", "0")))
    monkeypatch.setattr(_renderers, "ipython_display", SimpleNamespace(display=lambda bundle, raw: None))
    fmviz.plot.interactions(machine).show("plotly_mimetype")


def test_a_fit_has_a_table_below_its_diagram(machine):
    shown = machine._repr_html_()
    assert shown.partition("<table><tr>")[2] in machine._repr_mimebundle_()["text/html"]
    for words in ("TI; λ = 0.1, λ_p = 0.1", "PCD", "18 interactions of 12 features", "Converged after"):
        assert words in shown
    first, *_ = machine.interactions(top=1).itertuples(index=False)
    names = " × ".join(name.replace("<", "&lt;").replace(">", "&gt;") for name in first[:2])
    assert f"{names} adds {first.weight:.3g} to f" in shown
    assert "<b>first" not in shown
    assert "Strongest" not in clone(machine)._repr_html_(), "a diagram alone before the fit"
    assert "sk-" in make_pipeline(machine)._repr_html_()
    with config_context(display="text"):
        assert not hasattr(machine, "_repr_html_")


def test_several_outputs_and_samples_have_their_strongest_pairs():
    classes = fmviz.FactorizationMachineClassifier(rank=2, max_iter=5, tol=0, random_state=0).fit(
        X, np.digitize(Y, [-1, 1])
    )
    assert fmviz.plot.interactions(classes) == fmviz.plot.interactions(classes, output=0)
    assert re.search(r"\d+ × \d+ adds \S+ to f of output [012]\b", classes._repr_html_())
    sampled = fmviz.BayesianFMRegressor(n_draws=5, burn_in=5, random_state=0).fit(X, Y)
    assert " to f" in sampled._repr_html_()


def test_runs_and_snapshots_have_a_table(stored):
    run, snapshots = stored
    shown = replace(run, title="<b>mine</b>")._repr_html_()
    for words in (
        "&lt;b&gt;mine&lt;/b&gt;",
        "flights",
        "rank 3",
        "TI; λ = 10⁻⁵",
        "Stopped at the limit of 5 epochs",
    ):
        assert words in shown
    assert f"{snapshots[-1].objective:.6g}" in snapshots[-1]._repr_html_()
