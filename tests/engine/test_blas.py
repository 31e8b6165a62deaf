"""One thread of BLAS while the engine computes, whatever the process has."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import fmviz
from fmviz.engine.blas import each_on_one_thread, one_thread
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run


def limits() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.fixture(params=[2, 4])
def several(request):
    with threadpool_limits(request.param, user_api="blas"):
        yield limits()


def end(regularizer: str, **settings):
    experiment = Experiment(regularizer=regularizer, max_epochs=15, tol=0.0, **settings)
    final = Run.prepare(experiment).end()
    return final.objective, final.certificate, final.parameters.P.tobytes()


RUNS = [{"regularizer": "l1"}, {"regularizer": "cs"}, {"regularizer": "ti", "solver": "apgd"}]


@pytest.mark.sample(1)
@pytest.mark.parametrize("settings", RUNS)
def test_a_run_is_the_same_with_any_number_of_threads(several, settings):
    runs = [end(**settings)]
    with threadpool_limits(1, user_api="blas"):
        runs.append(end(**settings))
    assert runs[0] == runs[1]
    assert limits() == several


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name", ["SharedBasisRegressor", "BayesianFMRegressor", "FactorizationMachineRegressor"]
)
def test_an_estimator_is_the_same_with_any_number_of_threads(several, name):
    X, y = np.random.default_rng(0).normal(size=(300, 60)), np.random.default_rng(1).normal(size=300)
    machine = getattr(fmviz, name)(random_state=0)
    weights = [machine.fit(X, y).w_.tobytes()]
    with threadpool_limits(1, user_api="blas"):
        weights.append(machine.fit(X, y).w_.tobytes())
    assert weights[0] == weights[1]
    assert limits() == several


def test_between_two_epochs_and_after_the_last_block_limits_are_as_before(several):
    inside = []

    def items():
        try:
            while True:
                yield limits()
        finally:
            inside.append(limits())

    epochs = each_on_one_thread(items())
    assert set(next(epochs)) == {1}
    assert limits() == several
    epochs.close()
    assert set(inside[0]) == {1}
    assert limits() == several


def test_blocks_of_two_threads_overlap(several):
    entered, may_leave = threading.Event(), threading.Event()

    def first():
        with one_thread():
            entered.set()
            may_leave.wait(10.0)

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait(10.0)
    with one_thread():
        may_leave.set()
        thread.join()
        assert set(limits()) == {1}
    assert limits() == several
