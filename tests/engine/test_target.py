"""Targets: numbers and labels are checked once, and predictions become labels in one place."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.problem import Problem
from fmviz.engine.target import Target

X = np.eye(4)


def test_numbers_are_real_or_of_two_classes():
    real = Target.of([0.5, 2, -1])
    assert (real.kind, real.labels, real.n_outputs) == ("real", None, 1)
    assert real.values.dtype == np.float64
    signs = Target.of([1, -1, 1])
    assert (signs.kind, signs.labels.tolist(), signs.n_outputs) == ("binary", [-1.0, 1.0], 1)
    assert Target.of(signs) is signs


def test_rows_of_numbers_are_several_outputs():
    real = Target.of([[0.5, 2], [3, 4], [5, 6]])
    assert (real.kind, real.values.shape, real.n_outputs) == ("real", (3, 2), 2)
    labels = Target.of([[1, -1, 1], [-1, -1, 1]])
    assert (labels.kind, labels.values.shape, labels.n_outputs) == ("several", (2, 3), 3)


def test_values_are_a_copy_that_may_be_written_to():
    y = np.arange(3.0)
    y.flags.writeable = False
    values = Target.of(y).values
    assert values.flags.writeable
    assert not np.shares_memory(values, y)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["a", "b"], "not a number"),
        ([1.0, np.nan], "NaN or infinity"),
        ([1.0, np.inf], "NaN or infinity"),
        (3.0, r"shape \(\)"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
    ],
)
def test_what_is_no_target_is_refused(y, words):
    with pytest.raises(ValueError, match=words):
        Target.of(y)


def test_two_labels_are_minus_and_plus_one_in_their_order():
    target = Target.of_labels(["spam", "ham", "spam"])
    assert (target.kind, target.labels.tolist()) == ("binary", ["ham", "spam"])
    assert target.values.tolist() == [1.0, -1.0, 1.0]
    assert target.n_outputs == 1
    assert Target.of_labels([7, 3, 3]).values.tolist() == [1.0, -1.0, -1.0]


@pytest.mark.parametrize(("ordered", "kind"), [(False, "class"), (True, "ordinal")])
def test_more_labels_are_numbered_in_their_order(ordered, kind):
    target = Target.of_labels([5, 1, 3, 1], ordered)
    assert (target.kind, target.labels.tolist(), target.n_outputs) == (kind, [1, 3, 5], 3 - ordered)
    assert target.values.tolist() == [2.0, 0.0, 1.0, 0.0]


def test_one_label_is_no_target():
    with pytest.raises(ValueError, match=r"one class only, 'ham'; .* Add rows of the other class"):
        Target.of_labels(["ham", "ham"])


def test_predictions_become_what_the_target_holds():
    f = np.array([-0.5, 0.0, 2.0])
    assert Target.of([0.5, 1.0]).decode(f) is f
    # A score of 0 is no evidence for the second class.
    assert Target.of([-1, 1]).decode(f).tolist() == [-1.0, -1.0, 1.0]
    assert Target.of_labels(["no", "yes"]).decode(f).tolist() == ["no", "no", "yes"]


def test_scores_become_what_the_target_holds():
    F = np.array([[0.1, 0.9, 0.3], [2.0, -1.0, 0.0]])
    assert Target.of_labels(["a", "b", "c"]).decode(F).tolist() == ["b", "a"]
    expected = [[True, True, True], [True, False, False]]
    assert Target.of([[1, -1, 1], [-1, 1, 1]]).decode(F).tolist() == expected
    named = Target(np.ones((2, 3)), "several", np.array(["sun", "rain", "snow"]))
    assert named.decode(F).tolist() == expected
    assert Target.of([[0.5, 1.0, 2.0]]).decode(F) is F


def test_of_ordered_classes_the_median_is_predicted():
    target = Target.of_labels([1, 2, 3, 4], ordered=True)
    # Scores of y ≤ 1, y ≤ 2, y ≤ 3, the last ones in the wrong order.
    F = np.array([[0.5, 1.0, 2.0], [-2.0, -1.0, 3.0], [-2.0, -1.0, -0.5], [0.5, -1.0, 3.0]])
    assert target.decode(F).tolist() == [1, 3, 4, 2]


def test_every_output_has_a_target_of_its_own():
    def values(target):
        return [one.values.tolist() for one in target.outputs()]

    assert values(Target.of_labels(list("bac"))) == [[-1, 1, -1], [1, -1, -1], [-1, -1, 1]]
    assert values(Target.of_labels([2, 1, 3], ordered=True)) == [[-1, 1, -1], [1, 1, -1]]
    assert values(Target.of([[1, -1], [-1, -1]])) == [[1, -1], [-1, -1]]
    assert values(Target.of([[1, 2.5], [3, 4]])) == [[1, 3], [2.5, 4]]
    single = Target.of([1, -1])
    assert single.outputs() == [single]


def test_outputs_are_found_by_their_label_or_else_by_their_number():
    words = Target.of_labels(list("bac"))
    assert (words.output_names, words.output("c"), words.output(2)) == (["a", "b", "c"], 2, 2)
    numbers = Target.of_labels([1, 2, 3])
    assert numbers.output(1) == 0
    assert Target.of_labels([1, 2, 3], ordered=True).output_names == [1, 2]
    for target, which in ((words, "d"), (numbers, 0), (words, 3), (words, None)):
        with pytest.raises(ValueError, match="is none of this model; it has"):
            target.output(which)


def test_probabilities_of_classes_sum_to_one():
    p = np.array([[0.2, 0.6], [0.5, 0.1]])
    ordered = Target.of_labels([1, 2, 3], ordered=True).probabilities(p)
    assert np.allclose(ordered, [[0.2, 0.4, 0.4], [0.1, 0.4, 0.5]])
    assert np.allclose(Target.of_labels(list("ab")).probabilities(p[:, 0]), [[0.8, 0.2], [0.5, 0.5]])
    assert Target.of([[1, -1], [-1, 1]]).probabilities(p) is p
    classes = Target.of_labels(list("abc")).probabilities(np.array([[0.2, 0.6, 0.2], [0.0, 0.0, 0.0]]))
    assert np.allclose(classes, [[0.2, 0.6, 0.2], [1 / 3, 1 / 3, 1 / 3]])


def test_problems_take_targets_as_they_are():
    target = Target.of_labels(["no", "yes", "no", "yes"])
    problem = Problem.build(X, target, loss="logistic")
    assert problem.target is target
    assert problem.y is target.values


@pytest.mark.parametrize(
    ("y", "loss", "words"),
    [
        (np.zeros((4, 2)), "squared", r"2 values for each of the 4 rows.* Fit one model for each column"),
        (-np.ones((4, 3)), "logistic", "3 values for each of the 4 rows"),
        (Target.of_labels([1, 2, 3, 1]), "squared", "3 classes.* Fit one model for each class"),
        (Target.of_labels([1, 2, 3, 1], ordered=True), "squared", "3 classes"),
        (np.zeros(3), "squared", r"y has shape \(3,\); X has 4 rows"),
        (np.zeros((2, 4)), "squared", r"y has shape \(2, 4\)"),
        ([0, 1, 0, 1], "logistic", "y contains 0, but loss 'logistic' wants labels -1 and \\+1"),
        ([1, -1, 1, 3], "squared_hinge", "y contains 3"),
    ],
)
def test_problems_refuse_what_no_model_takes(y, loss, words):
    with pytest.raises(ValueError, match=words):
        Problem.build(X, y, loss=loss)
