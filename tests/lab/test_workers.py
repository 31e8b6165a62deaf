"""Chains in workers: one thread each, kernels that are loaded, and no chain that spoils the others."""

from __future__ import annotations

import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from programs import alive, run_afresh, wait_for
from threadpoolctl import threadpool_info

import fmviz
from fmviz.engine._jit import KERNELS
from fmviz.lab.background import workers
from fmviz.lab.background.workers import LostWorkerError, WorkerPool, carry_out
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


def numbered(item: int, n: int, should_stop) -> Iterator[tuple[int, int, int]]:
    for i in range(n):
        time.sleep(0.01)
        yield item, i, os.getpid()


def endless(path: str, should_stop) -> Iterator[int]:
    while not should_stop():
        Path(path).touch()
        yield os.getpid()


def threads_of(should_stop) -> Iterator[tuple[int, list[int], str | None, str | None]]:
    time.sleep(0.05)
    yield (
        os.getpid(),
        [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"],
        os.environ.get("OMP_NUM_THREADS"),
        os.environ.get("NUMBA_NUM_THREADS"),
    )


def compiled_by(experiment: Experiment, should_stop) -> Iterator[tuple[int, int, int]]:
    Run.prepare(experiment).end()
    stats = [kernel.stats for kernel in KERNELS.values()]
    hits = max((n for stat in stats for n in stat.cache_hits.values()), default=0)
    yield os.getpid(), sum(n for stat in stats for n in stat.cache_misses.values()), hits


def killed_once(path: str, home: int, times: int, should_stop) -> Iterator[str]:
    """Yield two results, and kill the process between them the first times it is not the test's own."""
    yield "first"
    if os.getpid() != home and len(os.listdir(path)) < times:
        Path(path, str(os.getpid())).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    yield "second"


def waits_for(path: str, begins: str, should_stop) -> Iterator[int]:
    Path(begins).touch()
    while not Path(path).exists() and not should_stop():
        time.sleep(0.01)
    yield os.getpid()


def fails(home: int, should_stop) -> Iterator[int]:
    yield 1
    raise ZeroDivisionError(f"in process {os.getpid() == home}")


class UnpicklableError(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def fails_oddly(should_stop) -> Iterator[int]:
    raise UnpicklableError("two", "arguments")
    yield 0


# ------------------------------------------------------------------------------------------------- the pool


@pytest.fixture
def workers_of(monkeypatch, tmp_path_factory) -> Callable[[int], WorkerPool]:
    """Return what gives this process another number of workers, one of which has started."""
    pools, folder = [], tmp_path_factory.mktemp("started")

    def install(most: int) -> WorkerPool:
        pools.append(WorkerPool(most))
        monkeypatch.setattr(workers, "WORKERS", pools[-1])
        if most:
            both = str(folder / "first"), str(folder / "second")
            assert len(list(carry_out([partial(waits_for, *both), partial(waits_for, *both[::-1])]))) == 2
        return pools[-1]

    yield install
    for pool in pools:
        pool.close()


def test_every_chain_is_carried_out_in_its_order(workers_of):
    workers_of(2)
    results = list(carry_out([partial(numbered, item, 5) for item in range(6)]))
    assert all(index == item for index, (item, *_) in results)
    for item in range(6):
        assert [i for _, (other, i, _) in results if other == item] == list(range(5))
    pids = [pid for _, (item, _, pid) in results if item == 0]
    assert set(pids) == {os.getpid()}, "the first starts here"
    assert len({pid for _, (*_, pid) in results}) == 3
    assert list(carry_out([])) == []


def test_on_a_single_core_all_chains_are_carried_out_in_this_process(workers_of):
    pool = workers_of(0)
    results = list(carry_out([partial(numbered, item, 2) for item in range(3)]))
    assert [result for _, result in results] == [(i, n, os.getpid()) for i in range(3) for n in range(2)]
    assert pool.n_bytes == 0
    assert len({pid for _, (*_, pid) in carry_out([partial(numbered, 0, 1)] * 3, n_jobs=1)}) == 1


def test_workers_have_one_thread_each(workers_of):
    workers_of(1)
    before = [pool["num_threads"] for pool in threadpool_info()]
    results = [result for _, result in carry_out([threads_of] * 8)]
    assert len({pid for pid, *_ in results}) == 2
    for pid, pools, omp, numba_threads in results:
        assert set(pools) <= {1}
        assert pid == os.getpid() or (omp, numba_threads) == ("1", "1")
    assert [pool["num_threads"] for pool in threadpool_info()] == before


@pytest.mark.needs_jit
def test_workers_load_kernels_once_and_compile_none(workers_of):
    workers_of(2)
    compile_kernels(MANY)
    for _, (pid, misses, hits) in carry_out([partial(compiled_by, experiment) for experiment in MANY]):
        assert pid == os.getpid() or (misses, hits) == (0, 1)


def test_results_come_as_they_are_ready(tmp_path, workers_of):
    workers_of(1)
    first, flag = str(tmp_path / "begins"), tmp_path / "go"
    chains = [
        partial(waits_for, first, str(tmp_path / "unused")),
        partial(waits_for, str(flag), first),
        partial(numbered, 2, 3),
    ]
    results = carry_out(chains)
    assert [next(results)[0] for _ in range(4)] == [0, 2, 2, 2], "the third is taken over by this process"
    flag.touch()
    assert [index for index, _ in results] == [1]


def test_a_plan_that_is_stopped_leaves_another_complete(tmp_path, workers_of):
    workers_of(2)
    stopped = carry_out([partial(endless, str(tmp_path / str(n))) for n in range(4)])
    other = carry_out([partial(numbered, item, 5) for item in range(5)])
    assert next(other)[0] == 0
    while len(list(tmp_path.iterdir())) < 3:
        next(stopped)
    stopped.close()
    assert len(list(other)) == 24
    # Workers are not ended by the stop, and their next chain is not stopped.
    assert len(list(carry_out([partial(numbered, item, 5) for item in range(4)]))) == 20


def test_a_plan_ends_at_once_when_it_is_stopped_while_it_waits(tmp_path, workers_of):
    workers_of(1)
    first, asked = str(tmp_path / "begins"), count()
    chains = [
        partial(waits_for, first, str(tmp_path / "unused")),
        partial(waits_for, str(tmp_path / "never"), first),
    ]
    stopped = carry_out(chains, lambda: Path(first).exists() and next(asked) > 8)
    assert [index for index, _ in stopped] == [0]


@pytest.mark.parametrize("times", [1, 2])
def test_a_worker_that_dies_takes_no_result_and_no_other_chain(tmp_path, workers_of, times):
    workers_of(1)
    chains = [
        partial(numbered, 0, 200),
        partial(killed_once, str(tmp_path), os.getpid(), times),
        partial(numbered, 2, 2),
    ]
    results = list(carry_out(chains, lost=lambda index: f"{index} lost"))
    second = "second" if times == 1 else "1 lost"
    assert [result for index, result in results if index == 1] == ["first", second]
    assert [index for index, _ in results].count(2) == 2
    if times == 2:
        for file in tmp_path.iterdir():
            file.unlink()
        with pytest.raises(LostWorkerError, match="was killed"):
            list(carry_out(chains))


def test_an_exception_in_a_chain_ends_its_plan(workers_of):
    workers_of(1)
    with pytest.raises(ZeroDivisionError, match="in process False") as caught:
        list(carry_out([partial(numbered, 0, 200), partial(fails, os.getpid())]))
    assert "in fails" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="two arguments"):
        list(carry_out([partial(numbered, 0, 200), fails_oddly]))
    with pytest.raises(ZeroDivisionError, match="in process True"):
        list(carry_out([partial(fails, os.getpid())]))
    with pytest.raises((AttributeError, pickle.PicklingError)):
        list(carry_out([partial(numbered, 0, 200), lambda should_stop: iter([1])]))
    assert len(list(carry_out([partial(numbered, item, 2) for item in range(3)]))) == 6


def test_idle_workers_end_and_new_ones_start(workers_of, monkeypatch):
    monkeypatch.setattr(workers, "_IDLE_SECONDS", 0.2)
    pool = workers_of(1)
    chains = [partial(numbered, item, 30) for item in range(2)]
    (pid,) = {pid for index, (*_, pid) in carry_out(chains) if index == 1}
    assert pool.n_bytes > 0
    wait_for(lambda: not alive(pid))
    assert pool.n_bytes == 0
    (other,) = {pid for index, (*_, pid) in carry_out(chains) if index == 1}
    assert other not in (pid, os.getpid())


def test_a_closed_pool_ends_its_workers_and_starts_others(workers_of):
    pool = workers_of(1)
    chains = [partial(numbered, item, 30) for item in range(2)]
    (pid,) = {pid for index, (*_, pid) in carry_out(chains) if index == 1}
    pool.close()
    wait_for(lambda: not alive(pid))
    assert len({pid for _, (*_, pid) in carry_out(chains)} - {pid}) == 2


@pytest.mark.parametrize("forks", [True, False])
def test_a_program_without_a_guard_is_not_run_by_workers(tmp_path, forks):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from fmviz.lab.background import workers\n"
        "from fmviz.lab.search.strength_path import PathPlan, trace\n"
        "from fmviz import Experiment\n"
        "print('once')\n"
        f"workers.FORKS, workers.WORKERS = {forks} and workers.FORKS, workers.WorkerPool(1)\n"
        "plan = PathPlan(Experiment(rank=2, max_epochs=300, tol=0.0), ('ti', 'cs'), (0.1, 1.0), 'cold')\n"
        "print(len(list(trace(plan))), workers.WORKERS.n_bytes > 0)\n"
    )
    assert run_afresh(script).split() == ["once", "4", "True"]


_LONG = """
from functools import partial
import fmviz
from fmviz.lab.background import workers
from fmviz.lab.search.sweep_run import _fit

workers.WORKERS = workers.WorkerPool(1)
experiments = [
    fmviz.Experiment(seed=seed, rank=2, tol=0.0, max_epochs=1 if seed == 0 else 100_000) for seed in range(6)
]
for row in workers.carry_out([partial(_fit, each) for each in experiments]):
    print("first", workers._server._process.pid, flush=True)
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
    first, group = process.stdout.readline().split()
    assert first == "first"
    if how is signal.SIGKILL:
        process.kill()
        process.communicate(timeout=120)
        wait_for(partial(ended, int(group)), 5.0)
        return
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    wait_for(partial(ended, int(group)), 30.0)
