"""A pool for tests that runs slices at once."""

from __future__ import annotations

import math

from fmviz.lab.background.pool import Slice, ThreadPool


class InlineExecutor(ThreadPool):
    """Runs slices at once, in the thread that submits them, without delays.

    With ``hold=True`` they wait until `run` is called.
    """

    def __init__(self, hold: bool = False) -> None:
        super().__init__(0)
        self.hold = hold
        self._running = False

    @property
    def waiting(self) -> bool:
        """Whether there is something to run."""
        return self._first()[0] < math.inf

    def submit(self, task: Slice, delay: float = 0.0, *, queue: str = "") -> None:
        """See `ThreadPool.submit`, but without order; a slice submitted by a slice runs after it."""
        super().submit(task, queue=queue)
        if not self.hold:
            self.run()

    def run(self, most: int | None = None) -> int:
        """Run what waits, at most `most` slices; return how many ran."""
        if self._running:
            return 0
        done = 0
        self._running = True
        try:
            while self.waiting and (most is None or done < most):
                self._take()()
                done += 1
        finally:
            self._running = False
        return done
