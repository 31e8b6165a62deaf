from __future__ import annotations

import itertools
from functools import partial
from types import SimpleNamespace

from inline_executor import InlineExecutor
from programs import wait_for

from fmviz.lab.background.pool import ThreadPool
from fmviz.lab.background.task import TaskState
from fmviz.lab.background.tasks import PLANS, ServerLimits, TaskManager
from fmviz.lab.background.workers import WorkerPool
from fmviz.lab.experiment import Experiment


def test_results_are_there_one_after_the_other():
    view = TaskManager(InlineExecutor()).submit("squares", lambda stop: (n * n for n in range(4))).view()
    assert view.items == (0, 1, 4, 9)
    assert (view.state, view.message, view.id) == (TaskState.FINISHED, "Done.", "squares")


def test_a_task_is_watched_and_stopped_from_another_thread():
    manager = TaskManager(ThreadPool(1))
    task = manager.submit(
        "endless", lambda stop: itertools.takewhile(lambda _: not stop(), itertools.count())
    )
    wait_for(lambda: task.view().items)
    assert [t for t in manager._tasks.values() if t.state.active] == [task]
    task.stop()
    wait_for(lambda: task.state.ended)
    view = task.view()
    assert (view.state, view.message) == (TaskState.STOPPED, "Stopped on request.")
    assert list(view.items) == list(range(len(view.items)))
    manager.shutdown()


def test_runs_and_other_tasks_are_kept_by_one_manager():
    executor = InlineExecutor(hold=True)
    manager = TaskManager(executor, limits=ServerLimits(tasks=1))
    job = manager.start(Experiment(max_epochs=1), owner="me")
    task = manager.submit("other", lambda stop: iter("ab"))
    assert [t for t in manager._tasks.values() if t.state.active] == [job, task]
    assert manager.get(job.id) is job
    assert manager.job("other") is None
    # What nobody has begun ends at once.
    task.stop()
    assert task.state is TaskState.STOPPED
    executor.run()
    assert job.state is TaskState.FINISHED
    manager.submit("next", lambda stop: iter(""))
    assert manager.get("other") is None
    again = manager.submit("next", lambda stop: iter(""))
    assert manager.get("next") is again
    assert manager.jobs("me") == [job]
    assert manager.job(job.id, owner="after a reload") is job
    assert (manager.jobs("me"), manager.job("no such"), manager.job(None)) == ([], None, None)


def test_plans_are_carried_out_in_order_and_hold_up_nothing_else():
    executor = InlineExecutor(hold=True)
    manager, ended = TaskManager(executor, limits=ServerLimits(plans=1)), []

    def make(name, stop):
        yield name
        ended.append(name)

    first, second, third = (manager.submit(name, partial(make, name), PLANS) for name in "abc")
    manager.submit("other", partial(make, "other"))
    assert second.view().message == "Waiting: 1st in the queue."
    assert third.view().state is TaskState.QUEUED
    second.stop()
    assert second.state is TaskState.STOPPED
    executor.run()
    assert sorted(ended) == ["a", "c", "other"]
    assert ended.index("a") < ended.index("c")
    assert first.view().message == "Done."


def test_memory_of_workers_counts(monkeypatch):
    # Other tests leave workers.
    monkeypatch.setattr(WorkerPool, "n_bytes", 0.0)
    manager = TaskManager(InlineExecutor(), limits=ServerLimits(n_bytes=3.0))
    for name in ("first", "second"):
        manager.submit(name, lambda stop: iter([SimpleNamespace(n_bytes=1.0)]))
    assert manager.get("first") is not None
    monkeypatch.setattr(WorkerPool, "n_bytes", 2.0)
    manager.submit("third", lambda stop: iter([SimpleNamespace(n_bytes=1.0)]))
    assert manager.get("second") is None
