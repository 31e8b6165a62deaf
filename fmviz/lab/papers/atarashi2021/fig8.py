"""Figure 8 of atarashi2021: which algorithm is fast on planted data, by the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np

from fmviz.engine.problem import Problem
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.descent import (
    MUCH,
    Line,
    Race,
    Times,
    median_times,
    n_runs,
    racing,
    sooner,
)
from fmviz.lab.papers.protocols.races import BATCH, COORDINATE, RANK, READINGS, STOCHASTIC, race_of, racers
from fmviz.lab.papers.protocols.recovery import FEATURES, INTERACTIONS, planted
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables
from fmviz.lab.papers.statements import Cases, over

PANELS = {"a": (INTERACTIONS, "ti"), "b": (FEATURES, "ti"), "c": (FEATURES, "cs")}


def panel_of(letter: str, n: int) -> str:
    """Return the name of a panel."""
    setting, regularizer = PANELS[letter]
    return f"{regularizer.upper()}, {setting}, N = {n:,}"


def lines_of(letter: str, settings: Settings) -> list[Line]:
    """Return the lines of a panel."""
    return racers(PANELS[letter][1], settings["eta0"], mini_batches=False)


def build(letter: str, strength: float, X: np.ndarray, y: np.ndarray) -> tuple[Problem, float]:
    """Return the problem of a panel, and what its objective is to be multiplied by.

    As the paper does for the stochastic methods, rows are divided by √d and targets by d, so that a squared
    loss is divided by d², and strengths with it.
    """
    d = X.shape[1]
    problem = Problem.build(
        X / np.sqrt(d),
        y / d,
        penalty=PANELS[letter][1],
        rank=RANK,
        lambda_p=strength / d**2,
        lambda_sparse=strength / d**2,
        fit_linear=False,
        fit_intercept=False,
    )
    return problem, float(d**2)


def _races(repro: Reproduction) -> list[Race]:
    settings = repro.settings
    sizes = list(zip(settings["N"], settings["seconds"], strict=True))
    return [
        race_of(
            partial(planted, PANELS[letter][0], n, 0),
            partial(build, letter, settings["strength"]),
            panel=panel_of(letter, n),
            seed=seed,
            data=f"{PANELS[letter][0]}, N = {n:,}",
            lines=lines_of(letter, settings),
            seconds=seconds,
        )
        for seed, (n, seconds), letter in product(range(settings["starts"]), sizes, settings["panels"])
    ]


def _panels(letters: str, size: Callable[[list[int]], int]) -> Cases:
    def cases(tables: Tables, settings: Settings) -> Iterator[tuple[str, Times | None]]:
        for letter in letters:
            panel = panel_of(letter, size(settings["N"]))
            yield panel, median_times(tables, panel, n_runs(lines_of(letter, settings)))

    return cases


ARTEFACT = figure(
    __name__,
    racing(_races),
    {
        "coordinate": over(_panels("a", min), sooner(COORDINATE, BATCH, MUCH)),
        "stochastic": over(_panels("abc", max), sooner(STOCHASTIC, (*COORDINATE, *BATCH))),
    },
    readings=READINGS,
)
