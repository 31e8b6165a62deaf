"""Time imports, kernel compilation and the first fit in fresh processes.

    python -m bench.startup

CPU seconds of the process and its children, with wall seconds for comparison. There are three steps:
``import fmviz``; access to an estimator class, which imports scikit-learn; and its first fit.
``from fmviz import FactorizationMachineRegressor`` combines the first two. The floor of the first step is the
import of numpy, scipy and numba. The reference for all three together is ``import sklearn.base`` in a
separate process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from .peers import ONE_THREAD, ROOT, sparsepoly_python
from .report import alone, at_most, pick

STAGES = """
import json, os, time
def now():
    t = os.times()
    return time.perf_counter(), t.user + t.system + t.children_user + t.children_system
marks = [now()]
{module}
marks.append(now())
{estimator}
marks.append(now())
import numpy as np
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 100)); y = X[:, 0] * X[:, 1]
marks.append(now())
{fit}
marks.append(now())
print(json.dumps(marks))
"""
FLOOR = STAGES.format(
    module="import numpy, scipy.sparse, scipy.sparse.linalg, numba, numba.extending",
    estimator="",
    fit="",
)
FMVIZ = STAGES.format(
    module="import fmviz",
    estimator="Regressor = fmviz.FactorizationMachineRegressor",
    fit="Regressor(rank=30, lambda_p=.1, lambda_sparse=.1, max_iter=5, random_state=0).fit(X, y)",
)
SCIKIT_LEARN = STAGES.format(module="", estimator="import sklearn.base", fit="")
SPARSEPOLY = STAGES.format(
    module="import sparsepoly",
    estimator="Regressor = sparsepoly.SparseFactorizationMachineRegressor",
    fit="Regressor(n_components=30, mean=True, beta=.2, gamma=.1, max_iter=5).fit(X, y)",
)
STEPS = {"import": 0, "class": 1, "fit": 3}
# Empty steps.
EMPTY = {"floor": ("class", "fit"), "scikit-learn": ("import", "fit")}


def surroundings(cache: str) -> dict[str, str]:
    """Return the environment of a fresh process: one thread, this kernel cache, and bytecode caching."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | ONE_THREAD | {"FMVIZ_CACHE_DIR": cache, "PYTHONWARNINGS": "ignore"}


def stages(code: str, cache: str, python: str = sys.executable) -> dict[str, float]:
    """Run a fresh process; return the wall and CPU seconds of each step."""
    done = subprocess.run(
        [python, "-c", code], env=surroundings(cache), cwd=ROOT, capture_output=True, text=True, check=True
    )
    marks = np.array(json.loads(done.stdout.splitlines()[-1]))
    wall, used = np.diff(marks, axis=0).T
    return {name: float(used[i]) for name, i in STEPS.items()} | {
        f"{name}_wall": float(wall[i]) for name, i in STEPS.items()
    }


def median_stages(code: str, cache: str, rounds: int, python: str = sys.executable) -> dict[str, float]:
    """Return the medians over several processes."""
    taken = [stages(code, cache, python) for _ in range(rounds)]
    return {key: float(np.median([row[key] for row in taken])) for key in taken[0]}


def warmup(cache: str) -> dict[str, float]:
    """Prepare the kernels of the first pages in a fresh process; return wall and CPU seconds."""
    begin, before = time.perf_counter(), os.times()
    subprocess.run(
        [sys.executable, "-m", "fmviz", "warmup"],
        env=surroundings(cache),
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall": time.perf_counter() - begin, "cpu": used}


def run(quick: bool) -> dict[str, Any]:
    """Measure."""
    rounds = 3 if quick else 7
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cold:
        result["nothing compiled"] = stages(FMVIZ, cold)
        result["all compiled"] = median_stages(FMVIZ, cold, rounds)
    result["floor"] = median_stages(FLOOR, "", rounds)
    result["scikit-learn"] = median_stages(SCIKIT_LEARN, "", rounds)
    if not quick:
        with tempfile.TemporaryDirectory() as cold:
            result["warm-up, nothing compiled"] = warmup(cold)
            result["warm-up, all compiled"] = warmup(cold)
    python = sparsepoly_python()
    if python is not None:
        result["sparsepoly"] = median_stages(SPARSEPOLY, "", 1 if quick else 3, python)
    return result


def markdown(result: dict[str, Any]) -> str:
    """Return the tables."""
    floor = result["floor"]["import"]
    rows = [
        {"what": what, **times, "ratio": times["import"] / floor}
        | {f"{step}{kind}": None for step in EMPTY.get(what, ()) for kind in ("", "_wall")}
        | ({"ratio": None} if "import" in EMPTY.get(what, ()) else {})
        for what, times in result.items()
        if "import" in times
    ]
    stages_table = pick(
        rows,
        {
            "what": "process",
            "import": "import, CPU s",
            "import_wall": "wall s",
            "ratio": "of the floor",
            "class": "estimator class, CPU s",
            "class_wall": "its wall s",
            "fit": "first fit, CPU s",
            "fit_wall": "its wall s",
        },
    )
    warm = [{"what": what, **times} for what, times in result.items() if "cpu" in times]
    return "\n\n".join(
        [stages_table, pick(warm, {"what": "kernels of the first pages", "cpu": "CPU s", "wall": "wall s"})]
    )


def to_first_fit(times: Mapping[str, float]) -> float:
    """Return the CPU seconds of import, access to the estimator class and first fit."""
    return times["import"] + times["class"] + times["fit"]


def allowed(scikit_learn: Mapping[str, float]) -> float:
    """Return the limit for import and first fit: 1.5 times that of `sklearn.base` plus 0.5 s."""
    return 1.5 * scikit_learn["class"] + 0.5


def bars(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare the times with their bar."""
    # Results saved before this bar existed lack the times of scikit-learn.
    if "scikit-learn" not in result:
        return []
    return [
        at_most(
            "6",
            "import fmviz and first fit with compiled kernels, against scikit-learn's base, CPU s",
            to_first_fit(result["all compiled"]),
            allowed(result["scikit-learn"]),
        )
    ]


if __name__ == "__main__":
    alone("startup", run, markdown)
