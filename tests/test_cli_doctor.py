"""``fmviz doctor``."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from fmviz import operators
from fmviz.lab.experiment import Experiment
from fmviz.lab.store import RunStore


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "runs.sqlite"
    store = RunStore(path)
    store.begin(Experiment())
    store.close()
    return path


def test_everything_works_in_a_process_of_its_own(path):
    line = [sys.executable, "-m", "fmviz", "doctor", "--store", str(path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.endswith("Everything works.\n")
    assert "BAD" not in done.stdout
    assert "1 runs, integrity: ok" in done.stdout


def test_a_store_that_is_not_there_is_not_made(tmp_path, command):
    path = tmp_path / "new" / "runs.sqlite"
    assert f"{tmp_path}, for runs and uploads" in command("doctor", "--store", path).out
    assert not path.parent.exists()


def test_what_is_broken_is_told(path, monkeypatch, command):
    monkeypatch.setattr(operators, "certificate", lambda *_: 0.1)
    monkeypatch.setattr(metadata, "distributions", lambda: [])
    data = bytearray(path.read_bytes())
    path.write_bytes(b"no database at all" + bytes(data[18:]))
    said = command("doctor", "--store", path, code=1)
    assert "numba missing" in said.out
    assert "Everything works" not in said.out
    assert said.err == "Not as it must be: library, store, numbers.\n"
