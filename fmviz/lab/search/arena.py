"""Four regularizers on two planted groups: what the start page shows, and the tour asks about."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from fmviz.lab.experiment import suggested
from fmviz.lab.runner import load_dataset
from fmviz.lab.search.strength_path import PathFit, PathPlan, trace

__all__ = ["PAIR", "REGULARIZERS", "STRENGTHS", "arena_fit", "arena_plan", "arena_truth"]

REGULARIZERS = ("l1", "l21", "ti", "cs")
STRENGTHS = (
    *(float(f"{digits}e{e}") for e in (-3, -2, -1, 0) for digits in (1, 1.5, 2.2, 3.2, 4.6, 6.8)),
    10.0,
)
"""Values of λ, six a decade."""

PAIR = (0, 15)
"""A feature of each group."""


def arena_plan() -> PathPlan:
    """Return what is fitted: two groups of 15 features and 10 that are noise, small enough to be quick."""
    data = (("n_samples", 200), ("d_true", 30), ("b", 2), ("d_noise", 10))
    base = replace(suggested("synthetic", "fm"), start="informed", dataset_params=data)
    return PathPlan(base, REGULARIZERS, STRENGTHS, "up")


def arena_truth() -> np.ndarray:
    """Return W, shape (d, d), of the data."""
    base = arena_plan().base
    truth = load_dataset(base.dataset, **dict(base.dataset_params)).truth
    assert truth is not None
    return truth


@cache
def _path(regularizer: str) -> dict[float, PathFit]:
    fits = trace(replace(arena_plan(), regularizers=(regularizer,)))
    return {fit.experiment.lambda_sparse: fit for fit in fits}


def arena_fit(regularizer: str, strength: float) -> PathFit:
    """Return the fit of a regularizer at one of `STRENGTHS`; its path is kept by the process."""
    return _path(regularizer)[strength]
