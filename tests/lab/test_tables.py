"""Reading, describing and encoding tables."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fmviz.lab.tables.column_types import described
from fmviz.lab.tables.columns import TextColumn
from fmviz.lab.tables.encoding import TableEncoding
from fmviz.lab.tables.files import detect, read
from fmviz.lab.tables.recipe import Choice, first_recipe
from fmviz.lab.tables.source import Source
from fmviz.lab.tables.target import Target


def frame(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "town": rng.choice(["Bonn", "Kiel", "Ulm"], n),
            "code": rng.choice([10, 20, 100], n),
            "y": rng.normal(size=n),
        }
    )


def learn(table, target="y", kinds=(), rows=None, missing=None, **changes) -> TableEncoding:
    """Learn a table as it is first taken, with other kinds for some columns, and other settings."""
    columns = described(table)
    first = first_recipe(Source(read(b"a,b\n1,2\n").reading, table), columns)
    rules = {choice.name: missing or choice.missing for choice in first.columns}
    kinds = {choice.name: choice.kind for choice in first.columns} | dict(kinds)
    chosen = first.corrected(Choice(name, kind, rules[name]) for name, kind in kinds.items())
    fields = {"target": target, "rare": 1, **changes}
    return TableEncoding.learn(table, type(first)(**{**vars(chosen), **fields}), rows)


def dense(encoded) -> np.ndarray:
    return encoded.X.toarray() if sp.issparse(encoded.X) else encoded.X


# ------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(delimiter):
    text = frame().to_csv(index=False, sep=delimiter)
    pd.testing.assert_frame_equal(read(text.encode()).table, frame(), check_dtype=False)


def test_commas_within_quotes_divide_nothing():
    table = read(b'a;b\n"x, y, z";1\n"u, v, w";2\n').table
    assert list(table.columns) == ["a", "b"]
    assert list(table["a"]) == ["x, y, z", "u, v, w"]


def test_decimal_commas_and_missing_values():
    table = read("\ufeffa;b;c\n1,5;x;?\n-2;y;3,25\n;z;1e-2\n".encode()).table
    assert table["a"].tolist()[:2] == [1.5, -2.0]
    assert np.isnan(table["a"][2])
    assert np.isnan(table["c"][0])
    assert table["c"].tolist()[1:] == [3.25, 0.01]
    assert table["b"].tolist() == ["x", "y", "z"]


def test_libsvm_is_told_from_tables():
    data = b"# a comment\n+1 1:0.5 3:2\n-1 2:1 # more\n"
    assert detect(data) == "libsvm"
    assert detect(b"3.5 qid:1 1:0.5\n") == "libsvm"
    assert detect(b"a,b\n1,2\n") == "table"
    assert detect(b"time value\n12:30 4\n") == "table"
    source = read(data)
    assert source.X.toarray().tolist() == [[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]]
    assert source.y.tolist() == [1.0, -1.0]


# ---------------------------------------------------------------------------------------------- columns


def test_codes_texts_and_identifiers_are_told_apart(rng):
    n = 60
    table = pd.DataFrame(
        {
            "PassengerId": rng.permutation(10 * n)[:n],
            "user_id": rng.integers(1, 9, n),
            "amount": rng.integers(1, 9, n),
            "zip": [f"{z:05d}x" for z in rng.integers(1, 5, n)],
            "review": [
                f"it was {word} and cheap {i}" for i, word in enumerate(rng.choice(["good", "bad"], n))
            ],
            "name": [f"Smith {i}" for i in range(n)],
            "y": rng.normal(size=n),
        }
    )
    kinds = {column.name: (column.plain_kind, column.kind) for column in described(table)}
    assert kinds == {
        "PassengerId": ("number", "ignored"),
        "user_id": ("number", "word"),
        "amount": ("number", "number"),
        "zip": ("word", "word"),
        "review": ("ignored", "text"),
        "name": ("ignored", "ignored"),
        "y": ("number", "number"),
    }
    encoding = learn(table)
    (text,) = (column for column in encoding.columns if column.name == "review")
    assert text == TextColumn("review", ("and", "bad", "cheap", "good", "it", "was"))
    encoded = encoding.apply(table)
    at = list(encoding.feature_names).index("review:good")
    assert (dense(encoded)[:, at] == table["review"].str.contains("good")).all()
    again = TableEncoding.from_dict(json.loads(json.dumps(encoding.to_dict())))
    assert again == encoding
    assert (dense(again.apply(table)) == dense(encoded)).all()


# ---------------------------------------------------------------------------------------------- encoding


def test_numbers_are_standardised_and_words_become_columns():
    table = frame()
    encoding = learn(table, kinds={"code": "word"})
    assert encoding.feature_names == (
        *("age", "town=Bonn", "town=Kiel", "town=Ulm"),
        *("code=10", "code=20", "code=100"),
    )
    encoded = encoding.apply(table)
    X = dense(encoded)
    assert abs(X[:, 0].mean()) < 1e-12
    assert X[:, 0].std() == pytest.approx(1)
    assert (X[:, 1:4].sum(axis=1) == 1).all()
    assert (X[:, 1] == (table["town"] == "Bonn")).all()
    assert (X[:, 6] == (table["code"] == 100)).all()
    assert encoded.y.std() == pytest.approx(1)
    assert encoded.dropped == 0
    dataset = encoded.dataset("mine", "Mine")
    assert dataset.groups == ("age", "town", "town", "town", "code", "code", "code")
    assert (dataset.target_name, dataset.task) == ("y", "regression")


def test_features_stand_in_the_order_of_the_columns():
    table = frame().assign(last=np.arange(40) % 7 / 3.0)[["town", "age", "code", "last", "y"]]
    table.loc[3, "age"] = None
    encoding = learn(table, kinds={"code": "word"})
    X = dense(encoding.apply(table))
    names = list(encoding.feature_names)
    assert names[:5] == ["town=Bonn", "town=Kiel", "town=Ulm", "age", "age=(missing)"]
    assert np.flatnonzero(X[:, 4]).tolist() == [3]
    assert X[3, 3] == 0.0
    assert X[:, names.index("last")].std() == pytest.approx(1)
    assert set(X[:, names.index("code=100")]) == {0.0, 1.0}


def test_many_levels_are_kept_sparse():
    table = pd.DataFrame({"word": [f"w{i % 50}" for i in range(100)], "y": np.arange(100.0)})
    assert sp.issparse(learn(table).apply(table).X)


def test_means_are_learned_on_the_given_rows_alone():
    table = frame()
    encoding = learn(table, rows=np.arange(10))
    assert encoding.columns[0].center == table["age"][:10].mean()
    assert encoding.target.mean == pytest.approx(table["y"][:10].mean())


def test_new_data_may_hold_new_words_but_no_words_for_numbers():
    table = frame(200).assign(
        smoker=["no", "yes"] * 100, rare=["often"] * 190 + ["seldom"] * 4 + ["never"] * 4 + ["once"] * 2
    )
    encoding = learn(table, rare=5)
    new = table.tail(4).assign(
        town=["Rom", "Ulm", "Rom", "Ulm"],
        smoker=["no", "?", "perhaps", "yes"],
        rare=["new", "never", None, "often"],
    )
    encoded = encoding.apply(new.drop(columns="y"))
    assert encoded.y is None
    assert encoded.rows.tolist() == [0, 1, 3]
    assert encoded.unseen == {"town": {"Rom": 1}, "smoker": {"?": 1}, "rare": {"new": 1}}
    assert encoded.notes()[1:] == [
        "Column 'town' has words that are new to the model (Rom) in 1 row; they count as none of its levels.",
        "Column 'smoker' has words that are new to the model (?) in 1 row; they count as none of its levels.",
        "Column 'rare' has words that are new to the model (new) in 1 row; they count as (other).",
    ]
    names = encoding.feature_names
    assert dense(encoded)[:, [names.index("town=Ulm"), names.index("rare=(other)")]].tolist() == [
        [0.0, 1.0],
        [1.0, 1.0],
        [1.0, 0.0],
    ]
    with pytest.raises(ValueError, match="'age' holds 'old'"):
        encoding.apply(new.assign(age=["old", "young", None, None]))
    with pytest.raises(ValueError, match="lacks the column 'age'"):
        encoding.apply(new.drop(columns="age"))


def test_dates_are_read_as_they_were_when_they_were_learned():
    days = [f"{i % 28 + 1:02d}/{i % 12 + 1:02d}/{2020 + i % 3}" for i in range(60)]
    table = pd.DataFrame({"when": days, "y": np.arange(60.0)})
    encoding = learn(table)
    assert encoding.dates == {"when": "%d/%m/%Y"}
    # By itself it would be the third of February.
    encoded = encoding.apply(pd.DataFrame({"when": ["02/03/2021"]}))
    at = encoding.feature_names.index("when.month=03-Mar")
    assert dense(encoded)[0, at] == 1.0
    again = TableEncoding.from_dict(json.loads(json.dumps(encoding.to_dict())))
    assert (dense(again.apply(table)) == dense(encoding.apply(table))).all()


def test_constant_columns_are_left_out_and_told():
    table = frame().assign(one=1.0, same="x", none=np.nan)
    encoding = learn(table, kinds={"one": "number", "same": "word", "none": "number"})
    assert [c.name for c in encoding.columns] == ["age", "town", "code"]
    assert encoding.notes == (
        "Column 'none' is left out: it has no values.",
        *(f"Column {name!r} is left out: it has the same value in all rows." for name in ("one", "same")),
    )


@pytest.mark.parametrize(
    ("table", "settings", "sentence"),
    [
        (frame(), {"target": "z"}, "'z' is no column"),
        (frame().assign(y=3), {}, "is always '3'"),
        (frame().assign(y=np.nan), {}, "has no values"),
        (frame(), {"target": "town", "task": "binary"}, r"3 classes \(Bonn, Kiel, Ulm\)"),
        (frame(), {"target": "town", "task": "regression"}, "holds words"),
        (frame(), {"task": "binary"}, "40 classes"),
        (frame(), {"kinds": dict.fromkeys(("age", "town", "code"), "ignored")}, "No column is left"),
        (frame(), {"kinds": {"town": "date"}}, "holds no dates"),
        (
            frame().assign(age=[np.nan] * 39 + [1]),
            {"missing": "drop", "kinds": {"age": "number"}},
            "Fewer than two",
        ),
    ],
)
def test_tables_that_cannot_be_learned_from(table, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        learn(table, **settings)


def test_two_values_are_classes():
    words = Target.learn(pd.Series(["no", "yes", None, "no"], name="t"))
    assert (words.task, words.labels) == ("binary", ("no", "yes"))
    assert np.array_equal(words.encode(pd.Series(["yes", None, "no", "?"])), [1, np.nan, -1, np.nan], True)
    assert Target.learn(pd.Series([0, 1, 1], name="t")).labels == ("0", "1")
    assert Target.learn(pd.Series([2.5, 1.0, 1.0], name="t")).labels == ("1", "2.5")
    assert Target.learn(pd.Series([True, False], name="t")).labels == ("False", "True")
    number = Target.learn(pd.Series([0.0, 2.0], name="t"), "regression")
    assert number.encode(pd.Series([0.0, 2.0])).tolist() == [-1.0, 1.0]
    target = Target.learn(pd.Series(list("abc"), name="t"), positive="b")
    assert np.array_equal(target.encode(pd.Series(["a", "b", "new", None])), [-1, 1, -1, np.nan], True)
    assert target.decode(np.array([-1.0, 2.0])).tolist() == ["not b", "b"]
