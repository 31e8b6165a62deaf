"""Covering arrays: few cases in which every two choices meet, instead of all products of choices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Case = tuple[Any, ...]


def covering(*factors: Iterable[Any], allowed: Callable[..., bool] | None = None) -> list[Case]:
    """Return cases in which every two values of any two factors occur together.

    A greedy cover: of all cases the one that adds the most new pairs is taken, the first of several. The
    same factors give the same cases, in the order of the product.

    Parameters
    ----------
    *factors : iterable
        The values of each factor.
    allowed : callable, optional
        ``allowed(*case)`` says whether a case may occur; pairs that occur in no such case are left out.

    Returns
    -------
    list of tuple
        A value of each factor.

    Examples
    --------
    >>> covering("ab", "xy", [0, 1])
    [('a', 'x', 0), ('a', 'y', 1), ('b', 'x', 1), ('b', 'y', 0)]
    """
    product = _product(factors, allowed)
    chosen = _chosen([indices for indices, _ in product], len(factors))
    return [case for at, (_, case) in enumerate(product) if at in chosen]


def pairwise(*factors: Iterable[Any], allowed: Callable[..., bool] | None = None) -> list[Any]:
    """Return the whole product for `pytest.mark.parametrize`; what a cover can do without is slow.

    `make test` runs the cover, `make test-all` everything.
    """
    product = _product(factors, allowed)
    chosen = _chosen([indices for indices, _ in product], len(factors))
    return [
        pytest.param(*case, marks=() if at in chosen else pytest.mark.slow)
        for at, (_, case) in enumerate(product)
    ]


def _product(
    factors: Sequence[Iterable[Any]], allowed: Callable[..., bool] | None
) -> list[tuple[tuple[int, ...], Case]]:
    """Return every allowed case with the places of its values, which need not be hashable."""
    pools = [list(values) for values in factors]
    return [
        (indices, case)
        for indices in itertools.product(*(range(len(pool)) for pool in pools))
        if (case := tuple(pool[i] for pool, i in zip(pools, indices, strict=True)))
        and (allowed is None or allowed(*case))
    ]


def _chosen(cases: Sequence[tuple[int, ...]], n_factors: int) -> set[int]:
    """Return the places of a cover's cases."""
    size = min(2, n_factors)
    met = [
        {(at, tuple(case[i] for i in at)) for at in itertools.combinations(range(n_factors), size)}
        for case in cases
    ]
    missing = set().union(*met)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(cases)), key=lambda at: len(met[at] & missing))
        chosen.add(best)
        missing -= met[best]
    return chosen
