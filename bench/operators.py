"""Time proximal operators: λ‖·‖₁² by Algorithms 2 and 3 and ours, and others on a matrix.

    python -m bench.operators

One thread, CPU time, medians of alternating rounds within one run: the ratios carry over to other machines.
Vectors follow atarashi2021, C.3 (standard normal, λ = 0.001, 0.1 and 10), up to d = 2^20, and then other
distributions. Every call uses several new vectors, to prevent branch prediction from the last call, and work
space is allocated outside of the timing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np

from fmviz.engine.penalties import PENALTIES
from fmviz.engine.penalties.operators.squared_norm import ALGORITHMS

from .report import alone, at_least, at_most, table
from .timing import cpu_seconds, in_turns

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


def seconds_of(calls: dict[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """Return the median CPU time of each call in alternating rounds, after an untimed one."""
    for call in calls.values():
        call()
    times = in_turns({name: partial(cpu_seconds, call) for name, call in calls.items()}, rounds)
    return {name: float(np.median(laps)) for name, laps in times.items()}


def kernel_of(algorithm: Any) -> Any:
    """Return ``(M, strength, work, out)``: the operator on every row of M."""

    @numba.njit(nogil=True, error_model="numpy")
    def each_row(M, strength, work, out):
        for i in range(M.shape[0]):
            algorithm(M[i], strength, work, out[i])

    return each_row


KERNELS = {name: kernel_of(algorithm) for name, algorithm in ALGORITHMS.items()}


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


def vectors(quick: bool) -> list[dict[str, Any]]:
    """Measure standard normal vectors of every length."""
    rng = np.random.default_rng(0)
    shapes = [(max(8, ENTRIES // 2**e), 2**e) for e in (EXPONENTS[::3] if quick else EXPONENTS)]
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
        calls |= {name: partial(PENALTIES[name].prox, P, 0.1) for name in ("l1", "l21", "ti", "cs")}
        calls |= {f"{name}, Random": partial(PENALTIES[name].prox, P, 0.1, "random") for name in ("ti", "cs")}
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


def run(quick: bool) -> dict[str, Any]:
    """Measure."""
    results = {"vectors": vectors(quick)}
    return results if quick else results | {"distributions": distributions(), "matrices": matrices()}


def bars(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return bar 4: against Algorithm 3 on normal vectors, and against a copy."""
    rows = result["vectors"]
    ratios = {d: min(r["Random/ours"] for r in rows if r["d"] == d) for d in sorted({r["d"] for r in rows})}
    lines = [at_least("4", f"Random/ours, d = {d:,}", x, 8) for d, x in ratios.items() if d >= 2**12]
    lines.append(
        at_least("4", "Random/ours, worst below d = 4,096", min(x for d, x in ratios.items() if d < 2**12), 1)
    )
    largest = [r["ours/copy"] for r in rows if r["d"] == 2**20]
    if largest:
        lines.append(at_most("4", "ours/copy, d = 2^20", max(largest), 10))
    return lines


def markdown(result: dict[str, Any]) -> str:
    """Return the tables."""
    titles = {
        "vectors": "One vector, N(0, 1)",
        "distributions": "One vector of another distribution",
        "matrices": "A matrix",
    }
    return "\n\n".join(
        table(list(rows[0]), [list(row.values()) for row in rows], titles[name])
        for name, rows in result.items()
    )


if __name__ == "__main__":
    alone("operators", run, markdown)
