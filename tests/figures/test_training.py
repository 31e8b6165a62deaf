"""The curves of a run: what is drawn, and that zooming survives a live update."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fmviz.figures import training
from fmviz.metrics import LOSS, OBJECTIVE, RMSE


def frame(n: int, **columns: object) -> pd.DataFrame:
    epochs = np.arange(n)
    base = {
        "epoch": epochs,
        "seconds": 0.5 * epochs,
        "objective": 10.0 / (1 + epochs),
        "loss": 9.0 / (1 + epochs),
        "penalty_w": np.zeros(n),
        "penalty_p": 0.4 / (1 + epochs),
        "penalty_sparse": 0.6 / (1 + epochs),
        "used_features": np.maximum(20 - epochs, 3),
        "used_interactions": np.maximum(190 - 9 * epochs, 3),
        "train_rmse": 3.0 / (1 + epochs),
        "validation_rmse": 4.0 / (1 + epochs),
        "train_loss": 3.0 / (1 + epochs),
        "support_f1": np.minimum(epochs / 10, 1.0),
        "support_recovered": (epochs >= 10).astype(float),
        "estimation_error": 1.0 / (1 + epochs),
    }
    return pd.DataFrame(base | columns)


def names(figure) -> list[str]:
    return [trace.name for trace in figure.data]


def objective(history, x="epoch"):
    return training.curves(history, training.convergence("red"), x, revision="a")


@pytest.mark.parametrize(
    ("values", "log"),
    [([100.0, 1.0], True), ([10.0, 1.0], False), ([100.0, 0.0], False), ([1e9, -1.0], False)],
)
def test_the_axis_is_logarithmic_only_where_that_helps(values, log):
    plots = [training.Plot(OBJECTIVE, (training.Curve("objective", "", "red"),))]
    figure = training.curves(frame(2, objective=np.array(values)), plots)
    assert (figure.layout.yaxis.type == "log") is log


def recovery(history):
    return training.curves(history, training.recovery(history))


def test_a_value_that_is_not_finite_does_not_break_the_axis():
    bad = np.array([np.inf, 5.0, np.nan])
    objective(frame(3, objective=bad))
    assert recovery(frame(3, estimation_error=bad)).layout.yaxis.range == (0.0, 5.25)
    assert recovery(frame(3)).layout.yaxis.range == (0.0, 1.05)


def test_at_most_two_thousand_points_with_both_ends():
    figure = objective(frame(100_000))
    assert all(len(trace.x) <= 2_000 for trace in figure.data)
    assert (figure.data[0].x[0], figure.data[0].x[-1]) == (0, 99_999)


def test_one_point_is_seen():
    history = frame(1)
    for plots in (training.uses(), training.recovery(history)):
        assert "markers" in training.curves(history, plots).data[0].mode


def test_orders_are_drawn_each_with_its_true_number():
    history = frame(30)
    history["used_interactions_2"], history["used_interactions_3"] = 5, 7
    parts = {"used_interactions_2": "pairs", "used_interactions_3": "triples"}
    figure = training.curves(history, training.uses(parts, {"used_interactions_3": 4}))
    assert names(figure) == ["pairs", "triples", "in truth", "features"]
    assert list(figure.data[2].y) == [4, 4]
    assert figure.data[2].showlegend
    assert figure.data[0].line.color != figure.data[1].line.color


def test_metrics_and_recovery_are_drawn_where_they_are_known():
    history = frame(30)
    assert training.metrics_in(history) == [RMSE, LOSS]
    for metric, rows in ((RMSE, ["training", "validation"]), (LOSS, ["training"])):
        assert names(training.curves(history, training.prediction(metric))) == rows
    assert names(recovery(history)) == ["F1", "error"]
    assert names(recovery(history.assign(support_f1_3=0.5)))[:2] == ["F1 of pairs", "F1 of triples"]
    assert not training.recovery(["objective"])


def test_zoom_survives_new_points_but_not_another_axis():
    revisions = [
        objective(frame(n), x).layout.uirevision for n, x in ((5, "epoch"), (50, "epoch"), (5, "seconds"))
    ]
    assert revisions == ["a:epoch", "a:epoch", "a:seconds"]


def test_convergence_is_drawn_above_the_lowest_objective_known_for_each_problem():
    history = pd.DataFrame({"epoch": [0, 1, 2, 3, 4], "objective": [9.0, 5.0, 8.0, 6.0, np.inf]})
    assert training.gap(history).tolist()[:4] == pytest.approx([4.0, np.nan, 3.0, 1.0], nan_ok=True)
    # After epoch 1 strengths change; another run has reached 5.5 under the later ones.
    above = training.gap(history, [(-1, None), (1, 5.5)])
    assert above.tolist() == pytest.approx([4.0, np.nan, 2.5, 0.5, np.nan], nan_ok=True)
    long = frame(100, certificate=0.5 ** np.arange(100.0))
    figure = training.curves(long, training.convergence("red"))
    assert (figure.layout.yaxis.type, figure.layout.yaxis2.type) == ("log", "log")
    assert list(figure.data[0].y[:-1]) == pytest.approx((long["objective"] - 0.1).tolist()[:-1])
