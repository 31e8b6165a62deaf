"""Marks of changed strengths on curves, and figures of two rows of P."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fmviz.figures import palette, training
from fmviz.figures.interactions import two_rows
from fmviz.figures.tabular import table
from fmviz.figures.training import mark_epochs
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run
from fmviz.lab.runs.changes import change_words, with_strengths
from papers.drawing import method_colors

CHANGED = Experiment(
    dataset="balance_scale",
    rank=3,
    lambda_p=1e-3,
    lambda_sparse=0.01,
    init_scale=0.3,
    max_epochs=12,
    tol=0.0,
    changes=((4, "lambda_sparse", 0.1), (8, "lambda_sparse", 0.05), (8, "lambda_p", 0.01)),
)


@pytest.fixture(scope="module")
def history() -> pd.DataFrame:
    return pd.DataFrame([snapshot.record() for snapshot in Run.prepare(CHANGED).snapshots()])


def test_changes_are_marked_where_their_epoch_ended(history):
    words = change_words(CHANGED, 12)
    assert words == {4: "λ = 0.1", 8: "λ = 0.05, λₚ = 0.01"}
    assert change_words(CHANGED, 7) == {4: "λ = 0.1"}
    for x in ("epoch", "seconds"):
        for plots in (training.convergence("red"), training.uses()):
            figure = mark_epochs(training.curves(history, plots, x), history, x, words)
            assert [shape.x0 for shape in figure.layout.shapes] == pytest.approx(history[x][[4, 8]].tolist())
            assert [note.text for note in figure.layout.annotations] == list(words.values())
    assert not mark_epochs(training.curves(history, training.uses()), history, "epoch", {}).layout.shapes


def test_every_epoch_is_written_down_with_its_strengths(history):
    table = with_strengths(history, CHANGED).set_index("epoch")
    assert table["lambda_sparse"][[0, 4, 5, 8, 9]].tolist() == [0.01, 0.01, 0.1, 0.1, 0.05]
    assert table["lambda_p"][[8, 9]].tolist() == [1e-3, 0.01]
    assert "lambda_p" not in history


@pytest.mark.parametrize("dark", [False, True])
def test_two_rows_are_strips_in_which_zeros_have_a_colour_of_their_own(dark):
    values = np.array([[0.5, 0.0, -0.1], [0.0, 0.0, 1.0]])
    pulls, thresholds = np.abs(values) + 0.1, np.full((2, 3), 0.3)
    figure = two_rows(["a", "b"], values, pulls, thresholds, dark=dark)
    zeros, entries = figure.data[:2]
    assert np.array_equal(np.isnan(zeros.z), values != 0)
    assert np.array_equal(np.isnan(entries.z), values == 0)
    threshold, pull = figure.data[2:4]
    assert list(pull.y) == pulls[0][values[0] == 0].tolist()
    assert list(threshold.y) == [0.3]
    assert "pull of the loss, b" in set(table(figure)["trace"])
    by_norm = two_rows(["a", "a"], np.array([[0.0, 0.0], [1.0, 1.0]]), pulls[:, :1], thresholds[:, :1])
    assert [len(trace.x) for trace in by_norm.data[2:]] == [1, 1, 0, 0]
    assert len(two_rows(["a", "b"], values).data) == 2


def test_every_method_has_one_marker():
    colors = list(palette.REGULARIZER_COLORS.values())
    assert len({palette.symbol_of(color) for color in colors}) == len(colors)
    # Papers name methods in the order of their figures.
    for methods in (["CS", "TI", "L1"], ["TI (rows)", "CS"]):
        for label, color in method_colors(methods).items():
            assert palette.symbol_of(color) == palette.symbol_of(
                palette.regularizer_color(label.split(" ")[0].lower())
            )
