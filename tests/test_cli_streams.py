"""Encoding errors, closed streams and full devices in commands, and an early Ctrl-C."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fmviz
from fmviz.__main__ import main
from fmviz.cli import COMMANDS
from fmviz.cli._terminal import Progress
from fmviz.lab.store import RunStore
from fmviz.lab.store.recorder import Recorder

FIT = ("--target", "y", "--lambda-sparse", "0.01", "--rank", "2", "--max-epochs", "5")
FILES = {"model.npz", "interactions.csv", "report.json", "report.html"}
on_linux = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@pytest.fixture
def file(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "Größe", "вес"])
    table.assign(y=table["a"] * table["вес"]).to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def printed(monkeypatch, encoding: str, *given: str) -> str:
    """Return what a command prints into a stream of that encoding."""
    data = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(data, encoding=encoding))
        with contextlib.suppress(SystemExit):
            assert main([*given]) == 0
        return data.getvalue().decode(encoding)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_no_character_fails_to_be_printed(monkeypatch, file, encoding):
    for command in COMMANDS:
        assert "usage" in printed(monkeypatch, encoding, command, "--help")
    assert "--interactions N" in printed(monkeypatch, encoding, "fit", "--help")
    assert "\\u0432\\u0435\\u0441" in printed(monkeypatch, encoding, "fit", str(file), *FIT)
    report = printed(monkeypatch, encoding, "fit", str(file), *FIT, "--json")
    assert {column["name"] for column in json.loads(report)["encoding"]["columns"]} == {"a", "Größe", "вес"}


def test_lines_end_as_the_stream_ends_them(monkeypatch, file, tmp_path, command):
    command("fit", file, *FIT, "--output", tmp_path / "out")
    monkeypatch.setattr(os, "linesep", "\r\n")
    assert "\r" not in command("predict", tmp_path / "out", file).out


def test_progress_is_overwritten_without_escape_sequences(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    progress = Progress()
    progress.tell("A long line of progress")
    progress.tell("Short")
    progress.clear()
    blank = "\r" + 19 * " " + "\r"
    assert capsys.readouterr().err == "\rA long line of prog\rShort              " + blank


def test_a_name_of_bytes_that_are_no_characters_is_reported(file, tmp_path, command):
    odd = tmp_path / os.fsdecode(b"\xff.csv")
    try:
        file.rename(odd)
    except OSError:
        pytest.skip("no such names here")
    assert "\\udcff.csv: 60 rows" in command("fit", odd, *FIT, "--output", tmp_path / "out").out
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["data"]["name"] == odd.name


def test_closed_streams_lose_nothing(monkeypatch, file, tmp_path):
    with monkeypatch.context() as patch:
        for name in ("stdin", "stdout", "stderr"):
            patch.setattr(sys, name, None)
        assert main(["fit", str(file), *FIT, "--output", str(tmp_path / "out")]) == 0
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            stream.close()
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    store = tmp_path / "runs.sqlite"
    line = f"exec {sys.executable} -m fmviz runs list --store {store} <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", line], env=environment(), check=False).returncode == 0
    # It was not printed into.
    assert RunStore(store).count() == 0


@on_linux
def test_a_full_device_in_place_of_stderr_loses_nothing(monkeypatch, file, capsys):
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", full)
        assert main(["fit", str(file), *FIT]) == 0
        assert main(["fit", str(file), "--target", "none"]) == 2
    assert "data.csv: 60 rows" in capsys.readouterr().out


@on_linux
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_device_in_place_of_stdout_is_told(tmp_path, unbuffered):
    line = f"exec {sys.executable} -m fmviz runs list --store {tmp_path}/runs.sqlite > /dev/full"
    given = environment(PYTHONUNBUFFERED=unbuffered)
    done = subprocess.run(["sh", "-c", line], env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "The output cannot be written (No space left on device); free some space or choose another "
        "location.\n"
    )


def test_a_fit_whose_files_or_store_cannot_be_written_is_printed(monkeypatch, file, tmp_path, command):
    (tmp_path / "out" / "report.json").mkdir(parents=True)
    said = command("fit", file, *FIT, "--output", tmp_path / "out", code=2)
    assert "data.csv: 60 rows" in said.out
    assert "report.json' cannot be used: Is a directory." in said.err

    def fail(recorder, *_given):
        recorder.trouble = "The disk is full."

    monkeypatch.setattr(Recorder, "note", fail)
    said = command("fit", "balance_scale", *FIT[2:], "--store", tmp_path / "runs.sqlite", code=1)
    assert "certificate" in said.out
    assert said.err == "The disk is full.\n"


INTERRUPTING = """
import os, signal, sys
from pathlib import Path

# In files, as the process that reads files has another environment.
terminal = Path(__file__).with_name("terminal")
if not terminal.exists():
    terminal.write_text(str(os.getpgid(0)))
program, _, module = Path(__file__).with_name("where").read_text().partition(": ")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module and program in " ".join(sys.orig_argv):
            sys.meta_path.remove(self)
            os.killpg(int(terminal.read_text()), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize(
    ("where", "given", "ends"),
    [
        ("fmviz fit: numpy", ["fit"], (130, "Interrupted.\n")),
        ("fmviz --help: fmviz.cli.warmup", ["--help"], (130, "Interrupted.\n")),
        # The process that reads files, which is about to start.
        ("import serve: fmviz.lab.confined", ["fit"], (130, "Interrupted.\n")),
        ("streamlit: streamlit", ["serve"], (-2, "")),
    ],
)
def test_ctrl_c_before_anything_has_begun(file, tmp_path, where, given, ends):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    (tmp_path / "where").write_text(where)
    root = str(Path(fmviz.__file__).parents[1])
    given = [*given, str(file), *FIT] if given == ["fit"] else given
    done = subprocess.run(
        [sys.executable, "-m", "fmviz", *given],
        env=environment(PYTHONPATH=os.pathsep.join((str(tmp_path), root))),
        capture_output=True,
        text=True,
        process_group=0,
        check=False,
    )
    assert (done.returncode, done.stderr) == ends


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(fmviz.__file__).parents[1])} | more
