"""Models side by side: what the start page fits, along λ and epoch by epoch, and what it says of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fmviz.lab.interpretation.comparison import describe_support, first_between
from fmviz.lab.search import arena
from fmviz.lab.search.arena import PAIR, arena_plan, arena_truth
from fmviz.lab.search.strength_path import EPOCHS, learn

# Two groups of two, and one feature that is noise.
TRUTH = np.zeros((5, 5))
TRUTH[0, 1] = TRUTH[1, 0] = TRUTH[2, 3] = TRUTH[3, 2] = 1.0


def pairs(*given: tuple[int, int]) -> np.ndarray:
    used = np.zeros((5, 5), dtype=bool)
    for i, j in given:
        used[i, j] = used[j, i] = True
    return used


@pytest.mark.parametrize(
    ("used", "says"),
    [
        (pairs(), "No pair is left."),
        (pairs((0, 1), (2, 3)), "Exactly the 2 true pairs."),
        (pairs((0, 1)), "1 of 2 true"),
        (
            pairs((0, 1), (0, 2), (1, 2)),
            "1 of 2 true · 2 between groups",
        ),
        (
            ~np.eye(5, dtype=bool),
            "2 of 2 true · 4 between groups · 4 with noise",
        ),
        (pairs((0, 1), (2, 3), (0, 4)), "2 of 2 true · 1 with noise"),
    ],
)
def test_what_is_seen_is_said_in_a_sentence(used, says):
    assert describe_support(used, TRUTH) == says


def test_without_a_truth_pairs_and_features_are_counted():
    assert describe_support(pairs((0, 1), (2, 3))) == "2 of 10 pairs, of 4 features."
    assert describe_support(pairs((0, 1), (0, 2), (1, 2))) == "3 of 10 pairs, of 3 features."


def test_every_epoch_of_the_first_ones_has_a_frame():
    plan = replace(arena_plan(), regularizers=("ti", "cs"))
    plan = replace(plan, base=replace(plan.base, rank=3, max_epochs=4))
    created = list(learn(plan, 0.1))
    assert [name for name, _ in created] == ["ti", "cs"]
    assert [len(factors) for _, factors in created] == [5, 5]
    assert EPOCHS[:5] == (0, 1, 2, 3, 4)
    # One start.
    assert np.array_equal(created[0][1][0], created[1][1][0])
    assert list(learn(plan, 0.1, lambda: True)) == []


def test_what_the_start_page_has_fitted_is_not_fitted_again(monkeypatch):
    monkeypatch.setattr(arena, "_fits", {})
    plan = arena_plan()
    small = replace(plan, base=replace(plan.base, rank=2, max_epochs=2), regularizers=("ti",), lambdas=(0.1,))
    monkeypatch.setattr(arena, "arena_plan", lambda: small)
    (fit,) = arena.arena_fits(small)
    assert arena.arena_fit("ti", 0.1) is fit


def test_the_pair_that_is_explained_joins_two_groups():
    assert first_between(TRUTH) == (0, 2)
    assert first_between(arena_truth()) == PAIR
    assert first_between(pairs((0, 1))) is None
