"""Export and import of runs."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from inline_executor import InlineExecutor

from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.store import INTERRUPTED, Growth, RunStore
from fmviz.lab.store import archive as module
from fmviz.lab.store.archive import export_runs, import_runs


@pytest.fixture
def full(tmp_path):
    store = RunStore(tmp_path / "one.sqlite")
    manager = TaskManager(InlineExecutor(), open_store=lambda: store)
    for seed in range(2):
        manager.start(Experiment(rank=3, max_epochs=4, tol=0.0, seed=seed))
    return store


def test_runs_travel_whole(full, tmp_path):
    ids = [run.id for run in full.runs()]
    other = RunStore(tmp_path / "other.sqlite")
    assert import_runs(other, export_runs(full, ids)) == (ids, 0)
    for run in ids:
        sent, two = full.get(run), other.get(run)
        assert (sent.settings, sent.status, sent.created) == (two.settings, two.status, two.created)
        assert (sent.digest, sent.data_hash, sent.versions) == (two.digest, two.data_hash, two.versions)
        assert json.dumps([sent.last, sent.spark]) == json.dumps([two.last, two.spark])
        assert json.dumps(full.trace(run)) == json.dumps(other.trace(run))
        assert np.array_equal(full.parameters(run).P, other.parameters(run).P)
    assert [run.id for run in other.runs(dataset=["planted_interactions"])] == ids


def test_what_is_there_is_not_doubled_and_deleted_runs_are_imported(full):
    ids = [run.id for run in full.runs()]
    data = export_runs(full, ids)
    full.delete(ids[:1])
    assert import_runs(full, data) == (ids[:1], 1)
    assert [run.id for run in full.runs()] == ids


def test_another_run_of_that_name_keeps_it(full, tmp_path):
    ids = [run.id for run in full.runs()]
    other = RunStore(tmp_path / "other.sqlite")
    name = other.begin(Experiment(seed=9))
    with other.database.write() as connection:
        connection.execute("UPDATE runs SET id = ? WHERE id = ?", (ids[0], name))
    new, there = import_runs(other, export_runs(full, ids))
    assert there == 0
    assert new[0] != ids[0]
    assert new[1] == ids[1]
    assert other.get(ids[0]).settings["seed"] == 9


def test_runs_that_go_on_arrive_interrupted(tmp_path):
    source, two = RunStore(tmp_path / "one.sqlite"), RunStore(tmp_path / "two.sqlite")
    run = source.begin(Experiment())
    source.grow(run, Growth([next(iter(Run.prepare(Experiment()).snapshots())).record()]))
    import_runs(two, export_runs(source, [run]))
    assert two.get(run).status == INTERRUPTED


def test_unknown_runs_are_not_exported(full):
    with pytest.raises(ValueError, match="Unknown run 'x'"):
        export_runs(full, ["x"])


def packed(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


ABOUT = json.dumps({"format": module.FORMAT, "version": module.VERSION})
HOSTILE = {
    "nothing": b"",
    "a broken archive": b"PK\x03\x04 broken",
    "another archive": packed(readme="no runs"),
    "no format": packed(about__json="{}"),
    "a list": packed(about__json="[]"),
    "a run that is no JSON": packed(about__json=ABOUT, a__json="not JSON"),
    "an empty run": packed(about__json=ABOUT, a__json="{}"),
    "no arrays": packed(
        about__json=ABOUT,
        a__json=json.dumps({"created": 1.0, "updated": 1.0, "experiment": {}, "trace": []}),
        a__npz=b"no arrays",
    ),
}


def refused(store, data):
    with pytest.raises(ValueError, match="This file cannot be imported"):
        import_runs(store, data)
    assert store.runs() == []


@pytest.mark.parametrize("which", HOSTILE)
def test_other_files_are_refused_and_leave_nothing(store, which):
    refused(store, HOSTILE[which])


def forged(data, **changes):
    """Return an archive of one run with other values, or other arrays, in it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        name = next(entry for entry in archive.namelist() if entry.endswith(".npz")).removesuffix(".npz")
        run, arrays = (
            json.loads(archive.read(f"{name}.json")),
            np.load(io.BytesIO(archive.read(f"{name}.npz"))),
        )
    run = {**run, **{key: value for key, value in changes.items() if key in run}}
    sink = io.BytesIO()
    np.savez(sink, **{**arrays, **{key: value for key, value in changes.items() if key in arrays}})
    name = changes.get("name", "a")
    return packed(about__json=ABOUT, **{f"{name}__json": json.dumps(run), f"{name}__npz": sink.getvalue()})


FORGED = {
    "created": (1e300, "created = 1e+300"),
    "updated": ("now", "updated = 'now'"),
    "status": ("splendid", "status = 'splendid'"),
    "message": (3, "message = 3"),
    "versions": ([], "versions"),
    "experiment": ({"rank": 2}, "P has shape"),
    "trace": ([{"epoch": 1}], "objective"),
    "P": (np.ones((4, 2)), "w has shape"),
    "w": (np.array([["x"]]), "w has shape"),
    "intercept": (np.array(np.nan), "not finite"),
    "name": ("../../a", "not a run id"),
}


@pytest.mark.parametrize("field", FORGED)
def test_a_field_that_is_not_what_it_says_is_refused(full, tmp_path, field):
    value, words = FORGED[field]
    data = export_runs(full, [full.runs()[0].id])
    store = RunStore(tmp_path / "other.sqlite")
    with pytest.raises(ValueError, match="This file cannot be imported") as failure:
        import_runs(store, forged(data, **{field: value}))
    assert words in str(failure.value)
    assert store.runs() == []


def test_an_archive_that_unfolds_to_many_times_its_size_is_refused(full, tmp_path):
    data = packed(about__json=ABOUT, a__json='{"trace": [' + "0, " * 2_000_000)
    with zipfile.ZipFile(sink := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", zipfile.ZipFile(io.BytesIO(data)).read("a.json"))
    refused(RunStore(tmp_path / "other.sqlite"), sink.getvalue())


def test_a_run_of_other_data_is_not_opened(full, tmp_path):
    run = full.runs()[0].id
    other = RunStore(tmp_path / "other.sqlite")
    d = 3
    import_runs(other, forged(export_runs(full, [run]), P=np.ones((d, 3)), w=np.ones(d)))
    with pytest.raises(ValueError, match="has 3 features, but its data set now has"):
        TaskManager(InlineExecutor(), open_store=lambda: other).open("a")


def test_archives_that_unfold_to_too_much_are_refused(full, tmp_path, monkeypatch):
    data = export_runs(full, [run.id for run in full.runs()])
    monkeypatch.setattr(module, "MOST_BYTES", 1_000)
    with pytest.raises(ValueError, match="unpacks to more than"):
        import_runs(RunStore(tmp_path / "other.sqlite"), data)
