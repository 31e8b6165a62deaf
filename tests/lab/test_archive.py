"""Export and import of runs."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from inline_executor import InlineExecutor

from fmviz.lab.background.task import TaskState
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
    assert import_runs(full, io.BytesIO(data)) == (ids[:1], 1)
    assert [run.id for run in full.runs()] == ids


def test_reading_can_be_stopped(full, tmp_path):
    """As a page does that has a Stop: nothing is imported, and the task is not taken for one that failed."""
    data = export_runs(full, [run.id for run in full.runs()])
    other = RunStore(tmp_path / "other.sqlite")

    def reading(should_stop):
        task.stop()
        yield import_runs(other, data, should_stop)

    executor = InlineExecutor(hold=True)
    task = TaskManager(executor).submit("import", reading)
    executor.run()
    assert task.state is TaskState.STOPPED
    assert other.runs() == []


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
    with pytest.raises(ValueError, match="There is no run 'x' to export"):
        export_runs(full, ["x"])


@pytest.mark.parametrize(
    "arrays",
    [
        {"P": (5, 3), "w": (4,), "intercept": ()},
        {"P": (4, 2), "w": (4,), "intercept": ()},
        {"P": (4, 3), "w": (4,), "intercept": (1,)},
        {"P": (4, 3), "w": (), "intercept": ()},
        {"P": (4, 3), "w": (4,), "intercept": (), "W": (4, 4)},
        {"P": (3, 4, 3), "w": (2, 4), "intercept": (3,)},
    ],
)
def test_parameters_have_the_shapes_that_the_settings_describe(full, tmp_path, arrays):
    run = full.runs()[0].id
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.zeros(shape) for name, shape in arrays.items()})
    given = zipfile.ZipFile(io.BytesIO(export_runs(full, [run])))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for entry in given.namelist():
            archive.writestr(entry, buffer.getvalue() if entry.endswith(".npz") else given.read(entry))
    other = RunStore(tmp_path / "other.sqlite")
    with pytest.raises(ValueError, match=r"has parameters of the shapes P .*, and its settings describe P "):
        import_runs(other, packed.getvalue())
    assert other.runs() == []


def packed(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


ABOUT = json.dumps({"format": module.FORMAT, "version": module.VERSION})
RECORD = dict.fromkeys(
    (
        *("seconds", "objective", "loss", "penalty_w", "penalty_p", "penalty_sparse", "used_features"),
        *("used_interactions", "certificate", "change", "epoch"),
    ),
    0,
)
RUN = {"created": 1.0, "updated": 1.0, "experiment": {}, "trace": [RECORD]}


def with_run(**changes):
    return packed(about__json=ABOUT, a__json=json.dumps(RUN | changes))


HOSTILE = {
    "nothing": b"",
    "a broken archive": b"PK\x03\x04 broken",
    "another archive": packed(readme="no runs"),
    "no format": packed(about__json="{}"),
    "a list": packed(about__json="[]"),
    "a run that is no JSON": packed(about__json=ABOUT, a__json="not JSON"),
    "an empty run": packed(about__json=ABOUT, a__json="{}"),
    "an epoch in words": with_run(trace=[RECORD | {"epoch": "x"}]),
    "a trace that is a number": with_run(trace=7),
    "no arrays": packed(about__json=ABOUT, a__json=json.dumps(RUN), a__npz=b"no arrays"),
    # What would go in and could not be listed, or does not go in.
    **{f"made at {at}": with_run(created=at) for at in (float("nan"), float("inf"), 1e300, -1e18)},
    "a seed too large": with_run(experiment={"seed": 2**70}),
    "no loss": with_run(trace=[RECORD | {"loss": None}]),
    "a title of no characters": with_run(title="\ud800"),
    "two long names": packed(
        about__json=ABOUT, **{f"{'a' * 64}{i}__json": json.dumps(RUN) for i in range(2)}
    ),
    # What pages could not draw, and what takes the memory of a server to open.
    "half a record": with_run(trace=[{"epoch": 0, "loss": 1.0}]),
    "an epoch twice": with_run(trace=[RECORD, RECORD]),
    "a long head": packed(about__json=" " * 200_000 + ABOUT),
}


def refused(store, data):
    with pytest.raises(ValueError, match="This file cannot be imported"):
        import_runs(store, data)
    assert store.runs() == []


@pytest.mark.parametrize("which", HOSTILE)
def test_other_files_are_refused_and_leave_nothing(store, which):
    refused(store, HOSTILE[which])


def test_large_arrays_are_refused_before_they_are_unfolded(store):
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as arrays,
        arrays.open("P.npy", "w") as P,
    ):
        np.lib.format.write_array(P, np.zeros((20_000, 4_000)))
    refused(store, packed(about__json=ABOUT, a__json=json.dumps(RUN), a__npz=buffer.getvalue()))


def test_archives_that_unfold_to_too_much_are_refused(full, tmp_path, monkeypatch):
    data = export_runs(full, [run.id for run in full.runs()])
    monkeypatch.setattr(module, "MOST_BYTES", 1_000)
    with pytest.raises(ValueError, match="unfolds to more than"):
        module.read_archive(data)
