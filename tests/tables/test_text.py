"""Finding the table in delimited text."""

from __future__ import annotations

import csv
import random
import string

import numpy as np
import pandas as pd
import pytest
from small_tables import frame

from fmviz.tables.cells import Notation, numbers_of, words_of
from fmviz.tables.files import read
from fmviz.tables.recipe import columns_of
from fmviz.tables.source import Reading


def values(source, name: str) -> list:
    """Return a column as it is used: numbers, or words."""
    (column,) = (column for column in columns_of(source) if column.name == name)
    cells = source.table[name]
    return numbers_of(cells, column.notation).tolist() if column.kind == "number" else cells.tolist()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(delimiter):
    text = frame().to_csv(index=False, sep=delimiter)
    source = read(text.encode())
    assert source.table.to_csv(index=False, sep=delimiter) == text
    assert values(source, "y") == frame()["y"].tolist()


def test_decimal_commas_and_missing_values():
    source = read("\ufeffa;b;c\n1,5;x;?\n-2;y;3,25\n;z;1e-2\n".encode())
    assert source.reading.decimal == "comma"
    assert source.table.isna().sum().tolist() == [1, 0, 1]
    assert source.table["b"].tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(numbers_of(source.table["a"], Notation("comma")), [1.5, -2.0, np.nan])
    np.testing.assert_array_equal(numbers_of(source.table["c"], Notation("comma")), [np.nan, 3.25, 0.01])


@pytest.mark.parametrize(
    ("numbers", "decimal"),
    [
        ("12.5;0.998\n7.25;0.25", "point"),
        ("12,5;1.234\n7,25;1.500", "comma"),
        ("1.234;2\n1.500;3", "comma"),
        ("12.5;1,5\n7.25;2,5", "comma"),
        ("1,5\t7\n2,5\t8", "comma"),
        ("1.234\t7\n2.500\t8", "point"),
        ('"1,5",7\n"2,5",8', "comma"),
        ("1,5|7,25\n2,5|8", "comma"),
    ],
)
def test_numbers_say_their_decimal_sign_under_every_delimiter(numbers, decimal):
    delimiter = next(sign for sign in "\t;|," if sign in numbers)
    data = f"a{delimiter}b\n{numbers}\n".encode()
    source = read(data)
    assert source.reading.decimal == decimal
    pd.testing.assert_frame_equal(read(data, source.reading).table, source.table)


TABLE = "plot,water,soil\n" + "".join(f"{i},{i / 4},{['sandy', 'clay'][i % 2]}\n" for i in range(20))


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("Report of May\n\n" + TABLE, "1 line above the table was dropped ('Report of May')."),
        ("Report;;\n;;\n" + TABLE.replace(",", ";"), "1 line above the table was dropped ('Report')."),
        ("Report,,\nMay 2020,,\n\n" + TABLE, "2 lines above the table were dropped"),
        ("# station 17\n# a b\n" + TABLE, "2 lines of comments at the beginning were dropped."),
        (TABLE.replace("0,0.0,", "plot,water,soil\n0,0.0,"), "1 line that repeated the header was dropped."),
        (TABLE.replace("soil\n", "soil\n[id],[mm],\n"), "units below the header was dropped: [id], [mm]."),
        (TABLE.replace("soil\n", "soil\n#,mm,\n").replace("#", "id"), "units below the header was dropped"),
        (TABLE + "Sum,190,\n", "1 line at the end was dropped ('Sum' …)."),
        (TABLE + "Total:,190,\nAverage,9.5,\n", "2 lines at the end were dropped ('Total:' …)."),
        (TABLE + "\nSource: the office of statistics\n", "1 line at the end was dropped"),
        ("sep=,\n" + TABLE, ""),
        ("\n\n" + TABLE.replace("\n", "\r\n"), ""),
    ],
)
def test_titles_units_comments_and_sums_are_left_out_and_told(text, notes):
    source = read(text.encode())
    assert list(source.table.columns) == ["plot", "water", "soil"]
    assert source.table.to_csv(index=False) == read(TABLE.encode()).table.to_csv(index=False)
    assert notes in " ".join(source.notes)
    assert bool(notes) == bool(source.notes)


