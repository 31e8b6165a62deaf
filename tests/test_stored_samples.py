"""Open files of commit a8ed998a: runs, an upload, saved models, an archive, a plan and links."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from apptests import scan_packages_once
from numpy.testing import assert_allclose, assert_array_equal
from streamlit.testing.v1 import AppTest

import fmviz
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.saved_model import SavedModel
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.search.sweep_run import results
from fmviz.lab.store import INTERRUPTED, RunStore, StoreError
from fmviz.lab.uploads import library

scan_packages_once()

FOLDER = Path(__file__).parent / "samples"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
RUNS = EXPECTED["runs"]
ENDED = [name for name in RUNS if name != "cut"]


@pytest.fixture
def store(tmp_path, monkeypatch):
    shutil.copy(FOLDER / "store.db", tmp_path)
    shutil.copytree(FOLDER / "store-data", tmp_path / "store-data")
    monkeypatch.setenv("FMVIZ_STORE", str(tmp_path / "store.db"))
    store = RunStore()
    yield store
    store.close()


def same_run(store, name):
    run, then = store.get(name), RUNS[name]
    assert (run.digest, run.epoch, run.data_hash) == (then["digest"], then["epoch"], then["data_hash"])
    assert run.last == then["last"]
    assert [record["objective"] for record in store.trace(name)] == then["objectives"]
    parameters = store.parameters(name)
    sums = {key: [value.sum(), abs(value).sum()] for key, value in parameters.items()}
    assert sums == {key: pytest.approx(value) for key, value in then["sums"].items()}
    return run


@pytest.mark.parametrize("name", ENDED)
def test_a_stored_run_opens_with_its_numbers_and_digest(store, name):
    run = same_run(store, name)
    assert run.status == RUNS[name]["status"]
    assert run.experiment.digest == run.digest
    assert store.finished([run.digest])[run.digest].id == name


def test_a_run_that_was_cut_off_is_shown(store):
    assert same_run(store, "cut").status == INTERRUPTED


def test_deleted_runs_and_sets_stay_away(store):
    assert "deleted" not in {run.id for run in store.runs()}
    assert store.get_many(["deleted"]) == []
    with pytest.raises(ValueError, match="Upload its file"):
        library.load(EXPECTED["dropped"])


@pytest.mark.parametrize("name", ["changed", "informed", "convex", "own"])
def test_a_stored_run_repeats(store, name):
    end = Run.prepare(store.get(name).experiment).end()
    assert end.objective == pytest.approx(RUNS[name]["last"]["objective"], rel=1e-6)


def test_the_fits_of_a_sweep_need_not_be_made_again(store):
    plan = SweepPlan.from_text((FOLDER / "plan.toml").read_text(encoding="utf-8"))
    assert [run.id for run in results(plan, store).values()] == EXPECTED["fits"]


def test_an_upload_opens(store):
    upload = library.find(EXPECTED["own"])
    name = library.name_of(upload.file, upload.recipe)
    assert (upload.title, name) == ("people.csv", EXPECTED["own"])
    assert library.load(name).X.shape[0] == 40


@pytest.mark.parametrize("name", EXPECTED["predictions"])
def test_a_saved_model_predicts_the_same(store, name):
    file = library.data_folder() / f"file_{library.find(EXPECTED['own']).file}"
    model = SavedModel.load(FOLDER / name)
    predicted = model.predict(np.eye(17) if name == "registered.npz" else pd.read_csv(file))
    compare = partial(assert_allclose, rtol=1e-6) if predicted.dtype == float else assert_array_equal
    compare(predicted, EXPECTED["predictions"][name])
    assert (model.averaged is not None) == (name == "averaged.npz")


def test_an_exported_run_is_imported(tmp_path, command):
    path = tmp_path / "other.db"
    assert "3 runs imported" in command("runs", "import", FOLDER / "runs.zip", "--store", path).out
    store = RunStore(path)
    for name in ("changed", "convex", "cut"):
        same_run(store, name)
    store.close()


@pytest.mark.parametrize("name", ENDED)
def test_a_link_means_the_same_experiment(store, name):
    assert Experiment.from_query(RUNS[name]["query"]) == store.get(name).experiment


@pytest.mark.parametrize("name", ["changed", "third_order", "own"])
def test_a_link_to_a_run_opens_it(store, name):
    app = AppTest.from_file(str(Path(fmviz.__file__).parents[1] / "app.py"), default_timeout=120)
    app.switch_page("pages/train.py")
    for key, value in {**RUNS[name]["query"], "run": name, "level": "expert"}.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    assert not app.warning
    shown = [block.value for block in (*app.metric, *app.markdown, *app.caption, *app.code)]
    assert any(f"{RUNS[name]['last']['objective']:.4g}" in str(value) for value in shown)


@pytest.mark.parametrize("version", [1, 2])
def test_an_earlier_store_is_refused(store, version):
    store.close()
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match=rf"store.db was written by an earlier .*\(layout {version},"):
        RunStore(store.path)
