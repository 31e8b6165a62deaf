"""Figure 3 of blondel2016: predicting ratings from who rates and what is rated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

from fmviz.engine.design import Design, augmented
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.models import LiftedModel
from fmviz.engine.problem import Problem
from fmviz.lab.datasets import DATASETS
from fmviz.lab.datasets.drawn import rated_items
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.tuning import Kind, Means, Trial, compare, means
from fmviz.lab.papers.references import SUMS
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables
from fmviz.lab.papers.statements import Said, by_balance, by_majority, listed, over
from fmviz.lab.runner import load_dataset

AUGMENT, LINEAR, FREE = "augment", "linear combination", "linear combination, w free"
READINGS = {LINEAR: "w shrunk as the factors", FREE: "w free"}
VARIANTS = (AUGMENT, *READINGS)
TITLES = {"anova": "A²", "polynomial": "H²"}
METHODS = {
    f"{TITLES[kernel]} ({variant})": (kernel, variant) for kernel, variant in product(TITLES, VARIANTS)
}
LABELS = {pair: label for label, pair in METHODS.items()}
MOVIELENS, DRAWN = "MovieLens 100K", "drawn ratings"
# RMSE up to which two are called comparable.
_SAME = 0.005


@lru_cache(maxsize=2)
def ratings(data: str, n: int) -> tuple[Any, np.ndarray]:
    """Return users and items one-hot, and ratings; n of them where they are drawn, about."""
    if data == MOVIELENS:
        found = load_dataset("movielens_100k")
        return found.X, found.y
    # As many users and items as let every one of them have the ratings that MovieLens has.
    users, items = max(10, n // 106), max(10, n // 60)
    return rated_items(n, users, items, 4, np.random.default_rng(0))


def fit(trial: Trial, train: np.ndarray, test: np.ndarray, *, epochs: int, tol: float, drawn: int) -> float:
    """Return the RMSE on the test rows after a fit on the training rows."""
    X, y = ratings(trial.data, drawn)
    kernel, variant = METHODS[trial.method]
    dummies = int(variant == AUGMENT)
    n = train.size
    problem = Problem.build(
        augmented(X[train], dummies),
        y[train],
        penalty="l2",
        model=LiftedModel(kernel, 2),
        rank=max(1, trial.bases // 2),
        lambda_p=trial.beta / n,
        # β/2 ‖w‖², as the factors have it.
        lambda_w=trial.beta / (2.0 * n) if variant == LINEAR else 0.0,
        fit_linear=variant != AUGMENT,
        fit_intercept=False,
    )
    rng = np.random.default_rng([trial.seed, 1])
    budget = Budget(epochs, tol=tol, report_every=None)
    *_, last = iterate(problem, "cd", budget, init_scale=0.1, rng=rng)
    predicted = problem.model.predict(Design(augmented(X[test], dummies)), last.parameters)
    return float(np.sqrt(np.mean((predicted - y[test]) ** 2)))


def _run(repro: Reproduction) -> Iterator[str]:
    settings = repro.settings
    names = list(settings["data"])
    if MOVIELENS in names and (reason := DATASETS["movielens_100k"].unavailable()):
        names.remove(MOVIELENS)
        repro.note(f"MovieLens 100K is not here: drawn ratings only. {reason}")
    yield from compare(
        repro,
        {name: partial(ratings, name, settings["drawn"]) for name in names},
        _kinds(settings),
        settings["betas"],
        fit,
        highest=False,
        **{name: settings[name] for name in ("epochs", "tol", "drawn")},
    )


def _kinds(settings: Settings) -> list[Kind]:
    return list(product(METHODS, settings["bases"]))


def _per_reading(tables: Tables, settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield by how much augmenting is above the other way, by the number of bases."""
    for name, found in means(_kinds)(tables, settings):
        for (kernel, title), (variant, words) in product(TITLES.items(), READINGS.items()):
            pairs = found and [
                (k, found[LABELS[kernel, AUGMENT], k] - found[LABELS[kernel, variant], k])
                for k in settings["bases"]
            ]
            yield f"{name}, {title}, {words}", pairs


def _kernels(found: Means) -> Said:
    gaps = [
        score - found[LABELS["anova", METHODS[method][1]], bases]
        for (method, bases), score in found.items()
        if METHODS[method][0] == "polynomial"
    ]
    held, wins, losses = by_balance(gaps, _SAME)
    best, bases = min(found, key=found.__getitem__)
    return held, (
        f"Of {len(gaps)} comparisons A² has the lower RMSE in {wins}, H² in {losses}, and in the others they "
        f"differ by at most {_SAME:g}; H² lies {np.mean(gaps):+.4f} above A² on average (from "
        f"{min(gaps):+.4f} to {max(gaps):+.4f}). Lowest of all: {best} with {bases} bases, "
        f"{found[best, bases]:.4f}."
    )


def _augment(excess: Sequence[tuple[int, float]]) -> Said:
    wins = sum(gap <= _SAME for _, gap in excess)
    return by_majority(wins, len(excess)), (
        f"Augmenting is better, or at most {_SAME:g} worse, for {wins} of {len(excess)} numbers of bases "
        f"(RMSE {listed(((gap, k) for k, gap in excess), '{:+.4f} at {}')})."
    )


ARTEFACT = figure(
    __name__,
    _run,
    {
        "kernels": over(means(_kinds), _kernels),
        "augment": over(_per_reading, _augment),
    },
    budgets={"full": {"betas": [float(beta) for beta in np.logspace(-3.0, 3.0, 10)]}},
    sums=SUMS,
    same=_SAME,
)
