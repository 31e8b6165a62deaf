"""From an uploaded file to a data set: encoded by its recipe, with settings for a first fit, and kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from typing import Any

from fmviz.engine.drive import never
from fmviz.lab.input_files import read_input
from fmviz.lab.places import data_folder
from fmviz.lab.tables.limits import UPLOADS
from fmviz.lab.tables.recipe import Recipe
from fmviz.lab.uploads import library
from fmviz.lab.uploads.library import Upload
from fmviz.lab.uploads.suggestion import first_settings, first_strengths, usual_settings
from fmviz.paths.validation import Trial, finished

__all__ = ["import_file", "import_upload"]


def import_upload(
    file: str,
    recipe: Recipe,
    title: str,
    should_stop: Callable[[], bool] = never,
    owner: str = "",
    model: str | None = None,
) -> Generator[Trial, None, Upload]:
    """Make the data set of a file and a recipe, and enter it under its name.

    The fits that choose strengths for it are yielded; with `should_stop` the best of those so far are taken.
    They are those of a `model` of several outputs where one is named and the data have several, else of a
    machine for each output; what was found for the other before stays.

    Raises
    ------
    ValueError
        As `fmviz.lab.uploads.library.encoded` does, or if the file is not there.
    """
    name, title = library.name_of(file, recipe), library.title_of(title)
    # Of two who bring the same, the first.
    before = library.find(name)
    dataset = library.encoded(file, recipe, should_stop).dataset(name, title)
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
    found = Upload(
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
    library.put(found)
    return found


def import_file(path: str, name: str, recipe: Mapping[str, Any]) -> None:
    """Enter a data set from its file, unless it is there: for programs that repeat a run elsewhere.

    Parameters
    ----------
    path : str
        The file; read only where the set is not kept on this computer.
    name : str
        The name of the set.
    recipe : mapping
        See `Recipe.to_dict`.

    Raises
    ------
    ValueError
        If the file cannot be read, or is another one.
    """
    if library.find(name) is not None:
        return
    told = Recipe.from_dict(recipe)
    try:
        data = read_input(path, UPLOADS.file)
    except ValueError as error:
        raise ValueError(
            f"The data set {name} is not in {str(data_folder())!r}, and {error} Put its file there, or name "
            "the run store beside it with FMVIZ_STORE."
        ) from None
    file = library.keep_file(data)
    if library.name_of(file, told) != name:
        raise ValueError(
            f"{path!r} is not the file that the data set {name} was made of. Put that one there."
        )
    finished(import_upload(file, told, path))
