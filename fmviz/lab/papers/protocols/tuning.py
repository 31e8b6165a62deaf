"""Models tuned by cross-validation and scored on a test set, on all cores: Figs. 3 and 4 of blondel2016."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from fmviz.lab.papers.protocols.trials import each, ready
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Cases

Kind = tuple[str, int]
"""A method and its size, the number of bases; 0 for one that has none."""
Means = Mapping[Kind, float]


@dataclass(frozen=True)
class Trial:
    """One model on one split of one data set.

    Attributes
    ----------
    data, method : str
        Which data, and which model.
    bases : int
        Its size; 0 for a model that has none.
    seed : int
        Draws the split and the start.
    beta : float
        The strength; NaN before it is chosen.
    """

    data: str
    method: str
    bases: int
    seed: int
    beta: float = float("nan")


Fit = Callable[[Trial, np.ndarray, np.ndarray], float]
"""``fit(trial, train, test)`` fits on some rows and returns the score on others; importable by name."""


def halves(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows for training, ⌊share·n⌋ of them, and those for testing, in random order."""
    order = np.random.default_rng([seed, 0]).permutation(n)
    cut = int(share * n)
    return order[:cut], order[cut:]


def _cross_validated(trial: Trial, fit: Fit, n: Mapping[str, int], folds: int, used: int) -> Row:
    """Return the mean score over the first `used` of `folds` folds of the training rows."""
    train, _ = halves(n[trial.data], 0.75, trial.seed)
    parts = np.array_split(train, folds)
    scores = []
    for held in range(used):
        rest = np.concatenate([part for i, part in enumerate(parts) if i != held])
        scores.append(fit(trial, rest, parts[held]))
    return {"score": float(np.mean(scores))}


def _tested(trial: Trial, fit: Fit, n: Mapping[str, int]) -> Row:
    """Return the score on the test rows after a fit on all training rows."""
    return {"score": fit(trial, *halves(n[trial.data], 0.75, trial.seed))}


def _tried(trial: Trial, fit: Fit) -> Row:
    return {"score": fit(trial, np.arange(80), np.arange(20))}


def compare(
    repro: Reproduction,
    load: Mapping[str, Callable[[], tuple[Any, np.ndarray]]],
    kinds: Iterable[Kind],
    grid: Sequence[float],
    fit: Callable[..., float],
    *,
    highest: bool,
    **fixed: Any,
) -> Iterator[str]:
    """Tune and test methods of all sizes on all data sets, from ``settings["seeds"]`` seeds; see `tuned`.

    `load` returns X and y of every data set.
    """
    sizes = {}
    for name, read in load.items():
        X, y = read()
        repro.use(name, X, y, n_train=int(0.75 * y.size))
        sizes[name] = y.size
    seeds = range(repro.settings["seeds"])
    trials = [
        Trial(name, method, bases, seed) for name, seed, (method, bases) in product(load, seeds, list(kinds))
    ]
    yield from tuned(repro, trials, grid, fit, sizes, highest=highest, **fixed)


def tuned(
    repro: Reproduction,
    trials: Sequence[Trial],
    grid: Sequence[float],
    fit: Callable[..., float],
    n: Mapping[str, int],
    *,
    highest: bool,
    **fixed: Any,
) -> Iterator[str]:
    """Choose β for every trial by cross-validation, then test; tables "validation" and "test".

    The training rows are 75% of all, in ``settings["folds"]`` folds, of which ``settings["folds_used"]`` are
    looked at.

    Parameters
    ----------
    repro : Reproduction
        Whose settings and tables.
    trials : sequence of Trial
        What to tune.
    grid : sequence of float
        The values of β.
    fit : callable
        ``fit(trial, train, test, **fixed)``, importable by name.
    n : mapping of str to int
        The number of rows of every data set.
    highest : bool
        Whether a higher score is better.
    """
    own = partial(fit, **fixed)
    folds, used = repro.settings["folds"], repro.settings["folds_used"]
    # The most costly first, so that no worker is left alone with it.
    order = sorted(trials, key=lambda trial: -trial.bases if trial.bases else -np.inf)
    repro.total += len(order) * (len(grid) + 1)
    some = [replace(trial, beta=grid[0]) for trial in order]
    yield from ready(repro, partial(_tried, fit=own), some, lambda trial: (trial.data, trial.method))
    validate = partial(_cross_validated, fit=own, n=n, folds=folds, used=used)
    for data in dict.fromkeys(trial.data for trial in order):
        mine = [trial for trial in order if trial.data == data]
        todo = [replace(trial, beta=beta) for trial in mine for beta in grid]
        yield from _rows(repro, "validation", todo, validate)
        if repro.should_stop():
            return
        chosen = [_best(repro, trial, highest) for trial in mine]
        yield from _rows(repro, "test", chosen, partial(_tested, fit=own, n=n))


def _rows(
    repro: Reproduction, table: str, trials: Sequence[Trial], work: Callable[[Trial], Row]
) -> Iterator[str]:
    for trial, found in each(repro, work, trials, ("score",), table):
        repro.row(table, **asdict(trial), **found)
        yield f"{trial.data}: {trial.method}, {trial.bases} bases, β = {trial.beta:.3g} ({table})"


def _best(repro: Reproduction, trial: Trial, highest: bool) -> Trial:
    """Return the trial with the β that has the best score in the table "validation"."""
    wanted = {name: value for name, value in asdict(trial).items() if name != "beta"}
    rows = [row for row in rows_where(repro.tables, "validation", **wanted) if row["score"] is not None]
    if not rows:
        raise ValueError(f"No β worked for {trial.method} with {trial.bases} bases on {trial.data}.")
    best = (max if highest else min)(rows, key=lambda row: row["score"])
    return replace(trial, beta=best["beta"])


def means(kinds: Callable[[Settings], Iterable[Kind]]) -> Cases:
    """Return the cases of all data sets: the mean test score of every kind, once all are there."""

    def cases(tables: Tables, settings: Settings) -> Iterator[tuple[str, Means | None]]:
        names = dict.fromkeys(row["data"] for row in tables.get("data", ())) or settings["data"]
        for name in names:
            scores = {
                (method, bases): [
                    row["score"]
                    for row in rows_where(tables, "test", data=name, method=method, bases=bases)
                    if row["score"] is not None
                ]
                for method, bases in kinds(settings)
            }
            found = {kind: float(np.mean(values)) for kind, values in scores.items() if values}
            yield (
                name,
                found if len(found) == len(scores) and np.isfinite(list(found.values())).all() else None,
            )

    return cases
