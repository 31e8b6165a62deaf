"""Strengths chosen, a fit with them in the store, an average beside it: as a page watches it."""

from __future__ import annotations

import numpy as np
import pytest
from programs import printed

from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.search import averaged as module
from fmviz.lab.search import first_fit as steps_of
from fmviz.lab.search.averaged import Average, Sampling
from fmviz.lab.search.first_fit import FirstFit, first_fit, first_fit_program
from fmviz.lab.search.tuning import tuned
from fmviz.paths.validation import Trial

EXPERIMENT = Experiment(dataset="balance_scale", rank=3, validation=0.3, loss="logistic")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "_DRAWS", 20)
    monkeypatch.setattr(module, "_BURN_IN", 20)
    monkeypatch.setattr(
        steps_of, "tuned", lambda prepared, should_stop: tuned(prepared, quick=True, should_stop=should_stop)
    )


def test_every_step_says_what_it_is_and_the_fit_is_stored_and_repeated(store):
    steps = list(first_fit(EXPERIMENT, store))
    kinds = [type(step) for step in steps]
    assert list(dict.fromkeys(kinds)) == [Trial, FirstFit, Sampling, Average]
    assert kinds.count(Sampling) == 40
    assert all(step.message for step in steps)
    fit = next(step for step in steps if isinstance(step, FirstFit))
    assert fit.validation.trials == [step for step in steps if isinstance(step, Trial)]
    stored = store.get(fit.run)
    assert stored.experiment == fit.experiment
    again = Run.prepare(fit.experiment).end()
    assert again.objective == pytest.approx(stored.last["objective"], rel=1e-12) == fit.end.objective
    average = steps[-1]
    assert average.own_score == pytest.approx(fit.end.metrics["validation_auc"])
    assert average.better == (average.score > average.own_score)
    assert average.n_bytes == 4 * 20 * 4 * (3 + 1)
    assert printed(first_fit_program(EXPERIMENT)) == [step.message for step in steps]


def test_a_stopped_search_ends_where_it_is():
    asked = iter(range(1_000))
    steps = list(first_fit(EXPERIMENT, should_stop=lambda: next(asked) > 3))
    assert all(isinstance(step, Trial) for step in steps)
    with pytest.raises(ValueError, match="before the first fit"):
        list(first_fit(EXPERIMENT, should_stop=lambda: True))


def test_intervals_are_those_of_the_samples():
    steps = list(first_fit(EXPERIMENT))
    average = steps[-1]
    i, j = np.array([0, 1]), np.array([2, 3])
    table = average.intervals(i, j, level=0.5)
    # No attribute has levels here; the samples are probit scores, the fit is log-odds.
    samples = 1.702 * average.posterior.weights(i, j)
    assert table["mean"].tolist() == pytest.approx(samples.mean(axis=0))
    inside = (samples > table["lower"].to_numpy()) & (samples < table["upper"].to_numpy())
    assert inside.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.05)
    agree = np.sign(samples) == np.sign(samples.mean(axis=0))
    assert table["probability"].tolist() == pytest.approx(agree.mean(axis=0))
