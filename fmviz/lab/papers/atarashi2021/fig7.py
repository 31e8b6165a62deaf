"""Figure 7 of atarashi2021: the ‖W‖₁-regularized objective on real data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.benchmarks import wanted, whole
from fmviz.lab.papers.protocols.descent import CLOSE, MUCH, Race, Times, median_times, racing, sooner
from fmviz.lab.papers.protocols.weights import (
    METHODS,
    ONCE,
    OTHERS,
    PROPOSED,
    READING,
    panel_of,
    race_of,
)
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables
from fmviz.lab.papers.statements import over


def _races(repro: Reproduction) -> list[Race]:
    settings, names = repro.settings, wanted(repro)
    return [
        race_of(
            partial(whole, name, settings["drawn"]),
            panel=panel_of(name, strength),
            seed=start,
            data=name,
            lambda_p=settings["lambda_p"][name],
            lambda_sparse=strength,
            seconds=settings["seconds"],
        )
        for start, name, strength in product(range(settings["starts"]), names, settings["lambda"])
    ]


def _panels(tables: Tables, settings: Settings) -> Iterator[tuple[str, Times | None]]:
    names = [row["data"] for row in tables.get("data", ())] or settings["data"]
    for name, strength in product(names, settings["lambda"]):
        panel = panel_of(name, strength)
        yield panel, median_times(tables, panel, ONCE)


ARTEFACT = figure(
    __name__,
    racing(_races),
    {
        "fastest": over(_panels, sooner(PROPOSED, OTHERS, MUCH, tell=METHODS)),
    },
    reading=READING,
    close=CLOSE,
    much=MUCH,
)
