"""Failures of disks, files and clocks during work, and recovery from them."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time

import pytest
from inline_executor import InlineExecutor

from fmviz.engine import _jit
from fmviz.lab.background.task import TaskState
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.experiment import Experiment
from fmviz.lab.store import RunStore, StoreError, database

RUN = Experiment(rank=40, max_epochs=30, tol=0.0)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A store that does not wait for long, and is written after every epoch."""
    monkeypatch.setattr(database, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr("fmviz.lab.store.recorder.FLUSH_SECONDS", 0.0)
    return tmp_path / "runs.sqlite"


def full(store, monkeypatch):
    """Let the disk of the store be full to the last byte."""
    with store.database.write() as connection:
        connection.execute("CREATE TABLE rest (bytes BLOB)")
    most = store.database.read("PRAGMA page_count")[0][0] + 2
    store.database._connection("writing").execute(f"PRAGMA max_page_count = {most}")
    with contextlib.suppress(StoreError):
        while True:
            with store.database.write() as connection:
                connection.execute("INSERT INTO rest VALUES (zeroblob(500))")

    def mend():
        store.database._connection("writing").execute(f"PRAGMA max_page_count = {10 * most}")

    return mend


def locked(store, monkeypatch):
    """Let another program hold the store."""
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other.close


def unwritable(store, monkeypatch):
    """Let the disk be mounted so that nothing can be written."""

    def refuse(_database):
        error = sqlite3.OperationalError("attempt to write a readonly database")
        error.sqlite_errorcode = sqlite3.SQLITE_READONLY
        raise error

    before = database.Database._open
    monkeypatch.setattr(database.Database, "_open", refuse)
    store.close()
    return lambda: monkeypatch.setattr(database.Database, "_open", before)


TROUBLES = {"full": full, "locked": locked, "readonly": unwritable}


@pytest.mark.parametrize("what", TROUBLES)
def test_a_run_goes_on_and_is_kept_once_its_store_is_mended(place, monkeypatch, what):
    store = RunStore(place)
    executor = InlineExecutor(hold=True)
    job = TaskManager(executor, open_store=lambda: store).start(RUN, steps=0)
    executor.run()
    assert job.view().unsaved == ""
    mend = TROUBLES[what](store, monkeypatch)
    for _ in range(6):
        job.step()
    executor.run()
    view = job.view()
    assert (view.state, view.epoch) == (TaskState.PAUSED, 6)
    assert what in view.unsaved
    assert "FMVIZ_STORE" in view.unsaved
    mend()
    job.play()
    executor.run()
    assert (job.view().state, job.view().unsaved) == (TaskState.FINISHED, "")
    assert [record["epoch"] for record in store.trace(job.id)] == list(range(31))


@pytest.mark.parametrize("what", [pytest.param("full", marks=pytest.mark.slow), "locked", "readonly"])
def test_a_command_says_it_in_a_sentence(place, monkeypatch, what, command):
    store = RunStore(place)
    run = store.begin(RUN)
    (place.parent / "plan.toml").write_text(
        '[base]\nmax_epochs = 2\nrank = 40\n[[method]]\nregularizer = "ti"\n'
    )
    mend = TROUBLES[what](store, monkeypatch)
    monkeypatch.setattr("fmviz.cli.sweep.open_store", lambda _: store)
    said = command("sweep", place.parent / "plan.toml", "--store", place, code=2).err
    assert what in said
    assert "Traceback" not in said
    mend()
    assert store.get(run).id == run


def test_a_clock_that_jumps_cuts_nothing_off(place, monkeypatch):
    store = RunStore(place)
    executor = InlineExecutor(hold=True)
    job = TaskManager(executor, open_store=lambda: store).start(RUN, steps=3)
    executor.run()
    now = time.time
    for days in (400, -400):
        monkeypatch.setattr(time, "time", lambda days=days: now() + 86_400 * days)
        job.step()
        executor.run()
        assert not store.get(job.id).resumable
        assert job.view().last["seconds"] >= 0
    job.play()
    executor.run()
    assert job.state is TaskState.FINISHED
    assert store.get(job.id).ended


def add_one(x):
    return x + 1.0


@pytest.mark.parametrize("replaced", [False, True])
def test_kernels_are_compiled_where_their_cache_has_gone(tmp_path, monkeypatch, replaced):
    place = tmp_path / "kernels"
    place.mkdir()
    monkeypatch.setattr(_jit, "cache_directory", lambda: place)
    kernel = _jit._kernel(add_one, "add_one", False)
    shutil.rmtree(place)
    if replaced:
        place.write_text("not a folder")
    assert kernel(1.0) == 2.0
