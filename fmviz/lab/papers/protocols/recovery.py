"""Support recovery on synthetic data (atarashi2021, 8.2): tuned on some data sets, reported on others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from fmviz.engine.drive import never
from fmviz.lab.experiment import Experiment
from fmviz.lab.papers.checkpoints import Memory, fits
from fmviz.lab.papers.reproduction import Row
from fmviz.lab.runner import load_dataset

INTERACTIONS, FEATURES = "interaction selection", "feature selection"
SETTINGS = {
    INTERACTIONS: {"d_true": 80, "b": 8, "d_noise": 20},
    FEATURES: {"d_true": 20, "b": 1, "d_noise": 80},
}
GRID = tuple(10.0**e for e in range(-2, 3))
# Finer, since there is nothing else to tune.
FM_GRID = tuple(10.0 ** (-3.0 + 7.0 * i / 24.0) for i in range(25))
ERROR, F1, PSSR = "estimation error", "F1", "PSSR"
METRICS = {ERROR: "estimation_error", F1: "support_f1", PSSR: "support_recovered"}
# Validation and test data sets are numbered from here on.
_FIRST_VALIDATION, _FIRST_TEST = 1_000, 5_000


@dataclass(frozen=True)
class Method:
    """How a method of the paper is run.

    Attributes
    ----------
    regularizer, solver, model : str
        Names from the registries.
    dense : bool
        Whether its steps take O(d²) or more.
    """

    regularizer: str
    solver: str = "auto"
    model: str = "fm"
    dense: bool = False


METHODS = {
    "TI": Method("ti"),
    "CS": Method("cs"),
    "L1": Method("l1"),
    "L21": Method("l21"),
    "FM": Method("l2"),
    "Ω*-nmAPGD": Method("omega_star", "nmapgd", dense=True),
    "Ω*-SubGD": Method("omega_star", "subgd", dense=True),
    "SLQR": Method("l1", "incremental_pgd", "qr", dense=True),
}


def planted(setting: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of a data set of one of `SETTINGS`."""
    found = load_dataset("synthetic", **SETTINGS[setting], n_samples=n, seed=seed)
    return found.X, found.y


def experiment(
    method: Method,
    data: dict[str, Any],
    lambda_p: float,
    lambda_sparse: float,
    *,
    start: int = 0,
    rank: int = 30,
    **limits: Any,
) -> Experiment:
    """Return the fit of a planted data set from one start: N(0, 0.01²), no linear term, no bias.

    `data` are the parameters of the data set "synthetic", `limits` those that say when the fit ends.
    """
    return Experiment(
        dataset="synthetic",
        dataset_params=tuple(data.items()),
        model=method.model,
        regularizer=method.regularizer,
        solver=method.solver,
        rank=rank,
        lambda_w=0.0,
        lambda_p=lambda_p,
        lambda_sparse=lambda_sparse,
        fit_linear=False,
        fit_intercept=False,
        seed=100_000 * start + data["seed"],
        **limits,
    )


def strengths(method: str, grid: Sequence[float] = GRID, fm_grid: Sequence[float] = FM_GRID) -> list:
    """Return the pairs (λ_p, λ) among which a method is tuned."""
    return [(value, 0.0) for value in fm_grid] if method == "FM" else list(product(grid, grid))


