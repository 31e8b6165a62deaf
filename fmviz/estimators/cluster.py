"""Apply functions to parts of X that stay with the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import finalize

import numpy as np

from fmviz.engine.blas import one_thread
from fmviz.engine.parts import Part, Parts
from fmviz.engine.problem import Problem
from fmviz.engine.threads import IN_TURN, Threads, timed


@dataclass(eq=False)
class Cluster(Threads):
    """A mapper over parts that stay with the workers of a cluster, which get the parameters.

    If a worker ends, the scheduler repeats its tasks and reads its parts again.

    Attributes
    ----------
    client : distributed.Client
        The connection to the scheduler.
    """

    client: Any = None
    # The future of every part by its identity, since problems with equal formulations are equal.
    _futures: dict[int, Any] = field(default_factory=dict)

    def __call__(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """Yield the results for all items, in their order: parts, problems of parts, or delayed rows."""
        # A task, unlike scattered data, can be repeated.
        sent = self.client.submit(_same, function, pure=False)
        futures = self.client.map(_applied, [sent] * len(items), [*map(self._future, items)], pure=False)
        for result, seconds in self.client.gather(futures):
            self.seconds += seconds
            yield result

    def then(self, function: Callable[[Any], Any], source: Any) -> Any:
        from dask import delayed, is_dask_collection

        later = is_dask_collection(source)
        return delayed(function, pure=False)(source) if later else super().then(function, source)

    def _future(self, item: Any) -> Any:
        from dask import delayed

        if not isinstance(item, Part | Problem):
            return self.client.compute(item)
        if (future := self._futures.get(id(item))) is None:
            if isinstance(item, Part):
                future = self.client.compute(delayed(item.loaded, pure=False)(item.source))
            else:
                nowhere: Any = None
                within = partial(_within, replace(item, design=nowhere, mapper=IN_TURN))
                future = self.client.submit(within, self._future(item.design), pure=False)
            self._futures[id(item)] = future
            finalize(item, self._futures.pop, id(item))
        return future


def connected(address: str) -> Any:
    """Return a client of a Dask scheduler, to be closed.

    Raises
    ------
    ValueError
        If the scheduler cannot be reached, or the package distributed is not installed.
    """
    try:
        from distributed import Client
        from distributed.comm import parse_address, parse_host_port
        from distributed.comm.registry import get_backend
    except ImportError:
        raise ValueError(
            "A Dask cluster needs the package distributed; install it with `pip install distributed`, or "
            "omit the scheduler to use local cores."
        ) from None
    try:
        # A client with an invalid address cannot be closed.
        scheme, where = parse_address(address)
        get_backend(scheme)
        parse_host_port(where)
        return Client(address, timeout="20s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ValueError(
            f"The Dask scheduler {address!r} cannot be reached ({error}). Start one with `dask scheduler`, "
            "and give the address it prints, for instance tcp://127.0.0.1:8786."
        ) from None


def dask_parts(X: Any, dtype: str) -> Parts:
    """Return the chunks of rows of a Dask array, or the partitions of a Dask dataframe.

    Raises
    ------
    ValueError
        If there is no connection to a cluster, or the chunks are not tables of numbers.
    """
    try:
        from distributed import get_client

        mapper = Cluster(client=get_client())
    except (ImportError, ValueError):
        raise ValueError(
            "X is a Dask collection, but there is no connection to a cluster. Install fmviz[dask], and "
            "create a distributed.Client first."
        ) from None
    array = X.to_dask_array() if hasattr(X, "to_dask_array") else X.rechunk({1: -1})
    return Parts(np.ravel(array.to_delayed()).tolist(), dtype, mapper)


def _same(value: Any) -> Any:
    return value


def _within(problem: Problem, design: Any) -> Problem:
    return replace(problem, design=design)


def _applied(function: Callable[[Any], Any], item: Any) -> tuple[Any, float]:
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        return timed(function, item)
