"""Pages with several outputs: choice of an output, its pairs, confusion matrices."""

from __future__ import annotations

import pytest
from ui.driving import choose, figures, page, press, words

from fmviz.lab.background import tasks
from fmviz.lab.experiment import Experiment
from fmviz.lab.uploads import library
from fmviz.report import html, of_stored
from fmviz.ui import watching

IRIS = {
    **{"dataset": "iris", "loss": "logistic", "rank": 2, "max_epochs": 6, "tol": 0.0},
    **{"lambda_sparse": 1e-3, "lambda_p": 1e-3, "init_scale": 0.3, "validation": 0.2},
}
CSV = "a,b,kind,hot,wet\n" + "".join(
    f"{i % 7},{i % 5 - 2},{('low', 'mid', 'top')[i % 3]},{('no', 'yes')[i % 2]},{i // 3 % 2}\n"
    for i in range(40)
)


@pytest.fixture
def run(store):
    return tasks.manager().start(Experiment(**IRIS)).id


def test_train_shows_one_class_at_a_time(run):
    query = {name: str(value) for name, value in IRIS.items()}
    app = page("train", **query, run=run)
    menu = app.selectbox(key="train_output")
    assert menu.options == ["setosa", "versicolor", "virginica"]
    assert "Confusion matrix" in words(app)
    first = app.dataframe[0].value["Weight"].tolist()
    menu.select_index(2).run()
    assert app.dataframe[0].value["Weight"].tolist() != first


def test_interactions_are_told_of_one_class(run):
    app = page("interactions", run=run)
    assert "log-odds of “setosa”" in app.dataframe[0].value["sentence"].iloc[0]
    app.selectbox(key="interactions_output").select_index(1).run()
    assert "log-odds of “versicolor”" in app.dataframe[0].value["sentence"].iloc[0]
    for view in ("matrix", "row"):
        page("interactions", run=run, view=view, output="2")


def test_three_classes_and_two_labels_of_a_table_are_taken(store, monkeypatch):
    # Nothing here asks again, as a browser does, where reading takes longer.
    monkeypatch.setattr(watching, "_PATIENCE", 60.0)
    app = choose(page("data"), data_paste=CSV)
    press(app, "data_use_paste")
    choose(app, data_target="kind")
    assert "3 classes, one machine each" in words(app)
    choose(app, data_task="ordinal")
    assert "3 ordered classes" in words(app)
    choose(app, data_target="hot")
    app.multiselect[0].set_value(["wet"]).run()
    assert "2 labels, one machine each: **hot** (20), **wet** (19)" in words(app)


def test_a_shared_basis_shows_its_bases_and_its_gap(store):
    shared = {
        **{"dataset": "iris", "model": "shared_basis", "regularizer": "l21", "loss": "logistic", "rank": 4},
        **{"max_epochs": 3, "lambda_sparse": 1e-3, "lambda_p": 0.0, "validation": 0.2},
        "solver": "conditional_gradient",
    }
    job = tasks.manager().start(Experiment.from_dict({**shared, "solver_bases": 1}))
    app = page("train", **{name: str(value) for name, value in shared.items()}, solver_bases="1", run=job.id)
    said = words(app)
    assert "the rows of V" in said
    assert figures(app)["Bases"] == "3"
    assert app.segmented_control(key="train_against").value == "used_bases"
    assert "score for “virginica”" in words(page("interactions", run=job.id, output="2"))


def test_labels_of_a_table_share_a_basis_from_the_file_to_the_words(store, monkeypatch):
    monkeypatch.setattr(watching, "_PATIENCE", 60.0)
    file = library.keep_file(CSV.encode())
    app = page("data", file=file, outputs="shared", target="hot", also="wet")
    assert "all on one shared basis" in words(app)
    assert not [box for box in app.number_input if box.key == "data_rank"], "how many bases is chosen by λ"
    press(app, "data_read")
    assert app.title[0].value == "Interactions"
    (run,) = store.runs()
    assert run.settings["model"] == "shared_basis"
    report = html(of_stored(run, store))
    assert all(name in report for name in ("hot", "wet"))
    assert "hot" in words(page("interactions", run=run.id))
