"""The covering arrays cover, and are smaller than the product."""

from __future__ import annotations

import itertools

import pytest
from pairwise import covering, pairwise

SHAPES = [(2, 2, 2), (3, 4, 5), (2, 3, 2, 3, 2), (5, 1, 4), (6, 7), (4,)]


def pairs_of(cases: list, n_factors: int) -> set:
    """Return every two values of two factors that occur together."""
    return {
        (at, tuple(case[i] for i in at))
        for case in cases
        for at in itertools.combinations(range(n_factors), min(2, n_factors))
    }


def odd_one_out(*case: int) -> bool:
    """Forbid two pairs of values, and one value altogether."""
    return case[:2] not in ((0, 0), (1, 1)) and case[-1] != 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("allowed", [None, odd_one_out])
def test_every_pair_that_may_occur_occurs(shape, allowed):
    factors = [range(n) for n in shape]
    product = [case for case in itertools.product(*factors) if allowed is None or allowed(*case)]
    cover = covering(*factors, allowed=allowed)
    assert set(cover) <= set(product)
    assert len(set(cover)) == len(cover) <= len(product)
    assert pairs_of(cover, len(shape)) == pairs_of(product, len(shape))
    assert cover == covering(*factors, allowed=allowed)


def test_a_cover_is_small():
    assert len(covering(*[range(3)] * 6)) <= 20 < 3**6


def test_values_may_be_anything():
    cover = covering([{}, {"axis": "rows"}], [[1], [2]], ["x", "y"])
    assert len(cover) == 4
    assert ({"axis": "rows"}, [2]) in [case[:2] for case in cover]


def test_the_rest_of_the_product_is_slow():
    factors = "abc", "xyz", [0, 1, 2]
    cases = pairwise(*factors)
    assert [case.values for case in cases] == list(itertools.product(*factors))
    assert [case.values for case in cases if not case.marks] == covering(*factors)
    assert {mark.name for case in cases for mark in case.marks} == {"slow"}
