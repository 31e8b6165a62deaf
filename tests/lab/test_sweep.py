"""Sweeps: the same numbers as one after the other, one thread a worker, and no fit that spoils the others."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

import pytest
from joblib import parallel_config
from programs import alive, wait_for
from threadpoolctl import threadpool_info

import fmviz
from fmviz.engine._jit import KERNELS
from fmviz.engine.solvers import PSGD
from fmviz.lab.background import workers
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.search import sweep as sweep_module

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
        "from fmviz.lab.search import sweep; from fmviz.lab.experiment import Experiment; "
        "names = ('ti', 'cs'); sweep.compile_kernels("
        "[Experiment(rank=3, validation=0.25, regularizer=name) for name in names])"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def in_order(rows):
    """Return the rows' records by index, without what a clock measured."""
    return [
        {name: value for name, value in row.record().items() if name != "seconds"}
        for row in sorted(rows, key=lambda row: row.index)
    ]


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


# ------------------------------------------------------------------------------------------------- sweeps


def test_processes_return_what_this_process_returns():
    alone = in_order(fmviz.sweep(MANY, n_jobs=1))
    assert alone == in_order(fmviz.sweep(iter(MANY), n_jobs=2))
    assert [row["index"] for row in alone] == list(range(len(MANY)))
    end = Run.prepare(MANY[3]).end()
    assert alone[3]["objective"] == end.objective
    assert alone[3]["certificate"] == end.certificate
    assert alone[3]["validation_loss"] == end.metrics["validation_loss"]
    *_, last = Run.prepare(MANY[3]).snapshots()
    assert last.objective == end.objective
    assert last.metrics == end.metrics


def test_a_row_tells_settings_results_and_end():
    (row,) = fmviz.sweep([SMALL], n_jobs=1)
    record = row.record()
    assert record["loss"] == "squared"
    assert record["rank"] == 3
    assert record["status"] == "epochs"
    assert record["epoch"] == 5
    assert {
        "objective",
        "used_features",
        "used_interactions",
        "certificate",
        "seconds",
        "train_loss",
        "validation_rmse",
        "message",
    } <= set(record)
    assert all(isinstance(value, (str, int, float)) for value in record.values())


def test_a_fit_ends_at_its_seconds():
    (row,) = fmviz.sweep([dataclasses.replace(SMALL, tol=0.0, max_epochs=100_000)], n_jobs=1, seconds=0.0)
    assert row.status == "seconds"


def test_a_fit_that_cannot_be_done_leaves_the_others_alone():
    impossible = dataclasses.replace(SMALL, loss="logistic")
    rising = PSGD(eta0=1e6, monotone=False)
    diverging = dataclasses.replace(SMALL, solver=rising, init_scale=10.0)
    rows = {row.index: row for row in fmviz.sweep([impossible, SMALL, diverging], n_jobs=2)}
    assert rows[0].status == "failed"
    assert "needs classes" in rows[0].message
    assert rows[0].record()["message"] == rows[0].message
    assert not rows[0].values
    assert rows[1].status == "epochs"
    assert rows[2].status == "diverged"


@pytest.mark.parametrize(
    ("error", "words"), [(RuntimeError("oops"), "Unexpected RuntimeError: oops"), (MemoryError(), "memory")]
)
def test_a_defect_is_a_row_with_its_traceback(monkeypatch, error, words):
    def fail(_experiment):
        raise error

    monkeypatch.setattr(sweep_module.Run, "prepare", fail)
    (row,) = fmviz.sweep([SMALL], n_jobs=1)
    assert row.status == "failed"
    assert words in row.message
    assert "Traceback" in row.details


@pytest.mark.parametrize(
    ("keywords", "words"),
    [({"n_jobs": 0}, "n_jobs = 0"), ({"n_jobs": 1.5}, "n_jobs = 1.5"), ({"seconds": -1.0}, "seconds")],
)
def test_arguments_are_checked_before_the_first_fit(keywords, words):
    with pytest.raises(ValueError, match=words):
        fmviz.sweep([SMALL], **keywords)
    with pytest.raises(ValueError, match="takes experiments"):
        fmviz.sweep([SMALL, {"rank": 3}])


def test_an_enclosing_configuration_chooses_the_backend():
    with parallel_config("threading", n_jobs=2):
        rows = list(fmviz.sweep(MANY[:3], n_jobs=2, backend=None))
    assert in_order(rows) == in_order(fmviz.sweep(MANY[:3], n_jobs=1))


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
    sweep_module.compile_kernels(MANY)
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


def test_a_lost_fit_is_a_row(monkeypatch):
    def dies(_function, waiting, started, *_remaining):
        started.extend(waiting)
        raise BrokenProcessPool

    monkeypatch.setattr(workers, "_results", dies)
    rows = list(fmviz.sweep([SMALL, SMALL], n_jobs=1))
    assert [row.index for row in rows] == [0, 1]
    assert {row.status for row in rows} == {"failed"}
    assert "memory" in rows[0].message


# Loky's own thread may look for a piece of work that it has just been told to drop.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Exception in thread ExecutorManagerThread")
def test_closing_early_ends_the_workers_and_the_next_sweep_works(tmp_path):
    results = workers.stream(partial(waits_for, str(tmp_path / "never")), range(8), is_lost, n_jobs=2)
    _, pid = next(results)
    results.close()
    wait_for(lambda: not alive(pid), 30.0)
    assert len(list(fmviz.sweep(MANY[:2], n_jobs=2))) == 2


_LONG = """
import fmviz

experiments = [
    fmviz.Experiment(seed=seed, rank=2, tol=0.0, max_epochs=1 if seed == 0 else 100_000) for seed in range(6)
]
for row in fmviz.sweep(experiments, n_jobs=2):
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
