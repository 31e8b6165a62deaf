"""The operator of λ‖·‖₁² on vectors of every length: short, with vector instructions, and cut into rows."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config

from fmviz.engine.penalties.operators import squared_norm

SIZES = (1, 2, 63, 64, 65, 500, 2047, 2048, 2049) + (() if config.DISABLE_JIT else (5000, 70_001))


SHAPES = {
    "normal": lambda rng, d: rng.normal(size=d),
    "heavy tails": lambda rng, d: rng.standard_cauchy(size=d),
    "mostly zero": lambda rng, d: rng.normal(size=d) * (rng.random(d) < 0.05),
    "ties": lambda rng, d: np.round(3.0 * rng.normal(size=d)),
    "constant": lambda rng, d: np.full(d, 0.7),
    "falling": lambda rng, d: np.exp(-np.linspace(0.0, 40.0, d)),
    "halving": lambda rng, d: 2.0 ** -np.minimum(np.arange(d), 1000.0),
    "nearly tied": lambda rng, d: 1.0 - 1e-15 * rng.integers(0, 8, size=d),
    "tiny": lambda rng, d: 1e-300 * rng.normal(size=d),
    "huge": lambda rng, d: 1e300 * rng.uniform(-1.0, 1.0, size=d),
}
STRENGTHS = (1e-30, 1e-6, 1e-3, 0.1, 1.0, 10.0, 1e6, 1e30, 1e200)


def apply(algorithm: str, p: np.ndarray, strength: float) -> np.ndarray:
    out = np.empty((1, p.size))
    squared_norm.prox_each_row(squared_norm.ALGORITHMS[algorithm])(p.reshape(1, -1), strength, out)
    return out[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_algorithms_agree_at_every_length(shape, rng):
    for d in SIZES:
        p = SHAPES[shape](rng, d)
        scale = np.abs(p).max() or 1.0
        for strength in STRENGTHS:
            result = {
                algorithm: apply(algorithm, p, strength) / scale for algorithm in squared_norm.ALGORITHMS
            }
            for q in result.values():
                assert np.abs(q - result["sort"]).max() <= 1e-12, (d, strength)


@pytest.mark.parametrize("shape", SHAPES)
def test_sum_and_threshold_agree_to_relative_precision(shape, rng):
    for d in SIZES:
        p = SHAPES[shape](rng, d)
        scale = np.abs(p).max()
        for strength in STRENGTHS:
            # Nothing to compare where the answer leaves the range of doubles.
            if scale == 0.0 or scale < 1e-303 * strength:
                continue
            q = np.abs(apply("filter", p, strength) / scale)
            live = q > 1e-290
            # v = max q is what 2λ‖q‖₁ leaves of the largest entry: told by deficits, without cancellation.
            deficits = 1.0 - np.abs(p / scale)
            v = (0.5 / strength + deficits[live].sum()) / (0.5 / strength + live.sum())
            assert q.max() == pytest.approx(v, rel=1e-12), (d, strength)


@pytest.mark.parametrize("algorithm", squared_norm.ALGORITHMS)
def test_in_place_and_from_afar_give_the_same(algorithm, rng):
    kernel = squared_norm.prox_each_row(squared_norm.ALGORITHMS[algorithm])
    for d, strength in ((5, 0.01), (63, 0.01), (64, 0.01), (3000, 0.01)):
        M = rng.normal(size=(2, d))
        out = np.empty_like(M)
        kernel(M, strength, out)
        kernel(M, strength, M)
        assert np.array_equal(M, out)


@pytest.mark.parametrize("algorithm", squared_norm.ALGORITHMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_visible(algorithm, bad):
    for d in (1, 5, 100, 3000):
        p = np.random.default_rng(3).normal(size=d)
        p[d // 2] = bad
        assert not np.isfinite(apply(algorithm, p, 0.1)).all()


def test_a_zero_has_no_sign():
    q = apply("filter", np.array([5.0, -0.1, -0.0, 0.1]), 1.0)
    assert not np.signbit(q).any()
