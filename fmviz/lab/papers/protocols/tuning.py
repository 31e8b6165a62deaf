"""Models tuned by cross-validation and scored on a test set, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fmviz.lab.background.workers import stream
from fmviz.lab.papers.base import Desk
from fmviz.lab.papers.checkpoints import key_of, resumed
from fmviz.lab.search.sweep import LOST, attempt


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


def _cross_validated(trial: Trial, fit: Fit, n: int, folds: int, used: int) -> dict[str, Any]:
    """Return the mean score over the first `used` of `folds` folds of the training rows."""
    train, _ = halves(n, 0.75, trial.seed)
    parts = np.array_split(train, folds)
    scores = []
    for held in range(used):
        rest = np.concatenate([part for i, part in enumerate(parts) if i != held])
        scores.append(fit(trial, rest, parts[held]))
    return {"score": float(np.mean(scores))}


def _tested(trial: Trial, fit: Fit, n: int) -> dict[str, Any]:
    """Return the score on the test rows after a fit on all training rows."""
    return {"score": fit(trial, *halves(n, 0.75, trial.seed))}


def _told(trial: Trial, work: Callable[[Trial], dict[str, Any]]) -> dict[str, Any]:
    """Call in a worker, which must not raise."""
    found, failure, _ = attempt(lambda: work(trial))
    return {"score": float("nan"), "failure": failure} if found is None else found


def _lost(trial: Trial) -> dict[str, Any]:
    del trial
    return {"score": float("nan"), "failure": LOST}


def tuned(
    desk: Desk,
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
    desk : Desk
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
    folds, used = desk.settings["folds"], desk.settings["folds_used"]
    # The most costly first, so that no worker is left alone with it.
    order = sorted(trials, key=lambda trial: -trial.bases if trial.bases else -np.inf)
    desk.total += len(order) * (len(grid) + 1)
    if desk.n_jobs != 1:
        yield "Readying the kernels"
        _ready(order, grid[0], own)
    for data in dict.fromkeys(trial.data for trial in order):
        mine = [trial for trial in order if trial.data == data]
        todo = [replace(trial, beta=beta) for trial in mine for beta in grid]
        work = partial(_cross_validated, fit=own, n=n[data], folds=folds, used=used)
        yield from _all(desk, "validation", todo, work)
        if desk.should_stop():
            return
        chosen = [_best(desk, trial, highest) for trial in mine]
        yield from _all(desk, "test", chosen, partial(_tested, fit=own, n=n[data]))


def _ready(trials: Sequence[Trial], beta: float, fit: Fit) -> None:
    """Fit every method once on few rows, so that the workers find its kernels compiled."""
    for trial in {(trial.data, trial.method): trial for trial in trials}.values():
        _told(replace(trial, beta=beta), lambda one: {"score": fit(one, np.arange(80), np.arange(20))})


def _all(
    desk: Desk, table: str, trials: Sequence[Trial], work: Callable[[Trial], dict[str, Any]]
) -> Iterator[str]:
    def key(trial: Trial) -> str:
        return key_of(table, asdict(trial), desk.data.get(trial.data))

    def made(rest: list[Trial]) -> Generator[tuple[int, dict[str, Any]]]:
        return stream(partial(_told, work=work), rest, _lost, n_jobs=desk.n_jobs)

    with closing(resumed(desk.memory, trials, key, made)) as results:
        for index, found in results:
            trial = trials[index]
            desk.row(table, **asdict(trial), **found)
            desk.done += 1
            yield f"{trial.data}: {trial.method}, {trial.bases} bases, β = {trial.beta:.3g} ({table})"
            if desk.should_stop():
                return


def _best(desk: Desk, trial: Trial, highest: bool) -> Trial:
    """Return the trial with the β that has the best score in the table "validation"."""
    wanted = {name: value for name, value in asdict(trial).items() if name != "beta"}
    rows = [
        row
        for row in desk.tables["validation"]
        if row["score"] is not None and all(row[name] == value for name, value in wanted.items())
    ]
    if not rows:
        raise ValueError(f"No β worked for {trial.method} with {trial.bases} bases on {trial.data}.")
    best = (max if highest else min)(rows, key=lambda row: row["score"])
    return replace(trial, beta=best["beta"])


def summarise(rows: Sequence[Mapping[str, Any]], **where: Any) -> tuple[float, float, int]:
    """Return mean, standard deviation and number of the scores of some rows of the table "test"."""
    scores = [
        row["score"]
        for row in rows
        if row["score"] is not None and all(row[name] == value for name, value in where.items())
    ]
    if not scores:
        return float("nan"), float("nan"), 0
    return float(np.mean(scores)), float(np.std(scores)), len(scores)
