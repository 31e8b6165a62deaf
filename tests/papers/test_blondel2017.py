"""The protocol of the artefacts of blondel2017, and what their checks follow from."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from papers import ARTEFACTS
from papers.base import declared
from papers.blondel2017 import DATA as BEST_DATA
from papers.blondel2017 import (
    EIGEN,
    LETTER,
    MACHINES,
    NYSTROEM,
    ONE_BY_ONE,
    PENALTIES,
    SATIMAGE,
    SEGMENT,
    START,
    VOWEL_TEST,
    VOWEL_TRAIN,
    WINE,
    cells,
    fig2,
    problems,
    split_of,
    validated,
)
from papers.blondel2017 import RANDOM as RANDOM_BASES


def verdicts(name, tables):
    artefact = ARTEFACTS[f"blondel2017_{name}"]
    checks = artefact.judge(tables, artefact.configured("full"))
    return {(check.statement, check.case): check.verdict for check in checks}


def of(*data):
    return [{"data": name} for name in data]


def test_splits_are_halves_and_quarters_in_the_range_of_the_rows_to_train():
    split = split_of(WINE, 0)
    assert [len(y) for _, y in split] == [89, 44, 45]
    (X, _), (chosen, _), (test, _) = split
    assert (X.min(), X.max()) == pytest.approx((-1.0, 1.0))
    assert max(test.max(), chosen.max()) > 1.0
    assert [np.bincount(y.astype(int)).min() for _, y in split] == [24, 12, 12]
    train, _, test = problems(split, loss="logistic", penalty="l1", rank=3)
    assert train.design.n_features == test.design.n_features == 14
    assert train.target.n_outputs == 3


def test_of_machines_on_the_way_the_best_small_enough_one_counts(monkeypatch):
    way = [(0.1, 2, 80.0, 70.0), (0.1, 4, 90.0, 75.0), (0.2, 3, 90.0, 60.0)]
    monkeypatch.setitem(MACHINES, "stub", lambda seed, split, own: way)
    rows = validated({"units": 6}, WINE, "stub", 0, (2, 4, 0, 1))
    chosen = {row["bases"]: (row["used"], row["score"]) for table, row in rows if table == "test"}
    # Of equally many right rows the one with fewer bases; with none small enough there is no score.
    assert chosen == {2: (2, 70.0), 4: (3, 60.0), 0: (3, 60.0), 1: (None, None)}


@pytest.mark.parametrize("method", [ONE_BY_ONE, NYSTROEM, "ℓ₂², random start", "ℓ₁, both layers"])
def test_machines_learn_the_wines(method):
    own = {"shares": (0.1,), "units": 6, "bases": 3, "accuracy": 1e-3}
    points = list(MACHINES[method](0, split_of(WINE, 0), own))
    _, bases, _, right = zip(*points, strict=True)
    assert max(right) > 85.0
    assert max(bases) <= (6 if method != ONE_BY_ONE else 18)


def test_cells_stand_beside_what_is_printed():
    method = "ℓ₁, output layer"
    rows = [{"data": WINE, "method": method, "score": right, "used": 20} for right in (95.0, 96.0, 97.0)]
    (wine,) = cells({"test": rows}, {})
    assert (wine["accuracy"], wine["std"], wine["bases"], wine["splits"]) == (96.0, 1.0, 20, 3)
    assert wine["printed"] is wine["within"] is None
    cell = {"data": VOWEL_TEST, "method": method, "accuracy": 81.0, "std": 3.6, "bases": 20, "bases_std": 0.0}
    rows = ARTEFACTS["blondel2017_table2"].compared({"cells": [cell]})
    assert [row["within"] for row in rows if row["ours"] is not None] == [True, False]
    judged = verdicts(
        "table2", {"data": of(VOWEL_TEST), "cells": [{**cell, "printed": 80.0, "within": True}]}
    )
    assert judged["printed", VOWEL_TEST] == "holds"


@pytest.mark.parametrize(
    ("ahead", "behind", "verdict"),
    [
        ((SEGMENT, SATIMAGE, LETTER), (VOWEL_TEST, VOWEL_TRAIN), "holds"),
        # Vowel is one of four data sets, however many readings of it there are.
        ((VOWEL_TEST, VOWEL_TRAIN, SEGMENT), (SATIMAGE, LETTER), "does not hold"),
        ((VOWEL_TRAIN, SEGMENT, LETTER), (SATIMAGE, VOWEL_TEST), "does not hold"),
        # Whether it is three of four, two data sets do not say.
        ((SEGMENT, VOWEL_TEST, VOWEL_TRAIN), (), "not settled"),
        ((), (SEGMENT, VOWEL_TEST, VOWEL_TRAIN), "not settled"),
    ],
)
def test_three_of_four_data_sets_are_counted_among_all_four(ahead, behind, verdict):
    right = {f"{title}, both layers": 90.0 for title in PENALTIES}
    rows = [
        {"data": name, "method": method, "seed": seed, "score": score + seed / 10, "used": 20}
        for names, start in ((ahead, 80.0), (behind, 95.0))
        for name in names
        for method, score in {**right, **{f"{title}, random start": start for title in PENALTIES}}.items()
        for seed in range(3)
    ]
    judged = verdicts("table2", {"data": of(*ahead, *behind), "test": rows})
    assert {judged["random", machine] for machine in right} == {verdict}


def test_eigen_steps_are_never_below_their_start():
    own = ARTEFACTS["blondel2017_fig2"].configured("quick", iterations=3, early=2)
    rows = [row for table, row in fig2(own, WINE, 0) if table == "ratios"]
    by_step = {(row["iteration"], row["method"]): row["y"] for row in rows}
    for step, method in product((1, 2, 3), (START, BEST_DATA, RANDOM_BASES)):
        assert by_step[step, method] <= by_step[step, EIGEN] + 1e-9
    assert by_step[1, EIGEN] <= 1.0 + 1e-9


def test_every_printed_number_is_of_a_method_that_is_run():
    for name in ("blondel2017_table2", "blondel2017_table4"):
        printed = [number for number in ARTEFACTS[name].published if number["table"] == "cells"]
        assert {number["where"]["method"] for number in printed} <= set(declared(name)["grid"]["method"])
        assert set(declared(name)["grid"]["method"]) <= set(MACHINES)
