"""Contract tests of Ω_TI and Ω_CS of higher order and of all subsets."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import slow_kernels

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
    view = part("omega_ti", order).entry
    P = rng.normal(size=(6, 3))
    PT = np.array(P.T, order="C")
    cache = view.cache(6, 3)
    for s in range(3):
        view.begin(PT, s, cache)
        for _ in range(25):
            j = int(rng.integers(6))
            old = PT[s, j]
            t = view.threshold(cache, j, old)
            for q in (0.0, *rng.normal(size=3)):
                moved = PT.T.copy()
                moved[j, s] = q
                change = definition("omega_ti", order, moved) - definition("omega_ti", order, PT.T)
                assert t * (abs(q) - abs(old)) == pytest.approx(change, abs=1e-10)
            new = 0.0 if rng.random() < 0.4 else rng.normal()
            PT[s, j] = new
            view.update(cache, j, old, new)


@pytest.mark.parametrize(("name", "order"), CHOICES)
def test_row_view_is_omega_along_a_row(name, order, rng):
    view = part(name, order).row
    P = rng.normal(size=(6, 3))
    cache = view.cache(6, 3)
    view.begin(P, cache)
    for _ in range(40):
        j = int(rng.integers(6))
        q = rng.normal(size=3) * (rng.random() < 0.7)
        moved = P.copy()
        moved[j] = q
        change = definition(name, order, moved) - definition(name, order, P)
        expected = view.penalty(q, j, P, cache) - view.penalty(P[j], j, P, cache)
        assert expected == pytest.approx(change, abs=1e-10)
        u = rng.normal(size=3)
        shrunk = u.copy()
        view.shrink(shrunk, 0.2, j, P, cache)

        def value(z, u=u, j=j):
            return 0.5 * np.sum((z - u) ** 2) + 0.2 * view.penalty(z, j, P, cache)

        probes = [shrunk + 10.0 ** rng.uniform(-5, 0) * rng.normal(size=3) for _ in range(30)]
        assert min(value(z) for z in [u, 0 * u, *probes]) >= value(shrunk) - 1e-12
        view.update(cache, j, P, q)
        P[j] = q
    again = view.cache(6, 3)
    view.begin(P, again)
    assert cache == pytest.approx(again, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(("name", "order"), CHOICES)
def test_thresholds_and_subgradients_match_the_definition(name, order, rng):
    P = rng.normal(size=(5, 3))
    penalty = part(name, order)
    gradient = penalty.subgradient(P)
    thresholds = penalty.thresholds(P)
    for j, s in np.ndindex(P.shape):
        E = np.zeros_like(P)
        E[j, s] = 1e-6
        slope = (definition(name, order, P + E) - definition(name, order, P - E)) / 2e-6
        assert gradient[j, s] == pytest.approx(slope, abs=1e-6)
        along = np.sign(P[j, s]) if name == "omega_ti" else P[j, s] / np.linalg.norm(P[j])
        assert thresholds[j, s if name == "omega_ti" else 0] * along == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
def test_every_penalty_knows_every_order_or_says_why_not(penalty):
    for order in (2, 3, 5, None):
        form = penalty.of_order(order)
        assert isinstance(form, Penalty) or (form.code and len(form) > 40)
