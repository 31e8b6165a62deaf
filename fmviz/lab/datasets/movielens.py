"""MovieLens 100K: ratings of films, read from a folder of the user since it may not be passed on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fmviz.engine.settings import ParamSpec

from ._tables import Block, join, local_file, one_hot, why_not_local
from .base import Dataset, DatasetSpec

if TYPE_CHECKING:
    import pandas as pd

GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
    "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
# How many columns each file must have, and what separates them.
FILES = {"u.data": (4, "\t"), "u.user": (5, "|"), "u.item": (5 + len(GENRES), "|")}
REMEDY = (
    "Download MovieLens 100K (ml-100k) from GroupLens, https://grouplens.org/datasets/movielens/100k/, put "
    "u.data, u.user and u.item (as they are, or xz-compressed) into a folder named ml100k, and set the "
    "environment variable FMVIZ_DATA to the folder that holds ml100k."
)


def _unavailable() -> str | None:
    return why_not_local("ml100k", FILES, REMEDY)


def _read(name: str) -> pd.DataFrame:
    """Read one file as text, and hold it to its number of columns."""
    import csv

    import pandas as pd

    path = local_file("ml100k", name)
    if path is None:
        raise ValueError(_unavailable())
    width, separator = FILES[name]
    try:
        frame = pd.read_csv(
            path, sep=separator, header=None, dtype=str, encoding="latin-1", quoting=csv.QUOTE_NONE,
            keep_default_na=False,
        )  # fmt: skip
    except ValueError as error:  # of which pandas' own errors are subclasses
        raise ValueError(f"{path.name} cannot be read: {error}. {REMEDY}") from error
    if frame.shape[1] != width:
        raise ValueError(
            f"{path.name} has {frame.shape[1]} columns where MovieLens 100K has {width}. {REMEDY}"
        )
    return frame


def _whole(column: pd.Series, what: str) -> np.ndarray:
    try:
        return column.to_numpy().astype(np.int64)
    except ValueError as error:
        raise ValueError(f"{what} must be whole numbers, but {error}. {REMEDY}") from error


def _consecutive(column: pd.Series, what: str) -> int:
    """Return how many ids there are, if they are 1, 2, ... in order."""
    ids = _whole(column, what)
    if not np.array_equal(ids, np.arange(1, len(ids) + 1)):
        raise ValueError(f"{what} must be 1, 2, ... in order, as in MovieLens 100K. {REMEDY}")
    return len(ids)


def _decades(numbers: list[int | None], attribute: str) -> Block:
    """Encode numbers rounded half up to tens; None is a level of its own."""
    rounded = [None if n is None else (n + 5) // 10 * 10 for n in numbers]
    levels: list[int | None] = [*sorted({n for n in rounded if n is not None})]
    labels = [f"{n - 5}-{n + 4}" for n in levels if n is not None]
    if None in rounded:
        levels.append(None)
        labels.append("unknown")
    return one_hot(attribute, rounded, levels, labels)


def _identity(group: str, names: tuple[str, ...]) -> Block:
    return Block(sp.eye_array(len(names), format="csr"), names, (group,) * len(names))


def _user_side(users: pd.DataFrame) -> list[Block]:
    zips = users[4].str[:1]
    return [
        _decades(_whole(users[1], "The ages in u.user").tolist(), "age"),
        *(
            one_hot(name, column, sorted(set(column)))
            for name, column in (("gender", users[2]), ("occupation", users[3]), ("zip", zips))
        ),
    ]


def _item_side(items: pd.DataFrame) -> list[Block]:
    # "01-Jan-1995", or nothing: a missing date is a category of its own.
    try:
        years = [None if not date else int(date[-4:]) for date in items[2]]
        flags = items.iloc[:, 5:].to_numpy().astype(np.float64)
    except ValueError as error:
        raise ValueError(
            f"A release date or genre flag of u.item cannot be read: {error}. {REMEDY}"
        ) from error
    names = tuple(f"genre={name}" for name in GENRES)
    # A film can be of several genres, so that each flag is an attribute of its own.
    return [_decades(years, "year"), Block(sp.csr_array(flags), names, names)]


def _load(side_features: bool) -> Dataset:
    ratings, users, items = _read("u.data"), _read("u.user"), _read("u.item")
    n_users, n_items = (
        _consecutive(users[0], "The ids in u.user"),
        _consecutive(items[0], "The ids in u.item"),
    )
    user, item = _whole(ratings[0], "The users in u.data") - 1, _whole(ratings[1], "The items in u.data") - 1
    for what, ids, n in (("user", user, n_users), ("item", item, n_items)):
        if ids.min() < 0 or ids.max() >= n:
            bad = ids.min() if ids.min() < 0 else ids.max()
            raise ValueError(f"u.data rates with {what} {bad + 1}, but u.{what} describes 1 to {n}. {REMEDY}")

    count = Counter(items[1])  # 18 titles occur twice
    titles = tuple(
        title if count[title] == 1 else f"{title} #{i}" for i, title in enumerate(items[1], start=1)
    )
    columns = [
        _identity("user", tuple(f"user {u}" for u in range(1, n_users + 1))),
        _identity("item", titles),
    ]
    row_of = [user, item]
    if side_features:
        for ids, blocks in ((user, _user_side(users)), (item, _item_side(items))):
            columns += blocks
            row_of += [ids] * len(blocks)
    encoded = join(
        [
            Block(block.matrix[ids], block.names, block.groups)
            for block, ids in zip(columns, row_of, strict=True)
        ]
    )
    return SPEC.dataset(
        X=encoded.matrix,
        y=_whole(ratings[2], "The ratings in u.data").astype(np.float64),
        feature_names=encoded.names,
        groups=encoded.groups,
        target_name="rating, 1 to 5",
    )


SPEC = DatasetSpec(
    name="movielens_100k",
    title="MovieLens 100K",
    description=(
        "100,000 ratings of 1,682 films by 943 users, user and film one-hot: d = 2,625. With side features d "
        "= 2,703: age rounded to tens, gender, occupation and first character of the zip code of the user, "
        "year of release rounded to tens and 19 genre flags of the film. It may not be passed on, so that "
        "you have to fetch it."
    ),
    task="regression",
    load=_load,
    own_params=(
        ParamSpec(
            "side_features", "bool", False,
            help="Add what is known about users (49 columns) and films (29 columns) to the one-hot ids.",
        ),
    ),
    source=(
        "GroupLens; F. M. Harper & J. A. Konstan (2015), The MovieLens datasets: history and context, "
        "ACM TiiS 5(4)"
    ),
    licence="GroupLens: research use only, no redistribution",
    unavailable=_unavailable,
    suggested={
        "rank": 10,
        "regularizer": "ti",
        "lambda_w": 5e-5,
        "lambda_p": 1e-5,
        "lambda_sparse": 2e-7,
        "solver": "auto",
        "loss": "squared",
        "fit_linear": True,
        "fit_intercept": True,
        "init_scale": 0.05,
        "validation": 0.2,
        "max_epochs": 150,
    },
)  # fmt: skip
