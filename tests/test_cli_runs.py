"""``fmviz runs``, and errors and tables that all commands share."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from unittest.mock import Mock

import numpy as np
import pytest

from fmviz.__main__ import main
from fmviz.cli._terminal import bar, text_table
from fmviz.engine.parameters import Parameters
from fmviz.lab.experiment import Experiment
from fmviz.lab.store import Growth, RunStore


def entered(store, run, **settings):
    """Enter a run that has ended."""
    given = {"rank": 3, **settings}
    store.begin(Experiment(**given), run=run, origin="command")
    record = {"epoch": 1, "seconds": 0.5, "objective": 2.0, "used_features": 4, "used_interactions": 6}
    record |= dict.fromkeys(("loss", "penalty_w", "penalty_p", "penalty_sparse", "change"), 0.5)
    record |= {"certificate": 1e-6, "train_rmse": 0.25 + given.get("seed", 0)}
    parameters = Parameters(np.ones((5, 3)), np.zeros(5), 0.5)
    store.grow(
        run,
        Growth([record], objectives=[3.0, 2.0], parameters=parameters, status="converged", message="Done."),
    )


@pytest.fixture
def path(store):
    entered(store, "alpha-1")
    entered(store, "alpha-2", regularizer="cs", seed=1)
    entered(store, "beta", dataset="monks1", loss="logistic")
    return str(store.path)


@pytest.fixture
def runs(command, path):
    """Run a command of ``fmviz runs`` on the store."""
    return lambda *line, **more: command("runs", *line, "--store", path, **more)


def test_list(runs, path, command):
    lines = runs("list").out.splitlines()
    assert {line.split()[0] for line in lines[1:]} == {"alpha-1", "alpha-2", "beta"}
    assert "converged" in lines[1]
    # The store may stand before the command, too.
    assert len(command("--store", path, "runs", "list", "--dataset", "monks1").out.splitlines()) == 2
    assert "alpha-2" in runs("list", "--text", "cs", "--regularizer", "cs").out
    said = runs("list", "--limit", "1")
    assert len(said.out.splitlines()) == 2
    assert "--limit 2" in said.err
    assert runs("list", "--text", "nothing like it").out.startswith("No runs match")


def test_list_for_machines(runs):
    rows = json.loads(runs("list", "--json").out)
    assert {row["id"] for row in rows} == {"alpha-1", "alpha-2", "beta"}
    assert all(row["objective"] == 2.0 and row["interactions"] == 6 for row in rows)


def test_show(runs):
    text = runs("show", "be").out
    assert text.startswith("MONK's problem 1 · TI")
    assert "Done." in text
    assert "RMSE, training" in text
    assert 'dataset="monks1"' in text
    shown = json.loads(runs("show", "be", "--json").out)
    assert shown["settings"]["loss"] == "logistic"
    assert shown["trace"][0]["objective"] == 2.0


def test_export_and_import(runs, path, tmp_path, command):
    file, other = tmp_path / "some.fmviz", str(tmp_path / "other.sqlite")
    assert "2 runs written" in runs("export", "alpha-1", "be", file).out
    assert command("runs", "import", file, "--store", other).out == "2 runs imported, 0 already there.\n"
    assert command("runs", "import", file, "--store", other).out == "0 runs imported, 2 already there.\n"
    store = RunStore(other)
    assert store.parameters("beta").P.shape == (5, 3)
    store.close()
    assert "cannot be imported" in command("runs", "import", path, "--store", other, code=2).err
    assert "No such file" in command("runs", "import", tmp_path / "none", "--store", other, code=2).err


def test_deleted_runs_are_gone(runs, store):
    assert "2 runs deleted" in runs("delete", "alpha-1", "beta").out
    assert len(runs("list").out.splitlines()) == 2
    store.begin(Experiment(), run="going")
    assert "still running" in runs("delete", "going", code=2).err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["show", "alpha"], "Several runs have ids that start with 'alpha'"),
        (["show", "nix"], "No run has an id that starts with 'nix'"),
        (["show", ""], "No run has an id that starts with ''"),
        (["list", "--limit", "0"], "--limit 0 is too small"),
    ],
)
def test_errors_are_one_sentence(given, sentence, runs):
    said = runs(*given, code=2)
    assert sentence in said.err
    assert said.err.count("\n") == 1


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the clock of this system cannot be set")
def test_times_are_those_of_the_clock_here(runs, store, monkeypatch):
    created = store.get("beta").created
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    try:
        text = runs("list").out
    finally:
        monkeypatch.undo()
        time.tzset()
    assert time.strftime("%Y-%m-%d %H:%M", time.gmtime(created + 9 * 3600)) in text


def test_unknown_commands_list_the_commands(capsys):
    for given in ([], ["runs", "nix"], ["nix"]):
        with pytest.raises(SystemExit) as caught:
            main(given)
        assert caught.value.code == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "--help" in said
    assert "'sweep'" in said


def test_a_defect_is_a_sentence_too(monkeypatch, command):
    monkeypatch.setattr("fmviz.cli.runs.run", Mock(side_effect=ZeroDivisionError("far off.")))
    said = command("runs", "list", code=2).err
    assert said.startswith("Unexpected ZeroDivisionError: far off. Use fmviz --debug")
    assert "Traceback" not in said
    assert "Traceback" in command("--debug", "runs", "list", code=2).err


def test_tables_are_aligned():
    rows = [{"a": "λ 1", "n": 5}, {"a": "xyz", "n": 1234567.0}, {"a": None, "n": float("nan")}]
    assert text_table(rows).splitlines() == [
        "a             n",
        "λ 1           5",
        "xyz  1.2346·10⁶",
        "–             –",
    ]
    assert bar(1, 4, 8) == "[##......] 1/4"


def test_a_reader_that_has_enough_is_no_error(path):
    environment = {**os.environ, "FMVIZ_STORE": path}
    pipe = f"{sys.executable} -m fmviz runs show alpha-1 --json | head -c 5; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", pipe], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_backup_and_salvage(runs, path, tmp_path, command):
    copy, new = tmp_path / "copy.sqlite", tmp_path / "new.sqlite"
    assert runs("backup", copy).out.startswith(f"3 runs copied to {copy} (")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert "already exists" in runs("backup", copy, code=2).err
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET created = 1e300 WHERE id = 'beta'")
    assert "2 runs saved" in (said := runs("salvage", new).out)
    assert "of run beta, not saved: record" in said
    assert "1 damaged; fmviz runs salvage NEW" in command("doctor", "--store", path, code=1).out
    for store, ids in ((copy, {"alpha-1", "alpha-2", "beta"}), (new, {"alpha-1", "alpha-2"})):
        lines = command("runs", "list", "--store", store).out.splitlines()[1:]
        assert {line.split()[0] for line in lines} == ids
    assert "broken" in runs("list").out
