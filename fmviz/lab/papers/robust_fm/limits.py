"""What the automatic rule sets aside, and what it does not: its limits."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import median

import numpy as np

from fmviz import RobustFMRegressor
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.outliers import KINDS, PLANTED, planted
from fmviz.lab.papers.protocols.trials import each
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Said, over, verdict

ERROR, F1 = "relative error of Z", "F1 of the rows that are set aside"
NEAR, FOUND = 0.1, 0.9


@dataclass(frozen=True)
class Trial:
    """A kind of wrong rows, and the seed of the data."""

    kind: str
    seed: int
    data: str = PLANTED


def fitted(trial: Trial, percent: int, rows: int, features: int) -> Row:
    """Return how near Z comes, and how well outliers are told, with nothing tuned."""
    X, y, Z, wrong = planted(trial.seed, percent, trial.kind, rows, features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Where it fails, it may not converge.
        machine = RobustFMRegressor(random_state=trial.seed).fit(X, y)
    apart = (machine.P_ * machine.coefficients_) @ machine.P_.T - Z
    both = 2.0 * float((machine.outlier_mask_ & wrong).sum())
    return {
        ERROR: float(np.linalg.norm(apart) / np.linalg.norm(Z)),
        F1: both / float(machine.outlier_mask_.sum() + wrong.sum()),
        "rank": machine.rank_,
    }


def _run(repro: Reproduction) -> Iterator[str]:
    settings = repro.settings
    trials = [Trial(kind, seed) for seed, kind in product(range(settings["seeds"]), KINDS)]
    repro.total += len(trials)
    given = {name: settings[name] for name in ("percent", "rows", "features")}
    clean = planted(0, 0, n=settings["rows"], d=settings["features"])
    repro.use(PLANTED, clean.X, clean.y)
    for trial, row in each(repro, partial(fitted, **given), trials, (ERROR, F1, "rank"), "limits", given):
        for panel in (ERROR, F1):
            if row[panel] is not None:
                place = {"panel": panel, "method": trial.kind, "stage": "automatic rule"}
                repro.row("ratios", y=row[panel], seed=trial.seed, rank=row["rank"], **place)
        yield f"{trial.kind}, seed {trial.seed}"


Both = tuple[list[float], list[float]]


def _kinds(tables: Tables, settings: Settings) -> Iterator[tuple[str, Both | None]]:
    for kind in KINDS:
        errors, scores = (
            [row["y"] for row in rows_where(tables, "ratios", panel=panel, method=kind)]
            for panel in (ERROR, F1)
        )
        yield kind, (errors, scores) if errors and scores else None


def _eliminated(both: Both) -> Said:
    error, score = map(median, both)
    return verdict(error <= NEAR and score >= FOUND), f"Medians: error {error:.3g}, F1 {score:.3f}."


ARTEFACT = figure(__name__, _run, {"eliminates": over(_kinds, _eliminated)}, near=NEAR, found=FOUND)
