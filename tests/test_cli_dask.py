"""``--dask`` and Dask arrays: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from programs import wait_for
from sklearn.base import clone

from fmviz import FactorizationMachineRegressor
from fmviz.__main__ import main
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.search.sweep_run import results
from fmviz.lab.store import RunStore

pytest.importorskip("distributed")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PLAN = """
seeds = 4
[base]
rank = 5
max_epochs = 600
tol = 0.0
[[method]]
regularizer = "ti"
[[method]]
regularizer = "cs"
[grid]
lambda_sparse = [0.1, 1.0]
"""


class Cluster:
    """A scheduler and workers, as someone starts them in as many terminals."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._address = folder / "scheduler.json"
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))
        self._environment = environment
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        self.workers = [self._start("worker", "--nthreads", "1", "--no-nanny") for _ in range(2)]

    def _start(self, *line: str) -> subprocess.Popen:
        log = (self._folder / "log.txt").open("a")
        command = [sys.executable, "-m", "dask", *line, "--no-dashboard"]
        command += ["--scheduler-file", str(self._address)]
        with log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=self._environment, cwd=self._folder)

    def address(self) -> str:
        """Wait for the scheduler, and for both workers; return what ``--dask`` takes."""
        from distributed import Client

        # The scheduler makes the file before it writes into it.
        wait_for(lambda: self._written() or self.scheduler.poll() is not None, 120.0)
        assert self.scheduler.poll() is None, (self._folder / "log.txt").read_text()
        result = json.loads(self._address.read_text())["address"]
        with Client(result, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        return result

    def _written(self) -> bool:
        return self._address.exists() and self._address.read_text().rstrip().endswith("}")

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    folder = tmp_path / "dask"
    folder.mkdir()
    started = Cluster(folder)
    yield started
    started.close()


def numbers(plan: SweepPlan, path: Path) -> list:
    """Every result but its times."""
    store = RunStore(path)
    message = []
    for index, run in sorted(results(plan, store).items()):
        last = {name: value for name, value in run.last.items() if name != "seconds"}
        message.append((index, run.status, store.parameters(run.id).P.tobytes(), json.dumps(last)))
    store.close()
    return message


def test_a_cluster_gives_the_numbers_of_this_machine_and_outlives_a_worker(tmp_path, cluster):
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    plan = SweepPlan.from_text(PLAN)
    here, there = tmp_path / "here.sqlite", tmp_path / "there.sqlite"
    assert main(["sweep", str(file), "--store", str(here), "--jobs", "1"]) == 0
    line = ["sweep", str(file), "--store", str(there), "--dask", cluster.address(), "--json"]
    command = subprocess.Popen(
        [sys.executable, "-m", "fmviz", *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    store = RunStore(there)
    wait_for(lambda: store.count() >= 3 or command.poll() is not None, 300.0)
    done = store.count()
    store.close()
    cluster.workers[0].kill()
    out, err = command.communicate(timeout=300)
    assert command.returncode == 0, err
    assert done < len(plan.cells), "the worker was lost while there was work to do"
    assert numbers(plan, there) == numbers(plan, here)
    assert len(numbers(plan, there)) == len(plan.cells) == 16
    message = json.loads(out)
    assert [row["fits"] for row in message["rows"]] == [4] * 4
    assert not message["failures"]


@pytest.mark.parametrize(("solver", "regularizer"), [("apgd", "ti"), ("lbfgs", "l2")])
def test_a_fit_to_parts_outlives_a_worker(cluster, solver, regularizer):
    import dask.array as da
    from distributed import Client

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 12))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=60_000)
    strengths = {"lambda_w": 1e-3, "lambda_p": 1e-3, "lambda_sparse": 1e-3 * (regularizer == "ti")}
    settings = {"init_scale": 0.1, "max_iter": 30, "tol": 0.0, "random_state": 0, "standardize": False}
    machine = FactorizationMachineRegressor(
        4, solver=solver, regularizer=regularizer, **strengths, **settings
    )
    here = clone(machine).fit(X, y)
    ended = []

    def end_a_worker(snapshot):
        if snapshot.epoch == 10:
            cluster.workers[0].kill()
            ended.append(cluster.workers[0].wait())

    with Client(cluster.address()):
        there = clone(machine).set_params(callback=end_a_worker).fit(da.from_array(X, chunks=(15_000, 12)), y)
    assert ended
    np.testing.assert_allclose(there.P_, here.P_, atol=1e-12)
    assert there.status_.message == here.status_.message


def test_all_rows_of_a_file_are_fitted_on_a_cluster(tmp_path, cluster, command, monkeypatch):
    monkeypatch.setattr("fmviz.lab.store.rows._PART_ROWS", 1_000)
    monkeypatch.setattr("fmviz.tables.batches._BATCH_CELLS", 1_500)
    rng = np.random.default_rng(0)
    a, b = rng.integers(20, size=(2, 3_000))
    y = rng.normal(size=20)[a] * rng.normal(size=20)[b] + 0.1 * rng.normal(size=3_000)
    path = tmp_path / "big.parquet"
    pd.DataFrame({"a": [f"a{x}" for x in a], "b": [f"b{x}" for x in b], "y": y}).to_parquet(path)
    line = ("fit", path, "--target", "y", "--rows", "all", "--json", "--top", "50")
    reports = [json.loads(command(*line, *more).out) for more in ((), ("--dask", cluster.address()))]
    here, there = ([report["result"]["objective"], *report["metrics"].values()] for report in reports)
    assert there == pytest.approx(here, rel=1e-9)
    assert reports[1]["columns"]["pairs"][0]["stands_out"]


@pytest.mark.parametrize("address", ["nonsense", ":::", "http://127.0.0.1:8786", "tcp://127.0.0.1:1"])
def test_what_is_no_address_is_told_at_once(tmp_path, address, command):
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    started = time.monotonic()
    said = command("sweep", file, "--store", tmp_path / "runs.sqlite", "--dask", address, code=2).err
    assert f"The Dask scheduler {address!r} cannot be reached" in said
    assert time.monotonic() - started < 30
