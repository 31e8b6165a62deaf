from __future__ import annotations

import pandas as pd
import pytest

import fmviz
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.comparison import FOUND, conclusion, error_words
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.search.equal_sparsity import (
    REGULARIZERS,
    SEEDS,
    TARGET,
    at_equal_sparsity,
    comparison_base,
    ends_table,
    matched,
    refitted,
    shipped,
    suggested_target,
)
from fmviz.lab.search.strength_path import PathPlan, path_table, trace
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.search.sweep_run import carry_out, fits_table
from fmviz.lab.store import RunStore
from fmviz.metrics import COLUMNS
from fmviz.paths import accepted_range, grid
from fmviz.typography import with_spread
from tools.results import fits_of_default

NAN = float("nan")


def test_what_is_concluded_from_three_seeds_is_so():
    accept, names, base = accepted_range(360), ["l1", "ti", "cs"], comparison_base("planted_interactions", 0)
    fits = shipped(base, names, 360, 3)
    table = ends_table(fits, names, accept, COLUMNS["validation_rmse"])
    assert list(table["interactions"].between(*accept)) == list(~table["nearest"])
    for fit in table["fit"]:
        free = Run.prepare(fit.experiment).problem.at(lambda_sparse=0.0)
        again = refitted(free, fit.parameters)
        assert not again.P[fit.parameters.P == 0].any(), "what is 0 stays 0"
        assert free.objective(again) <= free.objective(fit.parameters)
        assert fit.experiment.lambda_sparse in grid(1e-9, 1e9)
    said = conclusion(table, COLUMNS["validation_rmse"], 360, accept)
    lowest, highest = (table.groupby("label")["F1"].agg(which) for which in ("min", "max"))
    # TI finds the true pairs whatever the seed, ℓ₁ not always, CS never.
    assert "TI recovers the true pairs (F1 ≥ 0.95) on 3 of 3 seeds, ℓ₁ on" in said
    assert "CS: no model with 351 to 378 pairs on 1 of 3 seeds; closest:" in said
    assert lowest["TI"] >= FOUND > max(lowest["ℓ₁"], highest["CS"])
    # Nobody is called the best where seeds differ by more: ℓ₁ has the lowest error of all, and a high one.
    errors = table.set_index(["label", "seed"])[["value", "refitted"]]
    means, spread = (errors.groupby("label").agg(which) for which in ("mean", "std"))
    assert "lowest for TI and ℓ₁ (" in said
    assert ((means.loc["ℓ₁"] - means.loc["TI"]).abs() < spread.loc["ℓ₁"]).all()
    assert (errors.loc["TI"]["refitted"] < errors.loc["TI"]["value"]).all(), "λ shrinks"


@pytest.mark.slow
def test_all_places_name_the_same_strength_count_and_error(tmp_path):
    accept, metric = accepted_range(360), COLUMNS["validation_rmse"]
    fits = fits_of_default()
    kept = shipped(comparison_base("planted_interactions", 0), REGULARIZERS, TARGET, SEEDS)
    assert {key(fit): figures(fit) for fit in kept} == {
        key(fit): pytest.approx(figures(fit), rel=1e-6) for fit in fits
    }
    words = conclusion(ends_table(fits, REGULARIZERS, accept, metric), metric, TARGET, accept)
    assert words == conclusion(ends_table(kept, REGULARIZERS, accept, metric), metric, TARGET, accept)
    strengths = grid(0.2, 100.0)
    plan = SweepPlan(
        methods=[{"regularizer": name} for name in REGULARIZERS],
        grid={"lambda_sparse": strengths},
        seeds=[0],
        base={"start": "warm", "validation": 0.2},
        suggested=True,
    )
    store = RunStore(tmp_path / "store.db")
    sweep = fits_table(plan, ((fit.index, fit.run) for fit in carry_out(plan, store, n_jobs=1)))
    store.close()
    by_sweep = matched(sweep, ["regularizer"], TARGET, metric.name)
    for fit in (fit for fit in fits if fit.experiment.seed == 0):
        own = fit.experiment
        path = path_table(list(trace(PathPlan(own, (own.regularizer.name,), strengths))))
        rows = [
            matched(path, ["regularizer"], TARGET, metric.name).iloc[0],
            by_sweep.query("regularizer == @own.regularizer.name").iloc[0],
        ]
        for row in rows:
            assert [row["λ"], row["interactions"], row["value"], row["F1"]] == figures(fit)
        run = Run.prepare(own)
        *_, probe = fmviz.find_lambda(
            run.problem.design.matrix,
            run.problem.y,
            TARGET,
            **{name: getattr(own, name) for name in ("rank", "lambda_w", "lambda_p", "init_scale")},
            regularizer=own.regularizer,
            fit_linear=False,
            fit_intercept=False,
            random_state=[0, 1],
            standardize=False,
        )
        error = run.measure(probe.snapshot.parameters)[metric.name]
        assert [probe.lambda_sparse, probe.used_interactions, error] == figures(fit)[:3]
        # And a single run of these settings, which a link opens.
        assert run.end().metrics[metric.name] == error


def key(fit):
    return fit.experiment.regularizer.name, fit.experiment.seed


def figures(fit):
    metrics = (fit.metrics[name] for name in ("validation_rmse", "support_f1"))
    return [fit.experiment.lambda_sparse, fit.used_interactions, *metrics]


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


@pytest.mark.parametrize(
    ("mean", "spread", "words"),
    [
        (679.89, 213.4, "680 ± 210"),
        (-0.98712, 0.01234, "−0.987 ± 0.012"),
        (12_345.6, 0.0, "1.23·10⁴"),
        (4.5664, NAN, "4.57"),
    ],
)
def test_a_mean_is_rounded_to_its_spread(mean, spread, words):
    assert with_spread(mean, spread) == words


def test_a_number_that_is_not_reached_is_answered_with_the_nearest_fit():
    base = Experiment(rank=2, validation=0.2, max_epochs=30, lambda_p=0.1)
    *tried, nearest = at_equal_sparsity(base, ["l1"], 1_500, accept=(1_500, 1_500))
    assert all(fit.status == "searching" and not fit.metrics for fit in tried)
    assert list(at_equal_sparsity(base, ["ti"], 300, should_stop=lambda: True)) == []
    assert nearest.status == "nearest"
    assert nearest.metrics["validation_rmse"] > 0
    reached = [fit.used_interactions for fit in tried if fit.used_interactions]
    assert nearest.used_interactions == min(reached, key=lambda used: max(used / 1_500, 1_500 / used))
    assert nearest.parameters is not None


def test_the_number_to_compare_at_follows_the_data():
    assert suggested_target(load_dataset("planted_interactions")) == 360
    assert suggested_target(load_dataset("monks1")) == 3
    assert suggested_target(load_dataset("diabetes")) == 4
