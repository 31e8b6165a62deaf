"""The page of sweeps."""

from __future__ import annotations

import pytest
from ui.driving import finish, page, words, written

from fmviz.lab.background.workers import WORKERS
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.search.sweep_run import carry_out, fits_table, main_metric, means_table

PLAN = SweepPlan(
    datasets=[{"dataset": "balance_scale"}],
    methods=[{"regularizer": "ti"}, {"regularizer": "cs"}],
    grid={"lambda_sparse": [0.001, 0.01]},
    seeds=range(2),
    base={"rank": 3, "max_epochs": 20, "validation": 0.2},
)


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Fit without other processes, which tests/lab has."""
    monkeypatch.setattr(WORKERS, "most", 0)


def test_a_sweep_is_declared_and_carried_out(store):
    given = {"penalties": "ti,cs", "points": "2", "seeds": "2", "low": "0.001", "high": "0.01"}
    app = page("sweeps", dataset="balance_scale", starts="random", **given)
    assert app.button(key="sweeps_start").label == "Run 8 fits"
    finish(app, "sweeps_start")
    assert "8 of 8 fits" in words(app)
    assert store.count() == 8
    table = app.dataframe[0].value
    assert list(table["fits"]) == [2] * 4
    first = table.iloc[0]
    assert f"Best: {first['method']} at λ = {first['lambda_sparse']:g}." in words(app)
    end, beyond = ("largest", "above") if first["lambda_sparse"] > 0.001 else ("smallest", "below")
    assert f"The {end} λ of the grid: a better one may lie {beyond} it." in words(app)
    finish(app, "sweeps_start")
    assert "8 of them from the store" in words(app)
    assert store.count() == 8


def test_a_visit_and_a_link_without_a_start_walk_the_grid(store):
    app = page("sweeps")
    assert "starts" not in written(app)
    assert "sweeps_points" not in {item.key for item in app.number_input}
    app.segmented_control(key="sweeps_starts").set_value("random").run()
    assert written(app)["starts"] == "random"
    assert page("sweeps", dataset="monks1").segmented_control(key="sweeps_starts").value == "warm"


def test_nothing_to_fit_is_a_sentence(store):
    assert "This sweep has 0 fits" in words(page("sweeps", penalties="none"))


def test_tables_of_a_sweep(store):
    result = [(fit.index, fit.run) for fit in carry_out(PLAN, store, n_jobs=1)]
    table = fits_table(PLAN, result)
    metric = main_metric(table)
    means = means_table(table, list(PLAN.grid), metric)
    assert list(means["fits"]) == [2] * 4
    first = table[(table["method"] == "CS") & (table["lambda_sparse"] == 0.01)]
    row = means[(means["method"] == "CS") & (means["lambda_sparse"] == 0.01)].iloc[0]
    assert row["mean"] == pytest.approx(first[metric].mean())
    assert row["interactions"] == pytest.approx(first["used_interactions"].mean())
    assert metric.endswith("auc")
    assert means["mean"].is_monotonic_decreasing
