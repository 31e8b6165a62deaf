"""Contract tests of every registered regularizer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from numba import config
from oracles.generic_convex import generic_prox
from oracles.slow_fm import omega
from oracles.views import assert_along_entries, assert_along_rows

import fmviz
from fmviz.engine.penalties import (
    CS,
    L1,
    L2,
    L21,
    PENALTIES,
    TI,
    ElasticNet,
    Group,
    OmegaCS,
    OmegaTI,
    Penalty,
    PowerCS,
    PowerTI,
    get_penalty,
)
from fmviz.engine.settings import ParamSpec

# Python without compilation is a thousand times slower.
TRIALS = 30 if config.DISABLE_JIT else 1000


def values_of(parameter: ParamSpec) -> Iterable[Any]:
    """Return values to test: of a choice all, of numbers few; groups of features have tests of their own."""
    if parameter.kind == "int":
        return range(parameter.low, min(parameter.high, 8) + 1)
    if parameter.kind == "float":
        ends = () if parameter.log else (parameter.low, parameter.high)
        near = parameter.default * np.array([0.1, 1.8, 30.0])
        return sorted({*ends, *np.clip(near, parameter.low, parameter.high).tolist()})
    assert parameter.choices or parameter.kind == "list", f"Add values of a {parameter.kind} to values_of."
    return parameter.choices


READINGS: list[Penalty] = list(
    dict.fromkeys(
        reading
        for penalty in PENALTIES.values()
        for reading in (
            penalty,
            *(replace(penalty, **{p.name: value}) for p in penalty.params for value in values_of(p)),
        )
    )
)
"""All penalties, with the default and other values of each parameter."""
# What has no exact operator says so, and keeps the contract of tests/contracts/test_inexact.py instead.
EXACT = [penalty for penalty in READINGS if penalty.exact_prox]
SEPARABLE = [penalty for penalty in READINGS if penalty.separable]


def random_matrix(rng: np.random.Generator, trial: int) -> np.ndarray:
    """Shapes with d = 1 and k = 1, ties, zeros, magnitudes 1e-300 and 1e300, mixed scales."""
    d = int(rng.choice([1, 2, 3, 7, 50, 200]))
    P = rng.normal(size=(d, int(rng.choice([1, 2, 5, 30]))))
    return [
        lambda: P,
        lambda: np.round(P),
        lambda: 1e-300 * P,
        lambda: 1e300 * P,
        lambda: np.where(rng.random(P.shape) < 0.6, 0.0, P),
        lambda: P * 10.0 ** rng.integers(-20, 20, size=P.shape),
        lambda: np.full_like(P, 0.7),
    ][trial % 7]()


def random_strength(rng: np.random.Generator, penalty: Penalty, P: np.ndarray) -> float:
    strength = 10.0 ** rng.uniform(-6, 4)
    # Extreme strengths only where neither strength nor result leaves the range of doubles.
    if rng.random() < 0.2 and 1e-100 < np.abs(P).max() < 1e100:
        strength = 10.0 ** rng.uniform(-30, 30)
    # ℓ1, ℓ2,1, the elastic net and the group lasso shrink by an absolute amount: choose it near the entries.
    return (
        strength * float(np.abs(P).max()) if isinstance(penalty, L1 | L21 | ElasticNet | Group) else strength
    )


@pytest.mark.parametrize("penalty", EXACT, ids=repr)
def test_operator_is_certified_on_random_inputs(penalty, rng):
    worst = 0.0
    for trial in range(TRIALS):
        P = random_matrix(rng, trial)
        strength = random_strength(rng, penalty, P)
        Q = fmviz.prox(penalty, P, strength)
        assert Q.shape == P.shape
        assert np.isfinite(Q).all()
        worst = max(worst, fmviz.certificate(penalty, P, Q, strength))
    assert worst <= 1e-10


@pytest.mark.parametrize("penalty", [p for p in PENALTIES.values() if p.algorithms], ids=repr)
def test_algorithms_agree(penalty, rng):
    for trial in range(TRIALS):
        P = random_matrix(rng, trial)
        strength = random_strength(rng, penalty, P)
        ours = fmviz.prox(penalty, P, strength)
        scale = np.abs(P).max() or 1.0
        for algorithm in penalty.algorithms:
            other = fmviz.prox(penalty, P, strength, algorithm=algorithm)
            assert np.abs(other / scale - ours / scale).max() <= 1e-12


@pytest.mark.parametrize("penalty", READINGS, ids=repr)
def test_value_is_the_definition(penalty, rng):
    for _ in range(20):
        P = rng.normal(size=(rng.integers(1, 7), rng.integers(1, 5)))
        expected = omega(penalty, P)
        assert fmviz.regularizer_value(penalty, P) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("penalty", EXACT, ids=repr)
def test_no_probe_point_beats_the_operator(penalty, rng):
    def value(Q, P, strength):
        return 0.5 * np.sum((Q - P) ** 2) + strength * omega(penalty, Q)

    for trial in range(20):
        P = rng.normal(size=(rng.integers(1, 6), rng.integers(1, 4)))
        strength = float(10.0 ** rng.uniform(-2, 1.5))
        Q = fmviz.prox(penalty, P, strength)
        best = value(Q, P, strength)
        probes = [P, 0 * P, P / (1 + 2 * strength)]
        probes += [Q + 10.0 ** rng.uniform(-6, 0) * rng.normal(size=P.shape) for _ in range(50)]
        probes += [np.where(rng.random(P.shape) < 0.5, P, 0.0) for _ in range(20)]
        probes += [np.where(np.arange(P.size).reshape(P.shape) == e, P, 0.0) for e in range(P.size)]
        assert min(value(probe, P, strength) for probe in probes) >= best - 1e-12, trial


@pytest.mark.parametrize("penalty", EXACT, ids=repr)
def test_certificate_sees_an_error(penalty, rng):
    P = rng.normal(size=(30, 4))
    # ∂Ω moves with Q, the faster the higher the power: make up for the size of the norm.
    strength = 0.05 / np.abs(P).sum() ** (penalty.settings.get("degree", 2) - 2)
    Q = fmviz.prox(penalty, P, strength)
    off = Q.copy()
    j, s = np.unravel_index(np.abs(Q).argmax(), Q.shape)
    off[j, s] += 0.1 * np.abs(P).max()
    assert 0.05 <= fmviz.certificate(penalty, P, off, strength) <= 0.2


@pytest.mark.parametrize("penalty", READINGS, ids=repr)
def test_strength_zero_changes_nothing_and_zero_stays_zero(penalty):
    P = np.array([[1.0, -2.0], [0.0, 3.5], [1e-9, 0.0]])
    assert np.array_equal(fmviz.prox(penalty, P, 0.0), P)
    assert np.array_equal(fmviz.prox(penalty, 0 * P, 2.0), 0 * P)
    assert fmviz.certificate(penalty, 0 * P, 0 * P, 2.0) == 0.0


@pytest.mark.parametrize(
    "penalty", [TI(), CS(), OmegaTI(), OmegaCS(), PowerTI(), PowerCS()], ids=lambda p: p.name
)
@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e3, 1e12, 1e100])
def test_squared_norms_never_zero_everything(penalty, strength):
    P = np.random.default_rng(6).normal(size=(40, 3))
    Q = fmviz.prox(penalty, P, strength)
    # θ ≥ 1: the largest entry of each column (the largest row) survives any strength.
    assert (Q != 0).any(axis=None if penalty.row_wise else 0).all()


@pytest.mark.parametrize("penalty", READINGS, ids=repr)
def test_entry_view_is_omega_along_an_entry(penalty, rng):
    view = penalty.entry
    if view is None:
        assert penalty.row_wise or penalty.why_no_entry
        return
    PT, cache = assert_along_entries(view, partial(omega, penalty), rng)
    if penalty == TI(axis="rows"):
        again = view.cache(6, 4)
        for s in range(4):
            view.begin(PT, s, again)
        assert cache == pytest.approx(again, abs=1e-12)


def test_penalties_of_one_form_share_their_compiled_kernels():
    entries, rows = (TI(), OmegaTI(), L1(), L2(), ElasticNet(0.3)), (CS(), OmegaCS(), L21())
    views = attrgetter("entry", "row", "matrix")
    for penalty in READINGS:
        if all(parameter.kind == "float" for parameter in penalty.params):
            assert views(penalty) == views(PENALTIES[penalty.name])
    assert len({penalty.entry for penalty in entries}) == 1
    assert len({penalty.row for penalty in entries}) == 1
    assert len({penalty.row for penalty in rows}) == 1
    assert TI(axis="rows").entry != TI().entry
    assert TI().row != CS().row


@pytest.mark.parametrize("penalty", [TI(), OmegaTI()], ids=repr)
def test_incremental_column_cache_survives_many_touches(penalty, rng):
    view = penalty.entry
    PT = rng.normal(size=(1, 50))
    cache = view.cache(50, 1)
    view.begin(PT, 0, cache)
    for _ in range(2000):
        j = int(rng.integers(50))
        new = 0.0 if rng.random() < 0.5 else rng.normal() * 10.0 ** rng.integers(-12, 3)
        view.update(cache, j, PT[0, j], new)
        PT[0, j] = new
        assert view.threshold(cache, j, PT[0, j]) >= 0.0
    again = view.cache(50, 1)
    view.begin(PT, 0, again)
    assert cache == pytest.approx(again, abs=1e-9)


@pytest.mark.parametrize("penalty", READINGS, ids=repr)
def test_row_view_is_omega_along_a_row(penalty, rng):
    if penalty.row is None:
        assert penalty.settings.get("axis") == "rows" or penalty.why_no_row
        return
    assert_along_rows(penalty.row, partial(omega, penalty), rng)


@pytest.mark.parametrize("penalty", SEPARABLE, ids=repr)
def test_thresholds_match_the_views(penalty, rng):
    P = rng.normal(size=(5, 3)) * (rng.random((5, 3)) < 0.7)
    thresholds = penalty.thresholds(P)
    if penalty.row_wise:
        view = penalty.row
        cache = view.cache(5, 3)
        view.begin(P, cache)
        unit = np.array([1.0, 0.0, 0.0])
        expected = [[view.penalty(unit, j, P, cache)] for j in range(5)]
    else:
        view = penalty.entry
        expected = np.zeros((5, 3))
        for s in range(3):
            cache = view.cache(5, 3)
            for r in range(s + 1):
                view.begin(np.array(P.T, order="C"), r, cache)
            for j in range(5):
                expected[j, s] = view.threshold(cache, j, P[j, s])
    assert thresholds == pytest.approx(np.asarray(expected), abs=1e-12)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        *((name, {}) for name in ("l1", "l21", "ti", "cs", "l2", "ti_power", "cs_power")),
        *(("elastic_net", {"rho": rho}) for rho in (0.1, 0.5, 0.9)),
        ("group", {"groups": ((0, 4), (1, 2, 5), (3,))}),
    ],
)
def test_convex_operators_agree_with_a_generic_solver(name, params):
    P = np.random.default_rng(12).normal(size=(6, 3))
    for strength in (0.02, 0.3, 3.0):
        expected = generic_prox(name, P, strength, **params)
        # ½‖Q − Q*‖² is at most the gap, which is 1e-9 with power cones.
        error = 5e-5 if name.endswith("_power") else 1e-6
        assert fmviz.prox(get_penalty(name, params), P, strength) == pytest.approx(expected, abs=error)


@pytest.mark.parametrize("penalty", READINGS, ids=repr)
def test_the_operator_of_kernels_is_the_operator(penalty, rng):
    view = penalty.matrix
    if view is None:
        assert not penalty.exact_prox
        return
    for trial in range(60):
        P = random_matrix(rng, trial)[:40, :5] * 1.0
        if trial % 7 in (2, 3):
            # Kernels stop long before squares leave the range of doubles.
            P /= np.abs(P).max()
        strength = [10.0 ** rng.uniform(-6, 0), 0.0, 10.0 ** rng.uniform(0, 4)][trial % 3]
        keep = 1.0 / (1.0 + 2.0 * strength * view.quad)
        M = np.ascontiguousarray((P * keep).T)
        view.shrink(M, strength * view.weight * keep, view.theta, np.empty((3, max(P.shape))))
        expected = fmviz.prox(penalty, P, strength)
        assert pytest.approx(expected, abs=1e-13 * max(1.0, float(np.abs(P).max()))) == M.T
        assert ((M.T != 0) == (expected != 0)).mean() > 0.99
