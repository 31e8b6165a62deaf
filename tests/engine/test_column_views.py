"""Column views as plain Python, against their definitions: for any order, and where factors are exactly 0."""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import pytest

from fmviz.engine.design import Design
from fmviz.engine.models.columns.anova import anova_entries
from fmviz.engine.models.columns.subsets import SUBSETS_ENTRIES

X = np.random.default_rng(0).choice([-1.0, 0.5, 1.0, 2.0], size=(5, 6))
# With x = ±1 some factors 1 + x·p of all subsets are 0.
COLUMN = np.array([1.0, -1.0, 0.5, 2.0, -0.3, 1.5])
TARGETS = (0.7, 0.0, 1.0, -0.2, -1.0, 0.4)


def anova(degree):
    return lambda x, p: sum(prod(x[j] * p[j] for j in some) for some in combinations(range(len(p)), degree))


def all_subsets(x, p):
    return prod(1.0 + a * b for a, b in zip(x, p, strict=True))


VIEWS = {
    **{f"anova {m}": (anova_entries(m), anova(m)) for m in (2, 3, 4, 5)},
    "subsets": (SUBSETS_ENTRIES, all_subsets),
}


@pytest.mark.parametrize("name", VIEWS)
def test_cofactors_and_advances_are_those_of_the_kernel(name):
    view, kernel = VIEWS[name]
    p = COLUMN.copy()
    P = p[None]
    state = view.state(Design(X), P)
    view.open(P, 0, state)
    kept = view.column(P, 0, state)
    if view.rebuilt:
        for n, j in np.ndindex(X.shape):
            view.absorb(kept, n, X[n, j], p[j])
    for j, q in enumerate(TARGETS):
        for n, x in enumerate(X):
            # K is linear in the entry: its slope is the difference that a step of 1 makes.
            slope = kernel(x, p + (np.arange(p.size) == j)) - kernel(x, p)
            own = view.partner(kept, j)
            assert x[j] * view.cofactor(kept, n, x[j], p[j], own) == pytest.approx(slope, abs=1e-12)
            rise = view.advance(kept, n, x[j], p[j], q, own)
            assert rise == pytest.approx(slope * (q - p[j]), abs=1e-12)
        p[j] = q
