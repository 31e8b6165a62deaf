"""``fmviz runs``, and errors and tables that all commands share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from fmviz.__main__ import main
from fmviz.cli._terminal import bar, text_table
from fmviz.engine.parameters import Parameters
from fmviz.lab.experiment import Experiment
from fmviz.lab.store import Growth, RunStore, new_id


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
def path(tmp_path):
    path = tmp_path / "runs.sqlite"
    store = RunStore(path)
    entered(store, "alpha-1")
    entered(store, "alpha-2", regularizer="cs", seed=1)
    entered(store, "beta", dataset="monks1", loss="logistic")
    store.close()
    return str(path)


def test_list(path, capsys):
    assert main(["runs", "list", "--store", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["id", "when", "run"]
    assert {line.split()[0] for line in lines[1:]} == {"alpha-1", "alpha-2", "beta"}
    assert "converged" in lines[1]
    # The store may stand before the command, too.
    assert main(["--store", path, "runs", "list", "--dataset", "monks1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["runs", "list", "--store", path, "--text", "cs", "--regularizer", "cs"]) == 0
    assert "alpha-2" in capsys.readouterr().out
    assert main(["runs", "list", "--store", path, "--limit", "1"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2
    assert "--limit 2" in said.err
    assert main(["runs", "list", "--store", path, "--text", "nothing like it"]) == 0
    assert capsys.readouterr().out.startswith("No runs match")


def test_list_for_machines(path, capsys):
    assert main(["runs", "list", "--store", path, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["id"] for row in rows} == {"alpha-1", "alpha-2", "beta"}
    assert all(row["objective"] == 2.0 and row["interactions"] == 6 for row in rows)


def test_show(path, capsys):
    assert main(["runs", "show", "be", "--store", path]) == 0
    text = capsys.readouterr().out
    assert text.startswith("MONK's problem 1 · TI")
    assert "Done." in text
    assert "RMSE, training" in text
    assert 'dataset="monks1"' in text
    assert main(["runs", "show", "be", "--store", path, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["settings"]["loss"] == "logistic"
    assert shown["trace"][0]["objective"] == 2.0


def test_diff(path, capsys):
    assert main(["runs", "diff", "alpha-1", "alpha-2", "--store", path]) == 0
    text = capsys.readouterr().out
    assert "regularizer" in text
    assert "rank" not in text
    assert main(["runs", "diff", "alpha-1", "alpha-2", "--store", path, "--json"]) == 0
    rows = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["seed"] == {"what": "seed", "alpha-1": "0", "alpha-2": "1"}
    assert main(["runs", "diff", "beta", "b", "--store", path]) == 2
    assert "two different ones" in capsys.readouterr().err


def test_export_and_import(path, tmp_path, capsys):
    file, other = tmp_path / "some.fmviz", str(tmp_path / "other.sqlite")
    assert main(["runs", "export", "alpha-1", "be", str(file), "--store", path]) == 0
    assert "2 runs written" in capsys.readouterr().out
    assert main(["runs", "import", str(file), "--store", other]) == 0
    assert capsys.readouterr().out == "2 runs imported, 0 already there.\n"
    assert main(["runs", "import", str(file), "--store", other]) == 0
    assert capsys.readouterr().out == "0 runs imported, 2 already there.\n"
    store = RunStore(other)
    assert store.parameters("beta").P.shape == (5, 3)
    store.close()
    assert main(["runs", "import", path, "--store", other]) == 2
    assert "cannot be imported" in capsys.readouterr().err
    assert main(["runs", "import", str(tmp_path / "none"), "--store", other]) == 2
    assert "No such file" in capsys.readouterr().err


def test_deleted_runs_are_gone(path, capsys):
    assert main(["runs", "delete", "alpha-1", "beta", "--store", path]) == 0
    assert "2 runs deleted" in capsys.readouterr().out
    main(["runs", "list", "--store", path])
    assert len(capsys.readouterr().out.splitlines()) == 2
    for given in (["undelete", "be"], ["list", "--deleted"]):
        assert main(["runs", *given, "--store", path]) == 2
        assert "A deletion is final" in capsys.readouterr().err
    store = RunStore(path)
    store.begin(Experiment(), run="going")
    store.close()
    assert main(["runs", "delete", "going", "--store", path]) == 2
    assert "still going on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["runs", "show", "alpha"], "several runs whose ids begin with 'alpha'"),
        (["runs", "show", "nix"], "no run whose id begins with 'nix'"),
        (["runs", "show", ""], "no run whose id begins with ''"),
        (["runs", "list", "--limit", "0"], "--limit 0 shows nothing"),
    ],
)
def test_errors_are_one_sentence(given, sentence, path, capsys):
    assert main([*given, "--store", path]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the clock of this system cannot be set")
def test_times_are_those_of_the_clock_here(path, capsys, monkeypatch):
    created = RunStore(path).get("beta").created
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    try:
        assert main(["runs", "list", "--store", path]) == 0
    finally:
        monkeypatch.undo()
        time.tzset()
    assert time.strftime("%Y-%m-%d %H:%M", time.gmtime(created + 9 * 3600)) in capsys.readouterr().out


def test_unknown_commands_list_the_commands(capsys):
    for given in (["nix"], ["runs", "nix"], []):
        with pytest.raises(SystemExit) as caught:
            main(given)
        assert caught.value.code == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "--help" in said
    with pytest.raises(SystemExit):
        main(["nix"])
    assert "'sweep'" in capsys.readouterr().err


def test_a_defect_is_a_sentence_too(monkeypatch, capsys):
    def broken(arguments):
        raise ZeroDivisionError("far off.")

    monkeypatch.setattr("fmviz.cli.runs.run", broken)
    assert main(["runs", "list"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Unexpected ZeroDivisionError: far off. Put --debug")
    assert "Traceback" not in said
    assert main(["--debug", "runs", "list"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_ids_are_no_options():
    assert not any(new_id().startswith("-") for _ in range(2000))


def test_tables_are_aligned():
    rows = [{"a": "λ 1", "n": 5}, {"a": "xyz", "n": 1234567.0}, {"a": None, "n": float("nan")}]
    assert text_table(rows).splitlines() == [
        "a             n",
        "λ 1           5",
        "xyz  1.2346e+06",
        "–             –",
    ]
    assert bar(1, 4, 8) == "[##......] 1/4"


def test_a_reader_that_has_enough_is_no_error(path):
    environment = {**os.environ, "FMVIZ_STORE": path}
    pipe = f"{sys.executable} -m fmviz runs show alpha-1 --json | head -c 5; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", pipe], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_rows_that_look_wrong_are_written(tmp_path, capsys):
    store, file = str(tmp_path / "runs.sqlite"), tmp_path / "rows.csv"
    assert main(["fit", "diabetes", "--max-epochs", "5", "--json", "--store", store]) == 0
    run = json.loads(capsys.readouterr().out)["stored_run"]
    assert main(["runs", "suspects", run, str(file), "--store", store]) == 0
    assert "rows written to" in capsys.readouterr().out
    rows = pd.read_csv(file)
    assert len(rows) >= 50
    assert list(rows.columns[:4]) == ["row", "target", "prediction", "off by"]
