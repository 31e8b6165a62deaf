"""Pairs of columns beyond chance: planted ones, copies of columns, noise of any shape, groups of rows."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.lab.interpretation.chance import beyond_chance


def alone(codes, y):
    """Return the residuals of a model of the levels of the columns alone."""
    levels = np.hstack([np.eye(code.max() + 1)[code] for code in codes.values()])
    return y - levels @ np.linalg.lstsq(levels, y, rcond=None)[0]


def columns(rng, n=640):
    """Return five columns of codes; the last repeats the third in wider ranges."""
    codes = [rng.integers(0, levels, n) for levels in (4, 3, 8, 6)]
    return dict(enumerate([*codes, codes[2] // 2]))


def named(codes, y, *groups):
    return {pair.columns for pair in beyond_chance(codes, alone(codes, y), *groups)[1]}


def test_planted_pairs_are_named_and_pairs_with_a_copy_are_not():
    each = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        codes = columns(rng)
        planted = 3.0 * ((codes[0] == 1) & (codes[1] == 2)) + 0.6 * (codes[2] - 3.5) * (codes[1] == 0)
        bent = 0.3 * np.abs(codes[2] - 3.5) + codes[0]
        each.append(named(codes, planted + bent + rng.normal(size=640)))
    # The third column, or its copy in its place.
    assert sum(pairs in ({(0, 1), (1, 2)}, {(0, 1), (1, 4)}) for pairs in each) >= 9


def test_columns_beyond_chance_are_named_once_and_noise_is_seldom():
    each, false = [], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        codes = columns(rng)
        y = 0.8 * (codes[0] == 1) + 0.15 * codes[2] + rng.normal(size=640)
        each.append({named.columns for named in beyond_chance(codes, y, size=1)[1]})
        false += bool(beyond_chance(codes, rng.standard_t(3, size=640), size=1)[1])
    # The third column, or its copy in its place.
    assert sum(own in ({(0,), (2,)}, {(0,), (4,)}) for own in each) >= 17
    assert false <= 2


@pytest.mark.parametrize("noise", ["normal", "heavy", "skewed", "uneven"])
def test_noise_is_seldom_named(noise):
    # Of 300 tables, 2 % (4 % with heavy tails).
    false = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        codes = columns(rng, 400)
        errors = {
            "normal": rng.normal(size=400),
            "heavy": rng.standard_t(2, size=400),
            "skewed": rng.exponential(size=400),
            # The variance differs between the levels of columns.
            "uneven": rng.normal(size=400) * np.exp(0.4 * codes[2] - (codes[1] == 1)),
        }[noise]
        false += bool(named(codes, codes[0] + errors))
    assert false <= 5


def test_rows_of_a_group_count_once():
    false = [0, 0]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(60), 10)
        codes = {place: code[groups] for place, code in columns(rng, 60).items()}
        y = rng.normal(size=60)[groups] + 0.1 * rng.normal(size=600)
        false[0] += bool(named(codes, y, groups))
        false[1] += bool(named(codes, y))
    assert false[0] <= 3
    assert false[1] >= 15


def test_without_cells_or_residuals_nothing_is_named():
    codes = {0: np.zeros(10, int), 1: np.arange(10)}
    nothing = np.inf, ()
    assert beyond_chance(codes, np.arange(10.0)) == nothing
    assert beyond_chance(columns(np.random.default_rng(0)), np.zeros(640)) == nothing
    assert beyond_chance({}, np.ones(3)) == nothing
