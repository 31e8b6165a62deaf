"""Abalone: the age of shells from physical measurements, read from a folder of the user."""

from __future__ import annotations

import numpy as np

from ._tables import local_file, standardise, why_not_local
from .base import Dataset, DatasetSpec

COLUMNS = (
    "sex", "length", "diameter", "height", "whole weight", "shucked weight", "viscera weight", "shell weight",
)  # fmt: skip
FILE = "abalone.data"
SEXES = {"M": 1.0, "F": 2.0, "I": 3.0}
REMEDY = (
    "Download Abalone from the UCI Machine Learning Repository, "
    "https://archive.ics.uci.edu/dataset/1/abalone, put abalone.data into a folder named abalone, and set "
    "the environment variable FMVIZ_DATA to the folder that holds abalone."
)


def _unavailable() -> str | None:
    return why_not_local("abalone", (FILE,), REMEDY)


def _load() -> Dataset:
    import pandas as pd

    path = local_file("abalone", FILE)
    if path is None:
        raise ValueError(_unavailable())
    try:
        table = pd.read_csv(path, header=None)
        if table.shape[1] != len(COLUMNS) + 1:
            raise ValueError(f"it has {table.shape[1]} columns in place of {len(COLUMNS) + 1}")
        if not set(table[0]) <= set(SEXES):
            raise ValueError("its first column holds something other than M, F and I")
        values = table.assign(**{"0": table[0].map(SEXES)})[["0", *range(1, len(COLUMNS) + 1)]]
        numbers = values.to_numpy(np.float64)
    except ValueError as error:
        raise ValueError(f"{path.name} cannot be read: {error}. {REMEDY}") from error
    X, scaling = standardise(numbers[:, :-1])
    return SPEC.dataset(
        X=X,
        y=np.ascontiguousarray(numbers[:, -1]),
        feature_names=COLUMNS,
        groups=COLUMNS,
        scaling=scaling,
        target_name="rings",
    )


SPEC = DatasetSpec(
    name="abalone",
    title="Abalone",
    description=(
        "4,177 sea snails with eight measurements, standardised, among them the sex as one number (male 1, "
        "female 2, infant 3); the target is the number of rings, from 1 to 29, which tells the age."
    ),
    task="regression",
    load=_load,
    source="Nash, Sellers, Talbot, Cawthorn & Ford (1994); UCI Machine Learning Repository",
    licence="CC BY 4.0 (UCI)",
    unavailable=_unavailable,
    suggested={
        "max_epochs": 2_000,
        "rank": 5,
        "regularizer": "ti",
        "lambda_w": 1e-3,
        "lambda_p": 1e-3,
        "lambda_sparse": 1e-2,
        "solver": "auto",
        "loss": "squared",
        "fit_linear": True,
        "fit_intercept": True,
        "init_scale": 0.1,
        "validation": 0.25,
    },
)
