"""``fmviz sweep --dask``: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import wait_for

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

        wait_for(lambda: self._address.exists() or self.scheduler.poll() is not None, 120.0)
        assert self.scheduler.poll() is None, (self._folder / "log.txt").read_text()
        result = json.loads(self._address.read_text())["address"]
        with Client(result, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
        return result

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


@pytest.mark.parametrize("address", ["nonsense", ":::", "http://127.0.0.1:8786", "tcp://127.0.0.1:1"])
def test_what_is_no_address_is_told_at_once(tmp_path, address, command):
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    started = time.monotonic()
    said = command("sweep", file, "--store", tmp_path / "runs.sqlite", "--dask", address, code=2).err
    assert f"The Dask scheduler {address!r} cannot be reached" in said
    assert time.monotonic() - started < 30
