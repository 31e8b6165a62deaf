"""Run other programs for comparison, if installed: sparsepoly and libFM.

FMVIZ_PEERS is a Python that can import sparsepoly (default: this one); FMVIZ_LIBFM is the libFM binary
(default: ``libFM`` on the path). Neither is part of this project.

Conversion of our strengths, (1/N)Σℓ + λ_w‖w‖² + λ_p‖P‖² + λ̃Ω(P):

- sparsepoly with ``mean=True`` has (1/N)Σℓ + (α/2)‖w‖² + (β/2)‖P‖² + γΩ: α = 2λ_w, β = 2λ_p, γ = λ̃. Its
  TI is called squaredl12, its CS squaredl21.
- libFM's ALS has Σ(f − y)² + r‖P‖²: r = 2Nλ_p. The time of its epochs does not depend on the strength.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem

from .sparsepoly_driver import receive, send

ROOT = Path(__file__).resolve().parent.parent
NAMES = {
    "ti": "squaredl12",
    "cs": "squaredl21",
    "omega_ti": "omegati",
    "omega_cs": "omegacs",
    "l1": "l1",
    "l21": "l21",
}
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@cache
def sparsepoly_python() -> str | None:
    """Return a Python that can import sparsepoly, or None."""
    python = os.environ.get("FMVIZ_PEERS") or sys.executable
    try:
        probe = subprocess.run([python, "-c", "import sparsepoly"], capture_output=True, check=False)
    except OSError:
        return None
    return python if probe.returncode == 0 else None


@cache
def libfm_binary() -> str | None:
    """Return the path of the libFM binary, or None."""
    return shutil.which(os.environ.get("FMVIZ_LIBFM") or "libFM")


def strengths_of(problem: Problem) -> dict[str, float]:
    """Return the strengths of sparsepoly for the same objective."""
    return {
        "alpha": 2.0 * problem.lambda_w,
        "beta": 2.0 * problem.lambda_p,
        "gamma": problem.lambda_sparse,
    }


class SparsePoly:
    """A sparsepoly process; use it as a context manager."""

    def __init__(self) -> None:
        python = sparsepoly_python()
        if python is None:
            raise RuntimeError(
                "No Python here can import sparsepoly; set FMVIZ_PEERS=/path/to/python to one that can."
            )
        self._process = subprocess.Popen(
            [python, "-m", "bench.sparsepoly_driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | ONE_THREAD,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._design: Any = None

    def __enter__(self) -> SparsePoly:
        return self

    def __exit__(self, *_: object) -> None:
        self._to.close()
        self._process.wait()

    def _ask(self, **request: Any) -> dict[str, Any]:
        send(self._to, request)
        return receive(self._from)

    def begin(self, problem: Problem, solver: str, start: Parameters, **more: Any) -> dict[str, Any]:
        """Begin a fit of the same problem from the same start; return the report after the first epoch.

        The seconds of the first epoch include the set-up.
        """
        X = problem.design.matrix
        parts = {"dense": np.ascontiguousarray(X)}
        if sp.issparse(X):
            rows = sp.csr_array(X)
            parts = {name: getattr(rows, name) for name in ("data", "indices", "indptr", "shape")}
        if self._design is not problem.design:
            self._ask(do="data", X=parts, y=problem.y)
            self._design = problem.design
        settings = {
            "loss": problem.loss.name,
            "solver": solver,
            "regularizer": NAMES[problem.penalty.name],
            "fit_linear": problem.fit_linear,
            "mean": True,
            **strengths_of(problem),
            **more,
        }
        return self._ask(do="fit", settings=settings, start={"P": start.P, "w": start.w})

    def advance(self, epochs: int = 1) -> dict[str, Any]:
        """Run a number of epochs; return their CPU seconds, the total epochs, and peak memory."""
        return self._ask(do="go", epochs=epochs)

    def parameters(self) -> Parameters:
        """Return the current parameters."""
        state = self._ask(do="state")
        return Parameters(state["P"], state["w"], 0.0)

    def end(self) -> None:
        """End the fit."""
        self._ask(do="stop")


def column(log: str, name: str) -> list[float]:
    """Return the numbers in a column of libFM's tab-separated log."""
    heads, *lines = [line.split("\t") for line in log.splitlines() if line.strip()]
    place = heads.index(name)
    return [float(line[place]) for line in lines]


class LibFM:
    """libFM on a problem, with data read from a file; use it as a context manager."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._folder = tempfile.TemporaryDirectory()
        X = problem.design.matrix
        if sp.issparse(X):
            # The writer supports only 32-bit indices.
            X = sp.csr_matrix(X)
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        dump_svmlight_file(X, problem.y, str(self._file("data")), zero_based=False)
        # libFM requires test data.
        dump_svmlight_file(X[:1], problem.y[:1], str(self._file("one")), zero_based=False)

    def _file(self, name: str) -> Path:
        return Path(self._folder.name, name)

    def __enter__(self) -> LibFM:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def epoch(self, epochs: int) -> float:
        """Return the median user seconds of a number of ALS epochs after the first, from libFM's log."""
        strength = 2.0 * self._problem.design.n_samples * self._problem.lambda_p
        options = {
            "task": "r",
            "method": "als",
            "train": self._file("data"),
            "test": self._file("one"),
            "dim": f"0,0,{self._problem.rank}",
            "iter": epochs + 1,
            "regular": f"0,0,{strength}",
            "init_stdev": 0.01,
            "rlog": self._file("log"),
        }
        command = [str(libfm_binary())]
        for name, value in options.items():
            command += [f"-{name}", str(value)]
        subprocess.run(command, capture_output=True, check=True, cwd=self._folder.name)
        return float(np.median(column(self._file("log").read_text(), "time_learn")[1:]))
