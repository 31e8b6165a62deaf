"""Formats of files and encodings of their text."""

from __future__ import annotations

import gzip
import io

import pandas as pd
import pytest
from small_tables import csv_bytes, frame

from fmviz.tables.cells import Notation, numbers_of
from fmviz.tables.files import detect, read
from fmviz.tables.kinds import described
from fmviz.tables.limits import UPLOADS, Limits
from fmviz.tables.source import Reading


def test_libsvm_is_told_from_tables():
    data = b"# a comment\n+1 1:0.5 3:2\n-1 2:1 # more\n"
    assert detect(data) == "libsvm"
    assert detect(b"3.5 qid:1 1:0.5\n") == "libsvm"
    assert detect(b"1\n1 1:0.5\n-1 1:2\n") == "libsvm"
    assert detect(b"a,b\n1,2\n") == "table"
    assert detect(b"time value\n12:30 4\n") == "table"
    source = read(data)
    assert source.X.toarray().tolist() == [[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]]
    assert source.y.tolist() == [1.0, -1.0]


def test_the_first_index_of_libsvm_is_found_or_said():
    assert read(b"1 0:1 2:3\n-1 1:1\n").reading.base == "0"
    later = b"1 1:1 2:3\n-1 1:1\n"
    assert read(later).X.shape == (2, 2)
    source = read(later, Reading(base="0"))
    assert (source.reading.base, source.X.shape) == ("0", (2, 3))
    with pytest.raises(ValueError, match=r"line 2 has the index 0 \(-1 0:1\).*`--read base=0`"):
        read(b"1 1:1 2:3\n-1 0:1\n", Reading(base="1"))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"1 1:1\n1,3 2:1\n", r"line 2 has several labels \(1,3\)"),
        (b"1 1:1\n-1 2:1 1:3\n", "line 2 has indices that do not ascend .* Sort its entries"),
        (b"1 1:1\n-1 2=1\n1 1:2\n", "line 2 has '2=1' .* instead of index:value"),
        (b"1 1:1\n-1 2:x\n1 1:2\n", "line 2 has 'x' .*, which is not a number"),
        (b"1 1:1\nyes 2:1\n1 1:2\n", "line 2 has 'yes'"),
        (b"0 0:0:1.5 1:1:2\n1 0:0:1 1:2:1\n", r"a libffm file \(field:index:value\)"),
        (b"1 |a x:1 y:2\n-1 |a x:3\n", "a Vowpal Wabbit file"),
        (b"1 1.0 'tag |words the quick fox\n-1 |words a dog\n", "a Vowpal Wabbit file"),
        (b"1 1:1e308\n-1 2:1\n", r"contains the value 1e\+308"),
    ],
)
def test_what_is_wrong_with_a_line_is_told(data, sentence):
    with pytest.raises(ValueError, match=sentence):
        read(data)


def test_what_is_detected_can_be_said_otherwise():
    data = "zahl|wort\n1.500|ä\n2.500|ö\n".encode("cp1252")
    source = read(data)
    assert (source.reading.delimiter, source.reading.encoding, source.reading.header) == (
        "bar",
        "cp1252",
        "yes",
    )
    assert source.table["wort"].tolist() == ["ä", "ö"]
    assert described(source.table, "comma")[1].kind == "yes_no"
    reread = read(data, Reading(delimiter="bar", encoding="cp1251", header="no", skip=1))
    assert list(reread.table.columns) == ["column 1", "column 2"]
    assert len(reread.table) == 2
    assert numbers_of(pd.Series(["1.500", "2.500"]), Notation("comma")).tolist() == [1500.0, 2500.0]
    with pytest.raises(ValueError, match="delimiter"):
        Reading(delimiter="dash")


def test_parquet_is_read_as_the_same_table():
    table = frame(200).assign(when=pd.date_range("2024", periods=200, freq="7h"))
    sink = io.BytesIO()
    table.to_parquet(sink)
    parsed = read(sink.getvalue()).table
    assert list(parsed.columns) == list(table.columns)
    assert parsed["age"].tolist() == table["age"].tolist()
    assert [column.kind for column in described(parsed)] == ["number", "word", "word", "number", "date"]


def test_gzip_is_the_same_file_in_less():
    data = csv_bytes(frame())
    assert read(gzip.compress(data)).table.equals(read(data).table)


@pytest.mark.parametrize(
    ("data", "limits", "words"),
    [
        (bytes(1_001), Limits(file=1_000), "more than 1 kB"),
        (b"a,y\n" + b"1,2\n" * 11, Limits(rows=10), "more than 10 rows"),
        (b"a,b,y\n" + b"1,2,3\n" * 6, Limits(cells=15), "18 cells"),
        (b"1 999999999:2\n", UPLOADS, "an index of 999,999,999, more than 200,000 features"),
    ],
)
def test_nothing_larger_than_the_limits_is_read(data, limits, words):
    with pytest.raises(ValueError, match=words):
        read(data, within=limits)


def test_cells_stay_as_they_are_written():
    table = read(b"a;b\n1,5;NA\n2,5;x\n").table
    assert table.to_dict("list") == {"a": ["1,5", "2,5"], "b": ["NA", "x"]}
