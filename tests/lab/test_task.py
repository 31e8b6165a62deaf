from __future__ import annotations

import itertools

from inline_executor import InlineExecutor
from programs import wait_for

from fmviz.lab.background.pool import ThreadPool
from fmviz.lab.background.task import TaskState
from fmviz.lab.background.tasks import ServerLimits, TaskManager
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
