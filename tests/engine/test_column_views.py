"""Column views as plain Python, against their definitions: for any order, and where factors are exactly 0."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from oracles import slow_kernels

from fmviz.engine.design import Design
from fmviz.engine.models.columns.anova import anova_entries
from fmviz.engine.models.columns.subsets import SUBSETS_ENTRIES

X = np.random.default_rng(0).choice([-1.0, 0.5, 1.0, 2.0], size=(5, 6))
# With x = ±1 some factors 1 + x·p of all subsets are 0.
COLUMN = np.array([1.0, -1.0, 0.5, 2.0, -0.3, 1.5])
TARGETS = (0.7, 0.0, 1.0, -0.2, -1.0, 0.4)


VIEWS = {
    **{f"anova {m}": (anova_entries(m), partial(slow_kernels.anova, degree=m)) for m in (2, 3, 4, 5)},
    "subsets": (SUBSETS_ENTRIES, slow_kernels.all_subsets),
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
            slope = kernel(p + (np.arange(p.size) == j), x) - kernel(p, x)
            own = view.partner(kept, j)
            assert x[j] * view.cofactor(kept, n, x[j], p[j], own) == pytest.approx(slope, abs=1e-12)
            rise = view.advance(kept, n, x[j], p[j], q, own)
            assert rise == pytest.approx(slope * (q - p[j]), abs=1e-12)
        p[j] = q
