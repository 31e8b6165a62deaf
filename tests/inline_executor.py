"""An executor for tests that runs tasks at once."""

from __future__ import annotations

from collections import deque

from fmviz.lab.background.pool import Slice as Task


class InlineExecutor:
    """Runs tasks at once, in the thread that submits them, without delays.

    With ``hold=True`` tasks wait until `run` is called.
    """

    def __init__(self, hold: bool = False) -> None:
        self.hold = hold
        self.waiting: deque[Task] = deque()
        self._running = False

    def submit(self, task: Task, delay: float = 0.0) -> None:
        """See `Executor.submit`, but without order; a task submitted by a task runs after it."""
        self.waiting.append(task)
        if not self.hold:
            self.run()

    def run(self, most: int | None = None) -> int:
        """Run what waits, at most `most` tasks; return how many ran."""
        if self._running:
            return 0
        done = 0
        self._running = True
        try:
            while self.waiting and (most is None or done < most):
                self.waiting.popleft()()
                done += 1
        finally:
            self._running = False
        return done

    def shutdown(self) -> None:
        """Drop what waits."""
        self.waiting.clear()
