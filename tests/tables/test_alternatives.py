"""What is tried before a column is left out, or read in an unusual way."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fmviz import TableEncoder
from fmviz.tables.files import read
from fmviz.tables.kinds import described
from fmviz.tables.target import TargetEncoding

FOLDER = Path(__file__).parents[1] / "cases"
RNG = np.random.default_rng(0)
N = 120


def drawn(*words: str | None, n: int = N) -> list[str | None]:
    """Return cells that begin with the words in their order; others are drawn among them."""
    return [*words, *(words[place] for place in RNG.integers(0, len(words), n - len(words)))]


def some(form: str, *ranges: tuple[int, int], blank: float = 0.0) -> list[str | None]:
    """Return cells with random integers, some of which are missing."""
    values = zip(*(RNG.integers(*range_, N) for range_ in ranges), strict=True)
    return [
        form.format(*row) if place == 0 or RNG.random() >= blank else None for place, row in enumerate(values)
    ]


LONG = [str(number) for number in RNG.integers(10**17, 9 * 10**18, 9)]
WAYS = [[way for way in ("Rad", "zu Fuß", "Bus und Bahn", "Auto") if RNG.random() < 0.5] for _ in range(N)]
RISING = [(low, low + step) for low, step in RNG.integers(1, 60, (N, 2))]

# By name of the column, its cells, its kind, and what is said of it.
SIBLINGS = {
    "Rad": (drawn("✓", None), "yes_no", "Filled with '✓' or blank.*`--ignore Rad` leaves it out"),
    "Ich fahre gern": (drawn(None, "Ich fahre gern", None), "yes_no", "`--ignore 'Ich fahre gern'`"),
    "X": (drawn("x", "X", None, None, " x "), "yes_no", "Filled with 'x'"),
    "typed": (drawn(1.0, np.nan), "yes_no", "Filled with '1'"),
    "once": (["x", *[None] * (N - 1)], "ignored", "the same value in all rows that have one"),
    "sala": (drawn("1B", "2A", "3B", "3C"), "word", "^$"),
    "stage": (drawn("5B", "6B", "7B", None), "word", "^$"),
    "bus line": (drawn("5", "5B", "12", "12A"), "word", "^$"),
    "flat": (drawn("1E5", "2E3", "7E1"), "word", "^$"),
    "views": (drawn("19M", "700K", "3K"), "number", "K, M and B"),
    "salary": (some("${}K", (20, 90)), "number", r"in \$, with K, M and B"),
    "length": (some("{}.{}K", (20, 90), (0, 9)), "number", "K, M and B"),
    "card": (drawn(*LONG, None), "word", "^$"),
    "account": (pd.array(list(map(int, drawn(*LONG))), dtype="int64"), "word", "^$"),
    "tweet": (pd.array([None, *map(int, drawn(*LONG))][:N], dtype="Int64"), "word", "^$"),
    "wei": (some("{}000000000000000000", (1, 99)), "number", "^$"),
    "Blutdruck": (
        some("{} / {} mmHg", (90, 180), (50, 99), blank=0.2),
        "pair",
        "around '/'.*`--words Blutdruck`",
    ),
    "size": (some("{}×{} cm", (5, 80), (5, 80)), "pair", "around '×'"),
    "area": (some("{} by {}", (5, 80), (5, 80)), "pair", "around 'by'"),
    "place": (some("{}.5, -{}.25", (5, 80), (5, 80)), "pair", "around ','"),
    "Ort": (some("({},5; {},25)", (5, 80), (5, 80)), "pair", "around ';'"),
    "goals": (some("{}-{}", (0, 6), (0, 6)), "pair", "around '-'"),
    "Tore": (some("{}:{}", (0, 6), (0, 6)), "pair", "around ':'"),
    "sizes": (
        [*some("{}x{}", (5, 80), (5, 80))[:-9], *["unknown"] * 9],
        "pair",
        "such as 'unknown', count as missing",
    ),
    "age": (
        drawn("10-20", "20-30", "30-40", "65+"),
        "word",
        "Ranges such as '10-20'.*`--use age=pair` reads",
    ),
    "Lohn": ([f"{low} bis {high} €" for low, high in RISING], "pair", "Read as ranges, as their two ends"),
    "Wege": (list(map("; ".join, WAYS)), "answers", "between ';'.*Rad"),
    "ways": (list(map("|".join, WAYS)), "answers", r"between '\|'"),
    "modes": (
        [", ".join(way).upper() if place % 9 else None for place, way in enumerate(WAYS)],
        "answers",
        "','",
    ),
    "lists": (list(map(str, WAYS)), "answers", "between ','"),
    "Paris, FR": (drawn("Paris, FR", "Lyon, FR", "Bonn, DE"), "word", "^$"),
    "Zeitstempel": (some("{}", (15 * 10**8, 16 * 10**8), blank=0.3), "date", "since 1970, in UTC"),
    "created_at": (RNG.integers(15 * 10**11, 16 * 10**11, N), "date", "`--use created_at=number`"),
    "event time": (some("{}123456789", (15 * 10**8, 16 * 10**8)), "date", "since 1970"),
    "revenue": (RNG.integers(15 * 10**8, 16 * 10**8, N), "number", "^$"),
    "clock": (some("{}:{:02}", (0, 24), (0, 60)), "date", "^$"),
    "Dauer": (some("{}:{:02}", (20, 99), (0, 60), blank=0.3), "number", "in hours, from durations"),
    "days": (some("{} Tage {:02}:30", (2, 9), (0, 24)), "number", "in hours, from durations"),
    "stay": (some("{}h {}min", (0, 9), (0, 60)), "number", "in hours, from durations"),
    "race": (
        drawn("59:17", "1:05:30", "48:01", "1:59:59"),
        "number",
        "minutes and seconds around a single colon",
    ),
    "effect": (drawn("3.5**", "-1.25", "2.0*", "0.5 †", "1.75 [1]"), "number", r"without marks such as \*"),
    "weight": (drawn("3,5 kg*", "1,25 kg", "2,0 kg¹", None), "number", "decimal comma, without marks"),
    "people": (some("{} {:03} {:03}", (1, 99), (0, 999), (0, 999)), "number", "between thousands"),
    "Umsatz": (some("{}\u2009{:03},5", (1, 99), (0, 999)), "number", "decimal comma, with blanks"),
    "Dosis": (
        drawn("1.5", "2.25", "3.75", "#WERT!", "#DIV/0!", "#NV"),
        "number",
        "missing: '#WERT!', '#DIV/0!'",
    ),
    "dosis": (
        drawn("1,5", "2,25", "3,75", "#¡VALOR!", "Err:502"),
        "number",
        "missing: '#¡VALOR!', 'Err:502'",
    ),
    "town": (drawn("Bonn", "Kiel", "#REF!", "Köln"), "word", "missing: '#REF!'"),
    "genotype": (drawn("AA", "Aa", "aa"), "word", "^$"),
    "more": ([*some("{}", (20, 90))[1:], ">100"], "number", r"without > or ~ before them \('>100'\)"),
    "mass": (some("{}.5 kg", (1, 9))[:60] + some("{} g", (200, 900))[:60], "word", "numbers need one unit"),
    "opened": (some("{}/{}/23 {}pm", (1, 13), (1, 29), (1, 12)), "ignored", "identifier"),
}


@pytest.mark.parametrize("name", SIBLINGS)
def test_columns_are_read_as_they_are_meant_with_a_true_sentence(name):
    cells, kind, said = SIBLINGS[name]
    (column,) = described(pd.DataFrame({name: cells}))
    assert column.kind == kind
    assert re.search(said, column.note), column.note
    if kind == "number":
        assert np.isnan(column.numbers.read(pd.Series(cells))).sum() == column.missing


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("race", [59 / 60 + 17 / 3600, 65.5 / 60, 48 / 60 + 1 / 3600]),
        ("effect", [3.5, -1.25, 2.0, 0.5, 1.75]),
        ("views", [19e6, 7e5, 3e3]),
        ("dosis", [1.5, 2.25, 3.75, np.nan]),
        ("weight", [3.5, 1.25, 2.0, np.nan]),
    ],
)
def test_cells_are_the_numbers_that_they_write(name, numbers):
    (column,) = described(pd.DataFrame({name: SIBLINGS[name][0]}))
    np.testing.assert_allclose(column.numbers.read(pd.Series(SIBLINGS[name][0]))[: len(numbers)], numbers)


@pytest.mark.parametrize(
    "name",
    [
        "101_ticks",
        "102_class_5B",
        "103_long_ids",
        "104_blood_pressure",
        "106_excel_errors",
        "108_several_answers",
        "109_unix_seconds",
    ],
)
def test_features_are_those_of_the_table_written_for_a_program(name):
    tables = (read((folder / f"{name}.csv").read_bytes()).table for folder in (FOLDER, FOLDER / "cleaned"))
    features = (sp.csr_array(TableEncoder(numbers="line").fit_transform(table)).toarray() for table in tables)
    # The columns are in another order.
    np.testing.assert_array_equal(*(np.unique(X.T.round(9), axis=0) for X in features))


def test_ordered_categoricals_keep_their_order():
    order = ["low", "mid", "high"]
    sizes = pd.Series(
        pd.Categorical(drawn("high", "low", "mid"), [*order, "never"], ordered=True), name="size"
    )
    (column,) = described(sizes.to_frame())
    assert (column.kind, column.levels) == ("word", tuple(order))
    encoder = TableEncoder().fit(sizes.to_frame())
    assert encoder.get_feature_names_out().tolist() == [f"size={level}" for level in order]
    assert TargetEncoding.learn(sizes, task="ordinal").labels == tuple(order)


def test_ticks_and_codes_are_targets():
    ticks = pd.Series(drawn("x", None), name="left")
    target = TargetEncoding.learn(ticks)
    assert (target.task, target.labels) == ("binary", ("(blank)", "x"))
    assert target.encode(ticks.to_frame())[:2].tolist() == [1.0, -1.0]
    assert TargetEncoding.learn(pd.Series(drawn("5B", "6B", "7B"), name="room")).task == "class"


def test_repeated_identifiers_hint_at_groups():
    source = read((FOLDER / "112_repeated_patients.csv").read_bytes())
    hint = (
        "Column 'patient' has 30 values in 300 rows. If they are persons or things, `--group patient` keeps"
    )
    assert TableEncoder(numbers="line").fit(source.table).sentences_[-1].startswith(hint)
    assert not any(
        "--group" in said
        for said in TableEncoder(numbers="line", use={"patient": "ignored"}).fit(source.table).sentences_
    )


@pytest.mark.parametrize(
    "text",
    [
        "a b y\n1,5 2,25 3\n2,5 4,0 7\n3,5 1,0 2\n",
        "a   b    y\n1.5 2.25  3\n2.5 4.0   7\n 3.5 1.0  2\n",
        '"a" "b" "y"\n"1" 1.5 2.25 3\n"2" 2.5 4.0 7\n"3" 3.5 1.0 2\n',
    ],
)
def test_files_divided_by_blanks_are_read(text):
    source = read(text.encode())
    assert source.reading.delimiter == "blanks"
    assert source.table.columns[-3:].tolist() == ["a", "b", "y"]
    numbers = [
        column.numbers.read(source.table[column.name]).tolist()
        for column in described(source.table, source.reading.decimal)
    ]
    assert numbers[-3:] == [[1.5, 2.5, 3.5], [2.25, 4.0, 1.0], [3.0, 7.0, 2.0]]
