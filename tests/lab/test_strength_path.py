"""Paths along λ for several regularizers, and the search for a number of interactions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from programs import printed

from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.interpretation.threshold import lambda_max
from fmviz.lab.runner import Run
from fmviz.lab.search.equal_sparsity import at_number
from fmviz.lab.search.strength_path import (
    METHODS,
    PathPlan,
    metrics_in,
    path_program,
    path_table,
    range_of_walks,
    range_to_empty,
    strengths,
    suggested_range,
    trace,
)

BASE = Experiment(
    dataset="balance_scale", loss="logistic", rank=3, lambda_p=1e-3, max_epochs=60, validation=0.25, seed=3
)
PLAN = PathPlan(BASE, ("ti", "cs", "l1"), (0.001, 0.01, 0.1), "cold")


def test_a_cold_path_is_made_of_the_runs_that_its_settings_describe():
    fits = list(trace(PLAN))
    for name in PLAN.regularizers:
        mine = [fit for fit in fits if fit.experiment.regularizer.name == name]
        assert tuple(fit.experiment.lambda_sparse for fit in mine) == PLAN.lambdas
        assert all(fit.parameters is not None for fit in mine)
    for fit in fits:
        end = Run.prepare(fit.experiment).end()
        assert end.objective == fit.values["objective"]
        assert end.used_interactions == fit.values["used_interactions"]
        assert end.epoch == fit.values["epochs"]
        assert end.metrics["validation_auc"] == fit.values["validation_auc"]


@pytest.mark.parametrize("order", ["up", "down"])
def test_warm_paths_begin_with_the_cold_fit(order):
    fits = list(trace(replace(PLAN, regularizers=("ti",), order=order)))
    first = fits[0]
    assert first.experiment.lambda_sparse == (0.001 if order == "up" else 0.1)
    assert Run.prepare(first.experiment).end().objective == first.values["objective"]
    assert {fit.experiment.lambda_sparse for fit in fits} == set(PLAN.lambdas)


def test_an_informed_path_goes_the_way_its_regularizer_needs_and_a_search_along_it_agrees():
    base = replace(suggested("planted_interactions"), validation=0.2, start="informed", max_epochs=200)
    plan = PathPlan(base, ("ti", "l1"), strengths(0.2, 20.0, 7), "onwards")
    fits = list(trace(plan))
    first = {fit.experiment.regularizer.name: fit.experiment.lambda_sparse for fit in reversed(fits)}
    assert first == {"ti": 20.0, "l1": 0.2}
    best = path_table(fits).groupby("regularizer")["support_f1"].max()
    assert best["ti"] > 0.95
    assert best["l1"] > 0.8
    *_, result = at_number(Run.prepare(replace(base, regularizer="ti")), 360)
    assert result.status == "found"
    assert result.metrics["support_f1"] > 0.95


def test_whole_paths_are_taken_over_and_others_are_not():
    fits = list(trace(PLAN))
    fewer = replace(PLAN, regularizers=("cs", "l21"))
    known = fewer.known(PLAN, fits)
    assert [fit.experiment.regularizer.name for fit in known] == ["cs"] * 3
    assert fewer.known(PLAN, [fit for fit in fits if fit is not known[0]]) == ()
    assert replace(fewer, order="up").known(PLAN, fits) == ()
    both = list(trace(fewer, known=known))
    assert both[:3] == list(known)
    assert [fit.experiment.regularizer.name for fit in both[3:]] == ["l21"] * 3


def test_a_stopped_path_holds_no_half_fit():
    asked = iter(range(1_000))
    fits = list(trace(PLAN, should_stop=lambda: next(asked) > 10))
    assert len(fits) < PLAN.total
    for fit in fits:
        assert fit.values["status"] != "stopped"
    assert list(trace(PLAN, should_stop=lambda: True)) == []


def test_the_table_is_ordered_and_knows_its_metrics():
    table = path_table(list(trace(replace(PLAN, order="down"))))
    assert list(table["regularizer"]) == ["l1"] * 3 + ["ti"] * 3 + ["cs"] * 3
    assert list(table["lambda_sparse"][:3]) == [0.001, 0.01, 0.1]
    assert next(iter(metrics_in(table))) == "validation_auc"
    assert "validation_loss" in metrics_in(table)
    assert path_table([]).empty


def test_grids_of_strengths():
    assert strengths(1e-3, 10.0, 5) == (0.001, 0.01, 0.1, 1.0, 10.0)
    assert strengths(1.0, 1.00001, 9) == (1.0,)
    with pytest.raises(ValueError, match="must be positive and below the highest"):
        strengths(1.0, 0.1, 5)
    low, high = suggested_range("planted_interactions")
    assert low < 0.1 < high
    # λ_max of TI lies below the upper end, and not far below.
    base = replace(BASE, lambda_p=1e-4)
    low, high = range_to_empty(base, ("l1", "ti"))
    top = lambda_max(base)[1]
    assert high / 2 < top <= high
    assert low == pytest.approx(high / 1_000)
    # ℓ1 has none, but a reference; where nothing is known the range is that of earlier versions.
    assert range_to_empty(base, ("l1",))[1] > top
    assert range_to_empty(replace(base, dataset="own_" + "0" * 20), ("ti",)) == suggested_range(
        "own_" + "0" * 20
    )
    # A walk of any of them ends inside.
    each = [range_to_empty(base, (name,)) for name in ("l1", "ti")]
    assert range_of_walks(base, ("l1", "ti")) == (each[1][0], each[0][1])
    assert "l2" not in METHODS
    assert {"l1", "l21", "ti", "cs"} <= set(METHODS)


def test_a_loss_that_does_not_suit_the_data_is_a_sentence():
    plan = replace(PLAN, base=replace(BASE, dataset="planted_interactions"))
    with pytest.raises(ValueError, match="needs classes"):
        list(trace(plan))


def test_the_program_of_a_path_prints_its_counts():
    plan = replace(PLAN, regularizers=("ti", "cs"), order="up")
    table = path_table(list(trace(plan)))
    rows = [line.split() for line in printed(path_program(plan))[1:]]
    assert [(row[0], float(row[1]), int(row[2]), int(row[3])) for row in rows] == [
        (row.regularizer, row.lambda_sparse, row.used_interactions, row.used_features)
        for row in table.itertuples()
    ]


def test_a_search_ends_with_what_a_run_repeats():
    *_, last = at_number(Run.prepare(replace(BASE, regularizer="ti")), 4, (3, 5))
    assert last.status == "found"
    assert 3 <= last.used_interactions <= 5
    assert Run.prepare(last.experiment).end().used_interactions == last.used_interactions


def test_what_cannot_be_reached_is_said_with_its_neighbours():
    # Whole features of four give 0, 1, 3 or 6 pairs.
    fits = list(at_number(Run.prepare(replace(BASE, regularizer="cs")), 2, (2, 2)))
    assert fits[-1].status == "nearest"
    assert {fit.used_interactions for fit in fits} <= {0, 1, 3, 6}
    assert fits[-1].used_interactions in (1, 3)
    assert "No λ of the grid leaves 2 interactions" in fits[-1].message
