"""The run store: writing, querying, resuming, errors, and several processes."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from inline_executor import InlineExecutor
from programs import wait_for

from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.parameters import Parameters
from fmviz.lab.background.task import TaskState
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.runs.provenance import array_hash, data_hash, versions
from fmviz.lab.store import (
    INTERRUPTED,
    PAUSED,
    AtWorkError,
    Growth,
    RunStore,
    StoreError,
    default_path,
    stored_run,
)
from fmviz.lab.store import runs as runs_module
from fmviz.lab.store import store as process_store
from fmviz.lab.store.database import LAYOUT, Database
from fmviz.lab.store.lowest import lowest, same_problem
from fmviz.lab.store.packing import pack_parameters, pack_records, spark, unpack_parameters, unpack_records
from fmviz.lab.store.rescue import damages, salvage
from fmviz.lab.store.stored_run import this_process
from fmviz.lab.store.table import runs_table

SMALL = Experiment(rank=3, max_epochs=5, tol=0.0)


def record(epoch, **more):
    return {"epoch": epoch, "seconds": 0.1 * epoch, "objective": 1.0 / (1 + epoch), **more}


def cut_off(store, run):
    """Make a run look like one of a process that has ended."""
    with store.database.write() as connection:
        host = this_process().split("/")[0]
        connection.execute("UPDATE runs SET owner = ? WHERE id = ?", (f"{host}/1/0", run))


def test_a_run_is_told_as_it_was_written(store):
    run = store.begin(SMALL, origin="command", title="mine", sweep="s")
    P = np.random.default_rng(0).normal(size=(4, 3))
    store.grow(run, Growth([record(0), record(1)], objectives=[1.0, 0.5], data_hash="abc"))
    store.grow(
        run,
        Growth(
            [record(2, train_rmse=float("nan"))],
            objectives=[1.0, 0.5, 1 / 3],
            parameters=Parameters(P, np.ones(4), 0.5, coefficients=np.arange(3.0)),
            status="converged",
            message="Converged.",
        ),
    )
    stored = store.get(run)
    assert (stored.ended, stored.resumable, stored.experiment) == (True, False, SMALL)
    assert (stored.status, stored.message, stored.origin) == ("converged", "Converged.", "command")
    assert (stored.title, stored.sweep, stored.data_hash, stored.epoch) == ("mine", "s", "abc", 2)
    assert stored.versions == versions()
    assert stored.spark == [1.0, 0.5, 1 / 3]
    assert np.isnan(stored.last["train_rmse"])
    assert [r["epoch"] for r in store.trace(run)] == [0, 1, 2]
    parameters = store.parameters(run)
    assert np.array_equal(parameters.P, P)
    assert parameters.intercept == 0.5
    assert np.array_equal(parameters.coefficients, np.arange(3.0))
    assert store.get(run[:6]).id == run


def test_the_end_needs_no_checkpoint(store):
    run = store.begin(SMALL)
    store.grow(run, Growth([record(0)], checkpoint=Checkpoint(0, 0.0, 0.5, {"_x": np.ones(2)})))
    assert np.array_equal(store.checkpoint(run).memory["_x"], np.ones(2))
    store.grow(run, Growth([record(1)], status="epochs"))
    assert store.checkpoint(run) is None


@pytest.mark.parametrize(
    ("filters", "result"),
    [
        ({}, [2, 1, 0]),
        ({"regularizer": ["cs", "l1"]}, [2, 1]),
        ({"dataset": ["planted_features"]}, [2]),
        ({"origin": ["page"]}, [1]),
        ({"text": "FIRST"}, [0]),
        ({"limit": 1}, [2]),
    ],
)
def test_filters_find_runs_newest_first(store, filters, result):
    runs = [
        store.begin(SMALL, title="first"),
        store.begin(Experiment(regularizer="cs"), origin="page"),
        store.begin(Experiment(regularizer="l1", dataset="planted_features")),
    ]
    assert [runs.index(run.id) for run in store.runs(**filters)] == result


def test_deleted_runs_are_gone(store):
    runs = [store.begin(SMALL) for _ in range(3)]
    for run in runs[:2]:
        store.grow(run, Growth([record(1)], status="epochs"))
    assert store.delete(runs) == 2, "a run that goes on cannot be deleted"
    assert [run.id for run in store.runs()] == [runs[2]]
    assert store.trace(runs[0]) == []
    store.grow(runs[0], Growth([record(2)]))  # whoever still wrote it is not disturbed
    assert store.count() == 1


def test_finished_runs_are_found_by_their_settings(store):
    other = Experiment(seed=1)
    for status in ("epochs", "converged", "failed"):
        store.grow(store.begin(SMALL), Growth([record(1)], status=status, message=status))
    store.grow(store.begin(other), Growth([record(1)], status="stopped"))
    finished = store.finished([SMALL.digest, other.digest])
    assert {digest: run.status for digest, run in finished.items()} == {SMALL.digest: "converged"}


def test_the_lowest_objective_is_known_over_solvers_and_starts_of_one_problem(store, monkeypatch):
    monkeypatch.setattr("fmviz.lab.store.lowest.store", lambda: store)
    base = Experiment(dataset="monks1", loss="logistic")
    others = [
        replace(base, solver="pgd", seed=3, start="informed", max_epochs=7),
        replace(base, validation=0.2),
        replace(base, lambda_sparse=0.5),
        replace(base, rank=2),
        base.changed(0, lambda_w=0.1),
    ]
    for number, experiment in enumerate(others):
        run = store.begin(experiment)
        store.grow(run, Growth([record(1) | {"objective": 3.0 - number}], data_hash="abc"))
    assert [run.experiment for run in same_problem(base, "abc")] == others[:1]
    assert not same_problem(base, "other data")
    history = [record(epoch) | {"objective": 5.0 - epoch} for epoch in range(4)]
    (end,) = lowest(base, history, "abc")
    assert (end.value, end.source) == (2.0, "this run at epoch 3")
    (end,) = lowest(base, history[:2], "abc")
    (other,) = same_problem(base, "abc")
    assert (end.value, end.source) == (3.0, f"run {other.id[:4]}, PGD")
    # A change of strengths makes another problem, and its change back the same one again.
    changed = base.changed(1, lambda_sparse=9.0).changed(2, lambda_sparse=base.lambda_sparse)
    assert [(each.after, each.value) for each in lowest(changed, history, "")] == [
        (-1, 2.0),
        (1, 3.0),
        (2, 2.0),
    ]


def test_only_one_resumes_a_run_that_was_cut_off(store):
    run = store.begin(SMALL)
    with pytest.raises(ValueError, match=f"Run {run} is running; only interrupted runs"):
        store.claim(run)
    store.grow(run, Growth([record(e) for e in range(4)], checkpoint=Checkpoint(2, 0.2, 0.1, {})))
    cut_off(store, run)
    assert store.get(run).status == INTERRUPTED
    assert store.get(run).message.startswith("Interrupted after 3 epochs")
    trace, checkpoint = store.claim(run)
    assert checkpoint.epoch == 2
    assert [r["epoch"] for r in trace] == [r["epoch"] for r in store.trace(run)] == [0, 1, 2]
    with pytest.raises(ValueError, match="is running"):
        store.claim(run)


def test_settings_of_another_version_are_refused_when_they_are_used(store):
    run = store.begin(SMALL)
    with store.database.write() as connection:
        connection.execute("UPDATE runs SET experiment = '{\"warp\": 9}' WHERE id = ?", (run,))
    (stored,) = store.runs()
    assert stored.settings == {"warp": 9}
    with pytest.raises(ValueError, match=r"belong to another version of fmviz .*: Unknown setting 'warp'"):
        _ = stored.experiment


def test_stores_of_a_newer_version_are_refused(tmp_path):
    path = tmp_path / "runs.sqlite"
    RunStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="written by a later version of fmviz"):
        RunStore(path)


def test_a_store_that_is_damaged_says_so_when_it_is_read(tmp_path):
    path = tmp_path / "runs.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
    connection.close()
    other = RunStore(path)
    with pytest.raises(StoreError, match=r"cannot be used \(no such table: runs\)\. `fmviz doctor`"):
        other.runs()
    with pytest.raises(StoreError, match="choose another file with FMVIZ_STORE"):
        other.begin(SMALL)


BAD_VALUES = {
    "created": 1e300,
    "experiment": "[]",
    "last": '{"objective": "x"}',
    "spark": "not JSON",
    "epoch": -1,
    "title": b"\xff\xfe",
}


@pytest.mark.parametrize("column", BAD_VALUES)
def test_a_broken_row_is_shown_and_hides_no_other(store, column):
    broken, sound = store.begin(SMALL), store.begin(SMALL)
    with store.database.write() as connection:
        connection.execute(f"UPDATE runs SET {column} = ? WHERE id = ?", (BAD_VALUES[column], broken))
    runs = {run.id: run for run in store.runs()}
    assert runs[sound].status == "running"
    assert len(runs_table(list(runs.values()))) == 2
    if column == "title":  # Text in another encoding is no damage.
        return
    assert runs[broken].status == "broken"
    assert f"{'settings' if column == 'experiment' else column}" in runs[broken].message or column == "spark"
    with pytest.raises(ValueError, match="fmviz runs salvage NEW"):
        _ = runs[broken].experiment
    assert damages(store) == {broken: ["record"]}
    assert store.delete([broken]) == 1


def test_what_is_left_of_a_damaged_file_is_shown_and_saved(tmp_path):
    path = tmp_path / "runs.sqlite"
    damaged = RunStore(path)
    names = [damaged.begin(SMALL, title="t" * 150) for _ in range(40)]
    for name in names:
        damaged.grow(name, Growth([record(0)], status="epochs", parameters=Parameters([[1.0]], [0.0], 0.0)))
    page = damaged.database.read("SELECT pageno FROM dbstat WHERE name = 'runs' AND pagetype = 'leaf'")[1][0]
    damaged.database.read("PRAGMA wal_checkpoint(TRUNCATE)")
    damaged.close()
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = bytes(4096)
    path.write_bytes(data)
    runs = damaged.runs()
    sound = {run.id for run in runs if run.status != "broken"}
    assert 0 < len(sound) < len(runs) == 40
    saved, lost = salvage(damaged, tmp_path / "new.sqlite")
    new = RunStore(tmp_path / "new.sqlite")
    assert {run.id for run in new.runs()} == sound
    assert (saved, set(lost)) == (len(sound), set(names) - sound)
    assert all(new.trace(run) == [record(0)] for run in sound)
    assert new.parameters(min(sound)).P == 1.0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), None),
        (sqlite3.OperationalError("database or disk is full"), sqlite3.SQLITE_FULL),
    ],
)
def test_a_full_disk_at_opening_is_told_as_that(tmp_path, monkeypatch, error, code):
    if code is not None:
        error.sqlite_errorcode = code
    monkeypatch.setattr(Database, "_lay_out", Mock(side_effect=error))
    with pytest.raises(StoreError, match="Free disk space, or choose another file"):
        RunStore(tmp_path / "runs.sqlite")


@pytest.mark.parametrize(("ahead", "status"), [(-10, "running"), (10, "running"), (30 * 86_400, INTERRUPTED)])
def test_a_run_dated_ahead_is_not_alive(store, ahead, status):
    run = store.begin(SMALL)
    with store.database.write() as connection:
        when = ("elsewhere/7/1", time.time() + ahead, run)
        connection.execute("UPDATE runs SET owner = ?, updated = ? WHERE id = ?", when)
    assert store.get(run).status == status


def test_on_windows_no_process_is_sent_a_signal(store, monkeypatch):
    ours, recent, silent = (store.begin(SMALL) for _ in range(3))
    other = this_process().replace(f"/{os.getpid()}/", "/7/")
    with store.database.write() as connection:
        for run, owner, updated in (
            (ours, this_process(), 0.0),
            (recent, other, time.time()),
            (silent, other, 0.0),
        ):
            connection.execute("UPDATE runs SET owner = ?, updated = ? WHERE id = ?", (owner, updated, run))
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "kill", Mock(side_effect=AssertionError("os.kill ends processes on Windows")))
    assert [store.get(run).status for run in (ours, recent, silent)] == ["running", "running", INTERRUPTED]


def test_nobody_else_reads_a_store(tmp_path):
    path = tmp_path / "runs.sqlite"
    path.touch(mode=0o644)
    RunStore(path).begin(Experiment())
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {"0o600"}


def test_a_store_that_a_group_shares_stays_shared(tmp_path):
    path = tmp_path / "runs.sqlite"
    path.touch()
    path.chmod(0o660)
    RunStore(path).begin(Experiment())
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} == {
        f"runs.sqlite{suffix}": "0o660" for suffix in ("", "-wal", "-shm")
    }


def test_the_store_is_where_it_is_wanted(tmp_path, monkeypatch):
    monkeypatch.setenv("FMVIZ_STORE", str(tmp_path / "here" / "mine.sqlite"))
    assert process_store().path == default_path() == tmp_path / "here" / "mine.sqlite"
    assert process_store() is process_store()
    monkeypatch.delenv("FMVIZ_STORE")
    assert default_path().name == "runs.sqlite"


def test_packing_is_exact_and_holds_no_code():
    records = [record(0, extra=1.5), record(1)]
    assert unpack_records(pack_records(records)) == records
    assert unpack_records(pack_records([])) == []
    W = np.diag([1.0, 2.0])
    unpacked = unpack_parameters(pack_parameters(Parameters.of_weights(W)))
    assert np.array_equal(unpacked.W, W)
    assert unpacked.P.shape == (2, 0)
    for unpack, data in ((unpack_records, b"x"), (unpack_parameters, b"x"), (unpack_parameters, b"")):
        with pytest.raises(ValueError, match="of a run"):
            unpack(data)
    assert spark([float("nan"), 1.0]) == [1.0]
    assert len(spark(range(1_000))) == 48
    assert spark(range(1_000))[-1] == 999


def test_equal_data_have_equal_hashes():
    data = load_dataset("planted_interactions")
    assert data_hash(data) == data_hash(load_dataset("planted_interactions"))
    assert data_hash(data) != data_hash(load_dataset("planted_features"))


def test_hashing_leaves_the_data_alone():
    X = sp.csr_array((np.array([1.0, 0.0, 2.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    y = np.ones(2)
    assert array_hash(X, y) == array_hash(np.array([[1.0, 0.0], [0.0, 2.0]]), y)
    assert X.data.tolist() == [1.0, 0.0, 2.0]
    assert X.indptr.tolist() == [0, 2, 3]


# ------------------------------------------------------------------------------------------------- jobs


def managed(store, **more):
    return TaskManager(InlineExecutor(), open_store=lambda: store, **more)


def test_a_job_leaves_its_run_in_the_store(store):
    view = managed(store).start(SMALL).view()
    (run,) = store.runs()
    assert view.id == run.id
    assert view.unsaved == ""
    assert view.state is TaskState.FINISHED
    assert (run.status, run.message, run.origin) == ("epochs", view.message, "page")
    # Through JSON, in which a number that is none equals itself.
    assert json.dumps(store.trace(run.id)) == json.dumps(view.history)
    assert np.array_equal(store.parameters(run.id).P, view.parameters.P)
    assert run.data_hash == data_hash(view.dataset)


def test_jobs_that_only_show_their_start_leave_nothing(store):
    manager = managed(store)
    manager.start(SMALL, steps=0)
    assert store.runs() == []
    job = manager.start(SMALL, steps=2)
    (run,) = store.runs()
    assert (run.status, run.epoch) == (PAUSED, 2)
    job.stop()
    assert store.get(run.id).status == "stopped"


def test_failed_runs_are_kept_with_their_sentence(store, monkeypatch):
    monkeypatch.setattr(Run, "loaded", Mock(side_effect=ValueError("The data are gone.")))
    managed(store).start(SMALL)
    (run,) = store.runs()
    assert (run.status, run.message, run.details) == ("failed", "The data are gone.", "")


def test_a_store_that_cannot_be_written_does_not_end_a_run(tmp_path):
    full = Mock(side_effect=StoreError("The disk is full."))
    view = TaskManager(InlineExecutor(), open_store=full).start(SMALL).view()
    assert view.state is TaskState.FINISHED
    assert not view.saved
    assert view.unsaved == "The disk is full."


def test_a_run_that_was_cut_off_goes_on_with_the_same_iterates(store, monkeypatch):
    monkeypatch.setattr("fmviz.lab.store.recorder.CHECKPOINT_SECONDS", 0.0)
    experiment = Experiment(rank=5, max_epochs=40, tol=0.0, lambda_sparse=0.1)
    expected = [s.record() for s in Run.prepare(experiment).snapshots()]
    manager = managed(store)
    job = manager.start(experiment, steps=23)
    cut_off(store, job.id)
    assert store.get(job.id).resumable
    resumed = managed(store).open(job.id)
    resumed.play()
    view = resumed.view()
    assert view.id == job.id
    assert view.state is TaskState.FINISHED
    for trace in (view.history, store.trace(view.id)):
        assert [r["objective"] for r in trace] == [r["objective"] for r in expected]
        assert [r["epoch"] for r in trace] == list(range(41))
    assert store.get(view.id).status == "epochs"


def test_two_pages_that_resume_a_run_get_one_job(store):
    manager = managed(store)
    name = manager.start(SMALL, steps=2).id
    cut_off(store, name)
    other = managed(store)
    job = other.open(name, "one")
    assert other.open(name, "two") is job
    assert job.owner == "two"
    with pytest.raises(AtWorkError):
        managed(store).open(name)


def test_an_ended_run_is_continued_by_one_of_two_servers(store, monkeypatch):
    first = managed(store)
    name = first.start(SMALL).id
    monkeypatch.setattr(stored_run, "this_process", lambda: "another/1/2")
    monkeypatch.setattr(runs_module, "this_process", lambda: "another/1/2")
    other = managed(store).open(name)
    other.change(lambda_sparse=0.25)
    monkeypatch.undo()
    with pytest.raises(AtWorkError, match="Another program has continued run"):
        first.job(name).change(lambda_sparse=0.75)
    stored = store.get(name)
    assert [change.value for change in stored.experiment.changes] == [0.25]
    end = Run.prepare(stored.experiment).end()
    assert (end.epoch, end.objective) == (stored.epoch, stored.last["objective"])


def test_runs_are_opened_again_as_they_ended(store):
    view = managed(store).start(SMALL).view()
    job = managed(store).open(view.id, "me")
    again = job.view()
    assert (again.id, again.state, again.message) == (view.id, view.state, view.message)
    assert json.dumps(again.history) == json.dumps(view.history)
    assert np.array_equal(again.parameters.P, view.parameters.P)
    assert again.saved
    assert not again.converged
    assert job.owner == "me"
    job.play()
    assert job.state is TaskState.FINISHED
    assert managed(store).open("unknown") is None
    assert TaskManager(InlineExecutor()).open(view.id) is None


# ------------------------------------------------------------------------------------- several processes

WRITER = """
    import sys
    from fmviz.lab.experiment import Experiment
    from fmviz.lab.store import Growth, RunStore
    store, me = RunStore(sys.argv[1]), int(sys.argv[2])
    for i in range(int(sys.argv[3])):
        run = store.begin(Experiment(seed=1000 * me + i), origin="test")
        store.grow(run, Growth([{"epoch": 0, "objective": 2.0}], objectives=[2.0]))
        last = [{"epoch": 1, "objective": 1.0}]
        store.grow(run, Growth(last, objectives=[2.0, 1.0], status="epochs", message="Done."))
