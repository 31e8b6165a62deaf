"""Targets of tables: numbers, classes, scales, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from small_tables import decided, frame, learn, source_of

from fmviz.tables.encoded import applied, encode
from fmviz.tables.target import TargetEncoding, ascending


def target(values, task="auto", **options) -> TargetEncoding:
    return TargetEncoding.learn(pd.Series(values, name="t"), task, **options)


def encoded(learned: TargetEncoding, values) -> np.ndarray:
    return learned.encode(pd.DataFrame({"t": values}))


def test_two_values_are_classes():
    words = target(["no", "yes", None, "no"])
    assert (words.task, words.labels) == ("binary", ("no", "yes"))
    assert np.array_equal(encoded(words, ["yes", None, "no", "?"]), [1, np.nan, -1, np.nan], equal_nan=True)
    assert target([0, 1, 1]).labels == ("0", "1")
    assert target([2.5, 1.0, 1.0]).labels == ("1", "2.5")
    assert target([True, False]).labels == ("False", "True")
    assert encoded(target([0.0, 2.0], "regression"), [0.0, 2.0]).tolist() == [-1.0, 1.0]
    several = target(list("abc"), positive="b")
    assert np.array_equal(encoded(several, ["a", "b", "new", None]), [-1, 1, -1, np.nan], equal_nan=True)
    assert several.decode(np.array([-1.0, 2.0])).tolist() == ["not b", "b"]


def test_one_class_against_the_others():
    table = frame(200)
    with pytest.raises(ValueError, match=r"3 classes \(Bonn, Kiel, Ulm\); choose one"):
        learn(table, "town", task="binary")
    assert learn(table, "town").target.labels == ("Bonn", "Kiel", "Ulm")
    data = learn(table, "town", positive="Kiel")
    assert data.target.class_labels == ("not Kiel", "Kiel")
    assert ((data.y == 1) == (table["town"] == "Kiel")).all()
    assert target(["no", "yes"] * 5, positive="no").class_labels == ("yes", "no")
    with pytest.raises(ValueError, match="regression needs numbers"):
        learn(table, "town", task="regression")


def test_libsvm_classes():
    source, recipe = decided(b"1 1:1 3:2\n2 2:1\n3 1:4\n" * 5)
    assert encode(source, recipe).target.task == "regression"
    source, recipe = decided(b"1 1:1 3:2\n2 2:1\n3 1:4\n" * 5, positive="2")
    data = encode(source, recipe)
    assert data.target.class_labels == ("not 2", "2")
    assert (data.y == 1).sum() == 5


@pytest.mark.parametrize(
    ("words", "numbers", "note"),
    [
        (["$1,200.5", "$30", "$4"], [1200.5, 30, 4], "Target 't': Read as numbers in $ ('$1,200.5')."),
        (["101,39", "99,9", "1"], [101.39, 99.9, 1], "with a decimal comma ('101,39')"),
        (["−1.5", "2", "n/a"], [-1.5, 2, np.nan], ""),
        (["1,037", "2,500", "3"], [1037, 2500, 3], "`--read decimal=comma` reads it in the other way."),
        (
            ["1", "2", "3"],
            [1, 2, 3],
            "The target 't' has 3 distinct integers; `--task class` predicts classes.",
        ),
        (
            ["0", "1", "0", "2", "7"],
            [0, 1, 0, 2, 7],
            "The target 't' may be a count; `--loss poisson` models counts.",
        ),
    ],
)
def test_targets_are_read_as_people_write_them(words, numbers, note):
    learned = target(words * 9)
    assert learned.task == "regression"
    kept = TargetEncoding.from_dict(json.loads(json.dumps(learned.to_dict())))
    assert kept == learned
    np.testing.assert_allclose(kept.decode(encoded(kept, words)), numbers)
    assert note in " ".join(learned.sentences)


def test_none_is_a_class_and_capitals_are_not():
    learned = target(["None", "Apnea", "apnea", "Apnea "] * 5)
    assert learned.labels == ("Apnea", "None")
    assert "'apnea' as 'Apnea'" in learned.sentences[0]
    assert encoded(learned, ["apnea", "None", "APNEA."]).tolist() == [-1, 1, -1]


def test_the_classes_of_adults_may_end_with_a_point():
    learned = target(["<=50K", ">50K"] * 9)
    assert encoded(learned, ["<=50K.", " >50K."]).tolist() == [-1, 1]
    assert learned.unknown(pd.DataFrame({"t": ["<=50K.", "50K", "50K"]})) == [
        "The model does not have the class 50K of 't', which 2 rows have."
    ]


def test_classes_that_are_new_are_told():
    table = frame(60)
    learned = learn(table, "town")
    new = table.head(4).assign(town=["Rom", "Ulm", "Rom", "Bonn"])
    later = applied(source_of(new), learned.target, learned.encoder)
    assert later.rows.tolist() == [1, 3]
    assert later.notes[-1] == "The model does not have the class Rom of 'town', which 2 rows have."


def test_scales_are_in_their_order():
    scale = ("Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree")
    words = [*scale, *scale[::-1]] * 3
    learned = target(words, "ordinal")
    assert (learned.task, learned.labels) == ("ordinal", scale)
    assert "ordered by their rating scale: Strongly disagree, Disagree" in learned.sentences[-1]
    plain = target(words)
    assert (plain.task, plain.labels) == ("class", tuple(sorted(scale)))
    assert "`--task ordinal`" in plain.sentences[-1]
    assert target(words, "ordinal", order=scale[::-1]).labels == scale[::-1]
    assert ascending(["high", "LOW", "very low", "Medium"]) == ("very low", "LOW", "Medium", "high")
    assert ascending(["high", "low", "blue"]) == ()


def test_classes_of_their_own_are_refused_with_a_reason():
    with pytest.raises(
        ValueError, match=r"40 distinct words in 40 rows .*nearly every row is a separate class"
    ):
        target([f"w{i}x" for i in range(40)])
    with pytest.raises(ValueError, match="1,001 classes"):
        target([f"w{i}x" for i in range(1_001)] * 3)
    assert target([f"w{i}x" for i in range(40)], positive="w1x").task == "binary"
