"""Figure 2 of blondel2016: the direct and the lifted approach on high-dimensional data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from fmviz.engine.design import Design, augmented
from fmviz.engine.interactions.conversion import absorb_coefficients, to_expansion
from fmviz.engine.models import KernelExpansion, LiftedModel
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.datasets.drawn import text_like
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.descent import (
    SHARE,
    STAGES,
    Line,
    Prepare,
    Race,
    Times,
    Value,
    median_times,
    n_runs,
    racing,
    sooner,
    told,
)
from fmviz.lab.papers.references import SUMS
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables
from fmviz.lab.papers.statements import Cases, Said, agreed, over

KERNELS = {"anova": "A²", "polynomial": "H²"}
DATA = "text-like, in place of E2006-tfidf"
LIFTED, DIRECT, LBFGS, SGD, FITTED = (
    "Lifted (CD)",
    "Direct (CD)",
    "Direct (L-BFGS)",
    "Direct (SGD)",
    "Direct (CD), λ fitted",
)
# The ratio of times up to which two are similar.
_SIMILAR = 2.0
# E2006-tfidf: N, for which β = 100 was chosen.
_PUBLISHED_ROWS = 16_087


def _data(settings: Settings) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(settings["data_seed"])
    X, y = text_like(settings["rows"], settings["terms"], settings["words"], rng)
    # The volatilities of E2006 are logarithms, around −3.7.
    return augmented(X), -3.7 + 0.6 * y / y.std()


def starts_of(
    design: Design, y: np.ndarray, kernel: str, settings: Settings
) -> dict[str, tuple[Problem, Parameters]]:
    """Return the problems of one panel and their starts, all from one W: lifted, held at signs, λ fitted."""
    common: dict[str, Any] = {
        "penalty": "l2",
        "lambda_p": settings["beta"] / _PUBLISHED_ROWS,
        "fit_linear": False,
        "fit_intercept": False,
    }
    lifted = Problem.build(design, y, model=LiftedModel(kernel, 2), rank=settings["r"], **common)
    start = lifted.start(settings["init_sd"], np.random.default_rng(settings["seed"]))
    columns = to_expansion(lifted.model, start)

    def direct(coefficients: str) -> Problem:
        model = KernelExpansion(kernel, 2, coefficients)
        return Problem.build(design, y, model=model, rank=columns.P.shape[1], **common)

    return {
        LIFTED: (lifted, start),
        DIRECT: (direct("signs"), absorb_coefficients(columns, 2, "signs")),
        FITTED: (direct("fitted"), columns),
    }


def lines_of(panel: str, settings: Settings) -> list[Line]:
    """Return the lines of a panel."""
    lifted, lbfgs = Line(LIFTED, "cd"), Line(LBFGS, "lbfgs")
    if panel == "A²":
        return [lifted, Line(DIRECT, "cd"), lbfgs, Line(FITTED, "cd")]
    return [lifted, lbfgs, *(Line(_sgd(eta0), "sgd", ({"eta0": eta0},)) for eta0 in settings["eta0"])]


def _steps(times: Times) -> list[str]:
    return [name for name in times["early"] if name.startswith(SGD)]


def _sgd(eta0: float) -> str:
    return f"{SGD}, η₀ = {eta0:g}"


def _races(repro: Reproduction) -> list[Race]:
    settings = repro.settings

    @cache
    def data() -> tuple[Any, np.ndarray]:
        return _data(settings)

    def opened(kernel: str, repro: Reproduction) -> tuple[Prepare, Value]:
        X, y = data()
        repro.use(DATA, X, y, nonzero=int(X.nnz))
        all_ = starts_of(Design(X), y, kernel, settings)
        # All in units of the lifted start, so that lines can be compared.
        scale = 1.0 / all_[LIFTED][0].objective(all_[LIFTED][1])
        return lambda line: all_.get(line.label, all_[DIRECT]), lambda last: scale * last.objective

    return [
        Race(
            panel,
            settings["seed"],
            DATA,
            lines_of(panel, settings),
            partial(opened, kernel),
            settings["seconds"],
            ending=_ending,
        )
        for kernel, panel in KERNELS.items()
    ]


def _ending(line: Line, own: Mapping[str, Any], course: Sequence[Row], last: Snapshot) -> Row:
    return {"epochs": last.epoch, "columns in use": int(np.count_nonzero(last.parameters.multipliers))}


def _times(panel: str, column: str = "seconds") -> Cases:
    """Return the one case of a panel: when its lines come down, once all have ended that are compared."""

    def cases(tables: Tables, settings: Settings) -> Iterator[tuple[str, Times | None]]:
        needed = n_runs([one for one in lines_of(panel, settings) if one.label != FITTED])
        yield panel, median_times(tables, panel, needed, column)

    return cases


def _in_seconds_and_epochs(tables: Tables, settings: Settings) -> Iterator[tuple[str, Any]]:
    ((panel, times),) = _times("A²")(tables, settings)
    ((_, epochs),) = _times("A²", "epoch")(tables, settings)
    yield panel, times and (times, epochs)


def _similar(both: tuple[Times, Times]) -> Said:
    times, epochs = both
    ratios = []
    for stage in STAGES:
        low, high = sorted((times[stage][LIFTED], times[stage][DIRECT]))
        ratios.append(high / low if np.isfinite(low) else np.inf)
    pair = (LIFTED, DIRECT)
    counted = told(epochs, pair, "epochs")
    return agreed(ratio <= _SIMILAR for ratio in ratios), (
        f"{told(times, pair)[:-1]} (similar: up to a factor of {_SIMILAR:g}). In epochs: "
        f"{counted[0].lower()}{counted[1:]}"
    )


ARTEFACT = figure(
    __name__,
    racing(_races),
    {
        "anova_similar": over(_in_seconds_and_epochs, _similar),
        "anova_lbfgs": over(_times("A²"), sooner((LIFTED, DIRECT), (LBFGS,))),
        "homogeneous_lbfgs": over(_times("H²"), sooner((LIFTED,), (LBFGS,))),
        "homogeneous_sgd": over(_times("H²"), lambda times: sooner((LIFTED,), _steps(times))(times)),
    },
    sums=SUMS,
    share=SHARE,
)
