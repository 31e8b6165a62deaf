"""What the views of a penalty promise: Ω along an entry or a row, and a cache that follows P."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Value = Callable[[np.ndarray], float]


def assert_along_entries(view: Any, omega: Value, rng: np.random.Generator) -> tuple[np.ndarray, Any]:
    """Assert slopes and minima of Ω along an entry while all move; return Pᵀ and the cache at the end."""
    PT = rng.normal(size=(4, 6))
    cache = view.cache(6, 4)
    for s in range(4):
        view.begin(PT, s, cache)
        for _ in range(25):
            j = int(rng.integers(6))
            old = PT[s, j]

            def along(q: float, s: int = s, j: int = j) -> float:
                moved = PT.T.copy()
                moved[j, s] = q
                return omega(moved)

            t = view.threshold(cache, j, old)
            if old:
                slope = 2.0 * view.quad * old + t * np.sign(old)
                assert slope == pytest.approx((along(old + 1e-6) - along(old - 1e-6)) / 2e-6, abs=1e-6)
            g, h, lam_p, lam = rng.normal(), rng.uniform(1, 3), rng.uniform(0, 1), rng.uniform(0, 1)
            q = view.minimum(cache, j, old, g, h, lam_p + lam * view.quad, lam)

            def value(z, old=old, g=g, h=h, lam_p=lam_p, lam=lam, along=along):
                return g * (z - old) + 0.5 * h * (z - old) ** 2 + lam_p * z * z + lam * along(z)

            probes = [0.0, old, *rng.normal(size=3), q + 1e-4, q - 1e-4]
            if old == 0.0 and abs(g) <= lam * t:
                assert q == 0.0
                probes = [1e-6, -1e-6]
            assert min(value(z) for z in probes) >= value(q) - 1e-12 * max(1.0, abs(value(q)))
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
