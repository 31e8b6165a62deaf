"""The study behind the page of the proximal operators."""

from __future__ import annotations

import numpy as np
import pytest
from programs import printed

import fmviz
from fmviz.engine.counting import used_features, used_interactions
from fmviz.lab import operators as lab

ALL = tuple(lab.VARIANTS)


@pytest.fixture(scope="module")
def paper() -> np.ndarray:
    return lab.sample(200, 30)


@pytest.mark.parametrize("distribution", lab.DISTRIBUTIONS)
def test_samples_are_repeated_by_their_seed(distribution):
    P = lab.sample(7, 4, distribution, 3)
    assert P.shape == (7, 4)
    assert np.isfinite(P).all()
    np.testing.assert_array_equal(P, lab.sample(7, 4, distribution, 3))


@pytest.mark.parametrize(
    "text",
    [
        "1, -2.5\n0 ,3e-1",
        "1 -2.5\n\n  0\t.3 ",
        "1;-2.5\n0;0.3",
        "1\t-2.5\n0\t0.3\n",
        "[[1, -2.5], [0, 0.3]]",
        "[[ 1.  -2.5]\n [ 0.   0.3]]",
        "array([[1., −2.5],\n       [0., 0.3]])",
        "1 -2.5; 0 0.3",
        "1,-2.5,\n0,0.3,",
    ],
)
def test_parse_matrix(text):
    np.testing.assert_array_equal(lab.parse_matrix(text), [[1, -2.5], [0, 0.3]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "No matrix yet"),
        (" \n \n", "No matrix yet"),
        ("a,b\n1,2", "Row 1, column 1: 'a'"),
        ("1,2\n3,x", "Row 2, column 2: 'x' is not a number"),
        ("1,2\n3", "Row 2 has 1 entries but row 1 has 2"),
        ("1,,2", "Row 1, column 2: ''"),
        ("1,nan", "must be finite"),
        ("1,1e300", "at most 1e\\+15"),
        ("1\n" * 401, "401 × 1"),
        (" ".join(["1"] * 61), "1 × 61"),
    ],
)
def test_parse_matrix_refuses_with_a_sentence(text, message):
    with pytest.raises(ValueError, match=message):
        lab.parse_matrix(text)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("distribution", lab.DISTRIBUTIONS)
def test_study_agrees_with_the_public_functions(name, distribution):
    P = lab.sample(30, 5, distribution, 1)
    variant = lab.VARIANTS[name]
    first = lab.study(P, variant)
    for at, e in enumerate(lab.EXPONENTS):
        Q = fmviz.prox(variant.penalty, P, 2.0**e)
        np.testing.assert_array_equal(first.Q[at], Q)
        assert first.interactions[at] == used_interactions(Q)
        assert first.features[at] == used_features(Q)
        assert first.entries[at] == np.count_nonzero(Q)
    assert first.certificates.max() <= 1e-10
    assert not first.Q.flags.writeable


def test_l1_and_l21_end_at_the_largest_entry_and_row(paper):
    l1, l21 = (lab.VARIANTS[name] for name in ("l1", "l21"))
    for variant, end in ((l1, np.abs(paper).max()), (l21, np.linalg.norm(paper, axis=1).max())):
        assert not variant.penalty.prox(paper, end * (1.0 + 1e-12)).any()
        assert variant.penalty.prox(paper, end * (1.0 - 1e-12)).any()


@pytest.mark.parametrize("name", ["l1", "l21", "ti"])
def test_what_stays_loses_the_same(name, paper):
    variant = lab.VARIANTS[name]
    Q = variant.penalty.prox(paper, 0.5)
    table = lab.worked_table(paper, Q, variant, 2, most=200)
    stays = table["after"] > 0
    assert stays.sum() == np.count_nonzero(np.linalg.norm(Q, axis=1) if name == "l21" else Q[:, 2])
    assert np.ptp(table["loses"][stays]) == pytest.approx(0, abs=1e-12)
    assert (table["before"][~stays] <= table["loses"][stays].iloc[0] + 1e-12).all()


@pytest.mark.parametrize("pasted", [False, True])
def test_python_source_prints_the_same_counts(pasted):
    P = lab.sample(20, 4, "blocks", 5)
    variants = [lab.VARIANTS[name] for name in ALL]
    code = lab.python_source(variants, -2, d=20, k=4, distribution="blocks", seed=5, P=P if pasted else None)
    for line, variant in zip(printed(code), variants, strict=True):
        Q = variant.penalty.prox(P, 0.25)
        assert line.startswith(f"{variant.penalty!r} {used_interactions(Q)} {used_features(Q)} ")
