from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.interpretation import comparison
from fmviz.lab.interpretation.comparison import FOUND, conclusion, error_words, stability, weights_of
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.search.equal_sparsity import at_equal_sparsity, ends_table, refitted, suggested_target
from fmviz.metrics import COLUMNS
from fmviz.paths import accepted_range

FM = get_model("fm")
NAN = float("nan")


def fm(P):
    P = np.asarray(P, dtype=float)
    return weights_of(FM, Parameters(P, np.zeros(len(P)), 0.0))


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
    with pytest.raises(ValueError, match="no pair weights"):
        weights_of(cubic, Parameters(np.ones((4, 2)), np.zeros(4), 0.0, coefficients=np.ones(2)))
    monkeypatch.setattr(comparison, "MOST_FEATURES", 3)
    with pytest.raises(ValueError, match="these runs have 4"):
        fm(np.ones((4, 1)))


def test_what_is_concluded_from_three_seeds_is_so():
    base = replace(suggested("planted_interactions", "fm"), validation=0.2, start="informed", max_epochs=100)
    accept, names = accepted_range(360), ["l1", "ti", "cs"]
    fits = list(at_equal_sparsity(base, names, 360, accept=accept, seeds=3))
    assert all(not fit.metrics for fit in fits if fit.status == "searching")
    assert list(at_equal_sparsity(base, ["ti"], 300, should_stop=lambda: True)) == []
    table = ends_table(fits, names, accept, COLUMNS["validation_rmse"])
    assert table["interactions"].between(*accept).all()
    for fit in table["fit"]:
        free = Run.prepare(fit.experiment).problem.at(lambda_sparse=0.0)
        again = refitted(free, fit.parameters)
        assert not again.P[fit.parameters.P == 0].any(), "what is 0 stays 0"
        assert free.objective(again) <= free.objective(fit.parameters)
    said = conclusion(table, COLUMNS["validation_rmse"], 360, accept)
    lowest, highest = (table.groupby("label")["F1"].agg(which) for which in ("min", "max"))
    # TI finds the true pairs whatever the seed, ℓ₁ not always, CS never.
    assert "TI recovers the true pairs (F1 ≥ 0.95) on 3 of 3 seeds, ℓ₁ on" in said
    assert ", CS on none." in said
    assert lowest["TI"] >= FOUND > max(lowest["ℓ₁"], highest["CS"])
    # Nobody is called the best where seeds differ by more: ℓ₁ has the lowest error of all, and a high one.
    errors = table.set_index(["label", "seed"])[["value", "refitted"]]
    means, spread = (errors.groupby("label").agg(which) for which in ("mean", "std"))
    assert "lowest for TI and ℓ₁ (" in said
    assert ((means.loc["ℓ₁"] - means.loc["TI"]).abs() < spread.loc["ℓ₁"]).all()
    assert (errors.loc["TI"]["refitted"] < errors.loc["TI"]["value"]).all(), "λ shrinks"


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        (
            {"TI": [(6.0, 5.0)], "ℓ₁": [(21.0, 5.04)]},
            "for TI (6); refitted without λ, for TI and ℓ₁ (5 and",
        ),
        ({"TI": [(9.0, 2.0)], "ℓ₁": [(5.0, 4.0)]}, "for ℓ₁ (5); refitted without λ, for TI (2)"),
        ({"TI": [(1.0, 1.0), (3.0, 3.0)], "ℓ₁": [(2.2, 9.0)] * 2}, "TI and ℓ₁ (2 and 2.2; within the spread"),
        ({"TI": [(1.0, NAN)], "ℓ₁": [(2.0, NAN)]}, "lowest for TI (1)"),
    ],
)
def test_no_winner_is_called_on_noise(errors, said):
    rows = [(label, *pair) for label, pairs in errors.items() for pair in pairs]
    table = pd.DataFrame(rows, columns=["label", "value", "refitted"])
    assert said in error_words(table, COLUMNS["validation_rmse"])


def test_a_number_that_is_not_reached_is_answered_with_the_nearest_fit():
    base = Experiment(rank=2, validation=0.2, max_epochs=30, lambda_p=0.1)
    *tried, nearest = at_equal_sparsity(base, ["l1"], 1_500, accept=(1_500, 1_500))
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
