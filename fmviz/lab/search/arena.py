"""Fits of four regularizers on planted groups, from several starts, for the start page and the tour."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fmviz.engine.counting import used_mask
from fmviz.engine.fit import never
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import PENALTIES
from fmviz.lab.catalog import DataChoice
from fmviz.lab.experiment import suggested
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.search.strength_path import PathFit, PathPlan, learn

REGULARIZERS = ("l1", "ti", "l21", "cs")
STRENGTHS = (
    *(float(f"{digits}e{e}") for e in (-3, -2, -1, 0) for digits in (1, 1.5, 2.2, 3.2, 4.6, 6.8)),
    10.0,
)
"""Values of λ, six per decade."""

STRENGTH = 0.32
"""The initial λ of the page: TI uses exactly the true pairs, even from a random start."""

SEEDS = tuple(range(8))
"""Of the starts."""

SHIPPED = Path(__file__).with_name("arena.json.gz")
"""The shipped results, written by `make results`."""


def arena_plan(seed: int = 0) -> PathPlan:
    """Return the data set: few rows with eight groups of 6 features, and 20 noise features."""
    given = {"n_samples": 180, "d_true": 48, "b": 8, "d_noise": 20, "noise": 0.1, "seed": 1}
    base = suggested(DataChoice.of("synthetic", given), "fm")
    return PathPlan(replace(base, start="informed", seed=seed), REGULARIZERS, STRENGTHS, "up")


def arena_truth() -> np.ndarray:
    """Return W, shape (d, d), of the data."""
    truth = load_dataset(arena_plan().base.dataset).truth
    assert truth is not None
    return truth


@dataclass(frozen=True, eq=False)
class Starts:
    """Results from all starts, and the models of the median one.

    Attributes
    ----------
    f1 : mapping of (starts, strengths) ndarray
        For every regularizer, F1 of its pairs.
    seed : int
        The seed of the median start: the middle one by F1, averaged over λ and regularizers; of two middle
        ones the lower.
    path : mapping of (strengths, d, rank) ndarray
        For every regularizer, P to three digits.
    film : mapping of (epochs, d, rank) ndarray
        The same at `STRENGTH` after `EPOCHS` from a random start.
    """

    f1: Mapping[str, np.ndarray]
    seed: int
    path: Mapping[str, np.ndarray]
    film: Mapping[str, np.ndarray]

    @property
    def plan(self) -> PathPlan:
        """The plan of the median start."""
        return arena_plan(self.seed)

    def fits(self, should_stop: Callable[[], bool] = never) -> Iterator[PathFit]:
        """Yield the fits of the median start."""
        for name, factors in self.path.items():
            method = self.plan.method(name)
            for at, P in enumerate(factors):
                values = {"support_f1": self.f1[name][SEEDS.index(self.seed), at]}
                yield PathFit(replace(method, lambda_sparse=STRENGTHS[at]), values, Parameters(P))

    def learn(
        self, plan: PathPlan, strength: float, should_stop: Callable[[], bool] = never
    ) -> Iterator[tuple[str, Any]]:
        """Yield the items of `fmviz.lab.search.strength_path.learn`, without a fit at `STRENGTH`."""
        yield from self.film.items() if strength == STRENGTH else learn(plan, strength, should_stop)

    @property
    def pair(self) -> tuple[int, int]:
        """The pair across groups with the largest weight under ℓ₁, among those only TI sets to zero."""
        at, truth = STRENGTHS.index(STRENGTH), arena_truth() != 0
        P = {name: factors[at] for name, factors in self.path.items()}
        used = {name: used_mask(factors) for name, factors in P.items()}
        shown = np.logical_and.reduce([used[name] != PENALTIES[name].parts_pairs for name in REGULARIZERS])
        groups = np.triu(np.outer(truth.any(axis=0), truth.any(axis=0)) & ~truth, 1)
        weights = np.abs(P["l1"] @ P["l1"].T) * (shown & groups)
        i, j = np.unravel_index(int(np.argmax(weights)), weights.shape)
        return int(i), int(j)


def of_json(shipped: Mapping[str, Any]) -> Starts:
    """Return the results in a shipped file."""
    f1, path, film = (
        {name: np.array(each) for name, each in shipped[part].items()} for part in ("f1", "path", "film")
    )
    return Starts(f1, shipped["seed"], path, film)


@cache
def arena() -> Starts:
    """Return the shipped results."""
    return of_json(json.loads(gzip.decompress(SHIPPED.read_bytes())))


def make_ready() -> None:
    """Read the shipped results, and fit an epoch of every path to load data and kernels."""
    plan = arena().plan
    for name in plan.regularizers:
        Run.prepare(replace(plan.method(name), max_epochs=1)).end()
