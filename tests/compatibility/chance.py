"""Nothing left to chance: clocks and names that are made up, and starts that are a rounding error apart."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from compatibility.comparing import differences

from fmviz.engine.problem import Problem
from fmviz.engine.solvers import SOLVERS
from fmviz.engine.solvers.base import Solver
from fmviz.lab.store import ownership, runs

WOBBLES = 5
ARRAYS = ("P", "w", "W", "coefficients")
_start = Problem.start


def made_up(begin: float = 1_735_732_800.0) -> contextlib.ExitStack:
    """Replace clocks, ids and the computer's name until the stack is closed.

    It is the first of January 2025, and every look at a clock takes a second, or a millisecond of a solver.
    """
    ticks, times, ids = itertools.count(), itertools.count(begin), itertools.count(1)
    stack = contextlib.ExitStack()

    def replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
        stack.enter_context(mock.patch.object(owner, name, new=function))

    solvers = {Solver, *(kind for one in SOLVERS.values() for kind in one.__mro__ if "clock" in vars(kind))}
    for kind in solvers:
        replace(kind, "clock", lambda self: next(ticks) / 1024)
    replace(time, "time", lambda: float(next(times)))
    replace(runs, "new_id", lambda: f"fit-{next(ids)}")
    replace(ownership, "_owner_of", lambda pid: "bcea1f3/1/1")
    return stack


@contextlib.contextmanager
def wobbled(seed: int) -> Iterator[None]:
    """Let runs begin one unit in the last place away from where they would."""
    rng = np.random.default_rng(seed)

    def start(self: Problem, *given: Any) -> Any:
        found = _start(self, *given)
        arrays = {name: value for name in ARRAYS if (value := getattr(found, name)) is not None}
        moved = {n: a * (1 + 2.0**-52 * rng.integers(-1, 2, a.shape)) for n, a in arrays.items()}
        return dataclasses.replace(found, **moved)

    with mock.patch.object(Problem, "start", start):
        yield


def settled(name: str, then: Any, again: Any, relative: float) -> None:
    """Raise where something comes out otherwise from a start nearby."""
    if found := differences(again, then, name, relative / 10):
        raise SystemExit(f"{name} rests on rounding:\n" + "\n".join(found[:5]))
