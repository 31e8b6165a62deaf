"""Measure the peak memory of a fit beyond its data.

    python -m bench.memory

Each case runs in a separate process, with kernels compiled before the peak is reset. The floor is one copy of
X. Requires /proc (Linux).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .data import SHAPES
from .peers import NAMES, ROOT, SparsePoly, sparsepoly_python
from .report import alone, pick
from .sparsepoly_driver import peak_bytes, reset_peak

CASES = (("ti", "pcd"), ("cs", "pbcd"), ("ti", "apgd"), ("cs", "nmapgd"), ("ti", "psgd"), ("l2", "lbfgs"))
LEAST = 1_000_000


def size_of(X: Any) -> int:
    """Return the bytes of X."""
    return sum(part.nbytes for part in (X.data, X.indices, X.indptr)) if sp.issparse(X) else X.nbytes


def measure(shape: str, regularizer: str, solver: str) -> dict[str, Any]:
    """Fit in this process; return the peak memory beyond the previous usage, in bytes."""
    # Imported here: the parent process needs no engine.
    from fmviz.engine.solvers import get_solver
    from fmviz.engine.warmup import make_ready

    from .epochs import settings
    from .ours import Ours

    data = SHAPES[shape]()
    problem = data.problem(regularizer)
    make_ready(problem, get_solver(solver, settings(solver)).on(problem))
    del problem
    before = reset_peak()
    problem = data.problem(regularizer)
    run = Ours(problem, solver, problem.start(data.init_scale, np.random.default_rng(0)), **settings(solver))
    run.advance(2)
    return {"peak": peak_bytes() - before, "floor": size_of(data.X)}


def theirs(shape: str, regularizer: str, solver: str) -> int:
    """Return sparsepoly's peak in the same case."""
    data = SHAPES[shape]()
    problem = data.problem(regularizer)
    start = problem.start(data.init_scale, np.random.default_rng(0))
    with SparsePoly() as peer:
        peer.begin(problem, solver, start)
        peak = peer.advance(1)["peak"]
        peer.end()
    return int(peak)


def run(quick: bool) -> dict[str, Any]:
    """Measure."""
    if not Path("/proc/self/clear_refs").exists():
        return {"rows": []}
    rows = []
    for shape in list(SHAPES)[:2] if quick else SHAPES:
        for regularizer, solver in CASES[:2] if quick else CASES:
            command = [sys.executable, "-m", "bench.memory", shape, regularizer, solver]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            row: dict[str, Any] = {"data": shape, "regularizer": regularizer, "solver": solver}
            row |= json.loads(done.stdout.splitlines()[-1])
            row["ratio"] = row["peak"] / row["floor"]
            if sparsepoly_python() is not None and regularizer in NAMES and solver in ("pcd", "pbcd"):
                row["peer"] = theirs(shape, regularizer, solver)
                # Smaller amounts depend on the state of the allocator.
                row["of_peer"] = row["peak"] / row["peer"] if row["peer"] > LEAST else None
            print(f"  {shape}: {solver} {regularizer} {row['peak'] / 1e6:.1f} MB", flush=True)
            rows.append(row)
    return {"rows": rows}


def markdown(result: dict[str, Any]) -> str:
    """Return the table, in megabytes."""
    rows = [
        row | {key: row[key] / 1e6 for key in ("peak", "floor", "peer") if row.get(key) is not None}
        for row in result["rows"]
    ]
    columns = {
        "data": "data",
        "regularizer": "regularizer",
        "solver": "solver",
        "peak": "peak, MB",
        "floor": "X, MB",
        "ratio": "ratio",
        "peer": "sparsepoly, MB",
        "of_peer": "of sparsepoly's",
    }
    return pick(rows, columns)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(*sys.argv[1:])))
    else:
        alone("memory", run, markdown)