"""


def python(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_processes_write_at_once_without_losing_a_row(tmp_path):
    path = tmp_path / "runs.sqlite"
    processes, each = 4, 40
    running = [python(WRITER, path, me, each) for me in range(processes)]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert not errors
    runs = RunStore(path).runs()
    seeds = {run.settings.get("seed", 0) for run in runs}
    assert seeds == {1000 * me + i for me in range(processes) for i in range(each)}
    assert {run.status for run in runs} == {"epochs"}
    assert {run.epoch for run in runs} == {1}


VICTIM = """
    import sys, time
    from fmviz.lab.store import recorder
    from fmviz.lab.experiment import Experiment
    from fmviz.lab.background.tasks import ServerLimits, TaskManager
    from fmviz.lab.store import RunStore
    recorder.CHECKPOINT_SECONDS = recorder.FLUSH_SECONDS = 0.05
    store = RunStore(sys.argv[1])
    manager = TaskManager(open_store=lambda: store, limits=ServerLimits(per_owner=10))
    done = Experiment(rank=3, max_epochs=3, tol=0.0)
    jobs = [manager.start(Experiment(rank=20, max_epochs=20_000, tol=0.0, seed=seed)) for seed in range(3)]
    manager.start(done)
    while True:
        for job in manager.jobs():
            job.view()
        time.sleep(0.01)
