"""Figure 9 of atarashi2021: which algorithm is fast on real data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from fmviz.engine.problem import Problem
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.benchmarks import A9A, wanted, whole
from fmviz.lab.papers.protocols.descent import (
    MUCH,
    STAGES,
    Line,
    Race,
    Times,
    ahead,
    median_times,
    n_runs,
    racing,
    sooner,
    told,
)
from fmviz.lab.papers.protocols.races import BATCH, COORDINATE, RANK, READINGS, STOCHASTIC, race_of, racers
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables
from fmviz.lab.papers.statements import Said, agreed, by_majority, over

_SMALL = tuple(f"MB-{name}" for name in STOCHASTIC)
# Of the steps η₀ it is the largest that usually diverged.
_LARGE_STEP = 1.0


def panel_of(data: str, regularizer: str) -> str:
    """Return the name of a panel."""
    return f"{data}, {regularizer.upper()}"


def lines_of(regularizer: str, settings: Settings) -> list[Line]:
    """Return the lines of a panel."""
    return racers(regularizer, settings["eta0"], mini_batches=True)


def build(regularizer: str, strengths: Row, X: Any, y: np.ndarray) -> tuple[Problem, float]:
    """Return the problem of a panel, with linear term and bias, and the factor of its objective."""
    return Problem.build(X, y, penalty=regularizer, rank=RANK, **strengths), 1.0


def _races(repro: Reproduction) -> list[Race]:
    settings, names = repro.settings, wanted(repro)
    return [
        race_of(
            partial(whole, name, settings["drawn"]),
            partial(build, regularizer, settings["strengths"][name]),
            panel=panel_of(name, regularizer),
            seed=seed,
            data=name,
            lines=lines_of(regularizer, settings),
            seconds=settings["seconds"],
        )
        for seed, name, regularizer in product(range(settings["starts"]), names, settings["regularizers"])
    ]


def _panels(tables: Tables, settings: Settings) -> Iterator[tuple[str, Times | None]]:
    names = [row["data"] for row in tables.get("data", ())] or settings["data"]
    for name, regularizer in product(names, settings["regularizers"]):
        panel = panel_of(name, regularizer)
        yield panel, median_times(tables, panel, n_runs(lines_of(regularizer, settings)))


def _without_cs_of_a9a(tables: Tables, settings: Settings) -> Iterator[tuple[str, Times | None]]:
    return (one for one in _panels(tables, settings) if one[0] != panel_of(A9A, "cs"))


def _large_steps(tables: Tables, settings: Settings) -> Iterator[tuple[str, list[Row]]]:
    yield "all", [row for row in tables.get("ends", ()) if row["eta0"] == _LARGE_STEP]


def _not_faster(times: Times) -> Said:
    batch = [name for name in (*COORDINATE, *BATCH) if name in times["early"]]
    pairs = [[min(times[stage][one] for one in group) for group in (STOCHASTIC, batch)] for stage in STAGES]
    reached = [stochastic >= best for stochastic, best in pairs if min(stochastic, best) < np.inf]
    return agreed(reached), told(times, (*STOCHASTIC, *batch))


def _helped(times: Times) -> Said:
    each = {ahead(times, (small,), (one,)) for small, one in zip(_SMALL, STOCHASTIC, strict=True)}
    return each.pop() if len(each) == 1 else "not settled", told(times, (*_SMALL, *STOCHASTIC))


def _diverged(large: list[Row]) -> Said:
    risen = sum(row["diverged"] for row in large)
    return by_majority(risen, len(large)), (
        f"{risen} of {len(large)} runs diverged, or ended above their start."
    )


ARTEFACT = figure(
    __name__,
    racing(_races),
    {
        "coordinate": over(_panels, sooner(COORDINATE, BATCH, MUCH)),
        "stochastic": over(_panels, _not_faster),
        "mini_batches": over(_panels, _helped),
        "behind": over(_without_cs_of_a9a, sooner(COORDINATE, _SMALL)),
        "diverges": over(_large_steps, _diverged),
    },
    readings=READINGS,
)
