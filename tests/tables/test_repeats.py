"""Columns that say the same, rows that are equal, columns that tell the target, and its logarithm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small_tables import source_of

from fmviz.tables.encoded import encode
from fmviz.tables.encoder import TableEncoder
from fmviz.tables.recipe import Recipe, columns_of, first_recipe, row_groups


@pytest.fixture
def table(rng) -> pd.DataFrame:
    n = 400
    age, town = rng.integers(18, 81, n), rng.choice(["Bonn", "Kiel", "Ulm"], n)
    near = age + rng.normal(0, 1.0, n)
    return pd.DataFrame(
        {
            "age": age,
            "months": 12 * age,
            "squared": age**3,
            "near": near,
            "far": age + rng.normal(0, 10.0, n),
            "town": town,
            "code": pd.Series(town).map({"Bonn": 7, "Kiel": 3, "Ulm": 5}),
            "state": pd.Series(town).map({"Bonn": "W", "Kiel": "N", "Ulm": "W"}),
            "when": (np.datetime64("2022-01-01") + rng.integers(0, 730, n)).astype(str),
            "y": rng.normal(size=n),
        }
    )


def recipe_of(table: pd.DataFrame, **changes) -> Recipe:
    source = source_of(table)
    return replace(first_recipe(source, columns_of(source)), target="y", numbers="line", **changes)


def test_columns_that_say_the_same_are_left_out(table):
    encoder = TableEncoder(numbers="line").fit(table.drop(columns="y"))
    said = [sentence for sentence in encoder.sentences_ if "says the same" in sentence]
    assert said == [
        "Column 'months' says the same as 'age' and is left out.",
        "Column 'squared' says the same as 'age' and is left out.",
        "Column 'near' says the same as 'age' and is left out.",
        "Column 'code' says the same as 'town' and is left out.",
    ]
    assert "Column 'when' is a date and becomes month, weekday, trend." in encoder.sentences_
    names = [column.name for column in encoder.columns_]
    assert names == ["age", "far", "town", "state", "when.month", "when.weekday", "when.trend"]
    every = TableEncoder(numbers="line", distinct=False).fit(table.drop(columns="y"))
    assert len(every.columns_) == 12
    # Missing values make a difference.
    gaps = table.drop(columns="y").assign(months=table["months"].where(table.index % 10 > 0))
    assert "months" in [column.name for column in TableEncoder(numbers="line").fit(gaps).columns_]


def test_measurements_of_a_person_are_no_copies(rng):
    person = np.repeat(np.arange(40), 12)
    labs = pd.DataFrame({name: rng.normal(size=40).round(3)[person] for name in ("a", "b")})
    table = labs.assign(who=np.char.add("p", person.astype(str)), y=labs["b"] + rng.normal(size=480))
    encoder = encode(source_of(table), recipe_of(table, group="who")).encoder
    assert {"a", "b"} < {column.name for column in encoder.columns_}
    assert not any("alone determines" in sentence for sentence in encoder.sentences_)
    # A group is suggested, also if two rows are equal.
    twice = pd.concat([table, table[:1]], ignore_index=True)
    encoder = encode(source_of(twice), recipe_of(twice)).encoder
    assert {"a", "b"} < {column.name for column in encoder.columns_}
    assert "`--group who`" in encoder.sentences_[-1]


def test_equal_rows_stay_together(table):
    twice = pd.concat([table, table[:5]], ignore_index=True)
    groups = row_groups(source_of(twice), recipe_of(twice))
    assert groups[400:].tolist() == groups[:5].tolist()
    assert np.unique(groups).size == 400
    notes = encode(source_of(twice), recipe_of(twice)).notes
    assert notes[-1].startswith("5 rows equal another one in all columns; equal rows stay")
    assert row_groups(source_of(twice), recipe_of(twice, distinct=False)) is None
    assert row_groups(source_of(table), recipe_of(table)) is None
    # Rows of levels are often equal.
    levels = twice[["town", "state"]].assign(y=twice["age"] > 40)
    assert row_groups(source_of(levels), recipe_of(levels)) is None


@pytest.mark.parametrize("classes", [False, True])
def test_a_column_that_tells_the_target_is_named(table, rng, classes):
    y = table["town"] if classes else 0.01 * table["far"]
    leaky = table.assign(y=y, noise=rng.normal(size=400)).drop(columns=["code"])
    leaky["leak"] = y.str.upper().add("!") if classes else 100 * y + rng.normal(0, 0.01, 400)
    leaky = leaky.drop(columns="town" if classes else "far")
    sentences = encode(source_of(leaky), recipe_of(leaky)).encoder.sentences_
    assert [sentence for sentence in sentences if "alone determines" in sentence] == [
        "Column 'leak' alone determines the target: was it known before? If not, ignore it."
    ]


def test_the_logarithm_of_a_target_is_fitted_if_it_predicts_better(rng):
    X = rng.normal(size=(300, 3))
    table = pd.DataFrame(X, columns=list("abc")).assign(
        y=np.exp(X @ [1.0, 0.7, 0.5] + 0.1 * rng.normal(size=300))
    )
    encoded = encode(source_of(table), recipe_of(table))
    assert encoded.target.logarithm
    assert (
        "The logarithm of 'y' is fitted: in validation, it predicts 'y' better." in encoded.target.sentences
    )
    assert not encode(source_of(table), recipe_of(table, logarithm=False)).target.logarithm
    # A skewed target that is a sum.
    sums = table.assign(y=50.0 + np.exp(X[:, 0]) + X[:, 1])
    assert not encode(source_of(sums), recipe_of(sums)).target.logarithm
    assert not encode(source_of(table), recipe_of(table.assign(y=X[:, 0]))).target.parts


def test_many_numbers_enter_as_lines(rng, monkeypatch):
    monkeypatch.setattr("fmviz.tables.encoder._MOST_NUMBERS", 300)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("aby"))
    encoder = encode(source_of(table), replace(recipe_of(table), numbers="auto")).encoder
    assert encoder.bases_ == "line"
    assert "2 columns of numbers enter as straight lines; a choice would take long." in encoder.sentences_
