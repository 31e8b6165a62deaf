"""The real data of atarashi2021: ML100K, a9a, RCV1 and flight delay, whole and split as in its Table 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fmviz.engine.design import Design
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets.drawn import rated_items
from fmviz.lab.papers.reproduction import Reproduction
from fmviz.lab.runner import load_dataset

ML100K, A9A, RCV1, FD, DRAWN = "ML100K", "a9a", "RCV1", "FD", "drawn ratings"
SETS = {ML100K: "movielens_100k", A9A: "a9a", RCV1: "rcv1", FD: "flight_delay"}


class Rows(NamedTuple):
    """Some rows of a data set."""

    design: Design
    y: np.ndarray


class Parts(NamedTuple):
    """A data set in three, and whether its score, the AUC and not the RMSE, is to be high."""

    train: Rows
    validation: Rows
    test: Rows
    highest: bool


def wanted(repro: Reproduction) -> list[str]:
    """Return the data sets of ``settings["data"]`` that are here; drawn ratings where there are none."""
    return available(repro, SETS, (DRAWN,))


def available(repro: Reproduction, sets: Mapping[str, str], instead: Sequence[str]) -> list[str]:
    """Return the data sets of ``settings["data"]`` that are here; those `instead` where there are none.

    Parameters
    ----------
    repro : Reproduction
        It is told what is left out.
    sets : mapping of str to str
        The names in `fmviz.lab.catalog`; what has none is on every machine.
    instead : sequence of str
        Stand-ins, which are on every machine.
    """
    names = []
    for name in repro.settings["data"]:
        reason = dataset_spec(sets[name]).unavailable() if name in sets else None
        if reason is None:
            names.append(name)
        else:
            repro.note(f"{name} is not here and left out. {reason}")
    if not names:
        missing = ", ".join(repro.settings["data"])
        used = " and ".join(instead).capitalize()
        repro.note(f"{used} stand in for {missing}; they settle none of the paper's statements.")
    return names or list(instead)


def whole(data: str, drawn: int) -> tuple[Any, np.ndarray]:
    """Return all rows of ML100K, of a9a or of so many ratings, about, that are drawn."""
    if data == DRAWN:
        users, items = max(10, drawn // 106), max(10, drawn // 60)
        return rated_items(drawn, users, items, 4, np.random.default_rng(0))
    own: dict[str, Any] = {"side_features": True} if data == ML100K else {"part": "both"}
    found = load_dataset(SETS[data], **own)
    return found.X, found.y


@lru_cache(maxsize=2)
def parts(data: str, split_seed: int, drawn: int) -> Parts:
    """Return a data set, split as in Table 2 of the paper.

    Parameters
    ----------
    data : str
        A key of `SETS`, or `DRAWN`.
    split_seed : int
        Draws the rows.
    drawn : int
        How many ratings `DRAWN` has, about.
    """
    rng = np.random.default_rng([split_seed, 0])
    if data in (ML100K, DRAWN):
        X, y = whole(data, drawn)
        order = rng.permutation(y.size)
        cuts = [64 * y.size // 100, 80 * y.size // 100]
        first, second, third = (Rows(Design(X[one]), y[one]) for one in np.split(order, cuts))
        return Parts(first, second, third, highest=False)
    known, unseen = (load_dataset(SETS[data], part=part) for part in ("train", "test"))
    order = rng.permutation(known.y.size)
    # a9a and RCV1: 26,048 of 32,561 and 16,193 of 20,242.
    kept = np.split(order, [4 * known.y.size // 5])
    train, validation = (Rows(Design(known.X[one]), known.y[one]) for one in kept)
    return Parts(train, validation, Rows(Design(unseen.X), unseen.y), highest=True)
