"""What every model learns on every data set under the settings that a page opens with."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.models import MODELS
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets import DATASETS
from fmviz.lab.experiment import suggested
from fmviz.lab.runner import Run

# Sets of tens of thousands of rows, or of many classes, take too long for every run of the tests.
LARGE = (
    *("flights", "bike", "movielens_100k", "synthetic", "a9a", "rcv1", "flight_delay"),
    *("digits", "vowel", "segment", "satimage", "letter"),
)
SMALL = [name for name in DATASETS if name not in LARGE]
# Its caps take ten fits of all products: more products than rows take minutes.
FOR_ROBUST = ("diabetes", "monks1", "balance_scale")


@pytest.mark.pairwise(1)
@pytest.mark.parametrize("dataset", SMALL)
@pytest.mark.parametrize("model", tuple(MODELS))
def test_suggested_settings_converge_and_beat_the_mean(model, dataset):
    if (reason := dataset_spec(dataset).unavailable()) is not None:
        pytest.skip(reason)
    if model == "robust" and dataset not in FOR_ROBUST:
        pytest.skip("more products than rows")
    run = Run.prepare(suggested(dataset, model))
    if run.problem.model.multi_output and not run.dataset.outputs:
        pytest.skip("one output has nothing to share a basis with")
    last = run.end()
    best = []
    for problem in run.problem.machines:
        y, m = problem.y, problem.target.n_outputs
        rates = np.linspace(y.min() - 3.0, y.max() + 3.0, 601)
        shape = (y.size,) if m == 1 else (y.size, m)
        best.append(min(problem.empirical_risk(np.full(shape, rate)) for rate in rates))
    # A loss that grows in proportion to errors is the root of what squares are.
    share = 0.7 if run.experiment.loss.smooth else 0.7**0.5
    assert last.loss < share * np.mean(best)
    assert last.status.converged, last.status.message
    if run.problem.model.certificate == "gap":
        assert last.certificate < (0.05 if run.problem.model.multi_output else 1e-3)


def test_what_is_planted_for_a_model_is_found_by_it():
    last = Run.prepare(suggested("planted_subsets")).end()
    assert suggested("planted_subsets").model.name == "all_subsets"
    for order, count in ((2, 24), (3, 16)):
        assert last.metrics[f"used_interactions_{order}"] == count
    assert last.metrics["support_recovered"] == last.metrics["support_recovered_3"] == 1.0
