"""Vowel, segment, satimage and letter, the multi-class sets of blondel2017, read from folders of the user."""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ._libsvm import PART, in_parts
from ._tables import local_file, why_not_local
from .base import Dataset, DatasetSpec, Scaling

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html"
_SUGGESTED: Mapping[str, Any] = {
    "rank": 10,
    "regularizer": "ti",
    "lambda_w": 1e-4,
    "lambda_p": 1e-4,
    "lambda_sparse": 1e-4,
    "solver": "auto",
    "loss": "logistic",
    "fit_linear": True,
    "fit_intercept": True,
    "init_scale": 0.1,
    "validation": 0.25,
    "max_epochs": 500,
    "tol": 1e-3,
}
_LETTER_FEATURES = (
    "x-box", "y-box", "width", "height", "on pixels", "x mean", "y mean", "x² mean", "y² mean", "xy mean",
    "x²y mean", "xy² mean", "x edges", "x edges by y", "y edges", "y edges by x",
)  # fmt: skip


def _remedy(folder: str, files: Sequence[str], where: str) -> str:
    return (
        f"Download {' and '.join(files)} from {where}, put {'it' if len(files) == 1 else 'them'} (as is, or "
        f"compressed as bz2 or xz) into a folder named {folder}, and set the environment variable FMVIZ_DATA "
        f"to the folder that holds {folder}."
    )


def _from_arff(
    name: str,
    title: str,
    description: str,
    *,
    features: Sequence[str],
    labels: Sequence[str],
    target_name: str,
    parted: bool,
    source: str,
    shared_basis: Mapping[str, Any],
) -> DatasetSpec:
    """Return a set of one ARFF file whose last columns are numbers and the class, scaled to [−1, 1]."""
    file = f"{name}.arff"
    remedy = _remedy(name, [file], "OpenML or the Weka data sets")

    def unavailable() -> str | None:
        return why_not_local(name, (file,), remedy)

    def load(part: str = "both") -> Dataset:
        path = local_file(name, file)
        if path is None:
            raise ValueError(unavailable())
        numbers, classes, parts = _read_arff(path, len(features), labels, remedy)
        # The count of pixels in segment is the same in all rows, and predicts nothing.
        differs = np.ptp(numbers, axis=0) > 0
        numbers = numbers[:, differs]
        names = tuple(name for name, kept in zip(features, differs, strict=True) if kept)
        middle, half = 0.5 * (numbers.max(axis=0) + numbers.min(axis=0)), 0.5 * np.ptp(numbers, axis=0)
        scaling = tuple(
            Scaling(float(m), float(h), deviations=False) for m, h in zip(middle, half, strict=True)
        )
        rows = np.ones(classes.size, dtype=bool) if part == "both" else parts == part.capitalize()
        return spec.dataset(
            X=np.ascontiguousarray(((numbers - middle) / half)[rows]),
            y=classes[rows],
            feature_names=names,
            groups=names,
            scaling=scaling,
            target_name=target_name,
            class_labels=tuple(labels),
        )

    spec = DatasetSpec(
        name=name,
        title=title,
        description=description,
        task="class",
        load=load,
        own_params=(PART,) if parted else (),
        source=source,
        licence="CC BY 4.0 (UCI)",
        unavailable=unavailable,
        suggested=_SUGGESTED,
        suited={"shared_basis": shared_basis},
    )
    return spec


def _read_arff(
    path: Path, d: int, labels: Sequence[str], remedy: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the numbers of an ARFF file, the places of the classes, and the first word of every row."""
    opened: Any = {".xz": lzma.open, ".bz2": bz2.open}.get(path.suffix, open)
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            lines = [line.strip() for line in file]
        # Comments and the names of the columns come before the rows.
        begin = [line.lower() for line in lines].index("@data") + 1
        rows = [line.split(",") for line in lines[begin:] if line and line[0] != "%"]
        places = {label: float(c) for c, label in enumerate(labels)}
        classes = np.array([places[row[-1].strip()] for row in rows])
        numbers = np.array([row[-1 - d : -1] for row in rows], dtype=np.float64).reshape(-1, d)
    except (KeyError, ValueError, OSError, EOFError, lzma.LZMAError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}. {remedy}") from error
    return numbers, classes, np.array([row[0] for row in rows])


def _from_libsvm(
    name: str,
    title: str,
    description: str,
    *,
    features: Sequence[str],
    labels: Sequence[str],
    target_name: str,
    source: str,
) -> DatasetSpec:
    """Return a set of two LIBSVM files, which are scaled to [−1, 1] already."""
    files = (f"{name}.scale", f"{name}.scale.t")
    remedy = _remedy(name, files, f"the LIBSVM data page, {_LIBSVM}")
    unavailable, read = in_parts(name, files, len(features), remedy, len(labels))

    def load(part: str) -> Dataset:
        X, y = read(part)
        return spec.dataset(
            X=X.toarray(),
            y=y - 1.0,
            feature_names=tuple(features),
            groups=tuple(features),
            target_name=target_name,
            class_labels=tuple(labels),
        )

    spec = DatasetSpec(
        name=name,
        title=title,
        description=description,
        task="class",
        load=load,
        own_params=(PART,),
        source=source,
        licence="CC BY 4.0 (UCI)",
        unavailable=unavailable,
        suggested=_SUGGESTED,
    )
    return spec


VOWEL = _from_arff(
    "vowel",
    "Vowel",
    "528 vowels that eight people said, 462 more of seven others for testing; which of eleven is it? Ten "
    "numbers describe the sound, scaled to [−1, 1].",
    features=tuple(f"feature {j}" for j in range(10)),
    labels=("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed"),
    target_name="vowel",
    parted=True,
    source="Deterding (1989); UCI Machine Learning Repository",
    shared_basis={"lambda_sparse": 2e-3},
)
SEGMENT = _from_arff(
    "segment",
    "Segment",
    "2,310 regions of 3 × 3 pixels from seven outdoor images, 330 of each kind, with their place and sixteen "
    "measurements of edges and colours, scaled to [−1, 1]; the target is what they show.",
    features=(
        *("column", "row", "pixels", "line density 5", "line density 2", "vertical edge mean"),
        *("vertical edge deviation", "horizontal edge mean", "horizontal edge deviation", "intensity", "red"),
        *("blue", "green", "excess red", "excess blue", "excess green", "value", "saturation", "hue"),
    ),
    labels=("brickface", "sky", "foliage", "cement", "window", "path", "grass"),
    target_name="what the region shows",
    parted=False,
    source="Vision Group, University of Massachusetts (1990); UCI Machine Learning Repository",
    shared_basis={"lambda_sparse": 2e-4},
)
SATIMAGE = _from_libsvm(
    "satimage",
    "Satimage",
    "4,435 places of a satellite image, 2,000 more for testing, each as 3 × 3 pixels in four spectral bands; "
    "the target is one of six soils.",
    features=tuple(f"pixel {i} band {j}" for i in range(1, 10) for j in range(1, 5)),
    labels=("red", "cotton crop", "grey", "damp grey", "vegetation stubble", "very damp grey"),
    target_name="soil",
    source="LIBSVM; from Statlog (Landsat satellite), UCI Machine Learning Repository",
)
LETTER = _from_libsvm(
    "letter",
    "Letter",
    "15,000 distorted capital letters, 5,000 more for testing, with sixteen numbers about their pixels; "
    "the target is the letter.",
    features=_LETTER_FEATURES,
    labels=tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    target_name="letter",
    source="LIBSVM; from Statlog: Slate (1991), UCI Machine Learning Repository",
)
