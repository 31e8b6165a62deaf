"""Sections of P, their unit balls and operators."""

from __future__ import annotations

import math

import numpy as np
import pytest
from programs import printed

from fmviz.lab.operators import geometry as lab
from fmviz.operators import certificate, prox, regularizer_value

CASES = [(section, name) for section in lab.PLANES for name in lab.NAMES]
# Where a section has a formula of its own for a regularizer; elsewhere that of the whole matrix is shown.
OWN = [(section, name) for section, name in CASES if name in lab.PLANES[section].formulas]
# The formulas of the page, as Python.
FORMULAS = {
    "|a|+|b|": lambda a, b: abs(a) + abs(b),
    "(|a|+|b|)^2": lambda a, b: (abs(a) + abs(b)) ** 2,
    r"\sqrt{a^2+b^2}": math.hypot,
    "a^2+b^2": lambda a, b: a**2 + b**2,
}


def points(section: lab.Section, n: int = 40) -> np.ndarray:
    return np.random.default_rng(0).uniform(-2, 2, size=(n, len(section.cells)))


@pytest.mark.parametrize(("which", "name"), OWN)
def test_the_formula_of_a_section_is_the_value_of_the_regularizer(which, name):
    section = lab.PLANES[which]
    for point, value in zip(points(section), lab.values(section, name, points(section)), strict=True):
        assert FORMULAS[section.formulas[name]](*point) == pytest.approx(value)
        assert regularizer_value(name, section.embed(point)) == value


@pytest.mark.parametrize(("which", "name"), CASES)
def test_many_points_at_once_go_where_each_alone_goes_and_are_certified(which, name):
    section = lab.PLANES[which]
    given = points(section)
    for strength in (0.0, 0.3, 1.7):
        moved = lab.prox_of(section, name, given, strength)
        for point, q in zip(given, moved, strict=True):
            P = section.embed(point)
            Q = prox(name, P, strength)
            assert np.allclose(section.embed(q), Q, rtol=0, atol=1e-15)
            assert np.array_equal(section.embed(q) == 0, Q == 0)
            assert certificate(name, P, section.embed(q), strength) < 1e-12
    assert lab.prox_of(section, name, given[:0], 0.3).shape == (0, given.shape[1])


@pytest.mark.sample(14)
@pytest.mark.parametrize(("which", "name"), CASES)
def test_the_boundary_of_a_ball_is_exact(which, name):
    section = lab.PLANES[which]
    directions = lab.circle(41)
    for level in (0.25, 1.0, 4.0):
        result = lab.boundary(section, name, directions, level)
        assert result.shape == directions.shape
        assert np.allclose(lab.values(section, name, result), level, rtol=1e-12)
    # The corners of the picture are corners of the ball.
    assert (directions[:, None] == np.eye(2)).all(axis=-1).any(axis=0).all()


def test_the_flow_begins_on_a_grid_and_ends_at_the_prox():
    section = lab.PLANES["column"]
    ways = lab.flow(section, "ti", 0.4, n=5, steps=3)
    assert ways.shape == (25, 4, 2)
    assert np.array_equal(ways[:, -1], lab.prox_of(section, "ti", ways[:, 0], 0.4))
    codes = lab.zero_codes(ways[:, -1])
    assert set(codes) == {0, 1, 2, 3}
    assert np.array_equal(codes == 3, (ways[:, 0] == 0).all(axis=1)), "TI empties no column"
    assert (lab.zero_codes(lab.flow(section, "l1", 0.6, n=5)[:, -1]) == 3).sum() == 1


def test_the_words_of_a_section_are_true_wherever_the_point_is():
    moved = {
        (plane, name): lab.prox_of(section, name, points(section), 0.4)
        for plane, section in lab.PLANES.items()
        for name in ("l1", "l21", "ti", "cs")
    }
    ridge = points(lab.PLANES["row"]) / 1.8
    for first, second in (
        *((moved["row", name], ridge) for name in ("ti", "cs")),
        (moved["diagonal", "ti"], ridge),
        (moved["column", "l1"], moved["column", "l21"]),
        (moved["column", "ti"], moved["column", "cs"]),
    ):
        assert np.allclose(first, second)
    assert (moved["diagonal", "cs"] == 0).any()


def test_zeros_are_listed_from_both_to_neither():
    ends = {"l1": [0.0, 0.0], "l21": [0.0, 1.0], "ti": [1.0, 1.0], "cs": [1.0, 2.0]}
    assert lab.zeros_in_words({name: np.array(q) for name, q in ends.items()}, 0.4) == (
        "Exactly zero at λ = 0.4: **both** under ℓ₁, **a** under ℓ₂,₁, **neither entry** under TI and CS."
    )
    # The preset "Small beside large".
    ends = {name: lab.prox_of(lab.PLANES["column"], name, [[1.5, 0.6]], 0.35)[0] for name in ("l1", "ti")}
    assert lab.zeros_in_words(ends, 0.35).endswith("**b** under TI, **neither entry** under ℓ₁.")


@pytest.mark.parametrize("strength", [0.0, 0.05, 0.2, 2.0])
def test_the_threshold_of_a_column(strength):
    entries = [1.6, -1.1, 0.8, 0.5, 0.3, 0.15]
    story = lab.column_story(entries, strength)
    size = np.sort(np.abs(entries))[::-1]
    share = 2 * strength / (1 + 2 * strength * story.kept)
    assert story.threshold == pytest.approx(share * size[: story.kept].sum())
    assert story.certificate < 1e-12
    kept = story.after != 0
    assert (np.abs(story.before[kept]) > story.threshold).all()
    assert (np.abs(story.before[~kept]) <= story.threshold + 1e-12).all()
    assert kept[0]
    assert story.latex(strength).endswith(rf"{story.threshold:.4g}\end{{aligned}}")
    twice = lab.column_story(2 * np.array(entries), strength)
    assert np.array_equal(twice.after != 0, kept), "the same entries stay, whatever the scale"


def test_the_program_prints_the_results():
    section, point = lab.PLANES["column"], [1.5, 0.6]
    first, second = printed(lab.geometry_program(section, ["l1", "ti"], point, 0.4))
    assert first.startswith("l1 [[1.1], [")
    q = lab.prox_of(section, "ti", np.array([point]), 0.4)[0]
    assert second.startswith(f"ti [[{q[0]!r}], [0.0]]".replace("np.float64(", "").replace(")", ""))
