"""Fresh processes: what importing takes along, and that kernels are compiled once and for all."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse
from by_name import iterate
from programs import run_afresh

from fmviz.cli import warmup as cli_warmup
from fmviz.engine import _jit, warmup
from fmviz.engine.fit import Budget
from fmviz.engine.losses.squared import Squared
from fmviz.engine.models.base import Model
from fmviz.engine.models.factorization_machine import FactorizationMachine
from fmviz.engine.problem import Problem
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import DATASETS
from fmviz.lab.experiment import suggested
from fmviz.lab.runner import Run

# What the first two pages call: every operator, and the start and an epoch of the default training run.
FIRST_PAGES = """
import json
import numba.core.event
from fmviz.engine import _jit
from fmviz.engine.warmup import warm_operators
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run

class Listener(numba.core.event.Listener):
    compiled, shown = 0, set()
    def on_start(self, event):
        self.shown.add(_jit.compiling())
    def on_end(self, event):
        self.__class__.compiled += 1

listener = Listener()
numba.core.event.register("numba:compile", listener)
warm_operators()
stream = Run.prepare(Experiment()).snapshots()
next(stream)
at_first_picture = sorted(name for name, kernel in _jit.KERNELS.items() if kernel.signatures)
next(stream)
# Kernels that are decorated when their module is imported may wait for another model.
used = {name: kernel for name, kernel in _jit.KERNELS.items() if kernel.signatures}
stats = [kernel.stats for kernel in used.values()]
print(json.dumps({
    "compiled": listener.compiled,
    "shown": sorted(listener.shown),
    "kernels": sorted(used),
    "at first picture": at_first_picture,
    "from cache": sum(sum(one.cache_hits.values()) for one in stats),
    "places": sorted(one.cache_path for one in stats),
    "compiled kernels": sum(sum(one.cache_misses.values()) for one in stats),
}))
"""


ENGINE = "fmviz.engine.fit, fmviz.engine.models, fmviz.engine.penalties, fmviz.engine.solvers"
HEAVY = {"joblib", "pandas", "plotly", "scipy.optimize", "scipy.stats", "sklearn", "streamlit"}


@pytest.mark.parametrize(
    ("imported", "spared"),
    [
        ("fmviz", HEAVY),
        (ENGINE, {"pandas", "plotly", "streamlit"}),
        ("fmviz.lab.datasets", {"numba", "pandas", "plotly", "sklearn", "streamlit"}),
    ],
    ids=["fmviz", "engine", "datasets"],
)
def test_imports_leave_the_heavy_packages_alone(imported, spared):
    loaded = json.loads(
        run_afresh("-c", f"import json, sys, {imported}; print(json.dumps(sorted(sys.modules)))")
    )
    assert not spared & set(loaded)


def test_old_kernels_are_dropped_but_not_those_in_use(monkeypatch, tmp_path):
    monkeypatch.setenv("FMVIZ_CACHE_DIR", str(tmp_path))
    now = time.time()
    for i in range(6):
        for name, age in (("old", 100_000 + i), ("new", 100 + i)):
            (tmp_path / "kernels" / f"{name}{i}").mkdir(parents=True)
            os.utime(tmp_path / "kernels" / f"{name}{i}", (now - age, now - age))
    _jit.cache_directory.cache_clear()
    try:
        mine = _jit.cache_directory()
    finally:
        _jit.cache_directory.cache_clear()
    assert {p.name for p in mine.parent.iterdir()} == {mine.name, *(f"new{i}" for i in range(6))}


@pytest.mark.slow
@pytest.mark.needs_jit
def test_a_second_process_compiles_nothing(tmp_path):
    # The first compiles every source file to bytecode, which the second reads.
    environment = {
        "FMVIZ_CACHE_DIR": str(tmp_path / "kernels"),
        "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    first, second = (json.loads(run_afresh("-c", FIRST_PAGES, **environment)) for _ in range(2))
    assert first["compiled kernels"] == len(first["kernels"])
    # One name at a time is shown: the kernel's, not those of the functions that it calls.
    assert len(first["shown"]) <= len(first["kernels"])
    assert all(len(names) == 1 for names in first["shown"])
    assert second["kernels"] == first["kernels"]
    assert second["compiled"] == second["compiled kernels"] == 0
    assert second["from cache"] == len(second["kernels"])
    # Numba's index of a place knows no lock: no two kernels share one.
    assert len(set(first["places"])) == len(first["kernels"])
    assert second["places"] == first["places"]
    # Nothing of the solver is needed to show its start.
    assert not any("sweep" in name for name in first["at first picture"])
    assert any("sweep" in name for name in first["kernels"])


ITERATES = """
import hashlib
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
for settings in ({"regularizer": "cs"}, {"regularizer": "ti", "dataset": "monks1", "loss": "logistic"}):
    for snapshot in Run.prepare(Experiment(rank=3, max_epochs=4, lambda_sparse=0.1, **settings)).snapshots():
        print(hashlib.sha256(snapshot.parameters.P.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_kernels_just_compiled_round_like_those_of_the_cache(tmp_path):
    outputs = [run_afresh("-c", ITERATES, FMVIZ_CACHE_DIR=tmp_path) for _ in range(2)]
    assert outputs[0] == outputs[1]


def test_the_warm_up_covers_the_data_sets_of_every_installation(monkeypatch):
    monkeypatch.delenv("FMVIZ_DATA", raising=False)
    runs = {name: suggested(name) for name in DATASETS if dataset_spec(name).unavailable() is None}
    covered = {
        name: (Run.prepare(experiment).problem.design.layout, experiment.loss.name)
        for name, experiment in runs.items()
    }
    assert set(covered.values()) == {covered[name] for name in cli_warmup.DATASETS}


@dataclass(frozen=True)
class OfCounts(Squared):
    """The squared loss, of counts alone."""

    def value(self, f, y):
        assert (y >= 3.0).all()
        return super().value(f, y)


def test_the_warm_up_solves_rows_of_the_problem(monkeypatch):
    monkeypatch.setattr(warmup, "_ready", set())
    sizes = []
    monkeypatch.setattr(
        FactorizationMachine, "start", lambda self, d, *args: sizes.append(d) or Model.start(self, d, *args)
    )
    X = scipy.sparse.random_array((400, 50_000), density=1e-4, rng=np.random.default_rng(0))
    y = np.random.default_rng(1).poisson(4.0, 400) + 3.0
    problem = Problem.build(X, y, loss=OfCounts(), penalty="l1", rank=1, lambda_sparse=0.1)
    ends = [
        list(iterate(problem, "pcd", Budget(2), init_scale=0.1, rng=np.random.default_rng(2)))[-1]
        for _ in range(2)
    ]
    assert np.array_equal(ends[0].parameters.P, ends[1].parameters.P)
    first, sample, second = sizes
    assert sample <= 128 < first == second == 50_000
