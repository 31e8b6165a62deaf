"""The operator of λ‖·‖₁² by Algorithm 2, Algorithm 3 and ours, against a copy; and others on a matrix.

    python -m bench.operators

One thread, processor time, medians of turns inside one run: the ratios are what carries over to other
machines. Vectors follow atarashi2021, C.3 (standard normal, λ = 0.001, 0.1 and 10), to d = 2^20, and then
other distributions. Every call sees several fresh vectors, so that no branch is foreseen from the last call,
and work space is allocated outside the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np

from fmviz.engine.regularizers import REGULARIZERS
from fmviz.engine.regularizers._squared_norm import FINDERS, prox_vector

from ._timing import keep, print_table, seconds_of

STRENGTHS = (0.001, 0.1, 10.0)
EXPONENTS = range(3, 21)
ENTRIES = 2**17
DISTRIBUTIONS: dict[str, Callable[..., np.ndarray]] = {
    "uniform": lambda rng, shape: rng.uniform(-1.0, 1.0, shape),
    "Cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "integers": lambda rng, shape: np.round(3.0 * rng.normal(size=shape)),
    "95% zeros": lambda rng, shape: rng.normal(size=shape) * (rng.random(shape) < 0.05),
    "falling": lambda rng, shape: np.broadcast_to(np.exp(-np.linspace(0.0, 40.0, shape[1])), shape).copy(),
    "constant": lambda rng, shape: np.full(shape, 0.7),
}
MATRICES = ((2**12, 30), (2**16, 30), (2**20, 4))


def kernel_of(find: Any) -> Any:
    """Return ``(M, strength, work, out)``: the operator on every row of M."""

    @numba.njit(nogil=True, error_model="numpy")
    def each_row(M, strength, work, out):
        for i in range(M.shape[0]):
            prox_vector(find, M[i], strength, work, out[i])

    return each_row


KERNELS = {name: kernel_of(find) for name, find in FINDERS.items()}


def row_of(label: str, M: np.ndarray, strength: float) -> dict[str, Any]:
    """Return the microseconds of one operator on a row of M, and the ratios."""
    out, work = np.empty_like(M), np.empty(M.shape[1])
    calls: dict[str, Callable[[], object]] = {"copy": partial(np.copyto, out, M)}
    calls |= {name: partial(kernel, M, strength, work, out) for name, kernel in KERNELS.items()}
    times = {name: s / len(M) * 1e6 for name, s in seconds_of(calls).items()}
    return {
        "entries": label,
        "λ": strength,
        "d": M.shape[1],
        "alive": f"{np.count_nonzero(out) / out.size:.1%}",
        "copy, µs": times["copy"],
        "Sort, µs": times["sort"],
        "Random, µs": times["random"],
        "ours, µs": times["filter"],
        "Random/ours": times["random"] / times["filter"],
        "ours/copy": times["filter"] / times["copy"],
    }


def vectors() -> list[dict[str, Any]]:
    """Measure standard normal vectors of every length."""
    rng = np.random.default_rng(0)
    shapes = [(max(8, ENTRIES // 2**e), 2**e) for e in EXPONENTS]
    return [row_of("normal", rng.normal(size=shape), lam) for lam in STRENGTHS for shape in shapes]


def distributions() -> list[dict[str, Any]]:
    """Measure other vectors, short and long."""
    rng = np.random.default_rng(1)
    return [
        row_of(name, draw(rng, (ENTRIES // d, d)), lam)
        for name, draw in DISTRIBUTIONS.items()
        for d in (2**3, 2**6, 2**12, 2**16)
        for lam in (1e-6, *STRENGTHS)
    ]


def matrices() -> list[dict[str, Any]]:
    """Measure operators on a matrix of normal entries, as `fmviz.prox` calls them, in copies of it."""
    rng = np.random.default_rng(2)
    rows = []
    for shape in MATRICES:
        P = rng.normal(size=shape)
        calls: dict[str, Callable[[], object]] = {"copy": P.copy}
        calls |= {name: partial(REGULARIZERS[name].prox, P, 0.1) for name in ("l1", "l21", "ti", "cs")}
        calls |= {
            f"{name}, Random": partial(REGULARIZERS[name].prox, P, 0.1, "random") for name in ("ti", "cs")
        }
        times = seconds_of(calls)
        rows += [
            {
                "d × k": f"{shape[0]} × {shape[1]}",
                "operator": name,
                "ms": s * 1e3,
                "copies": s / times["copy"],
            }
            for name, s in times.items()
        ]
    return rows


def main() -> None:
    """Print the tables and keep them."""
    tables = {}
    for name, title, measure in (
        ("vectors", "One vector", vectors),
        ("distributions", "One vector of another distribution", distributions),
        ("matrices", "A matrix", matrices),
    ):
        tables[name] = measure()
        print_table(title, tables[name])
    long = [r["Random/ours"] for r in tables["vectors"] if r["d"] >= 2**12]
    short = [r["Random/ours"] for r in tables["vectors"] if r["d"] < 2**12]
    others = [r["Random/ours"] for r in tables["distributions"]]
    largest = [r["ours/copy"] for r in tables["vectors"] if r["d"] == 2**20]
    print(f"\nWorst Random/ours from d = 4,096: {min(long):.1f}; below: {min(short):.2f}.")
    print(
        f"Worst on other distributions: {min(others):.2f}. Worst ours/copy at d = 2^20: {max(largest):.1f}."
    )
    keep("operators", tables)


if __name__ == "__main__":
    main()
