"""Time epochs with X in single precision against X in double precision.

    python -m bench.precision

Everything but the values of X is computed in double precision in both cases. Rank 30, no linear term; the
cases alternate, after a first epoch that is not timed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fmviz.engine.design import DTYPES, Design

from .data import SHAPES
from .epochs import started
from .report import alone, pick
from .timing import in_turns, median_ratio

CASES = (("ti", "pcd"), ("l2", "cd"), ("cs", "pbcd"), ("ti", "apgd"), ("ti", "psgd"))
WHICH = ("dense 20,000 × 100", "dense 2,500 × 4,000", "text-like 20,000 × 10,000")


def run(quick: bool) -> dict[str, Any]:
    """Measure; seconds are those of one epoch."""
    rows = []
    for shape in WHICH[:1] if quick else WHICH:
        data = SHAPES[shape]()
        designs = {dtype: Design(data.X, dtype) for dtype in DTYPES}
        for regularizer, solver in CASES[:1] if quick else CASES:
            runs = {
                dtype: started(replace(data, X=design).problem(regularizer), data, solver)
                for dtype, design in designs.items()
            }
            times = in_turns({dtype: lap for dtype, (_, lap, _) in runs.items()}, 3 if quick else 7)
            double, single = (times[dtype] for dtype in DTYPES)
            rows.append(
                {
                    "data": shape,
                    "regularizer": regularizer,
                    "solver": solver,
                    "epoch": float(np.median(double)),
                    "single": float(np.median(single)),
                    "ratio": median_ratio(single, double),
                    "values": {dtype: int(design.columns.data.nbytes) for dtype, design in designs.items()},
                }
            )
            print(f"  {shape}: {solver} {regularizer} {rows[-1]['ratio']:.2f}", flush=True)
    return {"rows": rows}


def markdown(result: dict[str, Any]) -> str:
    """Return the table."""
    rows = [
        row
        | {"epoch": 1e3 * row["epoch"], "single": 1e3 * row["single"]}
        | {f"{dtype} MB": size / 1e6 for dtype, size in row["values"].items()}
        for row in result["rows"]
    ]
    columns = {
        "data": "data",
        "solver": "solver",
        "regularizer": "regularizer",
        "epoch": "float64, ms",
        "single": "float32, ms",
        "ratio": "ratio",
        "float64 MB": "X float64, MB",
        "float32 MB": "float32, MB",
    }
    return pick(rows, columns)


if __name__ == "__main__":
    alone("precision", run, markdown)
