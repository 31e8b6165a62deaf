"""Contract tests of Ω_TI and Ω_CS of higher order and of all subsets."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from oracles import slow_kernels
from oracles.views import assert_along_entries, assert_along_rows
from small_data import differences

from fmviz.engine.errors import WhyNot
from fmviz.engine.penalties import PENALTIES, Penalty, get_penalty

ORDERS = [2, 3, 4, 6, None]
CHOICES = [(name, order) for name in ("omega_ti", "omega_cs") for order in ORDERS]


def part(name: str, order: int | None) -> Penalty:
    form = get_penalty(name).of_order(order)
    assert not isinstance(form, WhyNot)
    return form


def definition(name: str, order: int | None, P: np.ndarray) -> float:
    """The sum over subsets ([A] Eq. 41, 48, 56, 57), the empty one left out."""
    columns = np.abs(P).T if name == "omega_ti" else [np.linalg.norm(P, axis=1)]
    ones = np.ones(P.shape[0])
    if order is None:
        return sum(slow_kernels.all_subsets(p, ones) - 1.0 for p in columns)
    return sum(slow_kernels.anova(p, ones, order) for p in columns)


@pytest.mark.parametrize(("name", "order"), CHOICES)
def test_value_is_the_sum_over_subsets(name, order, rng):
    for _ in range(10):
        P = rng.normal(size=(int(rng.integers(1, 8)), int(rng.integers(1, 4))))
        assert part(name, order).value(P) == pytest.approx(definition(name, order, P), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("order", ORDERS)
def test_entry_view_is_omega_along_an_entry(order, rng):
    assert_along_entries(part("omega_ti", order).entry, partial(definition, "omega_ti", order), rng)


@pytest.mark.parametrize(("name", "order"), CHOICES)
def test_row_view_is_omega_along_a_row(name, order, rng):
    assert_along_rows(part(name, order).row, partial(definition, name, order), rng)


@pytest.mark.parametrize(("name", "order"), CHOICES)
def test_thresholds_and_subgradients_match_the_definition(name, order, rng):
    P = rng.normal(size=(5, 3))
    penalty = part(name, order)
    gradient = penalty.subgradient(P)
    thresholds = penalty.thresholds(P)
    slopes = differences(partial(definition, name, order), P)
    assert gradient == pytest.approx(slopes, abs=1e-6)
    for (j, s), slope in np.ndenumerate(slopes):
        along = np.sign(P[j, s]) if name == "omega_ti" else P[j, s] / np.linalg.norm(P[j])
        assert thresholds[j, s if name == "omega_ti" else 0] * along == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
def test_every_penalty_knows_every_order_or_says_why_not(penalty):
    for order in (2, 3, 5, None):
        form = penalty.of_order(order)
        assert isinstance(form, Penalty) or (form.code and len(form) > 40)
