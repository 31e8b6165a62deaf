"""Create a data set from an uploaded file: encode it, choose settings for a first fit, and store it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.engine.drive import never
from fmviz.engine.models import get_model
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment, suited_settings
from fmviz.lab.input_files import read_input
from fmviz.lab.places import data_folder
from fmviz.lab.runner import prepare, split
from fmviz.lab.search.tuning import tuned
from fmviz.lab.uploads import library
from fmviz.lab.uploads.library import Upload
from fmviz.paths.validation import Trial, Validation, finished
from fmviz.tables.limits import UPLOADS
from fmviz.tables.recipe import Recipe

__all__ = ["first_settings", "first_strengths", "import_file", "import_upload", "usual_settings"]

# Fits to at most so many rows and entries of X take some seconds.
_ROWS = 20_000
_ENTRIES = 300_000
_FEWEST_ROWS = 20
# The sufficient share of the gain by interactions: far fewer pairs often reach it.
_ENOUGH = 0.75


def import_upload(
    file: str,
    recipe: Recipe,
    title: str,
    should_stop: Callable[[], bool] = never,
    owner: str = "",
    model: str | None = None,
) -> Generator[Trial, None, Upload]:
    """Create and save the data set of a file and a recipe, and choose strengths for a first fit.

    The fits of the search are yielded; when `should_stop` is true the best of those so far is chosen. They
    are fits of `model`, if it is given and the data have several outputs, else of one machine for each
    output; strengths chosen earlier for the other case are kept.

    Raises
    ------
    ValueError
        As `fmviz.lab.uploads.library.encoded`, or if the file is missing.
    """
    name, title = library.name_of(file, recipe), library.title_of(title)
    # The first of two users who upload the same file owns it.
    before = library.find(name)
    dataset = Dataset.of_table(library.encoded(file, recipe, should_stop), name, title)
    if not dataset.outputs:
        model = None
    suggested = {} if before is None else {**before.suggested}
    suited = {} if before is None else {**before.suited}
    if model is None:
        suggested = yield from first_settings(dataset, should_stop)
    else:
        strengths = yield from first_strengths(dataset, model, should_stop)
        suggested = {**usual_settings(dataset), **suggested, "model": model}
        suited[model] = strengths
    upload = Upload(
        name,
        title,
        file,
        recipe,
        dataset.task,
        int(dataset.X.shape[0]),
        int(dataset.X.shape[1]),
        library.size_of_file(file) or 0,
        suggested,
        time.time(),
        owner=owner if before is None else before.owner,
        suited=suited,
    )
    library.save(upload)
    return upload


def import_file(path: str, name: str, recipe: Mapping[str, Any]) -> None:
    """Import a data set from its file unless it exists, in programs that repeat a run elsewhere.

    Parameters
    ----------
    path : str
        The file; read only if the data set is not stored here.
    name : str
        The name of the data set.
    recipe : mapping
        See `Recipe.to_dict`.

    Raises
    ------
    ValueError
        If the file cannot be read, or is a different one.
    """
    if library.find(name) is not None:
        return
    expected = Recipe.from_dict(recipe)
    try:
        data = read_input(path, UPLOADS.file)
    except ValueError as error:
        raise ValueError(
            f"The data set {name} is not in {str(data_folder())!r}, and {error} Put its file there, or name "
            "the run store beside it with FMVIZ_STORE."
        ) from None
    file = library.keep_file(data)
    if library.name_of(file, expected) != name:
        raise ValueError(
            f"{path!r} is not the file that the data set {name} was made of. Put that one there."
        )
    finished(import_upload(file, expected, path))


# -------------------------------------------------------------------------------------------------- settings


def usual_settings(dataset: Dataset) -> dict[str, Any]:
    """Return the settings of a first fit but for its strengths; the loss depends on the task."""
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
    """Return the settings of a first fit, with strengths chosen by validation on at most 20,000 rows.

    Among the fits with the best λ_p, the largest λ is chosen that reaches three quarters of the best
    reduction of the validation loss. The fits are yielded; when `should_stop` is true the choice is among
    those so far.
    """
    settings = usual_settings(dataset)
    return settings | (yield from _strengths(dataset, Experiment(**settings), should_stop))


def first_strengths(
    dataset: Dataset, model: str, should_stop: Callable[[], bool] = never
) -> Generator[Trial, None, dict[str, Any]]:
    """Choose the strengths of a first fit of a model under its own settings, as `first_settings`."""
    settings = usual_settings(dataset) | suited_settings(get_model(model), dataset.task)
    return (yield from _strengths(dataset, Experiment(model=model, **settings), should_stop))


def _strengths(
    dataset: Dataset, experiment: Experiment, should_stop: Callable[[], bool]
) -> Generator[Trial, None, dict[str, Any]]:
    rows = _rows(dataset)
    part = replace(dataset, X=dataset.X[rows], y=dataset.y[rows])
    prepared = prepare(part, experiment, *split(len(part.y), 0.25, 0))
    chosen, validation = yield from tuned(prepared, quick=True, should_stop=should_stop)
    strengths = {**chosen, "lambda_sparse": _sparse_enough(validation).lambda_sparse}
    return {
        name: float(f"{value:.2g}") if isinstance(value, float) else value
        for name, value in strengths.items()
    }


def _rows(dataset: Dataset) -> np.ndarray:
    X: Any = dataset.X
    entries, n = X.nnz if sp.issparse(X) else X.size, len(dataset.y)
    # Outputs are fitted separately.
    entries *= max(1, len(dataset.outputs))
    most = int(min(n, _ROWS, max(_FEWEST_ROWS, _ENTRIES * n / max(1, entries))))
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def _sparse_enough(validation: Validation) -> Trial:
    path = [trial for trial in validation.trials if trial.lambda_p == validation.best.lambda_p]
    without = max(path, key=lambda trial: trial.lambda_sparse).loss
    slack = (1.0 - _ENOUGH) * max(0.0, without - validation.best.loss)
    enough = [t for t in path if t.loss <= validation.best.loss + slack and t.used_interactions > 0]
    return max(enough or [validation.best], key=lambda trial: trial.lambda_sparse)
