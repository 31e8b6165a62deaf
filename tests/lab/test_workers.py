"""Workers: one thread each, kernels that are loaded, and no item that spoils the others."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from programs import alive, wait_for
from threadpoolctl import threadpool_info

import fmviz
from fmviz.engine._jit import KERNELS
from fmviz.lab.background import workers
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.search.sweep_run import compile_kernels

SMALL = Experiment(rank=3, max_epochs=5, validation=0.25)
MANY = [
    dataclasses.replace(SMALL, seed=seed, regularizer=regularizer, lambda_sparse=strength)
    for seed in range(2)
    for regularizer in ("ti", "cs")
    for strength in (0.1, 1.0)
]


@pytest.fixture(scope="module", autouse=True)
def compiled_elsewhere():
    # A process that has just compiled a kernel may round the last bit otherwise than one that loads it.
    code = (
        "from fmviz.lab.search import sweep_run; from fmviz.lab.experiment import Experiment; "
        "names = ('ti', 'cs'); sweep_run.compile_kernels("
        "[Experiment(rank=3, validation=0.25, regularizer=name) for name in names])"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ------------------------------------------------------------------------------ called by name in a worker


def threads_of(_item: int) -> tuple[int, list[int], str | None, str | None]:
    time.sleep(0.05)
    return (
        os.getpid(),
        [pool["num_threads"] for pool in threadpool_info()],
        os.environ.get("OMP_NUM_THREADS"),
        os.environ.get("NUMBA_NUM_THREADS"),
    )


def compiled_by(experiment: Experiment) -> tuple[int, int, int]:
    Run.prepare(experiment).end()
    stats = [kernel.stats for kernel in KERNELS.values()]
    hits = max((n for stat in stats for n in stat.cache_hits.values()), default=0)
    return os.getpid(), sum(n for stat in stats for n in stat.cache_misses.values()), hits


def killed_at(bad: int, item: int) -> str:
    if item == bad:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{item} done"


def waits_for(path: str, item: int) -> int:
    while item == 0 and not Path(path).exists():
        time.sleep(0.01)
    return os.getpid()


def is_lost(item: int) -> str:
    return f"{item} lost"


# ------------------------------------------------------------------------------------------------ workers


def test_workers_have_one_thread_each():
    actual = [result for _, result in workers.stream(threads_of, range(8), is_lost, n_jobs=2)]
    assert os.getpid() not in {pid for pid, *_ in actual}
    for _, pools, omp, numba_threads in actual:
        assert set(pools) <= {1}
        assert omp == "1"
        assert numba_threads == "1"


def test_this_process_gets_its_threads_back():
    before = [pool["num_threads"] for pool in threadpool_info()]
    ((_, (pid, pools, *_)),) = workers.stream(threads_of, [0], is_lost, n_jobs=1)
    assert pid == os.getpid()
    assert [pool["num_threads"] for pool in threadpool_info()] == before
    assert all(n == 1 for n, info in zip(pools, threadpool_info(), strict=True) if info["user_api"] == "blas")


@pytest.mark.needs_jit
def test_workers_load_kernels_once_and_compile_none():
    compile_kernels(MANY)
    for _, (pid, misses, hits) in workers.stream(compiled_by, MANY, is_lost, n_jobs=2):
        assert pid != os.getpid()
        assert misses == 0
        assert hits == 1


def test_results_come_as_they_are_ready(tmp_path):
    flag = tmp_path / "go"
    results = workers.stream(partial(waits_for, str(flag)), range(3), is_lost, n_jobs=2)
    assert next(results)[0] == 1
    assert next(results)[0] == 2
    flag.touch()
    assert [index for index, _ in results] == [0]


def test_a_worker_that_dies_takes_its_own_item_only():
    results = workers.stream(partial(killed_at, 2), range(7), is_lost, n_jobs=2)
    assert dict(results) == {i: f"{i} lost" if i == 2 else f"{i} done" for i in range(7)}


# Loky's own thread may look for a piece of work that it has just been told to drop.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception in thread ExecutorManagerThread")
def test_closing_early_ends_the_workers_and_the_next_ones_work(tmp_path):
    results = workers.stream(partial(waits_for, str(tmp_path / "never")), range(8), is_lost, n_jobs=2)
    _, pid = next(results)
    results.close()
    wait_for(lambda: not alive(pid), 30.0)
    assert len(list(workers.stream(threads_of, range(2), is_lost, n_jobs=2))) == 2


_LONG = """
import fmviz
from fmviz.lab.background.workers import stream
from fmviz.lab.search.sweep_run import _fit, _lost

experiments = [
    fmviz.Experiment(seed=seed, rank=2, tol=0.0, max_epochs=1 if seed == 0 else 100_000) for seed in range(6)
]
for row in stream(_fit, experiments, _lost, n_jobs=2):
    print("first", flush=True)
"""


def heed_interrupts():
    """Undo what a shell does to programs in its background: they ignore Ctrl-C, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ended(group: int) -> bool:
    """Tell whether all processes of a group have ended."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupting_ends_everything(tmp_path, how):
    script = tmp_path / "long.py"
    script.write_text(_LONG, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_interrupts,
        env={**os.environ, "PYTHONPATH": str(Path(fmviz.__file__).parents[1])},
    )
    assert process.stdout.readline() == "first\n"
    if how is signal.SIGKILL:
        # Nobody can tell the workers any more.
        process.kill()
        process.communicate(timeout=120)
        wait_for(partial(ended, process.pid), 5.0)
        return
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    # joblib's tracker of temporary files, a process of its own, may warn later of one that is gone.
    own = [line for line in errors.splitlines() if "resource_tracker" not in line]
    assert own[-1] == "KeyboardInterrupt"
    wait_for(partial(ended, process.pid), 30.0)
