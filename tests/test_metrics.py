from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.interactions.weights import GivenPairs
from fmviz.engine.losses import LOSSES
from fmviz.engine.parameters import Parameters
from fmviz.engine.target import Target
from fmviz.metrics import (
    METRICS,
    Predictions,
    estimation_error,
    interaction_weights,
    support_f1,
    support_recovered,
)

W = np.zeros((4, 4))
W[0, 1] = W[1, 0] = 2.0
W[2, 3] = W[3, 2] = -1.0


def test_metrics_by_hand():
    P = np.zeros((4, 3))
    P[0, 0], P[1, 0] = 2.0, 1.0
    assert estimation_error(W, P) == pytest.approx(1 / np.sqrt(5))
    assert support_f1(W, P) == pytest.approx(2 / 3)
    assert not support_recovered(W, P)
    P[2, 1], P[3, 1] = 1.0, -1.0
    assert estimation_error(W, P) == 0.0
    assert support_f1(W, P) == 1.0
    assert support_recovered(W, P)
    P[0, 2] = 1.0  # alone in its column: no pair more
    assert support_recovered(W, P)
    P[2, 2] = 1e-300
    assert support_f1(W, P) == pytest.approx(4 / 5)


# Two columns, one for each pair.
FACTORS = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


@pytest.mark.parametrize(
    "parameters",
    [
        FACTORS,
        Parameters(FACTORS, np.zeros(4), 0.0),
        Parameters.of_weights(W + np.diag([9.0] * 4)),
    ],
    ids=["P", "of P", "of W"],
)
def test_the_parameters_of_any_model_are_taken(parameters):
    assert interaction_weights(parameters) == pytest.approx(W)
    assert estimation_error(W, parameters) == pytest.approx(0.0, abs=1e-15)
    assert support_f1(W, parameters) == 1.0
    assert support_recovered(W, parameters)
    first = GivenPairs.of(interaction_weights(parameters)).ranked(1)
    assert (first.sets.tolist(), first.weight.tolist()) == ([[0, 1]], [2.0])


def test_the_diagonal_does_not_count():
    assert estimation_error(W + np.diag([9.0] * 4), np.zeros((4, 2))) == 1.0
    assert support_f1(np.eye(3), np.zeros((3, 1))) == 1.0
    assert estimation_error(np.eye(3), np.zeros((3, 1))) == 0.0


@pytest.mark.parametrize(
    ("truth", "learned", "words"),
    [
        (W[:2], np.zeros((4, 1)), "square"),
        (W, Parameters.of_weights(np.eye(3)), "learned W has shape"),
        (W, np.zeros((3, 1)), "4 rows"),
    ],
)
def test_shapes_are_checked(truth, learned, words):
    with pytest.raises(ValueError, match=words):
        support_f1(truth, learned)


Y = np.array([-1.0, 1.0, 1.0, -1.0])
CLASSES = np.array([0.0, 1.0, 2.0, 1.0])
SIDES = CLASSES[:, None] <= np.arange(2)
TARGETS = {
    "real": (Y, Y),
    "binary": (Y, Y),
    "several": (np.column_stack([Y, -Y]), np.column_stack([Y, -Y])),
    "class": (CLASSES, np.eye(3)[CLASSES.astype(int)] - 0.5),
    "ordinal": (CLASSES, SIDES - 0.5),
}


@pytest.mark.parametrize(
    ("name", "kind"), [(m.name, kind) for m in METRICS.values() if m.on_rows for kind in m.on if m.listed]
)
def test_right_predictions_are_better_and_values_within_limits(name, kind):
    metric, (y, f) = METRICS[name], TARGETS[kind]
    loss = LOSSES["poisson" if metric.log_link else "squared"]
    y, f = (CLASSES, np.log(CLASSES + 0.5)) if metric.log_link else (y, f)
    target = Target(y, kind, np.arange(3) if kind in ("class", "ordinal") else None)
    known = (Predictions(target, g, 1.0 / (1.0 + np.exp(-g)), np.arange(3.0), loss=loss) for g in (f, -f))
    right, wrong = map(metric.function, known)
    assert right < wrong if metric.better == "smaller" else right > wrong
    low, high = metric.limits
    assert all(
        (-np.inf if low is None else low) <= value <= (np.inf if high is None else high)
        for value in (right, wrong)
    )