def test_lines_to_skip_can_be_said():
    text = "a,b,c\nthe rest is the table,2,3\n" + TABLE
    assert list(read(text.encode(), Reading(skip=2)).table.columns) == ["plot", "water", "soil"]


def test_the_last_comment_may_name_the_columns():
    source = read(b"# made by hand\n# a,b\n1,2\n3,4\n")
    assert list(source.table.columns) == ["a", "b"]
    assert len(source) == 2
    assert source.notes == ("1 line of comments at the beginning was dropped.",)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versicolor\n", "no"),
        ("1,2\n3,4\n5,6\n", "no"),
        ("a,b\n3,4\n5,6\n", "yes"),
        ("town,smoker\nBonn,yes\nKiel,no\nBonn,no\n", "yes"),
        ("Bonn,yes\nKiel,no\nBonn,no\nKiel,yes\n", "no"),
        ("a,2019,2020\nx,3,4\ny,5,6\n", "yes"),
        ("1.5,$5,x\n2.5,$7,x\n3.5,$1,y\n", "no"),
    ],
)
def test_a_header_is_recognised(text, header):
    source = read(text.encode())
    assert source.reading.header == header
    assert ("`--read header=yes`" in " ".join(source.notes)) == (header == "no")
    assert len(source) == text.count("\n") - (header == "yes")


def test_lines_that_are_too_long_can_be_left_out():
    data = b"a,b,y\n1,2,3\n1,2,3,4,5\n3,2,1\n"
    with pytest.raises(ValueError, match="saw 5"):
        read(data)
    source = read(data, Reading(lines="fitting"))
    assert source.table["y"].tolist() == ["3", "1"]
    assert "1 lines have too many fields" in source.notes[0]


# ------------------------------------------------------------------------------------------------- fuzz

_SIGNS = string.ascii_letters + " äß\"'#%&/()=+-_.:,;|\t東"


def word(dice: random.Random) -> str:
    """Return a word of any signs, with a letter at both ends."""
    inside = "".join(dice.choice(_SIGNS) for _ in range(dice.randrange(9)))
    return f"w{' '.join(inside.split(' '))}w"


def drawn(dice: random.Random, n: int) -> pd.DataFrame:
    """Return a table of numbers, whole numbers and words, some of them missing."""
    makers = [
        lambda: round(dice.gauss(0, 10 ** dice.randrange(6)), dice.randrange(1, 7)),
        lambda: dice.randrange(-1_000, 1_000) / 4,
        lambda: float(f"{dice.gauss(0, 1):.3e}"),
    ]
    few = [word(dice) for _ in range(4)]
    columns: dict[str, list] = {}
    for place in range(dice.randrange(2, 7)):
        if place == 1 or dice.random() < 0.4:
            columns[f"c{place} {word(dice)}".replace("\t", " ")] = [dice.choice(few) for _ in range(n)]
        else:
            make = dice.choice(makers)
            columns[f"n{place}"] = [make() if dice.random() < 0.95 else np.nan for _ in range(n)]
    return pd.DataFrame(columns)


@pytest.mark.sample(24)
@pytest.mark.parametrize("seed", range(240))
def test_tables_that_were_written_come_back_with_their_values(seed):
    dice = random.Random(seed)
    table = drawn(dice, dice.randrange(8, 80))
    delimiter = ",;\t|"[seed % 4]
    decimal = ".,"[seed // 4 % 2]
    quoting = (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)[seed % 3]
    encoding = dice.choice(["utf-8", "utf-8-sig", "utf-16"])
    text = table.to_csv(
        index=False,
        sep=delimiter,
        decimal=decimal,
        quoting=quoting,
        lineterminator=dice.choice(["\n", "\r\n"]),
    )
    source = read(text.encode(encoding))
    assert [" ".join(name.split()) for name in table] == list(source.table)
    assert len(source) == len(table)
    kinds = {column.name: column for column in columns_of(source)}
    for name, written in zip(source.table, table, strict=True):
        if written.startswith("n") and table[written].nunique() > 1:
            column = kinds[name]
            assert column.kind in ("number", "yes_no", "word"), column
            numbers = numbers_of(source.table[name], column.notation)
            np.testing.assert_array_equal(numbers, table[written], err_msg=f"{column}")
        elif written.startswith("c"):
            assert [cell.strip() for cell in words_of(source.table[name])] == table[written].tolist()
