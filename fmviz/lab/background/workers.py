"""Chains of fits in this process and in its worker processes, with streamed results."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any

from fmviz.engine.blas import each_on_one_thread
from fmviz.engine.fit import never
from fmviz.lab.failure import LOST, in_words
from fmviz.lab.forking import FORKS, ForkServer

Chain = Callable[[Callable[[], bool]], Iterator[Any]]
"""``chain(should_stop)`` yields the results of fits that depend on each other.

Workers receive it by pickle: a function importable by name, with its data in a `functools.partial`.
"""
_IDLE_SECONDS = 120.0
_WORKER_BYTES = 160e6
_STOP = b""
# How often a plan that waits for workers looks whether it is stopped.
_POLL_SECONDS = 0.05
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


@dataclass(eq=False)
class _Order:
    """A chain of a plan, and the queue of the plan: (index, whether it is the end, result or error)."""

    index: int
    chain: Chain
    results: SimpleQueue[tuple[int, bool, Any]]
    worker: Connection | None = None
    cancelled: bool = False
    n_sent: int = 0


class LostWorkerError(ValueError):
    """Two workers have died during the same chain; the message contains a way out."""


class WorkerPool:
    """Worker processes that carry out chains in the order of submission.

    A worker starts when a chain waits, and ends after two minutes without one, or with this process. If it
    dies, another worker repeats its chain.

    Parameters
    ----------
    most : int, optional
        Maximum number of workers, by default one less than the number of cores.
    """

    def __init__(self, most: int | None = None) -> None:
        self._given = most
        self._waiting: deque[_Order] = deque()
        self._changed = threading.Condition()
        self._workers: set[threading.Thread] = set()
        self._n_idle = 0
        self._closed = False

    @cached_property
    def most(self) -> int:
        """Maximum number of workers."""
        from joblib import cpu_count  # Respects the limits of containers; slow to import.

        return cpu_count() - 1 if self._given is None else self._given

    @property
    def n_bytes(self) -> float:
        """The approximate memory of the workers."""
        return _WORKER_BYTES * len(self._workers)

    def submit(self, orders: Sequence[_Order]) -> None:
        """Add chains to the queue."""
        with self._changed:
            self._closed = False
            self._waiting += orders
            self._changed.notify(len(orders))
            for _ in range(min(len(self._waiting) - self._n_idle, self.most - len(self._workers))):
                thread = threading.Thread(target=self._serve, name="fmviz-chains", daemon=True)
                self._workers.add(thread)
                thread.start()

    def withdraw(self, results: SimpleQueue[Any]) -> _Order | None:
        """Remove the first chain of a plan that no worker has begun from the queue, and return it."""
        with self._changed:
            order = next((order for order in self._waiting if order.results is results), None)
            if order is not None:
                self._waiting.remove(order)
            return order

    def cancel(self, orders: Sequence[_Order]) -> None:
        """Remove chains from the queue, and stop those that workers have begun."""
        with self._changed:
            for order in orders:
                order.cancelled = True
                if order.worker is not None:
                    with suppress(OSError):
                        order.worker.send_bytes(_STOP)
            self._waiting = deque(order for order in self._waiting if not order.cancelled)

    def close(self) -> None:
        """End the workers after their present chains; the next chain starts another one."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _next(self) -> _Order | None:
        """Return the next chain for a worker, or None to end it."""
        with self._changed:
            self._n_idle += 1
            self._changed.wait_for(lambda: self._waiting or self._closed, _IDLE_SECONDS)
            self._n_idle -= 1
            if self._waiting and not self._closed:
                return self._waiting.popleft()
            self._workers.discard(threading.current_thread())
            return None

    def _serve(self) -> None:
        """Pass chains to a worker, and their results to the plans."""
        worker: Connection | None = None
        while (order := self._next()) is not None:
            error: Exception | None = LostWorkerError(LOST)
            for _ in range(2):
                try:
                    message = pickle.dumps(order.chain)
                    worker = worker or _started(order.chain)
                    error = self._pass(order, message, worker)
                    break
                except (EOFError, OSError):
                    worker = None
                except Exception as failure:  # A chain or a result that cannot be pickled.
                    worker, error = None, failure
                    break
            order.results.put((order.index, True, error))
        if worker is not None:
            worker.close()

    def _pass(self, order: _Order, message: bytes, worker: Connection) -> Exception | None:
        """Pass a chain to a worker and its new results to the plan; return the error that ended it."""
        try:
            with self._changed:
                if order.cancelled:
                    return None
                order.worker = worker
                worker.send_bytes(message)
            for n in count():
                ended, result = worker.recv()
                if ended:
                    return result
                # The worker may repeat the chain of one that has died.
                if n == order.n_sent:
                    order.results.put((order.index, False, result))
                    order.n_sent += 1
        finally:
            with self._changed:
                order.worker = None
        return None


