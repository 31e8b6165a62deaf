"""Models side by side: what the start page fits, along λ and epoch by epoch, and what it says of them."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from fmviz.lab.catalog import DataChoice
from fmviz.lab.interpretation.comparison import (
    compare_supports,
    describe_support,
    groups_of,
    say_where_exact,
)
from fmviz.lab.lessons import values
from fmviz.lab.lessons.steps import lessons
from fmviz.lab.runner import load_dataset, truth_of
from fmviz.lab.search.arena import (
    REGULARIZERS,
    SEEDS,
    SHIPPED,
    STRENGTH,
    STRENGTHS,
    arena,
    arena_plan,
    arena_truth,
    of_json,
)
from fmviz.lab.search.strength_path import EPOCHS, learn, trace
from fmviz.metrics import support_f1, used_pairs
from tools.results import started

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
    exact = {name: np.array([flags]) for name, flags in exact.items()}
    assert say_where_exact(exact, (0.1, 1.0, 10.0)) == (
        "TI uses exactly the true pairs at 2 of 3 strengths (λ = 0.1 to 10); ℓ₁ at 1 of 3 strengths (λ = 10);"
        " CS and ℓ₂,₁ at none of 3 strengths."
    )
    # Over starts: from how many, at how many strengths from each of these, and at which.
    exact = {
        "ℓ₁": np.array([[no, no, yes], [no, no, no]]),
        "CS": np.array([[no, no, no], [no, no, no]]),
        "TI": np.array([[yes, no, no], [no, yes, yes]]),
    }
    assert say_where_exact(exact, (0.1, 1.0, 10.0)) == (
        "TI uses exactly the true pairs from all 2 starts, at 1 to 2 of 3 strengths (λ = 0.1 to 10); "
        "ℓ₁ from 1 of 2 starts, at 1 of 3 strengths (λ = 10); CS from none."
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


def test_the_shipped_fits_are_of_the_plan_and_those_of_the_median_start():
    shipped = json.loads(gzip.decompress(SHIPPED.read_bytes()))
    assert shipped["plan"] == arena_plan().digest, "python -m tools.results start makes them anew"
    starts, truth = arena(), truth_of(load_dataset(arena_plan().base.dataset))
    means = np.mean([*starts.f1.values()], axis=(0, 2))
    assert sorted(means)[(len(SEEDS) - 1) // 2] == means[SEEDS.index(starts.seed)]
    fits = [*starts.fits()]
    assert [(fit.experiment.regularizer.name, fit.experiment.lambda_sparse) for fit in fits] == [
        (name, strength) for name in REGULARIZERS for strength in STRENGTHS
    ]
    for fit in fits:
        assert fit.experiment.seed == starts.seed
        assert support_f1(truth, fit.parameters) == pytest.approx(fit.values["support_f1"])


@pytest.mark.slow
def test_what_start_and_tour_say_is_true_of_fits_made_anew(monkeypatch):
    fits = [[*trace(arena_plan(seed))] for seed in SEEDS]
    current = of_json(json.loads(json.dumps(started(fits))))
    times = {name: (f1 == 1.0).sum(axis=1) for name, f1 in current.f1.items()}
    # From every start, from some, from none.
    assert times["ti"].min() > 0
    assert 0 < np.count_nonzero(times["l1"]) < len(SEEDS)
    assert times["l1"].max() < times["ti"].min()
    assert times["l21"].max() == times["cs"].max() == 0
    assert support_f1(arena_truth(), current.film["ti"][-1]) == 1.0
    for seed, own in zip(SEEDS, fits, strict=True):
        path = {
            name: [fit.parameters.P for fit in own if fit.experiment.regularizer.name == name]
            for name in REGULARIZERS
        }
        monkeypatch.setattr(
            values, "arena", lambda seed=seed, path=path: replace(current, seed=seed, path=path)
        )
        for step in lessons()["tour"].steps:
            numbers = dict(values.calculate(step))
            for claim in step.claims:
                # The weight is one in the matrices that are shown.
                assert ("weight" in claim and seed != current.seed) or values.evaluate(claim, numbers), (
                    seed,
                    claim,
                )


def test_the_pair_that_is_explained_joins_two_groups_by_l1_and_not_by_ti():
    truth, starts, at = arena_truth(), arena(), STRENGTHS.index(STRENGTH)
    i, j = starts.pair
    assert truth[i, j] == 0
    assert truth[[i, j]].any(axis=1).all()
    used = {name: bool(used_pairs(P[at])[i, j]) for name, P in starts.path.items()}
    assert used == {"l1": True, "ti": False, "l21": True, "cs": True}
    weights = np.abs(starts.path["l1"][at] @ starts.path["l1"][at].T)
    assert weights[i, j] > 0.3 * weights[truth != 0].max()
