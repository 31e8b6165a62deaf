"""Flight delay: flights of the United States in the layout of benchm-ml, read from a folder of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fmviz.engine.settings import ParamSpec

from ._libsvm import PART
from ._tables import Block, join, local_file, one_hot, why_not_local
from .base import Dataset, DatasetSpec

if TYPE_CHECKING:
    import pandas as pd

# Rows drawn from each file.
FILES = {"train-1m.csv": 20_000, "test.csv": 80_000}
TARGET = "dep_delayed_15min"
COLUMNS = (
    "Month", "DayofMonth", "DayOfWeek", "DepTime", "UniqueCarrier", "Origin", "Dest", "Distance", TARGET
)  # fmt: skip
REMEDY = (
    "Make train-1m.csv and test.csv with the script 2-gendata.txt of benchm-ml, "
    "https://github.com/szilard/benchm-ml, put them (as they are, or compressed as bz2 or xz) into a folder "
    "named flight_delay, and set the environment variable FMVIZ_DATA to the folder that holds flight_delay."
)


def _unavailable() -> str | None:
    return why_not_local("flight_delay", FILES, REMEDY)


def _read(name: str) -> pd.DataFrame:
    import pandas as pd

    path = local_file("flight_delay", name)
    if path is None:
        raise ValueError(_unavailable())
    try:
        table = pd.read_csv(path, keep_default_na=False)
        if list(table.columns) != list(COLUMNS):
            raise ValueError(f"its columns are {', '.join(map(str, table.columns))}")
        if not set(table[TARGET]) <= {"Y", "N"}:
            raise ValueError(f"{TARGET} holds something other than Y and N")
        for column in ("Month", "DayofMonth", "DayOfWeek"):
            table[column] = table[column].astype(str).str.removeprefix("c-").astype(np.int64)
        for column in ("DepTime", "Distance"):
            table[column] = table[column].astype(np.int64)
        if table["Distance"].min() <= 0:
            raise ValueError(f"Distance = {table['Distance'].min()} has no logarithm")
        if table["DepTime"].min() < 0 or (table["DepTime"] % 100).max() > 59:
            raise ValueError("DepTime holds something other than hours and minutes, HHMM")
    except ValueError as error:
        raise ValueError(f"{path.name} cannot be read: {error}. {REMEDY}") from error
    return table


def _load(part: str, seed: int) -> Dataset:
    import pandas as pd

    rng = np.random.default_rng(seed)
    drawn = []
    for name, most in FILES.items():
        table = _read(name)
        drawn.append(table.iloc[rng.permutation(len(table))[:most]])
    # Levels are those of both parts, so that these have the same columns.
    frame = pd.concat(drawn, ignore_index=True)
    hours, tens = frame["DepTime"] // 100, frame["DepTime"] % 100 // 10
    distance = np.log(frame["Distance"].to_numpy(np.float64))
    # By the training rows, in whichever part.
    known = distance[: len(drawn[0])]
    distance = (distance - known.mean()) / (known.std() or 1.0)
    attributes = [
        *((name, frame[name]) for name in ("Month", "DayofMonth", "DayOfWeek")),
        ("hour", hours),
        ("minute, tens", tens),
        *((name, frame[name]) for name in ("UniqueCarrier", "Origin", "Dest")),
    ]
    encoded = join(
        [
            *(one_hot(name, column, sorted(set(column))) for name, column in attributes),
            Block(sp.csr_array(distance[:, None]), ("log_distance",), ("Distance",)),
        ]
    )
    y = np.where(frame[TARGET] == "Y", 1.0, -1.0)
    cut = len(drawn[0])
    rows = {"train": slice(cut), "test": slice(cut, None), "both": slice(None)}[part]
    return SPEC.dataset(
        X=encoded.matrix[rows],
        y=y[rows],
        feature_names=encoded.names,
        groups=encoded.groups,
        target_name="departs more than 15 minutes late",
        class_labels=("on time", "late"),
    )


SPEC = DatasetSpec(
    name="flight_delay",
    title="Flight delay",
    description=(
        "20,000 flights within the United States in 2005 and 2006, 80,000 of 2007 for testing, drawn at "
        "random from the files of benchm-ml; does one depart more than 15 minutes late? Month, days, "
        "carrier, origin and destination are one-hot, and so are hour and tens of minutes of the actual time "
        "of departure; the distance in miles enters as its logarithm, "
        "standardised by the training rows."
    ),
    task="binary",
    load=_load,
    own_params=(PART, ParamSpec("seed", "int", 0, 0, 999_999, help="Another seed draws other rows.")),
    source="benchm-ml (S. Pafka; from the US Bureau of Transportation Statistics)",
    licence="Public domain (US government)",
    unavailable=_unavailable,
    suggested={
        "rank": 10,
        "regularizer": "ti",
        "lambda_w": 1e-4,
        "lambda_p": 1e-5,
        "lambda_sparse": 4e-5,
        "solver": "auto",
        "loss": "logistic",
        "fit_linear": True,
        "fit_intercept": True,
        "init_scale": 0.05,
        "validation": 0.2,
        "max_epochs": 200,
        "tol": 1e-3,
    },
)
