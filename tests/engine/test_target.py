"""Targets: numbers and labels are checked once, and predictions become labels in one place."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.problem import Problem
from fmviz.engine.target import Target

X = np.eye(4)


@pytest.mark.parametrize(
    ("target", "kind", "labels", "values", "outputs"),
    [
        (Target.of([0.5, 2, -1]), "real", None, [0.5, 2.0, -1.0], 1),
        (Target.of([1, -1, 1]), "binary", [-1.0, 1.0], [1.0, -1.0, 1.0], 1),
        (Target.of([[0.5, 2], [3, 4]]), "real", None, [[0.5, 2.0], [3.0, 4.0]], 2),
        (Target.of([[1, -1, 1], [-1, -1, 1]]), "several", None, [[1, -1, 1], [-1, -1, 1]], 3),
        # Labels in their order.
        (Target.of_labels(["spam", "ham", "spam"]), "binary", ["ham", "spam"], [1.0, -1.0, 1.0], 1),
        (Target.of_labels([7, 3, 3]), "binary", [3, 7], [1.0, -1.0, -1.0], 1),
        (Target.of_labels([5, 1, 3, 1]), "class", [1, 3, 5], [2.0, 0.0, 1.0, 0.0], 3),
        (Target.of_labels([5, 1, 3, 1], True), "ordinal", [1, 3, 5], [2.0, 0.0, 1.0, 0.0], 2),
    ],
)
def test_numbers_and_labels(target, kind, labels, values, outputs):
    assert (target.kind, target.n_outputs, target.values.tolist()) == (kind, outputs, values)
    assert labels is None or target.labels.tolist() == labels
    assert target.values.dtype == np.float64
    assert Target.of(target) is target


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


def test_one_label_is_no_target():
    with pytest.raises(ValueError, match=r"one class only, 'ham'; .* Add rows of another class"):
        Target.of_labels(["ham", "ham"])


F, SCORES = np.array([-0.5, 0.0, 2.0]), np.array([[0.1, 0.9, 0.3], [2.0, -1.0, 0.0]])
SEVERAL = [[True, True, True], [True, False, False]]


@pytest.mark.parametrize(
    ("target", "scores", "expected"),
    [
        (Target.of([0.5, 1.0]), F, F.tolist()),
        # A score of 0 is no evidence for the second class.
        (Target.of([-1, 1]), F, [-1.0, -1.0, 1.0]),
        (Target.of_labels(["no", "yes"]), F, ["no", "no", "yes"]),
        (Target.of_labels(["a", "b", "c"]), SCORES, ["b", "a"]),
        (Target.of([[1, -1, 1], [-1, 1, 1]]), SCORES, SEVERAL),
        (Target(np.ones((2, 3)), "several", np.array(["sun", "rain", "snow"])), SCORES, SEVERAL),
        (Target.of([[0.5, 1.0, 2.0]]), SCORES, SCORES.tolist()),
        # Scores of y ≤ 1, y ≤ 2, y ≤ 3, the last ones in the wrong order: the median.
        (
            Target.of_labels([1, 2, 3, 4], ordered=True),
            np.array([[0.5, 1.0, 2.0], [-2.0, -1.0, 3.0], [-2.0, -1.0, -0.5], [0.5, -1.0, 3.0]]),
            [1, 3, 4, 2],
        ),
    ],
)
def test_scores_become_what_the_target_holds(target, scores, expected):
    assert target.decode(scores).tolist() == expected


def test_every_output_has_a_target_of_its_own():
    def values(target):
        return [output.values.tolist() for output in target.outputs]

    assert values(Target.of_labels(list("bac"))) == [[-1, 1, -1], [1, -1, -1], [-1, -1, 1]]
    assert values(Target.of_labels([2, 1, 3], ordered=True)) == [[-1, 1, -1], [1, 1, -1]]
    assert values(Target.of([[1, -1], [-1, -1]])) == [[1, -1], [-1, -1]]
    assert values(Target.of([[1, 2.5], [3, 4]])) == [[1, 3], [2.5, 4]]
    single = Target.of([1, -1])
    assert values(single) == [[1, -1]]


def test_outputs_are_found_by_their_label_or_else_by_their_number():
    words = Target.of_labels(list("bac"))
    assert (words.output_names, words.output("c"), words.output(2)) == (["a", "b", "c"], 2, 2)
    numbers = Target.of_labels([1, 2, 3])
    assert numbers.output(1) == 0
    assert Target.of_labels([1, 2, 3], ordered=True).output_names == [1, 2]
    for target, which in ((words, "d"), (numbers, 0), (words, 3), (words, None)):
        with pytest.raises(ValueError, match="does not exist in this model; it has"):
            target.output(which)


def test_probabilities_of_classes_sum_to_one():
    p = np.array([[0.2, 0.6], [0.5, 0.1]])
    ordered = Target.of_labels([1, 2, 3], ordered=True).probabilities(p)
    assert np.allclose(ordered, [[0.2, 0.4, 0.4], [0.1, 0.4, 0.5]])
    assert np.allclose(Target.of_labels(list("ab")).probabilities(p[:, 0]), [[0.8, 0.2], [0.5, 0.5]])
    assert Target.of([[1, -1], [-1, 1]]).probabilities(p) is p
    classes = Target.of_labels(list("abc")).probabilities(np.array([[0.2, 0.6, 0.2], [0.0, 0.0, 0.0]]))
    assert np.allclose(classes, [[0.2, 0.6, 0.2], [1 / 3, 1 / 3, 1 / 3]])


@pytest.mark.parametrize(
    ("y", "loss", "words"),
    [
        ([[1, 1], [-1, 3], [1, 1], [1, 1]], "logistic", "y contains 3, but loss 'logistic' needs labels"),
        (np.zeros(3), "squared", r"y has shape \(3,\), but X has 4 rows"),
        (np.zeros((2, 4)), "squared", r"y has shape \(2, 4\)"),
        ([0, 1, 0, 1], "logistic", "y contains 0, but loss 'logistic' needs labels -1 and \\+1"),
        ([1, -1, 1, 3], "squared_hinge", "y contains 3"),
    ],
)
def test_problems_refuse_what_no_model_takes(y, loss, words):
    with pytest.raises(ValueError, match=words):
        Problem.build(X, y, loss=loss)
