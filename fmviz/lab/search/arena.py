"""Fits of four regularizers on planted groups for the start page and the tour."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from fmviz.engine.drive import never
from fmviz.lab.catalog import DataChoice
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.search.strength_path import PathFit, PathPlan, trace

REGULARIZERS = ("l1", "l21", "ti", "cs")
STRENGTHS = (
    *(float(f"{digits}e{e}") for e in (-3, -2, -1, 0) for digits in (1, 1.5, 2.2, 3.2, 4.6, 6.8)),
    10.0,
)
"""Values of λ, six per decade."""

STRENGTH = 0.32
"""The initial λ of the page: TI uses exactly the true pairs, even from a random start."""

PAIR = (6, 17)
"""Features of two groups that CS keeps up to λ = 1."""


def arena_plan() -> PathPlan:
    """Return the settings: few rows, eight groups of 6 features, and 20 noise features.

    Over ten seeds, TI recovers the true pairs on nine, ℓ₁ on four.
    """
    given = {"n_samples": 180, "d_true": 48, "b": 8, "d_noise": 20, "noise": 0.1, "seed": 1}
    data = DataChoice.of("synthetic", given)
    return PathPlan(replace(suggested(data, "fm"), start="informed"), REGULARIZERS, STRENGTHS, "up")


def arena_truth() -> np.ndarray:
    """Return W, shape (d, d), of the data."""
    truth = load_dataset(arena_plan().base.dataset).truth
    assert truth is not None
    return truth


# Common to the start page and the tour.
_fits: dict[Experiment, PathFit] = {}


def arena_fits(plan: PathPlan, should_stop: Callable[[], bool] = never) -> Iterator[PathFit]:
    """Yield the fits of a plan, and cache them for `arena_fit`."""
    for fit in trace(plan, should_stop):
        _fits[fit.experiment] = fit
        yield fit


def make_ready() -> None:
    """Fit an epoch of every path, to load and compile everything for the first fits."""
    plan = arena_plan()
    for name in plan.regularizers:
        Run.prepare(replace(plan.method(name), max_epochs=1)).end()


def arena_fit(regularizer: str, strength: float) -> PathFit:
    """Return the fit of a regularizer at one of `STRENGTHS`; computes its path if it is not cached."""
    plan = replace(arena_plan(), regularizers=(regularizer,))
    wanted = replace(plan.method(regularizer), lambda_sparse=strength)
    if wanted not in _fits:
        deque(arena_fits(plan), maxlen=0)
    return _fits[wanted]
