"""Models side by side: what the start page fits, along λ and epoch by epoch, and what it says of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fmviz.lab.catalog import DataChoice
from fmviz.lab.interpretation.comparison import (
    compare_supports,
    describe_support,
    first_between,
    groups_of,
    say_where_exact,
)
from fmviz.lab.runner import load_dataset, truth_of
from fmviz.lab.search import arena
from fmviz.lab.search.arena import PAIR, STRENGTH, STRENGTHS, arena_plan, arena_truth
from fmviz.lab.search.strength_path import EPOCHS, learn, trace
from fmviz.metrics import used_pairs

# Two groups of two, and one feature that is noise.
TRUTH = np.zeros((5, 5))
TRUTH[0, 1] = TRUTH[1, 0] = TRUTH[2, 3] = TRUTH[3, 2] = 1.0


def pairs(*given: tuple[int, int]) -> np.ndarray:
    used = np.zeros((5, 5), dtype=bool)
    for i, j in given:
        used[i, j] = used[j, i] = True
    return used


@pytest.mark.parametrize(
    ("used", "truth", "says"),
    [
        (pairs(), TRUTH, "0 true · 0 between · 0 noise"),
        (pairs((0, 1), (2, 3)), TRUTH, "✓ Exact: 2 true · 0 between · 0 noise"),
        (pairs((0, 1)), TRUTH, "1 true · 0 between · 0 noise"),
        (pairs((0, 1), (0, 2), (1, 2)), TRUTH, "1 true · 2 between · 0 noise"),
        (~np.eye(5, dtype=bool), TRUTH, "2 true · 4 between · 4 noise"),
        (pairs((0, 1), (2, 3), (0, 4)), TRUTH, "2 true · 0 between · 1 noise"),
        # False ones within a group are counted where there are any.
        (pairs((0, 2)), pairs((0, 1), (1, 2)), "0 true · 0 between · 0 noise · 1 within"),
        # Without a truth pairs and features are counted.
        (pairs((0, 1), (2, 3)), None, "2 of 10 pairs, of 4 features."),
        (pairs((0, 1), (0, 2), (1, 2)), None, "3 of 10 pairs, of 3 features."),
    ],
)
def test_what_is_seen_is_said_in_one_grammar(used, truth, says):
    assert describe_support(used, truth).replace("\N{NO-BREAK SPACE}", " ") == says


def test_groups_have_a_name_where_they_are_in_order():
    assert groups_of(TRUTH) == [("group 1", 0, 2), ("group 2", 2, 2), ("noise", 4, 1)]
    assert groups_of(pairs((0, 2), (1, 3))) == []


def test_it_is_said_at_which_strengths_the_true_pairs_are_used():
    yes, no = True, False
    exact = {"ℓ₁": [no, no, yes], "CS": [no, no, no], "TI": [yes, no, yes], "ℓ₂,₁": [no, no, no]}
    assert say_where_exact(exact, (0.1, 1.0, 10.0)) == (
        "TI uses exactly the true pairs at 2 of 3 strengths (λ = 0.1 to 10); ℓ₁ at 1 of 3 strengths (λ = 10);"
        " CS and ℓ₂,₁ at none of 3 strengths."
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_start_and_tour_tell_the_truth(seed):
    start = arena_plan()
    data = DataChoice.of(start.base.dataset.name, {**dict(start.base.dataset.given), "seed": seed})
    at = STRENGTHS.index(STRENGTH)
    # Every second strength, that of the page among them.
    plan = replace(start, base=replace(start.base, dataset=data), lambdas=STRENGTHS[at % 2 :: 2])
    truth = truth_of(load_dataset(data))

    def f1(P: np.ndarray) -> float:
        return compare_supports(truth, used_pairs(P)).f1

    along = dict.fromkeys(plan.regularizers, ())
    for fit in trace(plan):
        along[fit.experiment.regularizer.name] += (f1(fit.parameters.P),)
    assert along["ti"][at // 2] == 1.0 > max(along["l1"])
    assert max(along["l21"] + along["cs"]) < 0.5
    # Epoch by epoch, from a random start.
    ends = {name: f1(factors[-1]) for name, factors in learn(plan, STRENGTH)}
    assert ends.pop("ti") > 0.95
    assert max(ends.values()) < 0.5


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
    truth = arena_truth()
    assert truth[PAIR] == 0
    assert truth[list(PAIR)].any(axis=1).all()
    assert first_between(pairs((0, 1))) is None
