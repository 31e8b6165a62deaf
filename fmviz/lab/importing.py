"""Data sets from uploaded files: encoding, suggested settings for a first fit, and storage."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fmviz.engine.fit import never
from fmviz.engine.schedule import STRENGTHS
from fmviz.engine.starts.strengths import fill_strengths
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.files import data_folder, read_input
from fmviz.lab.runner import prepare
from fmviz.lab.uploads import library
from fmviz.lab.uploads.library import Upload
from fmviz.tables.limits import UPLOADS
from fmviz.tables.recipe import Recipe

# Maximum number of rows for quick strengths.
_ROWS = 20_000


def import_upload(
    file: str, recipe: Recipe, title: str, should_stop: Callable[[], bool] = never, owner: str = ""
) -> Upload:
    """Return the data set of a file and a recipe; create and save it unless it exists.

    Raises
    ------
    ValueError
        As `fmviz.lab.uploads.library.encoded`, or if the file is missing.
    """
    name, title = library.name_of(file, recipe), library.title_of(title)
    # The first user to upload a file owns it.
    if (known := library.find(name)) is not None:
        return known
    dataset = Dataset.of_table(library.encoded(file, recipe, should_stop), name, title)
    rows, features = dataset.X.shape
    upload = Upload(
        name,
        title,
        file,
        recipe,
        dataset.task,
        int(rows),
        int(features),
        library.size_of_file(file) or 0,
        usual_settings(dataset),
        time.time(),
        owner=owner,
    )
    library.save(upload)
    return upload


def import_file(path: str, name: str, recipe: Mapping[str, Any]) -> None:
    """Import a data set from its file unless it exists; for programs that repeat a run elsewhere.

    Parameters
    ----------
    path : str
        The file, read only if the data set is not stored.
    name : str
        The name of the data set.
    recipe : mapping
        See `Recipe.to_dict`.

    Raises
    ------
    ValueError
        If the file is unreadable or a different one.
    """
    if library.find(name) is not None:
        return
    expected = Recipe.from_dict(recipe)
    try:
        data = read_input(path, UPLOADS.file)
    except ValueError as error:
        raise ValueError(
            f"The data set {name} is not in {str(data_folder())!r}, and {error} Put its file there, or set "
            "FMVIZ_STORE to the run store next to it."
        ) from None
    file = library.keep_file(data)
    if library.name_of(file, expected) != name:
        raise ValueError(f"{path!r} is not the file of the data set {name}. Replace it by that file.")
    import_upload(file, expected, path)


# -------------------------------------------------------------------------------------------------- settings


def usual_settings(dataset: Dataset) -> dict[str, Any]:
    """Return the settings of a first fit: a loss for the task, and the default strengths of the estimators.

    Several outputs have the mean of their strengths in common.
    """
    settings: dict[str, Any] = {
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
    rows = np.sort(np.random.default_rng(0).permutation(len(dataset.y))[:_ROWS])
    problem = prepare(dataset, Experiment.from_dict(settings), rows).problem
    problem, size = fill_strengths(problem, dict.fromkeys((*STRENGTHS, "init_scale")))
    strengths = {**{name: getattr(problem, name) for name in STRENGTHS}, "init_scale": size}
    known = {name: float(f"{np.mean(value):.2g}") for name, value in strengths.items()}
    return settings | known | {"start": "informed"}


def suggest(experiment: Experiment) -> None:
    """Store the strengths and the model of a first fit as suggestions of an upload."""
    if (upload := library.find(experiment.dataset.name)) is not None:
        chosen = {name: getattr(experiment, name) for name in (*STRENGTHS, "init_scale", "start")}
        library.save(
            replace(
                upload,
                suggested={**upload.suggested, "model": experiment.model.name},
                suited={**upload.suited, experiment.model.name: chosen},
            )
        )