@dataclass(frozen=True)
class Study:
    """One method on data sets of one kind.

    Attributes
    ----------
    setting, method : str
        Keys of `SETTINGS` and `METHODS`.
    n_samples : int
        N of every data set.
    pairs : sequence of (float, float)
        The strengths (λ_p, λ) to choose from.
    n_validation, n_test, n_inits : int
        Data sets for tuning and unseen ones, and starts for each of the unseen.
    seconds : float
        Solver seconds of a fit: processor time of its thread, whatever else the machine does.
    max_epochs : int
        Epochs of a fit.
    tol : float
        The relative change of a parameter at which a fit ends.
    """

    setting: str
    method: str
    n_samples: int
    pairs: Sequence[tuple[float, float]]
    n_validation: int
    n_test: int
    n_inits: int = 1
    seconds: float = 4.0
    max_epochs: int = 20_000
    tol: float = 1e-6

    @property
    def n_fits(self) -> int:
        """How many fits `run` counts."""
        return len(self.pairs) * self.n_validation + len(METRICS) * self.n_test * self.n_inits

    def experiment(self, pair: tuple[float, float], seed: int, init: int = 0) -> Experiment:
        """Return the fit of one data set from one start; see `experiment`."""
        data = SETTINGS[self.setting] | {"seed": seed, "n_samples": self.n_samples}
        limits: Row = {"max_epochs": self.max_epochs, "tol": self.tol}
        return experiment(METHODS[self.method], data, *pair, start=init, **limits)

    def run(
        self,
        found: list[Row],
        *,
        n_jobs: int = 1,
        should_stop: Callable[[], bool] = never,
        memory: Memory | None = None,
    ) -> Iterator[int]:
        """Tune for each metric, then measure it on unseen data sets; yields how many fits were counted.

        Each metric is tuned by itself: no one pair of strengths is best for all of them. Fills `found` with a
        row a metric, when all is done; a stopped run returns early. What `memory` has is not fitted again.

        Raises
        ------
        RuntimeError
            If a fit fails.
        """
        memory = memory or Memory()
        todo = [
            self.experiment(pair, seed)
            for pair in self.pairs
            for seed in range(_FIRST_VALIDATION, _FIRST_VALIDATION + self.n_validation)
        ]
        results: list[Row] = []
        for count in _measure(todo, results, n_jobs, self.seconds, should_stop, memory):
            yield count
        if len(results) < len(todo):
            return
        means = {}
        for i, pair in enumerate(self.pairs):
            part = results[i * self.n_validation : (i + 1) * self.n_validation]
            means[pair] = {metric: mean(part, name) for metric, name in METRICS.items()}
        chosen = {metric: best(means, metric) for metric in METRICS}
        tests: dict[tuple[float, float], list[Row]] = {}
        for pair in dict.fromkeys(chosen.values()):
            shared = sum(other == pair for other in chosen.values())
            unseen = product(range(_FIRST_TEST, _FIRST_TEST + self.n_test), range(self.n_inits))
            todo = [self.experiment(pair, seed, init) for seed, init in unseen]
            into = tests.setdefault(pair, [])
            for count in _measure(todo, into, n_jobs, self.seconds, should_stop, memory):
                yield count * shared
            if len(into) < len(todo):
                return
        found += [
            {
                "metric": metric,
                "lambda_p": pair[0],
                "lambda_sparse": pair[1],
                "validation": means[pair],
                "test": tests[pair],
            }
            for metric, pair in chosen.items()
        ]


def _measure(
    todo: list[Experiment],
    results: list[Row],
    n_jobs: int,
    seconds: float,
    should_stop: Callable[[], bool],
    memory: Memory,
) -> Iterator[int]:
    """Fit all; `results` is filled in the given order, at the end."""
    rows: dict[int, Row] = {}
    with closing(fits(memory, todo, n_jobs=n_jobs, seconds=seconds)) as stream:
        for index, found in stream:
            if failure := found.get("failure"):
                raise RuntimeError(f"{todo[index].to_json()}: {failure}\n{found['details']}")
            rows[index] = {**found["values"], "converged": float(found["status"] == "converged")}
            yield 1
            if should_stop() and len(rows) < len(todo):
                return
    if len(rows) == len(todo):
        results += [rows[index] for index in range(len(todo))]


def mean(rows: Sequence[Row], name: str) -> float:
    """Return the mean of a value."""
    return float(np.mean([row[name] for row in rows]))


def best(means: dict[tuple[float, float], dict[str, float]], metric: str) -> tuple[float, float]:
    """Return the pair whose means are best on a metric; ties in PSSR are broken by F1, others by order."""

    def rank(pair: tuple[float, float]) -> tuple[float, float]:
        at = means[pair]
        return (-at[ERROR], 0.0) if metric == ERROR else (at[metric], at[F1])

    # NaN, of a fit that diverged at the start, never wins.
    usable = [pair for pair in means if not np.isnan(rank(pair)[0])] or list(means)
    return max(usable, key=rank)
