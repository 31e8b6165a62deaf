"""``fmviz sweep``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from programs import wait_for

from fmviz.lab.search import sweep_run
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.search.sweep_run import results

PLAN = """
title = "TI against CS"
seeds = 2
[base]
rank = 3
max_epochs = 20
tol = 0.0
[[method]]
regularizer = "ti"
[[method]]
regularizer = "cs"
[grid]
lambda_sparse = [0.1, 1.0]
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


@pytest.fixture
def sweep(command, place):
    """Run the sweep of the plan."""
    line = ("sweep", place / "plan.toml", "--store", place / "runs.sqlite", "--jobs", "1")
    return lambda *more, **code: command(*line, *more, **code)


def test_count_progress_and_table(sweep):
    said = sweep("--dry-run")
    assert said.err == "8 fits; 0 are already in the store.\n"
    assert said.out == ""
    said = sweep()
    lines = said.out.splitlines()
    assert lines[0] == "TI against CS"
    assert lines[2].split() == ["method", "lambda_sparse", "fits", "RMSE,", "training", "interactions"]
    assert len([line for line in lines if "±" in line and "Mean" not in line]) == 4
    # All of it comes from the store now, and nothing is asked or fitted.
    again = sweep()
    assert again.err == "8 fits; 8 are already in the store.\n"
    assert again.out == said.out


def test_the_table_holds_means_and_deviations(sweep, store):
    message = json.loads(sweep("--json").out)
    result = results(SweepPlan.from_text(PLAN), store)
    assert (message["metric"], message["failures"]) == ("train_rmse", {})
    values = [result[i].last["train_rmse"] for i in (0, 1)]
    row = message["rows"][0]
    assert (row["regularizer"], row["lambda_sparse"], row["fits"]) == ("ti", 0.1, 2)
    assert row["mean"] == pytest.approx(sum(values) / 2)
    assert row["std"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)


def test_failed_fits_are_counted_and_told(sweep, monkeypatch):
    real = sweep_run._completed

    def broken(experiment, should_stop):
        if experiment.regularizer.name == "cs":
            raise ValueError("This is too much.")
        return real(experiment, should_stop)

    monkeypatch.setattr(sweep_run, "_completed", broken)
    text = sweep(code=1).out
    assert "4 fits failed: This is too much." in text
    assert len([line for line in text.splitlines() if "±" in line and "Mean" not in line]) == 2


@pytest.mark.parametrize(
    ("text", "more", "sentence"),
    [
        ("nonsense", (), "This is not a sweep"),
        ("seeds = 0", (), "has 0 fits"),
        ("[grid]\nlambda_sparse = [-1]", (), "lambda_sparse = -1"),
        ("[[method]]\nregularizer = 'x'", (), "regularizer"),
        ("seeds = 1", ("--jobs", "0"), "n_jobs = 0"),
    ],
)
def test_what_is_no_sweep(sweep, place, text, more, sentence, command):
    (place / "plan.toml").write_text(text)
    assert sentence in sweep(*more, code=2).err
    assert "cannot be read" in command("sweep", place / "none.toml", code=2).err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends POSIX signals")
def test_ctrl_c_leaves_what_is_finished(place, store):
    plan = PLAN.replace("seeds = 2", "seeds = 500")
    (place / "plan.toml").write_text(plan)
    line = [sys.executable, "-m", "fmviz", "sweep", str(place / "plan.toml"), "--jobs", "2"]
    line += ["--store", str(place / "runs.sqlite")]
    # A session of its own: on a terminal Ctrl-C goes to the workers, too.
    process = subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell lets what it starts in the background ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # The store counts runs that have begun.
    full = SweepPlan.from_text(plan)
    wait_for(lambda: len(results(full, store)) >= 3 or process.poll() is not None, 300.0)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "repeat the command to resume" in err
    assert 3 <= len(results(full, store)) < 2000
    assert "±" in out
