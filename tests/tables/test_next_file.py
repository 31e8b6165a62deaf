"""Other files than the training table: columns are of the model's kinds, in the notation of the file."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from fmviz import TableEncoder
from fmviz.tables.files import read as source_of_file
from fmviz.tables.kinds import described
from fmviz.tables.source import Reading

QUICK = ("--lambda-sparse", "0.1", "--rank", "1", "--max-epochs", "30")
N = 60
NUMBERS = np.random.default_rng(0).permutation(N) * 37 % 101 + 1000.25
WORDS = np.random.default_rng(1).choice(["Water", "Oil", "Sand"], N)
TIMES = pd.date_range("2020-01-07 05:00", periods=N, freq="31h")
SECONDS = (TIMES - pd.Timestamp(0)) // pd.Timedelta(seconds=1)
FIRST = np.arange(N) % 7 + 100
ANSWERS = [[["bike", "car"], ["car"], ["bike", "walk"], ["walk"], ["car", "walk"]][i % 5] for i in range(N)]

# The cells of a column in training, the same values in another file, and what is said of them.
PAIRS = {
    "comma": (
        map("{:.2f}".format, NUMBERS),
        (f"{x:.2f}".replace(".", ",") for x in NUMBERS),
        "decimal comma",
    ),
    "point": (
        (f"{x:.2f}".replace(".", ",") for x in NUMBERS),
        map("{:.2f}".format, NUMBERS),
        "decimal point",
    ),
    "unit": (NUMBERS, map("{:.2f} mm".format, NUMBERS), r"in mm \('\d+.25 mm'\).* had no unit"),
    "blanks": (NUMBERS, (f"{x:,.2f}".replace(",", "\u2009") for x in NUMBERS), "blanks or apostrophes"),
    "stars": (NUMBERS, map("{:.2f}*".format, NUMBERS), "without marks"),
    "money": (map("${:,.2f}".format, NUMBERS), (f"{x:.2f} €".replace(".", ",") for x in NUMBERS), "in €"),
    "words": (WORDS, map(str.upper, WORDS), "'WATER' as 'Water'|'SAND' as 'Sand'"),
    "blank": (WORDS, map(" {} ".format, WORDS), ""),
    "levels": (map(str, FIRST), map("{}.0".format, FIRST), "'100.0' as '100'"),
    "dates": (TIMES.strftime("%Y-%m-%d %H:%M"), TIMES.strftime("%d.%m.%Y %H:%M"), "dates in another format"),
    "order": (TIMES.strftime("%m/%d/%Y %H:%M"), TIMES.strftime("%d/%m/%Y %H:%M"), "dates in another format"),
    "time": (SECONDS, TIMES.strftime("%Y-%m-%dT%H:%M:%S"), "dates in another format"),
    "time since": (TIMES.astype(str), SECONDS * 1000, "dates in another format"),
    "pair": ((f"{x}/{x - 9}" for x in FIRST * FIRST), (f"{x} x {x - 9} mm" for x in FIRST * FIRST), ""),
    "answers": (map(";".join, ANSWERS), map(", ".join, ANSWERS), ""),
    "answers in one case": (map(";".join, ANSWERS), map(str.upper, map(" | ".join, ANSWERS)), ""),
    "ticks": (np.where(FIRST > 103, "x", None), np.where(FIRST > 103, "✓", None), "'✓' as 'x'"),
    "no ticks": (
        np.where(FIRST > 103, "x", None),
        np.where(FIRST > 103, "yes", "no"),
        "'yes' as 'x'|'no' as",
    ),
    "spans": ((f"{x}:05" for x in FIRST), (f"{x // 24} days {x % 24:02}:05:00" for x in FIRST), ""),
}


def read(encoder: TableEncoder, table: pd.DataFrame, **reading: str) -> tuple[np.ndarray, str]:
    """Return the features of another table, and what is said of its notation."""
    notes: list[str] = []
    X = encoder.encoded(encoder.read(table, Reading(**reading), notes))
    return X.toarray() if sp.issparse(X) else X, " ".join(notes)


@pytest.mark.parametrize("name", PAIRS)
def test_columns_in_another_notation_have_the_same_features(name):
    first, second, said = PAIRS[name]
    table = pd.DataFrame({name: list(first), "z": NUMBERS})
    encoder = TableEncoder(numbers="line", use={name: "word"} if name == "levels" else None).fit(table)
    X, notes = read(encoder, pd.DataFrame({name: list(second), "z": NUMBERS}))
    np.testing.assert_allclose(X, read(encoder, table)[0], atol=2e-5)
    assert re.search(said, notes), notes
    assert bool(notes) == bool(said)
    assert not read(encoder, table)[1]
    # A single row proves as much as the file it is from.
    row, _ = read(
        TableEncoder.from_dict(encoder.to_dict()),
        pd.DataFrame({name: list(table[name][:1]), "z": NUMBERS[:1]}),
    )
    np.testing.assert_allclose(row, X[:1], atol=2e-5)


def test_options_of_reading_apply_to_the_next_file():
    table = pd.DataFrame({"when": TIMES.strftime("%Y-%m-%d"), "x": NUMBERS, "w": WORDS})
    encoder = TableEncoder(numbers="line", missing="mark").fit(table)
    other = pd.DataFrame({"when": ["03/04/2020"], "x": ["-9"], "w": ["-9"]})
    parts = encoder.read(other, Reading(dates="day", missing="-9"), [])
    assert parts["when.month"][0] == "04-Apr"
    assert pd.DataFrame(parts)[["x", "w"]].isna().all(axis=None)
    assert encoder.read(other, Reading(dates="month"), [])["when.month"][0] == "03-Mar"


def test_numbers_that_are_declared_missing_are_missing():
    table = pd.DataFrame({"x": ["1.5", "2", "-999", "3"] * 9, "z": range(36)})
    for given in (table, table.astype(float)):
        encoder = TableEncoder(numbers="line", missing_words="-999").fit(given)
        assert encoder.columns_[0].seen == (1.5, 3.0)
        assert np.isnan(encoder.read(given)["x"]).sum() == 9


def test_a_near_name_is_offered_and_other_dates_are_refused():
    table = pd.DataFrame({"Größe (m)": NUMBERS, "when": TIMES.strftime("%Y-%m-%d")})
    encoder = TableEncoder(numbers="line").fit(table)
    with pytest.raises(ValueError, match=r"lacks the column 'Größe \(m\)'. If it is 'grösse m', rename that"):
        encoder.transform(table.rename(columns={"Größe (m)": "grösse m"}))
    with pytest.raises(ValueError, match="'when' has no dates as in training"):
        encoder.transform(table.assign(when="19:00"))


def test_commands_read_other_notations_and_libsvm_with_and_without_labels(tmp_path, capsys, command):
    table = pd.DataFrame({"x": NUMBERS, "w": WORDS, "y": NUMBERS * np.where(WORDS == "Oil", 2, 1)})
    table.to_csv(tmp_path / "a.csv", index=False)
    command(
        "fit", tmp_path / "a.csv", "--target", "y", "--numbers", "line", *QUICK, "--output", tmp_path / "out"
    )
    texts = table.map(
        lambda cell: f"{cell:.2f}".replace(".", ",") if isinstance(cell, float) else cell.lower()
    )
    texts.to_csv(tmp_path / "b.txt", index=False, sep=" ")
    plain, other = (command("predict", tmp_path / "out", tmp_path / name) for name in ("a.csv", "b.txt"))
    assert other.out == plain.out
    assert "y is known in 60 of these rows: RMSE" in other.err
    assert "'water' as 'Water'" in other.err
    rows = [f"1:{x:.2f} 3:{z}" for x, z in zip(NUMBERS / 1000, FIRST / 100, strict=True)]
    (tmp_path / "a.svm").write_text("\n".join(f"{i % 3} {row}" for i, row in enumerate(rows)))
    (tmp_path / "b.svm").write_text("\n".join(rows))
    command("fit", tmp_path / "a.svm", *QUICK, "--output", tmp_path / "svm")
    labelled, unlabelled = (command("predict", tmp_path / "svm", tmp_path / f"{name}.svm") for name in "ab")
    assert labelled.out == unlabelled.out
    assert "target is known in 60 of these rows" in labelled.err
    assert "known" not in unlabelled.err


# ------------------------------------------------------------------------------------------- from Python


class Frame:
    """A table with no other methods than those of the Arrow C stream, as of polars."""

    def __init__(self, table: pd.DataFrame) -> None:
        arrow = pa.table(table)
        self._arrow = arrow.set_column(0, "w", arrow["w"].cast(pa.string_view()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._arrow.__arrow_c_stream__(requested_schema)


def test_tables_of_other_libraries_are_those_of_pandas():
    table = pd.DataFrame({"w": WORDS, "x": NUMBERS, "when": TIMES, "b": NUMBERS > 1050, "i": FIRST})
    table.loc[3, "x"] = np.nan
    encoder = TableEncoder(numbers="line").fit(table)
    arrow = pa.table(table)
    for other in (
        arrow,
        Frame(table),
        table.convert_dtypes(dtype_backend="pyarrow"),
        arrow.to_pandas(types_mapper=pd.ArrowDtype),
    ):
        fitted = TableEncoder(numbers="line").fit(other)
        assert fitted.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
        for own in (encoder, fitted):
            np.testing.assert_allclose(read(own, other)[0], read(encoder, table)[0])
    rows = [list(row) for row in zip(WORDS.tolist(), NUMBERS, strict=True)]
    assert TableEncoder(numbers="line").fit(rows).get_feature_names_out().tolist() == [
        "column 1=Oil",
        "column 1=Sand",
        "column 1=Water",
        "column 2",
    ]


def test_names_are_checked():
    table = pd.DataFrame({"a": NUMBERS, "b": NUMBERS + FIRST})
    with pytest.raises(ValueError, match="2 columns are named 'a'; rename"):
        TableEncoder().fit(table.set_axis(["a", "a"], axis=1))
    encoder = TableEncoder(numbers="line", distinct=False).fit(table)
    assert encoder.get_feature_names_out(["a", "b"]).tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="input_features are a, c, but the columns are a, b"):
        encoder.get_feature_names_out(["a", "c"])


def test_sparse_features_are_columns_of_pandas_if_asked_for():
    table = pd.DataFrame({"user": [f"u{i % 30}" for i in range(N)]}, index=range(5, N + 5))
    frame = TableEncoder().set_output(transform="pandas").fit_transform(table)
    assert all(isinstance(dtype, pd.SparseDtype) for dtype in frame.dtypes)
    assert (frame.columns[0], frame.index[0]) == ("user=u0", 5)


@pytest.mark.parametrize("shape", [(N, 1), (N, 2)])
def test_curves_are_chosen_on_targets_in_columns(shape):
    table = pd.DataFrame({"a": NUMBERS, "b": FIRST})
    y = np.abs(NUMBERS - 1050)
    encoder = TableEncoder(numbers="auto").fit(table, np.column_stack([y] * shape[1]))
    assert encoder.bases_ == TableEncoder(numbers="auto").fit(table, y).bases_ != "line"


def test_answers_that_are_new_are_told():
    ways, ticks = (list(map(";".join, ANSWERS)), np.where(FIRST > 103, "x", None))
    table = pd.DataFrame({"ways": ways, "tick": ticks, "z": NUMBERS})
    encoder = TableEncoder(numbers="line").fit(table)
    other = table.head(3).assign(ways=["Bike, train", None, "tram|CAR"])
    X, notes = read(encoder, other)
    assert notes == ("Column 'ways' has answers without a feature (train, tram) in 2 rows; they are ignored.")
    np.testing.assert_array_equal(X, read(encoder, other.assign(ways=["bike", None, "car"]))[0])


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_durations_of_frames_and_parquet_are_hours_in_any_file(unit, tmp_path):
    # Of a column with this name, integers would be moments since 1970.
    spans = pd.Series(pd.to_timedelta(FIRST * 977 - 100_000, unit="s"), name="race time")
    spans = spans.where(FIRST > 100).astype(f"timedelta64[{unit}]")
    table = pd.DataFrame({"race time": spans, "z": NUMBERS})
    table.to_parquet(tmp_path / "a.parquet")
    parquet = source_of_file((tmp_path / "a.parquet").read_bytes()).table
    text = source_of_file(table.to_csv(index=False).encode()).table
    hours = spans / pd.Timedelta(hours=1)
    assert hours.min() < 0.0
    for each in (table, parquet, text):
        (column, _) = described(each)
        assert (column.kind, column.missing) == ("number", spans.isna().sum())
        assert column.note.startswith("Read as numbers in hours, from durations (")
        np.testing.assert_allclose(column.numbers.read(each["race time"]), hours)
        encoder = TableEncoder(numbers="line").fit(each)
        for other in (table, parquet, text):
            np.testing.assert_allclose(read(encoder, other)[0], read(encoder, each)[0])
            assert not read(encoder, other)[1]


def test_times_with_a_zone_and_times_of_the_day_are_those_of_frames(tmp_path):
    moments = TIMES.tz_localize("UTC").tz_convert("America/New_York")
    table = pd.DataFrame({"when": moments, "clock": TIMES.time, "z": NUMBERS})
    table.to_parquet(tmp_path / "a.parquet")
    parquet = source_of_file((tmp_path / "a.parquet").read_bytes()).table
    encoder = TableEncoder(numbers="line", scaling="none", distinct=False).fit(table)
    X = pd.DataFrame(read(encoder, table)[0], columns=encoder.get_feature_names_out())
    np.testing.assert_array_equal(X["when.hour"], moments.hour)
    np.testing.assert_array_equal(X["clock.hour"], TIMES.hour)
    np.testing.assert_array_equal(read(encoder, parquet)[0], X)
    np.testing.assert_array_equal(TableEncoder(**encoder.get_params()).fit(parquet).transform(parquet), X)
