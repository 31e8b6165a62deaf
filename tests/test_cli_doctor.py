"""``fmviz doctor``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fmviz.__main__ import main
from fmviz.engine.penalties import PENALTIES
from fmviz.lab import self_test
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
    for name in PENALTIES:
        assert f"ok  {name} " in done.stdout
    assert "1 runs, whole" in done.stdout


def test_for_machines(path, capsys):
    assert main(["doctor", "--json", "--store", str(path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["fine"]
    parts = {one["part"] for one in told["findings"]}
    assert parts == {"versions", "threads", "cache", "store", "operators", "fit"}
    exact = [one for one in told["findings"] if "certificate" in one["values"] and one["part"] == "operators"]
    assert len(exact) == sum(r.exact_prox for r in PENALTIES.values())
    assert all(one["values"]["certificate"] <= 1e-10 for one in exact)


def test_a_store_that_is_not_there_is_not_made(tmp_path, capsys):
    path = tmp_path / "new" / "runs.sqlite"
    assert main(["doctor", "--store", str(path)]) == 0
    assert "none yet; the first run makes it" in capsys.readouterr().out
    assert not path.parent.exists()


def test_what_is_broken_is_told(path, capsys, monkeypatch):
    real = self_test.prox

    def wrong(name, P, strength):
        if name == "cs":
            raise ZeroDivisionError("far off")
        return real(name, P, strength) * (1.01 if name == "ti" else 1.0)

    monkeypatch.setattr(self_test, "prox", wrong)
    data = bytearray(path.read_bytes())
    path.write_bytes(b"no database at all" + bytes(data[18:]))
    assert main(["doctor", "--store", str(path)]) == 1
    said = capsys.readouterr()
    assert "BAD ti " in said.out
    assert "BAD cs                 Unexpected ZeroDivisionError: far off" in said.out
    assert "BAD runs" in said.out
    assert "Everything works" not in said.out
    assert said.err == "\nNot as it must be: store: runs, operators: ti, operators: cs.\n"


def test_a_missing_package_is_told():
    assert self_test._version("a-package-that-nobody-has", needed=True).fine is False
    assert self_test._version("a-package-that-nobody-has", needed=False).fine is True
