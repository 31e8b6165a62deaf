"""Every regularizer in the registry keeps the same contract."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config
from oracles import slow_fm
from oracles.generic_convex import generic_prox

import fmviz
from fmviz.engine.regularizers import REGULARIZERS

# Python without compilation is a thousand times slower.
TRIALS = 30 if config.DISABLE_JIT else 1000
ORDERS = [("ti_power", {"degree": m}) for m in range(2, 9)] + [
    ("cs_power", {"degree": m}) for m in range(2, 9)
]
READINGS = [
    *[(name, {}) for name in REGULARIZERS if not name.endswith("_power")],
    ("ti", {"axis": "rows"}),
    ("ti_power", {"degree": 3, "axis": "rows"}),
    *ORDERS,
]
IDS = [name + "".join(str(v) for v in params.values()) for name, params in READINGS]
# What has no exact operator says so, and keeps the contract of tests/contracts/test_inexact.py instead.
EXACT = [r for r in READINGS if REGULARIZERS[r[0]].exact_prox]
EXACT_IDS = [i for i, r in zip(IDS, READINGS, strict=True) if REGULARIZERS[r[0]].exact_prox]
SEPARABLE = [r for r in READINGS if REGULARIZERS[r[0]].separable]
SEPARABLE_IDS = [i for i, r in zip(IDS, READINGS, strict=True) if REGULARIZERS[r[0]].separable]


def omega(name: str, params: dict, P: np.ndarray) -> float:
    if name == "ti" and params.get("axis") == "rows":
        return slow_fm.omega("ti_rows", P)
    return slow_fm.omega(name, P, **params)


def random_matrix(rng: np.random.Generator, trial: int) -> np.ndarray:
    """Shapes with d = 1 and k = 1, ties, zeros, magnitudes 1e-300 and 1e300, mixed scales."""
    d = int(rng.choice([1, 2, 3, 7, 50, 200]))
    P = rng.normal(size=(d, int(rng.choice([1, 2, 5, 30]))))
    kind = trial % 7
    if kind == 1:
        P = np.round(P)
    elif kind == 2:
        P *= 1e-300
    elif kind == 3:
        P *= 1e300
    elif kind == 4:
        P[rng.random(P.shape) < 0.6] = 0.0
    elif kind == 5:
        P *= 10.0 ** rng.integers(-20, 20, size=P.shape)
    elif kind == 6:
        P = np.full_like(P, 0.7)
    return P


def random_strength(rng: np.random.Generator, name: str, P: np.ndarray) -> float:
    strength = 10.0 ** rng.uniform(-6, 4)
    # Extreme strengths only where neither strength nor result leaves the range of doubles.
    if rng.random() < 0.2 and 1e-100 < np.abs(P).max() < 1e100:
        strength = 10.0 ** rng.uniform(-30, 30)
    # ℓ1 and ℓ2,1 shrink by an absolute amount: choose it near the entries.
    return strength * float(np.abs(P).max()) if name in ("l1", "l21") else strength


@pytest.mark.parametrize(("name", "params"), EXACT, ids=EXACT_IDS)
def test_operator_is_certified_on_random_inputs(name, params):
    rng = np.random.default_rng(0)
    worst = 0.0
    for trial in range(TRIALS):
        P = random_matrix(rng, trial)
        strength = random_strength(rng, name, P)
        Q = fmviz.prox(name, P, strength, **params)
        assert Q.shape == P.shape
        assert np.isfinite(Q).all()
        worst = max(worst, fmviz.certificate(name, P, Q, strength, **params))
    assert worst <= 1e-10


@pytest.mark.parametrize("name", [n for n, r in REGULARIZERS.items() if r.algorithms])
def test_algorithms_agree(name):
    rng = np.random.default_rng(1)
    for trial in range(TRIALS):
        P = random_matrix(rng, trial)
        strength = random_strength(rng, name, P)
        ours = fmviz.prox(name, P, strength)
        scale = np.abs(P).max() or 1.0
        for algorithm in REGULARIZERS[name].algorithms:
            other = fmviz.prox(name, P, strength, algorithm=algorithm)
            assert np.abs(other / scale - ours / scale).max() <= 1e-12


@pytest.mark.parametrize(("name", "params"), READINGS, ids=IDS)
def test_value_is_the_definition(name, params):
    rng = np.random.default_rng(2)
    for _ in range(20):
        P = rng.normal(size=(rng.integers(1, 7), rng.integers(1, 5)))
        expected = omega(name, params, P)
        assert fmviz.regularizer_value(name, P, **params) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("name", "params"), EXACT, ids=EXACT_IDS)
def test_no_probe_point_beats_the_operator(name, params):
    rng = np.random.default_rng(3)

    def value(Q, P, strength):
        return 0.5 * np.sum((Q - P) ** 2) + strength * omega(name, params, Q)

    for trial in range(20):
        P = rng.normal(size=(rng.integers(1, 6), rng.integers(1, 4)))
        strength = float(10.0 ** rng.uniform(-2, 1.5))
        Q = fmviz.prox(name, P, strength, **params)
        best = value(Q, P, strength)
        probes = [P, 0 * P, P / (1 + 2 * strength)]
        probes += [Q + 10.0 ** rng.uniform(-6, 0) * rng.normal(size=P.shape) for _ in range(50)]
        probes += [np.where(rng.random(P.shape) < 0.5, P, 0.0) for _ in range(20)]
        probes += [np.where(np.arange(P.size).reshape(P.shape) == e, P, 0.0) for e in range(P.size)]
        assert min(value(probe, P, strength) for probe in probes) >= best - 1e-12, trial


@pytest.mark.parametrize(
    ("name", "params"),
    [r for r in READINGS if REGULARIZERS[r[0]].convex],
    ids=[i for i, r in zip(IDS, READINGS, strict=True) if REGULARIZERS[r[0]].convex],
)
def test_convex_operators_satisfy_the_three_point_inequality(name, params):
    # For Q = prox(P) and any Z: ⟨P − Q, Z − Q⟩ ≤ strength·(Ω(Z) − Ω(Q)).
    rng = np.random.default_rng(4)
    for _ in range(50):
        P, Z = rng.normal(size=(2, 6, 3))
        strength = float(10.0 ** rng.uniform(-2, 1))
        Q = fmviz.prox(name, P, strength, **params)
        rise = fmviz.regularizer_value(name, Z, **params) - fmviz.regularizer_value(name, Q, **params)
        assert np.sum((P - Q) * (Z - Q)) <= strength * rise + 1e-12


@pytest.mark.parametrize(("name", "params"), EXACT, ids=EXACT_IDS)
def test_certificate_sees_an_error(name, params):
    rng = np.random.default_rng(5)
    P = rng.normal(size=(30, 4))
    # ∂Ω moves with Q, the faster the higher the power: make up for the size of the norm.
    strength = 0.05 / np.abs(P).sum() ** (params.get("degree", 2) - 2)
    Q = fmviz.prox(name, P, strength, **params)
    off = Q.copy()
    j, s = np.unravel_index(np.abs(Q).argmax(), Q.shape)
    off[j, s] += 0.1 * np.abs(P).max()
    assert 0.05 <= fmviz.certificate(name, P, off, strength, **params) <= 0.2


@pytest.mark.parametrize(("name", "params"), READINGS, ids=IDS)
def test_strength_zero_changes_nothing_and_zero_stays_zero(name, params):
    P = np.array([[1.0, -2.0], [0.0, 3.5], [1e-9, 0.0]])
    assert np.array_equal(fmviz.prox(name, P, 0.0, **params), P)
    assert np.array_equal(fmviz.prox(name, 0 * P, 2.0, **params), 0 * P)
    assert fmviz.certificate(name, 0 * P, 0 * P, 2.0, **params) == 0.0


@pytest.mark.parametrize("name", ["ti", "cs", "omega_ti", "omega_cs", "ti_power", "cs_power"])
@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e3, 1e12, 1e100])
def test_squared_norms_never_zero_everything(name, strength):
    P = np.random.default_rng(6).normal(size=(40, 3))
    Q = fmviz.prox(name, P, strength)
    # θ ≥ 1: the largest entry of each column (the largest row) survives any strength.
    assert (Q != 0).any(axis=None if "cs" in name else 0).all()


@pytest.mark.parametrize("algorithm", ["filter", "sort", "random"])
@pytest.mark.parametrize("p", [[3.0, 2.0, 1.0], [0.1] * 3, [1.0, 1.0 - 2**-53, 0.5], [1e-200, 0.0]])
def test_huge_strengths_keep_the_largest_entry_to_relative_precision(p, algorithm):
    for strength in (2.0**52, 2.0**60, 1e20, 1e100):
        q = fmviz.prox("ti", p, strength, algorithm=algorithm)
        assert fmviz.certificate("ti", p, q, strength) <= 1e-10
        # θ is the number of entries equal to the largest: q = |p|/(1 + 2λθ).
        ties = p.count(max(p))
        assert q[:ties] == pytest.approx(max(p) / (1 + 2 * strength * ties), rel=1e-12)
        assert not q[ties:].any()


def test_l1_and_l21_zero_everything_from_a_known_strength():
    P = np.random.default_rng(7).normal(size=(40, 3))
    for name, last in (("l1", np.abs(P).max()), ("l21", np.linalg.norm(P, axis=1).max())):
        assert not fmviz.prox(name, P, last * (1 + 1e-12)).any()
        assert fmviz.prox(name, P, last * (1 - 1e-9)).any()


@pytest.mark.parametrize(("name", "params"), READINGS, ids=IDS)
def test_coordinate_view_is_omega_along_an_entry(name, params):
    penalty = REGULARIZERS[name].coordinate(**params)
    if penalty is None:
        assert REGULARIZERS[name].row_wise or REGULARIZERS[name].why_no_coordinate
        return
    rng = np.random.default_rng(8)
    P = rng.normal(size=(6, 4))
    PT = np.array(P.T, order="C")
    cache = penalty.cache(6, 4)
    for s in range(4):
        penalty.begin(PT, s, cache)
        for _ in range(25):
            j = int(rng.integers(6))
            old = PT[s, j]
            t = penalty.threshold(cache, j, old)
            for q in (0.0, *rng.normal(size=3)):
                moved = PT.T.copy()
                moved[j, s] = q
                change = omega(name, params, moved) - omega(name, params, PT.T)
                expected = penalty.quad * (q * q - old * old) + t * (abs(q) - abs(old))
                assert expected == pytest.approx(change, abs=1e-10)
            new = 0.0 if rng.random() < 0.4 else rng.normal()
            PT[s, j] = new
            penalty.update(cache, j, old, new)
    again = penalty.cache(6, 4)
    for s in range(4):
        penalty.begin(PT, s, again)
    if name == "ti" and params:
        assert cache == pytest.approx(again, abs=1e-12)


def test_penalties_of_one_form_share_their_compiled_kernels():
    entries, rows = ("ti", "omega_ti", "l1", "l2"), ("cs", "omega_cs", "l21")
    assert len({REGULARIZERS[name].coordinate() for name in entries}) == 1
    assert len({REGULARIZERS[name].row() for name in entries}) == 1
    assert len({REGULARIZERS[name].row() for name in rows}) == 1
    assert REGULARIZERS["ti"].coordinate(axis="rows") != REGULARIZERS["ti"].coordinate()
    assert REGULARIZERS["ti"].row() != REGULARIZERS["cs"].row()


@pytest.mark.parametrize("name", ["ti", "omega_ti"])
def test_incremental_column_cache_survives_many_touches(name):
    rng = np.random.default_rng(9)
    penalty = REGULARIZERS[name].coordinate()
    PT = rng.normal(size=(1, 50))
    cache = penalty.cache(50, 1)
    penalty.begin(PT, 0, cache)
    for _ in range(2000):
        j = int(rng.integers(50))
        new = 0.0 if rng.random() < 0.5 else rng.normal() * 10.0 ** rng.integers(-12, 3)
        penalty.update(cache, j, PT[0, j], new)
        PT[0, j] = new
        assert penalty.threshold(cache, j, PT[0, j]) >= 0.0
    again = penalty.cache(50, 1)
    penalty.begin(PT, 0, again)
    assert cache == pytest.approx(again, abs=1e-9)


@pytest.mark.parametrize(("name", "params"), READINGS, ids=IDS)
def test_row_view_is_omega_along_a_row(name, params):
    penalty = REGULARIZERS[name].row(**params)
    if penalty is None:
        assert params.get("axis") == "rows" or REGULARIZERS[name].why_no_row
        return
    rng = np.random.default_rng(10)
    P = rng.normal(size=(5, 3))
    cache = penalty.cache(5, 3)
    penalty.begin(P, cache)
    for _ in range(40):
        j = int(rng.integers(5))
        q = rng.normal(size=3) * (rng.random() < 0.7)
        moved = P.copy()
        moved[j] = q
        change = slow_fm.omega(name, moved) - slow_fm.omega(name, P)
        expected = penalty.quad * (q @ q - P[j] @ P[j])
        expected += penalty.penalty(q, j, P, cache) - penalty.penalty(P[j], j, P, cache)
        assert expected == pytest.approx(change, abs=1e-10)
        u = rng.normal(size=3)
        shrunk = u.copy()
        strength = 0.2
        penalty.shrink(shrunk, strength, j, P, cache)

        def value(z, u=u, j=j, strength=strength):
            return 0.5 * np.sum((z - u) ** 2) + strength * penalty.penalty(z, j, P, cache)

        probes = [shrunk + 10.0 ** rng.uniform(-5, 0) * rng.normal(size=3) for _ in range(30)]
        assert min(value(z) for z in [u, 0 * u, *probes]) >= value(shrunk) - 1e-12
        penalty.update(cache, j, P, q)
        P[j] = q
    again = penalty.cache(5, 3)
    penalty.begin(P, again)
    assert cache == pytest.approx(again, abs=1e-11)


@pytest.mark.parametrize(("name", "params"), SEPARABLE, ids=SEPARABLE_IDS)
def test_thresholds_match_the_views(name, params):
    regularizer = REGULARIZERS[name]
    rng = np.random.default_rng(11)
    P = rng.normal(size=(5, 3)) * (rng.random((5, 3)) < 0.7)
    thresholds = regularizer.thresholds(P, **params)
    if regularizer.row_wise:
        penalty = regularizer.row(**params)
        cache = penalty.cache(5, 3)
        penalty.begin(P, cache)
        unit = np.array([1.0, 0.0, 0.0])
        found = [[penalty.penalty(unit, j, P, cache)] for j in range(5)]
    else:
        penalty = regularizer.coordinate(**params)
        found = np.zeros((5, 3))
        for s in range(3):
            cache = penalty.cache(5, 3)
            for r in range(s + 1):
                penalty.begin(np.array(P.T, order="C"), r, cache)
            for j in range(5):
                found[j, s] = penalty.threshold(cache, j, P[j, s])
    assert thresholds == pytest.approx(np.asarray(found), abs=1e-12)


@pytest.mark.parametrize("name", ["l1", "l21", "ti", "cs", "l2", "ti_power", "cs_power"])
def test_convex_operators_agree_with_a_generic_solver(name):
    P = np.random.default_rng(12).normal(size=(6, 3))
    for strength in (0.02, 0.3):
        expected = generic_prox(name, P, strength)
        # ½‖Q − Q*‖² is at most the gap, which is 1e-9 with power cones.
        error = 5e-5 if name.endswith("_power") else 1e-6
        assert fmviz.prox(name, P, strength) == pytest.approx(expected, abs=error)


@pytest.mark.parametrize(("name", "params"), READINGS, ids=IDS)
def test_the_operator_of_kernels_is_the_operator(name, params):
    rng = np.random.default_rng(5)
    regularizer = REGULARIZERS[name]
    operator = regularizer.operator(**params)
    if operator is None:
        assert not regularizer.exact_prox
        return
    for trial in range(60):
        P = random_matrix(rng, trial)[:40, :5] * 1.0
        if trial % 7 in (2, 3):
            # Kernels stop long before squares leave the range of doubles.
            P /= np.abs(P).max()
        strength = [10.0 ** rng.uniform(-6, 0), 0.0, 10.0 ** rng.uniform(0, 4)][trial % 3]
        keep = 1.0 / (1.0 + 2.0 * strength * operator.quad)
        M = np.ascontiguousarray((P * keep).T)
        operator.shrink(M, strength * keep, np.empty((3, max(P.shape))))
        expected = fmviz.prox(name, P, strength, **params)
        assert pytest.approx(expected, abs=1e-13 * max(1.0, float(np.abs(P).max()))) == M.T
        assert ((M.T != 0) == (expected != 0)).mean() > 0.99


@pytest.mark.parametrize("order", [2, 3, 5])
def test_power_of_two_is_the_square(order):
    rng = np.random.default_rng(13)
    P = rng.normal(size=(40, 4))
    for square, power in (("ti", "ti_power"), ("cs", "cs_power")):
        for strength in (1e-3, 0.1, 10.0):
            expected = fmviz.prox(square, P, strength)
            assert fmviz.prox(power, P, strength, degree=2) == pytest.approx(expected, abs=1e-13)
        own, params = REGULARIZERS[square].of_order(order, REGULARIZERS[square].check({}))
        assert own.value(P, **params) == pytest.approx(omega(power, {"degree": order}, P), rel=1e-12)
