"""Inputs of commands: files, pipes and devices; and run stores that are other files."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sqlite3
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fmviz.engine.checkpoint import Checkpoint
from fmviz.lab.experiment import Experiment
from fmviz.lab.saved_model import SavedModel
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.store import RunStore, StoreError
from fmviz.lab.store.packing import unpack_parameters
from fmviz.tables import limits

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs pipes with names")

FIT = ("--target", "y", "--lambda-sparse", "0.01", "--rank", "2", "--max-epochs", "5")


@pytest.fixture
def file(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    table.assign(y=table["a"] * table["b"]).to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


@contextlib.contextmanager
def pipe(data: bytes):
    """Yield the end of a pipe to read from, and a list of what could be written when that is closed."""
    end, beginning = os.pipe()
    written: list[int] = []

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(beginning, "wb", buffering=0) as stream:
            written.extend(stream.write(data[start : start + 4096]) for start in range(0, len(data), 4096))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield end, written
    finally:
        os.close(end)
        writer.join()


@contextlib.contextmanager
def standard_input(monkeypatch, data: bytes):
    with pipe(data) as (end, _), open(end, closefd=False) as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", stream)
        yield


# ------------------------------------------------------------------------------------------------- devices


@pytest.mark.parametrize(
    "given",
    [
        ["fit", "/dev/null", "--target", "y", "--output", "out"],
        ["fit", "/dev/null", "--target", "y", "--no-limits"],
        ["fit", "-", "--target", "y"],
        ["predict", "/dev/null", "data.csv"],
        ["sweep", "/dev/null", "--dry-run", "--store", "new.sqlite"],
        ["runs", "import", "/dev/null", "--store", "new.sqlite"],
    ],
    ids=" ".join,
)
def test_devices_are_not_read(given, file, monkeypatch, command):
    monkeypatch.chdir(file.parent)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        said = command(*given, code=2).err
    name = "Standard input" if "-" in given else "'/dev/null'"
    assert said == (
        f"{name} is a device or a terminal. Give a file or a pipe, or - for piped standard input.\n"
    )
    assert not Path("out").exists()


# --------------------------------------------------------------------------------------------------- pipes


def test_models_and_tables_come_through_pipes(file, tmp_path, monkeypatch, command):
    data, out = file.read_bytes(), tmp_path / "out"
    with standard_input(monkeypatch, data):
        assert command("fit", "-", *FIT, "--output", out).out.startswith("Standard input: 60 rows")
    expected = command("predict", out, file).out
    with pipe((out / "model.npz").read_bytes()) as (model, _), pipe(data) as (table, _):
        assert command("predict", f"/dev/fd/{model}", f"/dev/fd/{table}").out == expected
    with standard_input(monkeypatch, data):
        assert command("predict", out, "/dev/stdin").out == expected


def test_sweeps_and_runs_come_through_pipes(store, tmp_path, monkeypatch, command):
    with standard_input(monkeypatch, b'\xef\xbb\xbftitle = "Piped"\n'):
        assert SweepPlan.from_file("-").title == "Piped"
    run = store.begin(Experiment())
    command("runs", "export", run, tmp_path / "runs.zip", "--store", store.path)
    with standard_input(monkeypatch, (tmp_path / "runs.zip").read_bytes()):
        assert "1 run imported" in command("runs", "import", "-", "--store", tmp_path / "other.sqlite").out


def test_a_pipe_is_read_up_to_the_limit(monkeypatch, command):
    monkeypatch.setattr(limits, "COMMAND", replace(limits.COMMAND, file=100_000))
    with pipe(b"a,b\n" * 1_000_000) as (end, written):
        said = command("fit", f"/dev/fd/{end}", "--target", "b", code=2).err
    assert said == (
        f"'/dev/fd/{end}' has more than 100 kB. Take a sample of its rows, or compress it with gzip. Or use "
        "--no-limits.\n"
    )
    assert sum(written) < 2_000_000


def test_without_limits_the_free_memory_is_the_limit(file, monkeypatch, command):
    monkeypatch.setattr("fmviz.lab.files.available_bytes", lambda: 1000.0)
    sentence = (
        f"'{file}' has {file.stat().st_size / 1000:.3g} kB, more than half of the free memory, 500 bytes."
    )
    assert command("fit", file, "--target", "y", "--no-limits", code=2).err.startswith(sentence)
    assert command("predict", file, file, code=2).err.startswith(sentence)


# ------------------------------------------------------------------------------------------- unpickling


def objects() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, about=np.array([{}], dtype=object), P=np.array([{}], dtype=object))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data", [b"a,b\n1,2\n", b"PK\x03\x04 cut off", objects()], ids=["table", "archive", "objects"]
)
def test_nobody_is_advised_to_unpickle(data, tmp_path):
    (tmp_path / "model.npz").write_bytes(data)

    def load(_data: bytes) -> SavedModel:
        return SavedModel.load(tmp_path / "model.npz")

    for read in (load, unpack_parameters, Checkpoint.from_bytes):
        with pytest.raises(ValueError, match=r"or (it )?(is|are|they are) damaged") as caught:
            read(data)
        assert "pickle" not in str(caught.value)


# ------------------------------------------------------------------------------------------ the run store


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the mode and the bytes of all files of a folder."""
    return {
        path.name: (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


@contextlib.contextmanager
def table(path: Path):
    path.write_text("a,b\n1,2\n" * 1000)
    path.with_name("store-wal").write_text("my notes")
    yield


@contextlib.contextmanager
def database(path: Path, mode: str = "delete"):
    """Make a database of another program, which has runs of its own and holds it open."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE runs (id)")
        connection.commit()
        yield


@contextlib.contextmanager
def folder(path: Path):
    path.mkdir(mode=0o755)
    yield


@contextlib.contextmanager
def named_pipe(path: Path):
    os.mkfifo(path)
    with open(os.open(path, os.O_RDWR), "rb"):
        yield


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (table, "file is not a database"),
        (database, "it is a database of another program"),
        (partial(database, mode="wal"), "it is a database of another program"),
        (folder, "it is not a file"),
        (named_pipe, "it is not a file"),
    ],
)
def test_what_is_no_run_store_stays_as_it_is(make, words, tmp_path, command):
    path = tmp_path / "store"
    with make(path):
        path.chmod(0o755 if path.is_dir() else 0o644)
        before = files(tmp_path)
        with pytest.raises(StoreError, match=rf"cannot be opened \({words}\)"):
            RunStore(path)
        said = command("runs", "list", "--store", path, code=2).err
        assert "Choose another file with FMVIZ_STORE or --store" in said
        assert files(tmp_path) == before


def test_a_run_store_that_is_in_its_log_alone_is_known(store, tmp_path):
    run = store.begin(Experiment())
    # As a killed process leaves it.
    shutil.copy(store.path, tmp_path / "copy")
    shutil.copy(f"{store.path}-wal", tmp_path / "copy-wal")
    assert b"CREATE TABLE" not in (tmp_path / "copy").read_bytes()
    copy = RunStore(tmp_path / "copy")
    assert [stored.id for stored in copy.runs()] == [run]
    copy.close()
    # Once it is in the file, the log is not copied.
    assert [stored.id for stored in RunStore(tmp_path / "copy").runs()] == [run]
