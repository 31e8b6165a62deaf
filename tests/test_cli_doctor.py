"""``fmviz doctor``."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib import metadata

import pytest
from programs import run_afresh

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


REFUSED = """
import ctypes, sys
from fmviz.__main__ import main
from fmviz.lab import isolation
isolation._libc.prctl(38, *map(ctypes.c_ulong, (1, 0, 0, 0)))
for number in (272, isolation._CREATE_RULESET):  # As of old kernels and in containers: 272 is `unshare`.
    isolation._restrict_sockets(0xC000003E, number)
sys.exit(main(["doctor", "--store", sys.argv[1]]))
"""


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="has other numbers")
def test_what_the_kernel_refuses_is_told_and_files_are_read_all_the_same(path):
    lines = run_afresh("-c", REFUSED, path).splitlines()
    assert lines[-1] == "Everything works."
    # What is left is read only by who may watch the other processes.
    assert [line for line in lines if "reader" in line][:5] == [
        "--  reader   can read the run store or other personal files, which Landlock would prevent",
        "--  reader   can write, truncate or delete files, which Landlock or a mount namespace would prevent",
        "--  reader   can change the permissions of files, which a mount namespace would prevent",
        "ok  reader   cannot use the network",
        "--  reader   can leave programs running, which a process namespace would prevent",
    ]


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_only_linux_restricts_the_reading_of_files(path, monkeypatch, command, system):
    monkeypatch.setattr(sys, "platform", system)
    lines = command("doctor", "--store", path).out.splitlines()
    assert [line.split()[0] for line in lines if " reader " in line] == ["--"]
    assert lines[-1] == "Everything works."


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
    assert said.err == "Failed checks: library, store, numbers.\n"
