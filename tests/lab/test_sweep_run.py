from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from fmviz.lab.runner import Run
from fmviz.lab.search import sweep_run
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.search.sweep_run import (
    carry_out,
    fits_table,
    results,
)
from fmviz.lab.store import RunStore


def small(**more):
    return SweepPlan(
        **{
            "methods": [{"regularizer": "ti"}, {"regularizer": "cs"}],
            "grid": {"lambda_sparse": [0.1, 1.0]},
            "seeds": range(2),
            "base": {"rank": 3, "max_epochs": 30, "tol": 0.0},
            **more,
        }
    )


def numbers(store, plan):
    """Everything that a sweep has found, but its times."""
    message = []
    for index, run in sorted(results(plan, store).items()):
        P = store.parameters(run.id).P
        trace = [{k: v for k, v in r.items() if k != "seconds"} for r in store.trace(run.id)]
        message.append((index, run.status, P.tobytes(), json.dumps(trace)))
    return message


def test_a_sweep_leaves_every_fit_in_the_store(store):
    plan = small(title="mine")
    result = list(carry_out(plan, store, n_jobs=1, sweep="s"))
    assert sorted(fit.index for fit in result) == list(range(8))
    assert all(fit.fresh and fit.run.status == "epochs" and fit.run.sweep == "s" for fit in result)
    for fit in result[::3]:
        end = Run.prepare(plan.cells[fit.index]).end()
        assert np.array_equal(store.parameters(fit.run.id).P, end.parameters.P)
        record = end.record()
        for name in ("objective", "certificate", "used_interactions", "support_f1"):
            assert fit.run.last[name] == record[name]
        assert len(store.trace(fit.run.id)) == 31
    (declared,) = store.database.read("SELECT declaration FROM sweeps WHERE id = 's'")
    assert SweepPlan.from_text(declared["declaration"]) == plan


def test_methods_that_differ_by_a_list_are_two():
    plan = small(methods=[{"regularizer": "group"}, {"regularizer": "group", "regularizer_groups": [[0, 1]]}])
    run = SimpleNamespace(id="", status="", last={})
    assert fits_table(plan, [(0, run), (7, run)])["method"].nunique() == 2


def test_finished_cells_are_taken_from_the_store(store):
    plan = small()
    first = list(carry_out(plan, store, n_jobs=1, should_stop=lambda: store.count() >= 3))
    assert len(first) == 3
    assert len(results(plan, store)) == 3
    remaining = list(carry_out(plan, store, n_jobs=1))
    assert [fit.fresh for fit in remaining] == [False] * 3 + [True] * 5
    assert {fit.index for fit in remaining} == set(range(8))
    assert all(not fit.fresh for fit in carry_out(plan, store, n_jobs=1))
    assert store.count() == 8


def test_results_of_other_data_or_versions_are_not_taken(store):
    plan = small(seeds=[0], grid={"lambda_sparse": [1.0]})
    list(carry_out(plan, store, n_jobs=1))
    with store.database.write() as connection:
        connection.execute("UPDATE runs SET data_hash = 'another' WHERE regularizer = 'ti'")
        connection.execute("UPDATE runs SET versions = '{}' WHERE regularizer = 'cs'")
    assert results(plan, store) == {}


def test_a_fit_that_fails_is_a_row_and_the_others_go_on(store, monkeypatch):
    real = sweep_run._completed

    def broken(experiment, should_stop):
        if experiment.regularizer.name == "cs":
            raise ZeroDivisionError("far off")
        return real(experiment, should_stop)

    monkeypatch.setattr(sweep_run, "_completed", broken)
    result = list(carry_out(small(), store, n_jobs=1))
    failed = [fit.run for fit in result if fit.run.status == "failed"]
    assert len(failed) == 4
    assert failed[0].message == "Unexpected ZeroDivisionError: far off"
    assert "broken" in failed[0].details
    monkeypatch.undo()
    assert sum(fit.fresh for fit in carry_out(small(), store, n_jobs=1)) == 4


def test_traces_of_long_fits_are_thinned(store):
    plan = small(
        seeds=[0],
        methods=[{}],
        grid={"lambda_sparse": [0.1]},
        base={"rank": 3, "max_epochs": 1000, "tol": 0.0},
    )
    (fit,) = carry_out(plan, store, n_jobs=1)
    assert [r["epoch"] for r in store.trace(fit.run.id)] == list(range(0, 1001, 10))


def test_a_cluster_without_its_package_names_it(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match="`pip install distributed`"):
        list(carry_out(small(), store, dask="tcp://127.0.0.1:1"))


def test_workers_give_the_numbers_of_one_process(store, tmp_path):
    plan, other = small(), RunStore(tmp_path / "other.sqlite")
    list(carry_out(plan, store, n_jobs=1))
    list(carry_out(plan, other, n_jobs=2))
    assert numbers(store, plan) == numbers(other, plan)
