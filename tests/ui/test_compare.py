"""Runs side by side."""

from __future__ import annotations

from ui.driving import page, words

from fmviz.lab import jobs
from fmviz.lab.experiment import Experiment
from fmviz.ui.views.compare import MOST

SMALL = {"rank": 3, "max_epochs": 20, "tol": 0.0, "lambda_sparse": 0.3, "validation": 0.2}


def test_without_runs_there_is_a_way_on(store):
    assert "There are fewer than two runs with a result in the store." in words(page("compare"))


def test_links_to_too_many_runs_and_to_none(store):
    made = [store.begin(Experiment(**SMALL, seed=seed)) for seed in range(MOST + 2)]
    assert "26 runs are asked for; the first 24 are shown" in words(page("compare", runs=",".join(made)))
    told = words(page("compare", runs="gone,lost"))
    assert "2 of the 2 runs of this link are not in this store." in told
    assert "the others are shown" not in told


def test_failed_runs_do_not_hide_the_older_ones(store):
    for seed in range(2):
        jobs.manager().start(Experiment(**SMALL, seed=seed))
    for _ in range(8):
        store.grow(store.begin(Experiment(**SMALL)), status="failed", message="No data.")
    assert page("compare").button(key="compare_newest").label == "Compare the newest 2"


def test_runs_of_two_seeds_and_another_method(store):
    made = [Experiment(**SMALL), Experiment(**SMALL, seed=1), Experiment(**SMALL, regularizer="cs")]
    runs = [jobs.manager().start(experiment).id for experiment in made]
    app = page("compare")
    app.button(key="compare_newest").click().run()
    assert not app.exception
    app = page("compare", runs=",".join([*runs, "gone"]))
    assert "1 of the 4 runs of this link are not in this store" in words(app)
    table = app.dataframe[0].value.set_index("what")
    assert list(table.loc["regularizer"]) == ["ti", "ti", "cs"]
    assert "rank" not in table.index
    assert "pairs are used by both" in words(app)
    assert "seeds 0, 1" in words(app)
    app.toggle(key="compare_only").set_value(False).run()
    assert "rank" in set(app.dataframe[0].value["what"])
    app.selectbox(key="compare_curve").set_value("validation_rmse").run()
    app.selectbox(key="compare_other").set_value(2).run()
    assert not app.exception


def test_runs_on_other_data_are_not_subtracted(store):
    made = [Experiment(**SMALL), Experiment(**SMALL, dataset="planted_features")]
    runs = [jobs.manager().start(experiment).id for experiment in made]
    told = words(page("compare", runs=",".join(runs)))
    assert "These two runs have different data" in told
    assert "values of one data set say nothing about another" in told


def test_runs_whose_data_are_gone_are_compared_all_the_same(store, monkeypatch):
    runs = [jobs.manager().start(Experiment(**SMALL, seed=seed)).id for seed in range(2)]

    def gone(*args, **kwargs):
        raise ValueError("The folder is not there.")

    monkeypatch.setattr("fmviz.ui.compare_pairs.load_dataset", gone)
    app = page("compare", runs=",".join(runs))
    assert not app.error
    told = words(app)
    assert "numbered from 1, since their names cannot be read. The folder is not there." in told
    assert "pairs are used by both" in told
    assert "each penalty searches the strength" in told


def test_the_duel_shows_what_it_found(store):
    app = page("compare", dataset="balance_scale", target="10", fighters="ti,cs")
    app.button(key="compare_duel").click().run()
    app.run()
    assert not app.exception
    table = app.dataframe[-1].value
    assert list(table["label"]) == ["TI", "CS"]
