"""Figure 9 of atarashi2021: which algorithm is fast on real data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from fmviz.engine.problem import Problem
from fmviz.lab.papers.base import Artefact, Desk, Row, Settings, Statement, Tables
from fmviz.lab.papers.judging import Said, agreed, by_majority, over
from fmviz.lab.papers.protocols.benchmarks import A9A, DRAWN, ML100K, printed_sizes, wanted, whole
from fmviz.lab.papers.protocols.descent import (
    MUCH,
    STAGES,
    Line,
    Race,
    Times,
    ahead,
    median_times,
    n_runs,
    picture,
    racing,
    sooner,
    told,
)
from fmviz.lab.papers.protocols.races import BATCH, COORDINATE, RANK, READINGS, STOCHASTIC, race_of, racers
from fmviz.lab.papers.references import ATARASHI2021

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


def _races(desk: Desk) -> list[Race]:
    settings, names = desk.settings, wanted(desk)
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


ARTEFACT = Artefact(
    name="atarashi2021_fig9",
    paper=ATARASHI2021,
    title="Fig. 9: algorithms on real data",
    statements=(
        Statement(
            "coordinate",
            "PCD and PBCD were much faster than APGD and nmAPGD on real-world data.",
            "C.2, Fig. 9",
            over(_panels, sooner(COORDINATE, BATCH, MUCH)),
        ),
        Statement(
            "stochastic",
            "The completely stochastic algorithms (PSGD and Katyusha) were not faster than batch algorithms.",
            "C.2, Fig. 9",
            over(_panels, _not_faster),
        ),
        Statement(
            "mini_batches",
            "MB-PSGD and MB-Katyusha were faster than their completely stochastic versions.",
            "C.2, Fig. 9",
            over(_panels, _helped),
        ),
        Statement(
            "behind",
            "Nevertheless, the mini-batch algorithms were slower than PCD and PBCD on ML100K and PCD on a9a.",
            "C.2, Fig. 9",
            over(_without_cs_of_a9a, sooner(COORDINATE, _SMALL)),
        ),
        Statement(
            "diverges",
            "The objective values usually diverged with η₀ = 1.0.",
            "C.2, Fig. 9",
            over(_large_steps, _diverged),
        ),
    ),
    differences=(
        "Strengths are those of the text; the caption of the figure has a λ_w ten times as large. For a9a "
        "the text counts 48,642 rows, the sum of its parts is 48,842.",
        "Mini-batches have N·d/nnz(X) rows, as the paper's. A run with η₀ = 1 counts as diverged, too, where "
        "it ends above its start.",
        *READINGS,
    ),
    settings={
        "data": [ML100K, A9A],
        "drawn": 10_000,
        "regularizers": ["ti", "cs"],
        "strengths": {
            ML100K: {"lambda_w": 0.5e-4, "lambda_p": 0.5e-4, "lambda_sparse": 0.5e-4},
            A9A: {"lambda_w": 0.5e-2, "lambda_p": 0.5e-3, "lambda_sparse": 0.5e-3},
            DRAWN: {"lambda_w": 0.5e-4, "lambda_p": 0.5e-4, "lambda_sparse": 0.5e-4},
        },
        "eta0": [1.0, 0.1, 0.01],
        "epochs": 1_000_000,
        "tol": 1e-7,
    },
    budgets={"quick": {"starts": 1, "seconds": 3.0}, "full": {"starts": 10, "seconds": 30.0}},
    minutes={"quick": 6, "full": 420},
    runner=racing(_races),
    picture=picture("Objective"),
    published=printed_sizes("C.2"),
)