WORKERS = WorkerPool()
"""The workers of this process."""


def carry_out(
    chains: Sequence[Chain],
    should_stop: Callable[[], bool] = never,
    *,
    n_jobs: int = -1,
    lost: Callable[[int], Any] | None = None,
) -> Generator[tuple[int, Any]]:
    """Carry out the chains of a plan in this process and in workers; yield (index of the chain, result).

    The first chain starts in this process, the others wait for workers. When its own chain ends, this process
    takes over the next that no worker has begun. Every result is computed with a single thread. Closing the
    generator, or `should_stop`, stops the chains of this plan and no others.

    Parameters
    ----------
    chains : sequence of callable
        The chains, in order.
    should_stop : callable
        Polled by the chains, and between results.
    n_jobs : int
        The number of chains at a time: with -1, those of this process and of `WORKERS`.
    lost : callable, optional
        ``lost(index)`` is the result of a chain during which two workers have died.

    Raises
    ------
    LostWorkerError
        If two workers have died during the same chain, without `lost`.
    Exception
        The first exception in a chain.
    """
    results: SimpleQueue[tuple[int, bool, Any]] = SimpleQueue()
    pool = WORKERS if n_jobs == -1 else WorkerPool(n_jobs - 1)
    orders = [_Order(index, chain, results) for index, chain in enumerate(chains)]

    def own() -> Generator[tuple[int, bool, Any]]:
        order = next(iter(orders), None)
        while order is not None:
            with closing(_results(order.chain, should_stop)) as stream:
                for result in stream:
                    yield order.index, False, result
            yield order.index, True, None
            order = pool.withdraw(results)

    pool.submit(orders[1:])
    n_open, entries = len(orders), own()
    try:
        while n_open and not should_stop():
            batch = [entry] if (entry := next(entries, None)) else []
            if not batch:
                with suppress(Empty):
                    batch.append(results.get(timeout=_POLL_SECONDS))
            batch += [results.get() for _ in range(results.qsize())]
            for index, ended, result in batch:
                n_open -= ended
                if not ended:
                    yield index, result
                elif isinstance(result, LostWorkerError) and lost is not None:
                    yield index, lost(index)
                elif result is not None:
                    raise result
    finally:
        # Not by garbage collection, which may come while the lock of BLAS is taken.
        entries.close()
        pool.cancel(orders)
        if pool is not WORKERS:
            pool.close()


def _results(chain: Chain, should_stop: Callable[[], bool]) -> Generator[Any]:
    """Yield the results of a chain, each computed with a single thread, and none that was stopped."""

    def results() -> Generator[Any]:
        for result in chain(should_stop):
            if should_stop():
                return
            yield result

    return each_on_one_thread(results())


def completed(chain: Chain) -> list[Any]:
    """Return the results of a chain, computed with a single thread."""
    return [*_results(chain, never)]


# ---------------------------------------------------------------------------------------------- the processes


def _environment() -> dict[str, str]:
    return dict(os.environ) | _ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


_server = ForkServer(f"{__name__}.serve_chains", _environment)


def _started(chain: Chain) -> Connection:
    """Start a worker, and return the connection to it."""
    if FORKS:
        return Connection(_server.connect(getattr(chain, "func", chain)).detach())
    ours, theirs = multiprocessing.Pipe()
    # The new process would import the main module: a program without a guard, or a page.
    main, blank = sys.modules["__main__"], ModuleType("__main__")
    sys.modules["__main__"] = blank
    try:
        context = multiprocessing.get_context("spawn")
        context.Process(target=_carry_out_all, args=(theirs,), daemon=True).start()
    finally:
        if sys.modules["__main__"] is blank:
            sys.modules["__main__"] = main
        theirs.close()
    return ours


def serve_chains(descriptor: int) -> None:
    """Carry out the chains that come from a connection, in a process of the fork server."""
    _carry_out_all(Connection(descriptor))


def _carry_out_all(connection: Connection) -> None:
    """Carry out the chains that come from a connection until it is closed; any message stops a chain."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with connection, suppress(EOFError, OSError):
        while True:
            if (message := connection.recv_bytes()) == _STOP:
                continue  # Of a chain that had just ended.
            error = None
            try:
                for result in _results(pickle.loads(message), connection.poll):
                    connection.send((False, result))
            except Exception as failure:
                error = _portable(failure)
            connection.send((True, error))


def _portable(error: Exception) -> Exception:
    """Return an exception that can be pickled, with its traceback as a note."""
    message, details = in_words(error)
    try:
        if details:
            error.add_note(details)
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(message)
    return error


def checked_jobs(n_jobs: int) -> int:
    """Return the number of workers, or raise ValueError."""
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1):
        raise ValueError(f"n_jobs = {n_jobs!r}; give a positive number of workers, or -1 for one per core.")
    return n_jobs
