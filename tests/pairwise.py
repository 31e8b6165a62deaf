"""Few cases of many: covering arrays, in which every two choices meet, and even samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

Case = tuple[Any, ...]


def covering(cases: Iterable[Case], meet: int = 2) -> list[int]:
    """Return the places of cases that hold together whatever two values any case holds.

    A greedy cover: of all cases the one that adds the most new pairs is taken, the first of several. Equal
    arguments give equal places.

    Parameters
    ----------
    cases : iterable of tuple
        All cases that make sense, a value of each factor: a product, or what a condition leaves of it.
    meet : int
        How many values meet: 2 for pairs, 1 where each value need only occur.

    Returns
    -------
    list of int
        The places, ascending.

    Examples
    --------
    >>> cases = list(itertools.product("ab", "xy", [0, 1]))
    >>> [cases[at] for at in covering(cases)]
    [('a', 'x', 0), ('a', 'y', 1), ('b', 'x', 1), ('b', 'y', 0)]
    """
    # Values need not be hashable: they are told apart by what they look like.
    met = [
        {(at, tuple(repr(case[i]) for i in at)) for at in itertools.combinations(range(len(case)), meet)}
        for case in cases
    ]
    missing = set().union(*met)
    taken = []
    while missing:
        best = max(range(len(met)), key=lambda at: len(met[at] & missing))
        taken.append(best)
        missing -= met[best]
    return sorted(taken)


def spread(count: int, most: int) -> list[int]:
    """Return the places of `most` of `count` cases, evenly spread: where each is dear, some stand for all.

    Examples
    --------
    >>> spread(10, 3)
    [1, 5, 8]
    """
    most = min(most, count)
    return [(2 * at + 1) * count // (2 * most) for at in range(most)]


def sampled(*groups: tuple[Iterable[Any], int]) -> list[Any]:
    """Return the cases of all groups, those slow that an even sample of so many of their group leaves out."""
    listed = [([*cases], most) for cases, most in groups]
    return [
        pytest.param(*case, marks=() if at in spread(len(cases), most) else pytest.mark.slow)
        for cases, most in listed
        for at, case in enumerate(cases)
    ]


def _covered(product: list[pytest.Function], marker: pytest.Mark) -> list[int]:
    together = marker.kwargs.get("together", ())
    cases = []
    for item in product:
        params = dict(item.callspec.params)
        joint = tuple(params.pop(name) for name in together)
        cases.append((joint, *params.values()) if joint else tuple(params.values()))
    return covering(cases, *marker.args)


def mark_products(items: Iterable[pytest.Item]) -> None:
    """Mark as slow the cases of tests marked `pairwise` or `sample` that a cover or a sample does without.

    ``pairwise(1, together=("model", "solver"))`` takes the values of two parameters for one.
    """
    products: dict[tuple[str, str, str], list[pytest.Function]] = {}
    for item in items:
        for name in ("pairwise", "sample"):
            if isinstance(item, pytest.Function) and item.get_closest_marker(name) is not None:
                products.setdefault((str(item.path), item.originalname, name), []).append(item)
    for (_, _, name), product in products.items():
        marker = product[0].get_closest_marker(name)
        assert marker is not None
        chosen = set(_covered(product, marker) if name == "pairwise" else spread(len(product), *marker.args))
        for at, item in enumerate(product):
            if at not in chosen:
                item.add_marker(pytest.mark.slow)
