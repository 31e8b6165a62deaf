"""Figure 8 of atarashi2021: which algorithm is fast on planted data, by the number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from fmviz.engine.problem import Problem
from fmviz.lab.papers.base import (
    Artefact,
    Check,
    Desk,
    Picture,
    Published,
    Statement,
    Tables,
    without_numbers,
)
from fmviz.lab.papers.protocols.descent import ahead, median_times, told
from fmviz.lab.papers.protocols.races import (
    BATCH,
    MUCH,
    RANK,
    READINGS,
    race,
    racers,
    runs,
    starts,
)
from fmviz.lab.papers.protocols.recovery import SETTINGS as KINDS
from fmviz.lab.papers.protocols.shared import ATARASHI2021
from fmviz.lab.runner import load_dataset

INTERACTIONS, FEATURES = KINDS
PANELS = {"a": (INTERACTIONS, "ti"), "b": (FEATURES, "ti"), "c": (FEATURES, "cs")}
_STOCHASTIC = ("PSGD", "Katyusha")


def _panel(letter: str, n: int) -> str:
    setting, regularizer = PANELS[letter]
    return f"{regularizer.upper()}, {setting}, N = {n:,}"


def _lines(letter: str, settings: Mapping[str, Any]) -> Any:
    return racers(PANELS[letter][1], settings["eta0"], mini_batches=False)


def build(letter: str, X: np.ndarray, y: np.ndarray, strength: float) -> tuple[Problem, float]:
    """Return the problem of a panel, and what its objective is to be multiplied by.

    As the paper does for the stochastic methods, rows are divided by √d and targets by d, so that a squared
    loss is divided by d², and strengths with it.
    """
    d = X.shape[1]
    own = {"lambda_p": strength / d**2, "lambda_sparse": strength / d**2}
    problem = Problem.build(
        X / np.sqrt(d),
        y / d,
        penalty=PANELS[letter][1],
        rank=RANK,
        fit_linear=False,
        fit_intercept=False,
        **own,
    )
    return problem, float(d**2)


def _run(desk: Desk) -> Iterator[str]:
    settings = desk.settings
    each = {letter: runs(_lines(letter, settings)) for letter in settings["panels"]}
    sizes = list(zip(settings["N"], settings["seconds"], strict=True))
    desk.total = settings["starts"] * len(sizes) * sum(each.values())
    for seed, (n, seconds), letter in product(range(settings["starts"]), sizes, settings["panels"]):
        if desk.should_stop():
            return
        setting = PANELS[letter][0]
        yield f"{_panel(letter, n)}: drawing the data"
        data = load_dataset("synthetic", **KINDS[setting], n_samples=n, seed=0)
        name = f"{setting}, N = {n:,}"
        desk.use(name, data.X, data.y)
        problem, scale = build(letter, data.X, data.y, settings["strength"])
        yield from race(
            desk,
            problem,
            _lines(letter, settings),
            panel=_panel(letter, n),
            seed=seed,
            data=name,
            seconds=seconds,
            scale=scale,
        )


def _judge(tables: Tables, settings: Mapping[str, Any]) -> Iterator[Check]:
    small, large = min(settings["N"]), max(settings["N"])
    yield _compared("coordinate", "a", small, tables, settings, ("PCD",), BATCH, MUCH)
    for letter in PANELS:
        name = "PCD" if PANELS[letter][1] == "ti" else "PBCD"
        yield _compared("stochastic", letter, large, tables, settings, _STOCHASTIC, (name, *BATCH))


def _compared(
    key: str,
    letter: str,
    n: int,
    tables: Tables,
    settings: Mapping[str, Any],
    faster: tuple[str, ...],
    slower: tuple[str, ...],
    factor: float = 1.0,
) -> Check:
    panel = _panel(letter, n)
    seeds = starts(tables, panel, _lines(letter, settings))
    if not seeds or letter not in settings["panels"]:
        return without_numbers(key, panel)
    times = median_times(tables, seeds, panel)
    return Check(key, panel, ahead(times, faster, slower, factor), told(times, (*faster, *slower)))


ARTEFACT = Artefact(
    name="atarashi2021_fig8",
    paper=ATARASHI2021,
    title="Fig. 8: algorithms on planted data, by the number of rows",
    statements=(
        Statement(
            "coordinate",
            "PCD was much faster than APGD and nmAPGD on the interaction selection sets with N = 200.",
            "C.2, Fig. 8a",
        ),
        Statement(
            "stochastic",
            "With N = 20,000 the stochastic algorithms (PSGD and Katyusha) were faster than the batch "
            "algorithms (PCD, PBCD, APGD and nmAPGD).",
            "C.2, Fig. 8",
        ),
    ),
    differences=(
        "Rows are divided by √d and targets by d for all algorithms, where the paper does so for the "
        "stochastic ones only: the problem is the same over d², and so are its starts. Objectives are shown "
        "in the units of the problem as it is.",
        *READINGS,
    ),
    settings={
        "panels": list(PANELS),
        "N": [200, 20_000],
        "strength": 0.1,
        "eta0": [1.0, 0.1, 0.01],
        "epochs": 1_000_000,
        "tol": 1e-7,
    },
    budgets={"quick": {"starts": 1, "seconds": [1.0, 5.0]}, "full": {"starts": 10, "seconds": [4.0, 30.0]}},
    minutes={"quick": 4, "full": 300},
    runner=_run,
    judge=_judge,
    picture=Picture(
        "descent", {"columns": 3, "x_title": "Processor time (s)", "y_title": "Objective", "log_y": True}
    ),
    published=tuple(
        Published("data", {"data": f"{setting}, N = {n:,}"}, column, value, "C.2")
        for setting in KINDS
        for n in (200, 20_000)
        for column, value in (("n", n), ("d", 100))
    ),
)
