"""The covering arrays cover, and are smaller than the product."""

from __future__ import annotations

import itertools

import pytest
from pairwise import covering, spread

SHAPES = [(2, 2, 2), (3, 4, 5), (2, 3, 2, 3, 2), (5, 1, 4), (6, 7)]


def pairs_of(cases: list) -> set:
    """Return every two values of two factors that occur together."""
    return {
        (at, tuple(case[i] for i in at))
        for case in cases
        for at in itertools.combinations(range(len(case)), 2)
    }


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("some", [False, True])
def test_every_pair_that_may_occur_occurs(shape, some):
    product = list(itertools.product(*map(range, shape)))
    if some:
        product = [case for case in product if case[:2] not in ((0, 0), (1, 1)) and case[-1] != 1]
    places = covering(product)
    assert places == sorted(set(places)) == covering(product)
    assert pairs_of([product[at] for at in places]) == pairs_of(product)


@pytest.mark.parametrize("count", range(1, 12))
@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_sample_is_evenly_spread(count, most):
    places = spread(count, most)
    assert len(places) == len(set(places)) == min(count, most)
    assert all(0 <= at < count for at in places)
    gaps = [b - a for a, b in zip([-1, *places], [*places, count], strict=True)]
    assert max(gaps) <= count / len(places) + 1


HOOK = """
import pytest
from pairwise import mark_products

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    mark_products(items)
"""
SUITE = """
import pytest

@pytest.mark.pairwise
@pytest.mark.parametrize("a", "xy")
@pytest.mark.parametrize(("b", "c"), [(b, c) for b in range(2) for c in range(2)])
def test_pairs(a, b, c):
    pass

@pytest.mark.pairwise(1)
@pytest.mark.parametrize("a", "xyz")
@pytest.mark.parametrize("b", range(3))
def test_each(a, b):
    pass

@pytest.mark.pairwise(1, together=("a", "b"))
@pytest.mark.parametrize("a", "xy")
@pytest.mark.parametrize("b", range(3))
@pytest.mark.parametrize("c", range(4))
def test_joint(a, b, c):
    pass

@pytest.mark.parametrize("a", "xyz")
@pytest.mark.parametrize("b", range(3))
def test_all(a, b):
    pass
"""


@pytest.mark.parametrize(("tier", "counts"), [("not slow", (4, 3, 6, 9)), ("", (8, 9, 24, 9))])
def test_the_marker_makes_what_a_cover_leaves_out_slow(pytester, tier, counts):
    pytester.makeconftest(HOOK)
    pytester.makeini("[pytest]\nmarkers =\n  pairwise\n  slow")
    pytester.makepyfile(SUITE)
    run = pytester.runpytest_inprocess("-v", "-m", tier, "-p", "no:xdist", "-p", "no:cacheprovider")
    for name, count in zip(("pairs", "each", "joint", "all"), counts, strict=True):
        assert sum(f"::test_{name}[" in line for line in run.outlines) == count
