"""What columns hold."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pytest

from fmviz.checked import checked
from fmviz.tables.kinds import Column, described, likely_target


def test_columns_are_told_apart():
    n = 120
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "hash": [f"{i:08x}-z" for i in range(n)],
            "one": "same",
            "empty": [None] * n,
            "flag": rng.integers(0, 2, n),
            "answer": rng.choice(["ja", "nein"], n),
            "amount": [f"{x:,.2f}" for x in rng.uniform(900, 9e6, n)],
            "town": rng.choice(["a", "b", "c"], n),
            "when": rng.choice(["2024-05-01", "2024-06-02", "2024-07-09"], n),
            "price": rng.normal(size=n),
        }
    )
    kinds = {column.name: column.kind for column in described(frame)}
    assert kinds == {
        **dict.fromkeys(("id", "hash", "one", "empty"), "ignored"),
        **{"flag": "yes_no", "answer": "yes_no", "amount": "number"},
        **{"town": "word", "when": "date", "price": "number"},
    }
    assert [column.kind for column in described(frame.astype(str))] == list(kinds.values())
    assert likely_target(described(frame)) == "price"
    # Any other column, or one of two, would be a guess.
    assert likely_target(described(frame.drop(columns="price"))) == ""
    assert likely_target(described(frame.assign(target=frame["price"]))) == ""


def test_codes_texts_and_identifiers_are_told_apart():
    n = 60
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "PassengerId": rng.permutation(10 * n)[:n],
            "user_id": rng.integers(1, 9, n),
            "amount": rng.integers(1, 90, n),
            "zip": [f"{z:05d}x" for z in rng.integers(1, 5, n)],
            "review": [f"it was {word} and {i}" for i, word in enumerate(rng.choice(["good", "bad"], n))],
            "name": [f"Smith {i}" for i in range(n)],
            "y": rng.normal(size=n),
        }
    )
    for given in (table, table.astype(str)):
        columns = described(given)
        assert {column.name: column.kind for column in columns} == {
            "PassengerId": "ignored",
            "user_id": "word",
            "amount": "number",
            "zip": "word",
            "review": "text",
            "name": "ignored",
            "y": "number",
        }
        notes = {column.name: column.note for column in columns}
        assert "identifier: every row has a number of its own" in notes["PassengerId"]
        assert "look like codes" in notes["user_id"]
        assert "each of their most frequent words, at most 1,000" in notes["review"]


def kept(column: Column) -> Column:
    return checked(Column, json.loads(json.dumps(dataclasses.asdict(column))))


@pytest.mark.parametrize(
    ("words", "kind", "note", "asked"),
    [
        (["$1,000", "$2,500"], "number", "Read as numbers in $ ('$1,000').", ""),
        (["1,037", "2,500", "800"], "number", "", "contains '1,037', read with a decimal point: 1037."),
        (["1", "2", "3"], "number", "", "has only 3 distinct integers. `--words x` reads each as a word."),
        (["02/03/2020", "04/05/2021"], "date", "", "the month first; .* `--read dates=day` reads"),
        (["Yes", "No", "YES", "Yes", "No "], "yes_no", "only in case are merged: 'YES' as 'Yes'", ""),
        (
            ["Attchd", "NA"],
            "yes_no",
            "",
            "'NA' is a word in column 'x'. `--read missing=NA` reads this as missing",
        ),
        (["00501", "02139"], "word|yes_no", "", ""),
        (["4.5", "3.25", "NA"], "number", "", ""),
    ],
)
def test_what_was_inferred_is_a_sentence_and_what_is_ambiguous_a_question(words, kind, note, asked):
    (column,) = described(pd.DataFrame({"x": words * 12}))
    assert column.kind in kind.split("|")
    assert note in column.note
    assert bool(column.asked) == bool(asked)
    assert re.search(asked, column.asked)
    assert kept(column) == column


def test_none_and_na_are_words_among_words_and_missing_among_numbers():
    words, numbers = described(
        pd.DataFrame({"w": ["None", "Apnea", "Insomnia"] * 9, "n": ["None", "1.5", "2.5"] * 9})
    )
    assert (words.kind, words.missing, words.different) == ("word", 0, 3)
    assert (numbers.kind, numbers.missing) == ("number", 9)
    asked = described(pd.DataFrame({"w": ["None", "Apnea", "Insomnia"] * 9}), missing="None,NA")[0]
    assert (asked.kind, asked.missing) == ("yes_no", 9)


def test_a_number_that_may_stand_for_a_missing_value_is_asked_about():
    numbers = pd.Series([*np.linspace(10.0, 30.0, 90), *[-999.0] * 10], name="temp")
    (column,) = described(numbers.to_frame().astype(str))
    assert column.option == "missing=-999.0"
    assert "-999.0, which may stand for a missing value" in column.question
