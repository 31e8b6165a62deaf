from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation import comparison
from fmviz.lab.interpretation.comparison import (
    Weights,
    stability,
)
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.search.equal_sparsity import at_equal_sparsity, suggested_target

FM = get_model("fm")


def fm(P):
    P = np.asarray(P, dtype=float)
    return Weights.of(FM, Parameters(P, np.zeros(len(P)), 0.0))


def test_pairs_are_counted_over_runs():
    runs = [fm([[1], [1], [0], [2]]), fm([[1], [-1], [0], [0]]), fm([[0], [0], [1], [3]])]
    table = stability(runs, ["a", "b", "c", "d"])
    assert (table["Feature"][0], table["with feature"][0]) == ("a", "b")
    assert table["Selected in"][0] == pytest.approx(2 / 3)
    assert table["Mean weight"][0] == 0.0
    assert len(table) == 4
    row = table[(table["Feature"] == "c") & (table["with feature"] == "d")].iloc[0]
    assert (row["Mean weight"], row["Same sign"]) == (3.0, 1.0)


def test_models_without_pairs_and_too_many_features_are_refused(monkeypatch):
    cubic = get_model("expansion", {"degree": 3})
    with pytest.raises(ValueError, match="no weights of pairs"):
        Weights.of(cubic, Parameters(np.ones((4, 2)), np.zeros(4), 0.0, coefficients=np.ones(2)))
    monkeypatch.setattr(comparison, "MOST_FEATURES", 3)
    with pytest.raises(ValueError, match="These runs have 4 features"):
        fm(np.ones((4, 1)))


def test_a_duel_brings_all_to_the_same_number():
    base = Experiment(rank=5, validation=0.2, max_epochs=200, lambda_p=0.1)
    fits = list(at_equal_sparsity(base, ["ti", "cs"], 300))
    last = {fit.experiment.regularizer.name: fit for fit in fits}
    for name in ("ti", "cs"):
        fit = last[name]
        assert fit.status == "found"
        assert 300 <= fit.used_interactions <= 325
        assert fit.metrics["validation_rmse"] > 0
        end = Run.prepare(fit.experiment).end()
        assert end.used_interactions == fit.used_interactions
        assert end.metrics["validation_rmse"] == fit.metrics["validation_rmse"]
    assert all(not fit.metrics for fit in fits if fit.status == "searching")
    assert list(at_equal_sparsity(base, ["ti"], 300, should_stop=lambda: True)) == []


def test_a_number_that_is_not_reached_is_answered_with_the_nearest_fit():
    base = Experiment(rank=2, validation=0.2, max_epochs=30, lambda_p=0.1)
    fits = list(at_equal_sparsity(base, ["l1"], 1_500, accept=(1_500, 1_500)))
    *tried, nearest = fits
    assert tried[-1].status == "not reachable"
    assert nearest.status == "nearest"
    assert nearest.message == tried[-1].message
    assert nearest.metrics["validation_rmse"] > 0
    reached = [fit.used_interactions for fit in tried if fit.used_interactions]
    assert nearest.used_interactions == min(reached, key=lambda used: max(used / 1_500, 1_500 / used))
    assert nearest.parameters is not None


def test_the_number_to_compare_at_follows_the_data():
    assert suggested_target(load_dataset("planted_interactions")) == 360
    assert suggested_target(load_dataset("monks1")) == 3
    assert suggested_target(load_dataset("diabetes")) == 4
