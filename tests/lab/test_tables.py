"""Tables of one's own: read, described, encoded."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fmviz.lab.tables.encoding import (
    NumberColumn,
    TableEncoding,
    Target,
    WordColumn,
)
from fmviz.lab.tables.files import (
    is_libsvm,
    read_bytes,
    read_libsvm,
    read_text_table,
)


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


# ------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(delimiter):
    text = frame().to_csv(index=False, sep=delimiter)
    pd.testing.assert_frame_equal(read_text_table(text.encode()), frame(), check_dtype=False)


def test_commas_within_quotes_divide_nothing():
    table = read_text_table(b'a;b\n"x, y, z";1\n"u, v, w";2\n')
    assert list(table.columns) == ["a", "b"]
    assert list(table["a"]) == ["x, y, z", "u, v, w"]


def test_decimal_commas_and_missing_values():
    table = read_text_table("\ufeffa;b;c\n1,5;x;?\n-2;y;3,25\n;z;1e-2\n".encode())
    assert table["a"].tolist()[:2] == [1.5, -2.0]
    assert np.isnan(table["a"][2])
    assert np.isnan(table["c"][0])
    assert table["c"].tolist()[1:] == [3.25, 0.01]
    assert table["b"].tolist() == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b"\xff\xfe\x00a", "not text in UTF-8"),
        (b"a\n1\n2\n", "has one column, 'a'"),
        (b"a,b,a\n1,2,3\n", "several columns called 'a'"),
        (b"a,,c\n1,2,3\n", "Column 2 of The file has no name"),
        (b"a,b\n", "no rows below"),
        (b"a,b\n1,2,3\n4,5,6\n", "more fields than its first line"),
        (b"a,b\n1,2\n4,5,6,7\n", "cannot be read as a table"),
    ],
)
def test_files_that_are_no_tables(data, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        read_text_table(data)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there():
    with pytest.raises(ValueError, match=r"'nowhere\.csv' cannot be read: No such file"):
        read_bytes("nowhere.csv")


def test_libsvm_is_told_from_tables():
    data = b"# a comment\n+1 1:0.5 3:2\n-1 2:1 # more\n"
    assert is_libsvm(data)
    assert is_libsvm(b"3.5 qid:1 1:0.5\n")
    assert not is_libsvm(b"a,b\n1,2\n")
    assert not is_libsvm(b"time value\n12:30 4\n")
    assert not is_libsvm(b"")
    X, y = read_libsvm(data)
    assert X.toarray().tolist() == [[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]]
    assert y.tolist() == [1.0, -1.0]
    for broken in (b"1 1:x\n", b"1 2:1 1:1\n", b"1 1:nan\n", b"1,2 1:1\n"):
        with pytest.raises(ValueError, match=r"libsvm|finite"):
            read_libsvm(broken)


# ---------------------------------------------------------------------------------------------- encoding


def test_numbers_are_standardised_and_words_become_columns():
    table = frame()
    encoding = TableEncoding.learn(table, "y", words=["code"])
    assert encoding.feature_names == (
        *("age", "town=Bonn", "town=Kiel", "town=Ulm"),
        *("code=10", "code=20", "code=100"),
    )
    encoded = encoding.apply(table)
    X = encoded.X if isinstance(encoded.X, np.ndarray) else encoded.X.toarray()
    assert abs(X[:, 0].mean()) < 1e-12
    assert X[:, 0].std() == pytest.approx(1)
    assert (X[:, 1:4].sum(axis=1) == 1).all()
    assert (X[:, 1] == (table["town"] == "Bonn")).all()
    assert (X[:, 6] == (table["code"] == 100)).all()
    assert encoded.y.std() == pytest.approx(1)
    assert encoded.dropped == 0
    dataset = encoding.dataset(encoded, "mine", "Mine")
    assert dataset.groups == ("age", "town", "town", "town", "code", "code", "code")
    assert (dataset.target_name, dataset.task) == ("y", "regression")


def test_many_levels_are_kept_sparse():
    table = pd.DataFrame({"word": [f"w{i % 50}" for i in range(100)], "y": np.arange(100.0)})
    assert sp.issparse(TableEncoding.learn(table, "y").apply(table).X)


def test_an_encoding_is_the_same_after_json():
    encoding = TableEncoding.learn(frame().assign(none=np.nan), "y", words=["code"])
    again = TableEncoding.from_dict(json.loads(json.dumps(encoding.to_dict())))
    assert again == encoding
    assert isinstance(again.columns[0], NumberColumn)
    assert isinstance(again.columns[1], WordColumn)


def test_means_are_learned_on_the_given_rows_alone():
    table = frame()
    rows = np.arange(10)
    encoding = TableEncoding.learn(table, "y", rows=rows)
    assert encoding.columns[0].center == table["age"][:10].mean()
    assert encoding.target.mean == pytest.approx(table["y"][:10].mean())


def test_missing_values_are_dropped_or_imputed():
    table = frame().astype({"age": float})
    table.loc[3, "age"] = np.nan
    table.loc[4, "town"] = None
    table.loc[5, "y"] = np.nan
    dropped = TableEncoding.learn(table, "y").apply(table)
    assert dropped.dropped == 3
    assert not {3, 4, 5} & set(dropped.rows.tolist())
    encoded = TableEncoding.learn(table, "y", missing="impute").apply(table)
    assert encoded.dropped == 1
    X = encoded.X if isinstance(encoded.X, np.ndarray) else encoded.X.toarray()
    assert X[3, 0] == 0.0
    assert not X[4, 1:4].any()


def test_new_data_may_hold_new_words_but_no_words_for_numbers():
    table = frame()
    encoding = TableEncoding.learn(table, "y")
    new = table.head(2).assign(town=["Rom", "Ulm"]).drop(columns="y")
    encoded = encoding.apply(new)
    assert encoded.y is None
    X = encoded.X if isinstance(encoded.X, np.ndarray) else encoded.X.toarray()
    assert X[:, 1:4].sum(axis=1).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="'age' holds 'old'"):
        encoding.apply(new.assign(age=["old", "young"]))
    with pytest.raises(ValueError, match="lacks the column 'age'"):
        encoding.apply(new.drop(columns="age"))


def test_constant_and_empty_columns_are_left_out_and_told():
    table = frame().assign(one=1.0, none=np.nan, same="x")
    encoding = TableEncoding.learn(table, "y")
    assert [c.name for c in encoding.columns] == ["age", "town", "code"]
    assert len(encoding.notes) == 3
    assert "'none' is left out: it has no values" in encoding.notes[0]


@pytest.mark.parametrize(
    ("table", "settings", "sentence"),
    [
        (frame(), {"target": "z"}, "target = 'z' is no column; there are age, town, code, y"),
        (frame()[["y"]], {"target": "y"}, "has one column"),
        (frame().assign(y=3), {"target": "y"}, "is always '3'"),
        (frame().assign(y=np.nan), {"target": "y"}, "has no values|Fewer than two rows"),
        (frame(), {"target": "town"}, "3 different words"),
        (frame(), {"target": "town", "task": "regression"}, "holds words"),
        (frame(), {"target": "y", "task": "binary"}, "wants two"),
        (frame(), {"target": "y", "task": "ranking"}, "task"),
        (frame().set_axis(["a", "a", "c", "y"], axis=1), {"target": "y"}, "several columns called 'a'"),
        (frame().set_axis(["a", "", "c", "y"], axis=1), {"target": "y"}, "Column 2 of The table has no name"),
        (frame(), {"target": "y", "most_levels": 2}, "'town' has 3 different words, more than 2"),
        (frame(), {"target": "y", "ignored": ["age", "town", "code"]}, "All columns but the target"),
        (frame(), {"target": "y", "ignored": ["y"]}, "both ignored and the target"),
        (frame().assign(age=1, town="x", code=2), {"target": "y"}, "No column is left that differs"),
        (frame().assign(age=[np.nan] * 39 + [1]), {"target": "y"}, "Fewer than two rows"),
        (frame().assign(age=[np.inf] * 40), {"target": "y"}, "'age' holds an infinite value"),
    ],
)
def test_tables_that_cannot_be_learned_from(table, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        TableEncoding.learn(table, **settings)


def test_a_stray_word_among_numbers_is_named():
    table = frame(200).assign(age=[str(i) for i in range(199)] + ["n/k"])
    with pytest.raises(ValueError, match="Most of them are numbers, but 'n/k' is not"):
        TableEncoding.learn(table, "y", most_levels=100)


def test_two_values_are_classes():
    words = Target.learn(pd.Series(["no", "yes", None, "no"], name="t"))
    assert (words.task, words.labels) == ("binary", ("no", "yes"))
    assert np.array_equal(words.encode(pd.Series(["yes", None, "no", "?"])), [1, np.nan, -1, np.nan], True)
    assert Target.learn(pd.Series([0, 1, 1], name="t")).labels == ("0", "1")
    assert Target.learn(pd.Series([2.5, 1.0, 1.0], name="t")).labels == ("1", "2.5")
    assert Target.learn(pd.Series([True, False], name="t")).labels == ("False", "True")
    number = Target.learn(pd.Series([0.0, 2.0], name="t"), "regression")
    assert number.encode(pd.Series([0.0, 2.0])).tolist() == [-1.0, 1.0]
