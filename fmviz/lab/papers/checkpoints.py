"""Checkpoints of a reproduction: what is finished is not computed again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Protocol, TypeVar

from fmviz.lab.experiment import Experiment
from fmviz.lab.search.sweep import FAILED, sweep
from fmviz.lab.values import plain

Item = TypeVar("Item")
Numbered = Generator[tuple[int, dict[str, Any]]]


class Pieces(Protocol):
    """Where results of pieces of work are kept by their keys.

    Attributes
    ----------
    seconds : float
        Wall time that earlier runs took for what is kept.
    """

    seconds: float

    def get(self, key: str) -> Any:
        """Return what is kept under a key, or None."""

    def put(self, key: str, value: Any, seconds: float) -> None:
        """Keep a value that `json.dumps` takes; `seconds` is the wall time of all runs so far."""


class Memory:
    """What a run knows from earlier ones, and tells later ones.

    Parameters
    ----------
    pieces : Pieces, optional
        Where it is kept; without it nothing is.
    closed : bool
        Whether only what is kept is to be told, and nothing made.

    Attributes
    ----------
    recalled : int
        How many results came from there.
    exhausted : bool
        Whether something was wanted of a closed memory that is not there.
    """

    def __init__(self, pieces: Pieces | None = None, closed: bool = False) -> None:
        self._pieces = pieces
        self._closed = closed
        self.exhausted = False
        self._begin = time.perf_counter() - (pieces.seconds if pieces is not None else 0.0)
        self.recalled = 0

    @property
    def seconds(self) -> float:
        """Wall time of this run and of those that it goes on from."""
        return time.perf_counter() - self._begin

    def recall(self, key: str) -> Any:
        """Return what is kept under a key, or None."""
        found = None if self._pieces is None else self._pieces.get(key)
        self.recalled += found is not None
        return found

    def ends_here(self) -> bool:
        """Return whether what is not kept must be left out."""
        self.exhausted = self.exhausted or self._closed
        return self._closed

    def keep(self, key: str, value: Any) -> None:
        """Keep a value that `json.dumps` takes."""
        if self._pieces is not None:
            self._pieces.put(key, value, self.seconds)


def key_of(*parts: Any) -> str:
    """Return the key of a piece from what it depends on, as JSON takes it."""
    return json.dumps(parts, sort_keys=True, ensure_ascii=False)


def resumed(
    memory: Memory,
    items: Sequence[Item],
    key: Callable[[Item], str],
    work: Callable[[list[Item]], Numbered],
) -> Numbered:
    """Yield the results of all items: those that are kept, then those that are made now, which are kept.

    Parameters
    ----------
    memory : Memory
        Where results may be, and where the new ones go.
    items : sequence
        What there is to do.
    key : callable
        ``key(item)`` names a piece.
    work : callable
        ``work(items)`` returns a generator of places and results. A result that has a "failure" is not kept.

    Yields
    ------
    (int, dict)
        The place among the items, and the result. Closing the generator closes that of `work`.
    """
    rest = []
    for index, item in enumerate(items):
        known = memory.recall(key(item))
        if known is None:
            rest.append(index)
        else:
            yield index, known
    if not rest or memory.ends_here():
        return
    with closing(work([items[i] for i in rest])) as results:
        for place, value in results:
            index = rest[place]
            if not value.get("failure"):
                memory.keep(key(items[index]), value)
            yield index, value


def fits(memory: Memory, experiments: Sequence[Experiment], *, n_jobs: int, seconds: float) -> Numbered:
    """Fit experiments for so many solver seconds at most; see `resumed`.

    Yields
    ------
    (int, dict)
        The place, and ``status`` and ``values`` of a `search.sweep.SweepRow`, or a ``failure`` with its
        ``details``.
    """
    work = partial(_fits, n_jobs=n_jobs, seconds=seconds)
    return resumed(memory, experiments, lambda one: key_of(one.to_dict(), seconds), work)


def _fits(experiments: list[Experiment], n_jobs: int, seconds: float) -> Numbered:
    with closing(sweep(experiments, n_jobs=n_jobs, seconds=seconds)) as rows:
        for row in rows:
            if row.status == FAILED:
                yield row.index, {"failure": row.message, "details": row.details}
            else:
                yield row.index, {"status": row.status, "values": plain(row.values, finite=False)}
