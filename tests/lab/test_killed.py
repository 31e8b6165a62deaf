"""Runs survive a server that is killed; FMVIZ_KILLS sets how often, once by default."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from inline_executor import InlineExecutor
from programs import wait_for

from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.runner import Run
from fmviz.lab.store import INTERRUPTED, RunStore

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("FMVIZ_KILLS", "1"))

# Ten runs of all kinds: some end within the time, most do not. What has ended for its readers is printed.
VICTIM = """
    import sys, time
    from fmviz.engine.solvers import PSGD, Katyusha
    from fmviz.lab.store import recorder
    from fmviz.lab.experiment import Experiment
    from fmviz.lab.background.tasks import ServerLimits, TaskManager
    from fmviz.lab.store import RunStore
    recorder.CHECKPOINT_SECONDS, recorder.FLUSH_SECONDS = 0.2, 0.1
    base = dict(tol=0.0, rank=10, lambda_sparse=0.1, lambda_p=0.1)
    experiments = [Experiment(**base, max_epochs=40 * 5 ** i, seed=i) for i in range(3)]
    experiments += [
        Experiment(**base, max_epochs=1000, regularizer="cs"),
        Experiment(**base, max_epochs=1000, regularizer="ti", solver="apgd"),
        Experiment(**base, max_epochs=400, regularizer="ti", solver=PSGD(eta0=1e-4)),
        Experiment(**base, max_epochs=400, regularizer="cs", solver=Katyusha(eta0=1e-4)),
        Experiment(**{**base, "lambda_sparse": 0.0}, max_epochs=400, regularizer="l2", solver="lbfgs"),
        Experiment(**base, max_epochs=600, model="hofm", regularizer="omega_ti", init_scale=0.1),
        Experiment(**base, max_epochs=600, dataset="balance_scale", loss="logistic"),
    ]
    store = RunStore(sys.argv[1])
    manager = TaskManager(open_store=lambda: store, limits=ServerLimits(per_owner=10))
    jobs = [manager.start(experiment) for experiment in experiments]
    told = set()
    while True:
        for job in jobs:
            view = job.view()
            if view.state.ended and view.id not in told:
                told.add(view.id)
                print(view.id, flush=True)
        time.sleep(0.005)
"""


@pytest.mark.parametrize("kill", range(KILLS))
def test_nothing_is_lost_and_all_goes_on(tmp_path, request, kill):
    path = tmp_path / "runs.sqlite"
    command = [sys.executable, "-c", textwrap.dedent(VICTIM), str(path)]
    victim = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    request.addfinalizer(victim.kill)
    wait_for(path.exists, 120.0)
    store = RunStore(path)
    wait_for(lambda: len(store.runs()) == 10, 120.0)
    time.sleep(random.Random(kill).uniform(0.1, 2.0))
    victim.kill()
    ended = victim.communicate()[0].split()
    assert store.database.read("PRAGMA integrity_check")[0][0] == "ok"
    runs = store.runs()
    assert len(runs) == 10
    assert {run.status for run in runs} <= {INTERRUPTED, "epochs", "diverged", "converged", "stalled"}
    assert {run.id for run in runs if run.ended and not run.resumable} >= set(ended), "a finished run is lost"
    assert any(run.resumable for run in runs)
    manager = TaskManager(InlineExecutor(), open_store=lambda: store)
    for run in runs:
        if run.resumable:
            manager.open(run.id).play()
        assert not store.get(run.id).resumable
        trace = store.trace(run.id)
        expected = list(Run.prepare(run.experiment).snapshots())
        assert [without_times(r) for r in trace] == [without_times(s.record()) for s in expected], (
            run.settings
        )
        parameters = store.parameters(run.id)
        assert np.array_equal(parameters.P, expected[-1].parameters.P)
        assert np.array_equal(parameters.w, expected[-1].parameters.w)


def without_times(record):
    return json.dumps({name: value for name, value in record.items() if name != "seconds"})