"""


def test_a_killed_process_leaves_whole_runs_behind(tmp_path, request):
    path = tmp_path / "runs.sqlite"
    victim = python(VICTIM, path)
    request.addfinalizer(victim.kill)
    wait_for(path.exists, 60.0)
    store = RunStore(path)
    wait_for(lambda: len(store.database.read("SELECT run FROM checkpoints JOIN runs ON run = id")) == 4, 60.0)
    wait_for(lambda: store.runs(text='"max_epochs": 3,')[0].status == "epochs", 60.0)
    victim.kill()
    victim.communicate()
    assert store.database.read("PRAGMA integrity_check")[0][0] == "ok"
    runs = store.runs()
    assert sorted(run.status for run in runs) == ["epochs", *[INTERRUPTED] * 3]
    for run in runs:
        trace = store.trace(run.id)
        assert [r["epoch"] for r in trace] == list(range(len(trace)))
        assert trace[-1] == run.last


def test_after_a_fork_the_store_opens_files_of_its_own(store):
    run = store.begin(SMALL)
    child = os.fork()
    if child == 0:
        try:
            # A run is written by the process that began it.
            with pytest.raises(AtWorkError):
                store.grow(run, Growth([record(1)], status="epochs"))
            store.grow(store.begin(SMALL, run="childs"), Growth([record(1)], status="epochs"))
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert {name: store.get(name).status for name in (run, "childs")} == {run: "running", "childs": "epochs"}
