"""Jobs: what can be done to them, that they share the workers, and what is kept of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from inline_executor import InlineExecutor
from programs import wait_for

from fmviz.engine.parameters import Parameters
from fmviz.engine.snapshot import Reason, Snapshot, Status
from fmviz.lab.background.job import MOST_FRAMES, MOST_RECORDS, Job, JobView
from fmviz.lab.background.pool import ThreadPool
from fmviz.lab.background.task import TaskState
from fmviz.lab.background.tasks import ServerLimits, TaskManager, TooManyJobsError
from fmviz.lab.datasets import DATASETS, Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.quotas import WeighedCache
from fmviz.lab.runner import Run

# Loaded before any slice of 0.1 seconds begins.
DATA = DATASETS["balance_scale"]()
SHORT = Experiment(dataset="balance_scale", rank=3, lambda_p=1e-3, lambda_sparse=1e-3, max_epochs=12, tol=0.0)


def snapshot(epoch: int, status: Status | None = None, d: int = 3) -> Snapshot:
    P = np.full((d, 2), 1.0 / (1 + epoch))
    return Snapshot(
        epoch=epoch,
        seconds=0.1 * epoch,
        objective=1.0 / (1 + epoch),
        loss=0.0,
        penalty_w=0.0,
        penalty_p=0.0,
        penalty_sparse=0.0,
        used_features=d,
        used_interactions=d,
        certificate=0.0,
        change=1.0,
        parameters=Parameters(P, np.zeros(d), 0.0),
        status=status,
    )


@dataclass
class Fake:
    """A run whose epochs take as long as wanted."""

    epochs: int = 10**9
    seconds: float = 0.0
    fail: BaseException | None = None
    dataset: Dataset = DATA
    closed: bool = False
    designs = ()

    def snapshots(self, should_stop: Callable[[], bool], **checkpoints: object) -> Iterator[Snapshot]:
        try:
            for epoch in range(self.epochs):
                if self.fail is not None and epoch == 2:
                    raise self.fail
                yield snapshot(epoch)
                time.sleep(self.seconds)
            yield snapshot(self.epochs, Status(Reason.CONVERGED, "Converged."))
        finally:
            self.closed = True


def paused_executor(
    patch: pytest.MonkeyPatch, make: Any, **limits: Any
) -> tuple[TaskManager, InlineExecutor]:
    """Return a manager whose runs are made by a `Fake`, or by what makes one of an experiment."""
    executor = InlineExecutor(hold=True)
    patch.setattr(Run, "loaded", lambda experiment: make if isinstance(make, Fake) else make(experiment))
    return TaskManager(executor, limits=ServerLimits(**limits)), executor


def run(patch: pytest.MonkeyPatch, fake: Fake) -> JobView:
    """Return the view of a job at its end."""
    manager, executor = paused_executor(patch, fake)
    job = manager.start(SHORT)
    executor.run()
    return job.view()


@pytest.fixture
def threaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., TaskManager]]:
    created: list[TaskManager] = []

    def make(workers: int = 2, fake: Any = None) -> TaskManager:
        if fake is not None:
            monkeypatch.setattr(Run, "loaded", lambda _: fake())
        created.append(TaskManager(ThreadPool(workers)))
        return created[-1]

    before = threading.active_count()
    yield make
    for manager in created:
        manager.shutdown()
    assert threading.active_count() == before


# ------------------------------------------------------------------------------------------------- one job


def test_a_job_plays_to_its_end():
    job = TaskManager(InlineExecutor()).start(SHORT)
    view = job.view()
    assert view.state is TaskState.FINISHED
    assert [record["epoch"] for record in view.history] == list(range(13))
    assert "limit of 12 epochs" in view.message
    assert [frame.epoch for frame in view.frames] == list(range(13))
    assert view.elapsed == job.view().elapsed


def test_a_job_can_begin_with_its_start_alone():
    job = TaskManager(InlineExecutor()).start(SHORT, steps=0)
    assert (job.state, job.view().epoch) == (TaskState.PAUSED, 0)
    assert len(job.view().history) == 1
    job.step(0)
    assert len(job.view().history) == 1
    job.step()
    assert job.view().epoch == 1


def test_steps_add_up_while_they_wait(monkeypatch):
    manager, executor = paused_executor(monkeypatch, Fake())
    job = manager.start(SHORT, steps=1)
    job.step()
    job.step()
    executor.run()
    assert (job.state, job.view().epoch) == (TaskState.PAUSED, 3)
    assert job.view().message == "Paused after 3 epochs."


def test_a_paused_job_gives_its_place_back_and_goes_on(monkeypatch):
    manager, executor = paused_executor(monkeypatch, Fake(seconds=0.02))
    job = manager.start(SHORT)
    assert job.state is TaskState.QUEUED
    executor.run(1)
    assert job.state is TaskState.RUNNING
    job.pause()
    assert job.state is TaskState.PAUSED
    executor.run()
    assert not executor.waiting  # nothing of it is left with the workers
    epoch = job.view().epoch
    job.play()
    executor.run(1)
    assert job.view().epoch > epoch
    assert job.state is TaskState.RUNNING


@pytest.mark.parametrize("how", ["queued", "running", "paused"])
def test_stop_ends_a_job_from_every_state(monkeypatch, how):
    fake = Fake(seconds=0.02)
    manager, executor = paused_executor(monkeypatch, fake)
    job = manager.start(SHORT)
    if how != "queued":
        executor.run(1)
    if how == "paused":
        job.pause()
    job.stop()
    executor.run()
    assert job.state is TaskState.STOPPED
    assert fake.closed == (how != "queued")
    assert not executor.waiting
    epoch = job.view().epoch
    for action in (job.play, job.step, job.pause, job.stop):
        action()
    executor.run()
    assert (job.state, job.view().epoch) == (TaskState.STOPPED, epoch)


@pytest.mark.parametrize(
    ("error", "sentence", "folded"),
    [
        (ValueError("y contains NaN."), "y contains NaN.", False),
        (ZeroDivisionError("division by zero"), "Unexpected ZeroDivisionError: division by zero", True),
        (MemoryError(), "not enough memory", True),
    ],
)
def test_a_failure_is_a_state_with_a_sentence(monkeypatch, error, sentence, folded):
    view = run(monkeypatch, Fake(fail=error))
    assert view.state is TaskState.FAILED
    assert sentence in view.message
    assert ("Traceback" in view.details) == folded
    assert view.epoch == 1  # what was reached is kept


def test_settings_that_cannot_run_fail_with_the_reason():
    job = TaskManager(InlineExecutor()).start(Experiment(regularizer="ti", solver="cd"))
    job.change(lambda_p=0.02)
    assert (job.state, job.goes_on) == (TaskState.FAILED, False)
    assert job.view().message.startswith("CD takes plain gradient steps")


def test_divergence_is_a_state_and_repeats_no_epoch(monkeypatch):
    class Diverging(Fake):
        def snapshots(self, should_stop, **checkpoints):
            yield snapshot(0)
            yield snapshot(1)
            yield snapshot(1, Status(Reason.DIVERGED, "Diverged in epoch 2."))

    view = run(monkeypatch, Diverging())
    assert view.state is TaskState.DIVERGED
    assert [record["epoch"] for record in view.history] == [0, 1]


def test_long_histories_are_thinned_and_keep_both_ends(monkeypatch):
    view = run(monkeypatch, Fake(epochs=9_001))
    epochs = [record["epoch"] for record in view.history]
    assert len(epochs) <= MOST_RECORDS
    assert (epochs[0], epochs[-1]) == (0, 9_001)
    assert view.stride == 8
    assert set(np.diff(epochs[:-1])) == {8}
    shown = [frame.epoch for frame in view.frames]
    assert 20 <= len(shown) <= MOST_FRAMES
    assert (shown[0], shown[-1]) == (0, 9_001)


def test_a_pace_slows_down(threaded):
    job = threaded(fake=Fake).start(SHORT, pace=50.0)
    time.sleep(0.5)
    assert 5 <= job.view().epoch <= 30
    job.pace = 0
    wait_for(lambda: job.view().epoch > 1000)


# ------------------------------------------------------------------------------------------------ many jobs


def test_two_jobs_share_a_worker_until_one_pauses(threaded):
    manager = threaded(1, lambda: Fake(seconds=0.001))
    first, other = (manager.start(SHORT, owner=name) for name in "ab")
    wait_for(lambda: min(first.view().epoch, other.view().epoch) > 20)
    assert [job for job in manager.jobs() if job.state.active] == [first, other]
    first.pause()
    wait_for(lambda: first.state is TaskState.PAUSED and not first._inside)
    stood_at, began = first.view().epoch, other.view().epoch
    wait_for(lambda: other.view().epoch > began + 50)
    assert first.view().epoch == stood_at


def test_controls_from_many_threads_lose_nothing(threaded):
    job = threaded(2, lambda: Fake(seconds=0.0002)).start(SHORT)

    def press() -> None:
        for _ in range(100):
            job.pause()
            job.view()
            job.play()

    pressing = [threading.Thread(target=press) for _ in range(4)]
    for thread in pressing:
        thread.start()
    for thread in pressing:
        thread.join()
    epoch = job.view().epoch
    wait_for(lambda: job.view().epoch > epoch + 5)
    epochs = [record["epoch"] for record in job.view().history]
    assert epochs == sorted(set(epochs))


def test_a_third_run_of_a_session_stops_its_oldest(monkeypatch):
    manager, _ = paused_executor(monkeypatch, Fake())
    first, second, third = (manager.start(SHORT, owner="me") for _ in range(3))
    other = manager.start(SHORT, owner="you")
    assert [job.state for job in (first, second, third, other)] == [
        TaskState.STOPPED,
        TaskState.QUEUED,
        TaskState.QUEUED,
        TaskState.QUEUED,
    ]


def test_who_comes_late_waits_in_line(monkeypatch):
    manager, executor = paused_executor(monkeypatch, Fake(), active=2, waiting=2)
    first, second, third, fourth = (manager.start(SHORT, owner=str(n)) for n in range(4))
    assert [job.view().message for job in (third, fourth)] == [
        "Waiting: 1st in the queue.",
        "Waiting: 2nd in the queue.",
    ]
    with pytest.raises(TooManyJobsError, match=r"queue of this server is full \(2 runs\)"):
        manager.start(SHORT, owner="late")
    executor.run(4)
    assert third.view().state is TaskState.QUEUED
    first.pause()
    assert fourth.view().message == "Waiting: 1st in the queue."
    executor.run(4)
    assert third.view().state is TaskState.RUNNING
    fourth.stop()
    first.play()
    assert first.view().message == "Waiting: 1st in the queue."
    second.stop()
    executor.run(4)
    assert (first.view().state, third.view().state) == (TaskState.RUNNING, TaskState.RUNNING)


def test_long_epochs_of_some_do_not_hold_up_others(threaded):
    go = threading.Event()

    def long(stop):
        yield 0
        go.wait(60)

    manager = threaded(2)
    for n in range(2):
        manager.submit(f"long {n}", long)
    wait_for(lambda: all(task.view().items for task in manager._tasks.values() if task.state.active))
    short = manager.submit("short", lambda stop: iter((1,)))
    wait_for(lambda: short.state is TaskState.FINISHED)
    go.set()


def test_the_least_looked_at_are_dropped(monkeypatch):
    manager, executor = paused_executor(monkeypatch, Fake(epochs=2), jobs=3)
    started = []
    for n in range(5):
        started.append(manager.start(SHORT, owner=str(n)))
        executor.run()
        started[0].view()
    assert manager.job(started[0].id) is not None
    assert manager.job(started[1].id) is None
    assert len(manager.jobs()) == 3


@pytest.mark.parametrize(("shared", "kept"), [(False, 2), (True, 9)])
def test_the_data_of_ended_runs_are_bounded(monkeypatch, shared, kept):
    """Those of each are counted, once where several have the same, and the oldest leave first."""
    monkeypatch.setenv("FMVIZ_MEMORY", "20 MB")
    sets = [replace(DATA, X=np.zeros((1_000, 1_000))) for _ in range(1 if shared else 9)]
    manager, executor = paused_executor(
        monkeypatch, lambda experiment: Fake(epochs=2, dataset=sets[experiment.seed % len(sets)])
    )
    for n in range(9):
        manager.start(replace(SHORT, seed=n), owner=str(n))
        executor.run()
    # The one that came last had no data yet when it was taken in.
    assert [job.experiment.seed for job in manager.jobs()] == list(range(9))[-kept - 1 :]


def test_a_run_gives_the_copies_of_its_data_back():
    job = TaskManager(InlineExecutor()).start(replace(SHORT, solver="apgd"), steps=3)
    view = job.view()
    copies = sum(job.weights().values()) - view.dataset.n_bytes
    assert copies > view.dataset.n_bytes > 8 * view.dataset.X.size
    job.stop()
    assert job.state is TaskState.STOPPED
    assert sum(job.weights().values()) - view.dataset.n_bytes < copies / 2


def test_caches_are_bounded_by_weight(monkeypatch):
    monkeypatch.setenv("FMVIZ_MEMORY", "0.4 kb")
    cache = WeighedCache(3, len)
    for key in ("a", "b", "a", "c"):
        cache.get(key, lambda key=key: bytes(40) + key.encode())
    asked = []
    for key in ("c", "a", "b"):
        cache.get(key, lambda key=key: asked.append(key) or bytes(1_000))
    assert asked == ["b"]
    cache.get("b", lambda: pytest.fail("the last one is kept, whatever it weighs"))
    monkeypatch.setenv("FMVIZ_MEMORY", "much")
    with pytest.raises(ValueError, match="FMVIZ_MEMORY is 'much'; give a number with a unit"):
        ServerLimits()


def test_an_orphan_pauses_and_is_dropped_later(monkeypatch):
    manager, executor = paused_executor(
        monkeypatch, Fake(seconds=0.01), orphan_seconds=0.02, forget_seconds=0.05
    )
    job: Job = manager.start(SHORT)
    time.sleep(0.03)
    executor.run()
    assert job.state is TaskState.PAUSED
    assert "no page had shown this run" in job.view().message
    job.play()
    assert job.state.active
    job.pause()
    time.sleep(0.06)
    manager.start(SHORT, owner="other")
    assert manager.job(job.id) is None
    assert job.state is TaskState.STOPPED
