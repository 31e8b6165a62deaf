"""Figure 1 of blondel2016: whether it is useful to fit λ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import median
from typing import Any

import numpy as np

from fmviz.engine.models import KernelExpansion
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.descent import descend
from fmviz.lab.papers.protocols.tuning import halves
from fmviz.lab.papers.references import SUMS
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Said, by_balance, over, verdict
from fmviz.lab.runner import load_dataset

KERNELS = {"anova": "A²", "polynomial": "H²"}
SOLVERS = {"anova": "cd", "polynomial": "lbfgs"}
METHODS = {"fitted": "fit λ", "ones": "λ = 1", "signs": "λ = ±1"}
AFTER = "fit λ after λ = 1 or ±1"
FEATURES = {"unit": "columns of length 1", "standard": "standardised"}
TARGETS = {"raw": "target as it is", "centred": "target centred"}

# Two objectives that differ by less, relative to the larger, are the same minimum.
_SAME = 1e-3
# The gap that "large" means, and the share of it that "small" means, in the median.
_LARGE = 0.05


def panel_of(kernel: str, features: str, target: str) -> str:
    """Return the name of a panel."""
    return f"{KERNELS[kernel]}, {FEATURES[features]}, {TARGETS[target]}"


def _rows(features: str, target: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows of a random split of 331 and 111."""
    data = load_dataset("diabetes")
    n = data.y.size
    chosen = np.sort(halves(n, 0.75, seed)[0])
    # scikit-learn scales every column to length 1.
    X = data.X[chosen] / (np.sqrt(n) if features == "unit" else 1.0)
    y = data.y[chosen]
    return X, y - y.mean() if target == "centred" else y


def _problem(X: np.ndarray, y: np.ndarray, kernel: str, method: str, settings: Settings) -> Problem:
    return Problem.build(
        X,
        y,
        penalty="l2",
        model=KernelExpansion(kernel, 2, method),
        rank=settings["k"],
        lambda_p=settings["beta"] / y.size,
        fit_linear=False,
        fit_intercept=False,
    )


def _run(repro: Reproduction) -> Iterator[str]:
    settings = repro.settings
    seeds = range(settings["seeds"])
    cases = product(seeds, settings["features"], settings["targets"], KERNELS)
    for seed, features, target, kernel in repro.each(cases):
        X, y = _rows(features, target, seed)
        repro.use(f"diabetes, {FEATURES[features]}", X, y)
        panel = panel_of(kernel, features, target)
        _one_case(repro, X, y, kernel, seed, panel)
        if repro.should_stop():
            return
        repro.done += 1
        yield f"{panel}: start {seed + 1} of {settings['seeds']}"


def _one_case(repro: Reproduction, X: np.ndarray, y: np.ndarray, kernel: str, seed: int, panel: str) -> None:
    settings, n = repro.settings, y.size
    labels = {"panel": panel, "seed": seed}
    limits = {name: settings[name] for name in ("epochs", "seconds", "tol")}
    ends: dict[str, tuple[float, Parameters]] = {}

    def fall(method: str, start: Parameters | None = None) -> Iterator[tuple[Snapshot, Row | None]]:
        problem = _problem(X, y, kernel, method, settings)
        # The same P for all three.
        start = start or problem.start(settings["init_sd"], np.random.default_rng([seed, 1]))
        solver: tuple[str, Row] = (SOLVERS[kernel], {})
        return descend(
            repro, problem, start, solver, value=lambda one: n * one.objective, seed=seed, **limits
        )

    for method, label in METHODS.items():
        for last, row in fall(method):  # noqa: B007
            if row is not None and seed < settings["traced"]:
                repro.row("trace", **labels, method=label, **row)
        ends[method] = n * last.objective, last.parameters
    best = np.inf
    for method in ("ones", "signs"):
        at = ends[method][1]
        *_, (last, _) = fall("fitted", Parameters(at.P, at.w, at.intercept, coefficients=at.multipliers))
        best = min(best, n * last.objective)
    if repro.should_stop():
        return
    repro.row(
        "ends",
        **labels,
        kernel=KERNELS[kernel],
        **{label: ends[method][0] for method, label in METHODS.items()},
        **{AFTER: best},
        **{"columns in use": int(np.count_nonzero(ends["fitted"][1].multipliers))},
    )


def _gaps(rows: list[Row], low: str, high: str) -> list[float]:
    """Return how far `low` lies below `high`, as a share of `high`."""
    return [(row[high] - row[low]) / row[high] for row in rows]


def _scalings(tables: Tables, settings: Settings) -> Iterator[tuple[str, dict[str, list[Row]]]]:
    """Yield the ends of both kernels for every scaling, once there are some of both."""
    for features, target in product(settings["features"], settings["targets"]):
        found = {k: rows_where(tables, "ends", panel=panel_of(k, features, target)) for k in KERNELS}
        yield f"{FEATURES[features]}, {TARGETS[target]}", found if all(found.values()) else {}


def _panels(tables: Tables, settings: Settings) -> Iterator[tuple[str, list[Row]]]:
    for features, target, kernel in product(settings["features"], settings["targets"], KERNELS):
        panel = panel_of(kernel, features, target)
        yield panel, rows_where(tables, "ends", panel=panel)


def _against_both(tables: Tables, settings: Settings) -> Iterator[tuple[str, Any]]:
    for panel, rows in _panels(tables, settings):
        for fixed in (METHODS["ones"], METHODS["signs"]):
            yield f"{panel}, against {fixed}", rows and (rows, fixed)


def _lower(given: tuple[list[Row], str]) -> Said:
    gaps = _gaps(given[0], METHODS["fitted"], given[1])
    held, wins, losses = by_balance(gaps, _SAME)
    columns = median(row["columns in use"] for row in given[0])
    return held, (
        f"Fitted λ ends lower in {wins} of {len(gaps)} starts and higher in {losses}; the median gap is "
        f"{median(gaps):+.1%}. It keeps {columns:g} columns."
    )


def _represents(rows: list[Row]) -> Said:
    gaps = _gaps(rows, AFTER, METHODS["ones"])
    held, wins, _ = by_balance(gaps, _SAME)
    return held, (
        f"Fitting λ from where λ = 1 and λ = ±1 ended, the better of the two, is lower than λ = 1 in {wins} "
        f"of {len(gaps)} starts (it cannot be higher); the median gap is {median(gaps):.1%}."
    )


def _sizes(found: dict[str, list[Row]]) -> Said:
    gap = {k: median(_gaps(rows, METHODS["fitted"], METHODS["ones"])) for k, rows in found.items()}
    large, smaller = gap["polynomial"] >= _LARGE, gap["anova"] < 0.5 * gap["polynomial"]
    return verdict(large and smaller), (
        f"The gap between λ = 1 and fitted λ is {gap['polynomial']:.1%} of the objective for H² and "
        f"{gap['anova']:.1%} for A² (large: at least {_LARGE:.0%}; small: less than half as much)."
    )


ARTEFACT = figure(
    __name__,
    _run,
    {
        "lower": over(_against_both, _lower),
        "sizes": over(_scalings, _sizes),
        "represents": over(_panels, _represents),
    },
    sums=SUMS,
)
