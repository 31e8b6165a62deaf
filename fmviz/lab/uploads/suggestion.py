"""Settings for a first fit to an upload: strengths that its own rows have chosen."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.engine.drive import never
from fmviz.engine.models import get_model
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment, suited_settings
from fmviz.lab.runner import split
from fmviz.lab.search.tuning import tuned
from fmviz.lab.tables.fit import prepare
from fmviz.paths.validation import Trial, Validation

__all__ = ["first_settings", "first_strengths", "usual_settings"]

# Fits to no more rows, and no more entries of X, take some seconds.
_ROWS = 20_000
_ENTRIES = 300_000
_FEWEST_ROWS = 20
# The share of what interactions can gain that is enough: far fewer pairs often bring it.
_ENOUGH = 0.75


def usual_settings(dataset: Dataset) -> dict[str, Any]:
    """Return what first fits have in common, whatever the strengths; the loss follows the task."""
    return {
        "rank": 10,
        "regularizer": "ti",
        "solver": "auto",
        "loss": "squared" if dataset.task == "regression" else "logistic",
        "fit_linear": True,
        "fit_intercept": True,
        "max_epochs": 1_000,
        "tol": 1e-3,
        "validation": 0.25,
    }


def first_settings(
    dataset: Dataset, should_stop: Callable[[], bool] = never
) -> Generator[Trial, None, dict[str, Any]]:
    """Return settings of an `fmviz.lab.experiment.Experiment` under which a first fit says something.

    Those of `usual_settings`; the strengths are chosen by validation on at most 20,000 rows: of those with
    the best λ_p, the largest λ that lowers the loss on rows kept out by three quarters of what the best one
    does. The fits are yielded; with `should_stop` the choice is among those so far.
    """
    settings = usual_settings(dataset)
    return settings | (yield from _strengths(dataset, Experiment(**settings), should_stop))


def first_strengths(
    dataset: Dataset, model: str, should_stop: Callable[[], bool] = never
) -> Generator[Trial, None, dict[str, Any]]:
    """Return the strengths of a first fit of a model, with its own settings, as in `first_settings`."""
    settings = usual_settings(dataset) | suited_settings(get_model(model), dataset.task)
    return (yield from _strengths(dataset, Experiment(model=model, **settings), should_stop))


def _strengths(
    dataset: Dataset, experiment: Experiment, should_stop: Callable[[], bool]
) -> Generator[Trial, None, dict[str, Any]]:
    rows = _rows(dataset)
    part = replace(dataset, X=dataset.X[rows], y=dataset.y[rows])
    prepared = prepare(part, experiment, *split(len(part.y), 0.25, 0))
    chosen, found = yield from tuned(prepared, quick=True, should_stop=should_stop)
    strengths = {**chosen, "lambda_sparse": _sparse_enough(found).lambda_sparse}
    return {
        name: float(f"{value:.2g}") if isinstance(value, float) else value
        for name, value in strengths.items()
    }


def _rows(dataset: Dataset) -> np.ndarray:
    X: Any = dataset.X
    entries, n = X.nnz if sp.issparse(X) else X.size, len(dataset.y)
    # Every output is fitted by itself.
    entries *= max(1, len(dataset.outputs))
    most = int(min(n, _ROWS, max(_FEWEST_ROWS, _ENTRIES * n / max(1, entries))))
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def _sparse_enough(found: Validation) -> Trial:
    path = [trial for trial in found.trials if trial.lambda_p == found.best.lambda_p]
    without = max(path, key=lambda trial: trial.lambda_sparse).loss
    slack = (1.0 - _ENOUGH) * max(0.0, without - found.best.loss)
    enough = [t for t in path if t.loss <= found.best.loss + slack and t.used_interactions > 0]
    return max(enough or [found.best], key=lambda trial: trial.lambda_sparse)
