"""Runs side by side."""

from __future__ import annotations

from ui.driving import page, words

from fmviz.lab import jobs
from fmviz.lab.experiment import Experiment

SMALL = {"rank": 3, "max_epochs": 20, "tol": 0.0, "lambda_sparse": 0.3, "validation": 0.2}


def test_without_runs_there_is_a_way_on(store):
    assert "There are fewer than two runs in the store." in words(page("compare"))


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
    assert "different data" in words(page("compare", runs=",".join(runs)))


def test_the_duel_shows_what_it_found(store):
    app = page("compare", dataset="balance_scale", target="10", fighters="ti,cs")
    app.button(key="compare_duel").click().run()
    app.run()
    assert not app.exception
    table = app.dataframe[-1].value
    assert list(table["label"]) == ["TI", "CS"]
