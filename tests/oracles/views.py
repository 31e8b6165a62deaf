"""What the views of a penalty promise: Ω along an entry or a row, and a cache that follows P."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Value = Callable[[np.ndarray], float]


def assert_along_entries(view: Any, omega: Value, rng: np.random.Generator) -> tuple[np.ndarray, Any]:
    """Assert that Ω is quad·p² + t·|p| along an entry while all move; return Pᵀ and the cache at the end."""
    PT = rng.normal(size=(4, 6))
    cache = view.cache(6, 4)
    for s in range(4):
        view.begin(PT, s, cache)
        for _ in range(25):
            j = int(rng.integers(6))
            old = PT[s, j]
            t = view.threshold(cache, j, old)
            for q in (0.0, *rng.normal(size=3)):
                moved = PT.T.copy()
                moved[j, s] = q
                expected = view.quad * (q * q - old * old) + t * (abs(q) - abs(old))
                assert expected == pytest.approx(omega(moved) - omega(PT.T), abs=1e-10)
            new = 0.0 if rng.random() < 0.4 else rng.normal()
            PT[s, j] = new
            view.update(cache, j, old, new)
    return PT, cache


def assert_along_rows(view: Any, omega: Value, rng: np.random.Generator) -> None:
    """Assert that the view has the differences of Ω along a row while all move, and shrinks rows by them."""
    P = rng.normal(size=(6, 3))
    cache = view.cache(6, 3)
    view.begin(P, cache)
    for _ in range(40):
        j = int(rng.integers(6))
        q = rng.normal(size=3) * (rng.random() < 0.7)
        moved = P.copy()
        moved[j] = q
        expected = view.quad * (q @ q - P[j] @ P[j])
        expected += view.penalty(q, j, P, cache) - view.penalty(P[j], j, P, cache)
        assert expected == pytest.approx(omega(moved) - omega(P), abs=1e-10)
        u = rng.normal(size=3)
        shrunk = u.copy()
        view.shrink(shrunk, 0.2, j, P, cache)

        def value(z: np.ndarray, u: np.ndarray = u, j: int = j) -> float:
            return 0.5 * np.sum((z - u) ** 2) + 0.2 * view.penalty(z, j, P, cache)

        probes = [shrunk + 10.0 ** rng.uniform(-5, 0) * rng.normal(size=3) for _ in range(30)]
        assert min(value(z) for z in [u, 0 * u, *probes]) >= value(shrunk) - 1e-12
        view.update(cache, j, P, q)
        P[j] = q
    again = view.cache(6, 3)
    view.begin(P, again)
    assert cache == pytest.approx(again, rel=1e-9, abs=1e-11)
