"""One fit of several regularizers each, epoch by epoch from the same start, as frames of a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from fmviz.engine.drive import never
from fmviz.lab.runner import Run
from fmviz.lab.search.strength_path import PathPlan

__all__ = ["EPOCHS", "Learning", "learn"]

EPOCHS = tuple(sorted({0, 1, *(round(1.16**n) for n in range(5, 47))}))
"""After which epochs there is a frame: every one at first, then ever fewer."""


@dataclass(frozen=True, eq=False)
class Learning:
    """One fit.

    Attributes
    ----------
    regularizer : str
        Of which.
    factors : tuple of (d, rank) ndarray
        P after every one of `EPOCHS`, up to the first after which it has ended.
    """

    regularizer: str
    factors: tuple[np.ndarray, ...]


def learn(plan: PathPlan, strength: float, should_stop: Callable[[], bool] = never) -> Iterator[Learning]:
    """Fit at one strength from the random start that the seed draws, once for every regularizer of a plan.

    Parameters
    ----------
    plan : PathPlan
        Its settings and regularizers; its own strengths have no say.
    strength : float
        λ.
    should_stop : callable
        Asked between epochs.

    Raises
    ------
    ValueError
        If a regularizer does not suit the loss, or the data cannot be had.
    """
    for name in plan.regularizers:
        one = replace(plan.method(name), lambda_sparse=strength, start="random", solver_params=())
        one = replace(one, max_epochs=min(one.max_epochs, EPOCHS[-1]))
        # The end stands for the next frame, if there is none of its epoch.
        snapshots = Run.prepare(one).snapshots(should_stop)
        shown = (
            snapshot for snapshot in snapshots if snapshot.epoch in EPOCHS or snapshot.status is not None
        )
        factors = [snapshot.parameters.P for snapshot in shown]
        if should_stop():
            return
        yield Learning(name, tuple(factors))
