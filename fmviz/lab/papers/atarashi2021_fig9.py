"""Figure 9 of atarashi2021: which algorithm is fast on real data."""

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
from fmviz.lab.papers.protocols.descent import (
    STAGES,
    Times,
    agreed,
    ahead,
    median_times,
    told,
)
from fmviz.lab.papers.protocols.majority import by_majority
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
from fmviz.lab.papers.protocols.shared import ATARASHI2021
from fmviz.lab.papers.protocols.table3 import (
    A9A,
    DRAWN,
    ML100K,
    wanted,
    whole,
)

_COORDINATE = {"ti": "PCD", "cs": "PBCD"}
_STOCHASTIC = ("PSGD", "Katyusha")
_SMALL = ("MB-PSGD", "MB-Katyusha")
# Of the steps η₀ it is the largest that usually diverged.
_LARGE_STEP = 1.0
_PER_PANEL = ("coordinate", "stochastic", "mini_batches", "behind")


def _panel(data: str, regularizer: str) -> str:
    return f"{data}, {regularizer.upper()}"


def _lines(regularizer: str, settings: Mapping[str, Any]) -> Any:
    return racers(regularizer, settings["eta0"], mini_batches=True)


def build(X: Any, y: Any, regularizer: str, strengths: Mapping[str, Any]) -> Problem:
    """Return the problem of a panel, with linear term and bias."""
    return Problem.build(X, y, penalty=regularizer, rank=RANK, **strengths)


def _run(desk: Desk) -> Iterator[str]:
    settings = desk.settings
    names = wanted(desk)
    each = sum(runs(_lines(regularizer, settings)) for regularizer in settings["regularizers"])
    desk.total = settings["starts"] * len(names) * each
    for seed, name, regularizer in product(range(settings["starts"]), names, settings["regularizers"]):
        if desk.should_stop():
            return
        yield f"{_panel(name, regularizer)}: reading the data"
        X, y = whole(name, settings["drawn"])
        desk.use(name, X, y)
        yield from race(
            desk,
            build(X, y, regularizer, settings["strengths"][name]),
            _lines(regularizer, settings),
            panel=_panel(name, regularizer),
            seed=seed,
            data=name,
            seconds=settings["seconds"],
        )


def _judge(tables: Tables, settings: Mapping[str, Any]) -> Iterator[Check]:
    names = [row["data"] for row in tables.get("data", ())] or settings["data"]
    for name, regularizer in product(names, settings["regularizers"]):
        panel = _panel(name, regularizer)
        seeds = starts(tables, panel, _lines(regularizer, settings))
        if not seeds:
            yield from (without_numbers(key, panel) for key in _PER_PANEL)
            continue
        yield from _panel_checks(name, regularizer, median_times(tables, seeds, panel))
    large = [row for row in tables.get("ends", ()) if row["eta0"] == _LARGE_STEP]
    if not large:
        yield without_numbers("diverges", "all")
        return
    risen = sum(row["diverged"] for row in large)
    words = f"{risen} of {len(large)} runs diverged, or ended above their start."
    yield Check("diverges", "all", by_majority(risen, len(large)), words)


def _panel_checks(name: str, regularizer: str, times: Times) -> Iterator[Check]:
    panel, own = _panel(name, regularizer), _COORDINATE[regularizer]
    verdict = ahead(times, (own,), BATCH, MUCH)
    yield Check("coordinate", panel, verdict, told(times, (own, *BATCH)))
    batch = (own, *BATCH)
    pairs = [[min(times[stage][one] for one in group) for group in (_STOCHASTIC, batch)] for stage in STAGES]
    not_faster = agreed([stochastic >= best for stochastic, best in pairs if min(stochastic, best) < np.inf])
    yield Check("stochastic", panel, not_faster, told(times, (*_STOCHASTIC, *batch)))
    each = [ahead(times, (small,), (one,)) for small, one in zip(_SMALL, _STOCHASTIC, strict=True)]
    helped = each[0] if len(set(each)) == 1 else "not settled"
    yield Check("mini_batches", panel, helped, told(times, (*_SMALL, *_STOCHASTIC)))
    if (name, regularizer) != (A9A, "cs"):
        yield Check("behind", panel, ahead(times, (own,), _SMALL), told(times, (own, *_SMALL)))


ARTEFACT = Artefact(
    name="atarashi2021_fig9",
    paper=ATARASHI2021,
    title="Fig. 9: algorithms on real data",
    statements=(
        Statement(
            "coordinate",
            "PCD and PBCD were much faster than APGD and nmAPGD on real-world data.",
            "C.2, Fig. 9",
        ),
        Statement(
            "stochastic",
            "The completely stochastic algorithms (PSGD and Katyusha) were not faster than batch algorithms.",
            "C.2, Fig. 9",
        ),
        Statement(
            "mini_batches",
            "MB-PSGD and MB-Katyusha were faster than their completely stochastic versions.",
            "C.2, Fig. 9",
        ),
        Statement(
            "behind",
            "Nevertheless, the mini-batch algorithms were slower than PCD and PBCD on ML100K and PCD on a9a.",
            "C.2, Fig. 9",
        ),
        Statement("diverges", "The objective values usually diverged with η₀ = 1.0.", "C.2, Fig. 9"),
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
        "regularizers": list(_COORDINATE),
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
    runner=_run,
    judge=_judge,
    picture=Picture(
        "descent", {"columns": 2, "x_title": "Processor time (s)", "y_title": "Objective", "log_y": True}
    ),
    published=(
        Published("data", {"data": ML100K}, "n", 100_000, "C.2"),
        Published("data", {"data": ML100K}, "d", 2_703, "Table 2"),
        Published("data", {"data": A9A}, "n", 48_642, "C.2"),
        Published("data", {"data": A9A}, "d", 123, "Table 2"),
    ),
)
