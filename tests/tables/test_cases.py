"""Files as people have them: each is read right, or refused in a sentence that says what to do."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

from fmviz.__main__ import main
from fmviz.lab.saved_model import SavedModel
from fmviz.tables.cells import numbers_of
from fmviz.tables.files import read
from fmviz.tables.recipe import columns_of, first_recipe, learned
from fmviz.tables.source import Reading

FOLDER = Path(__file__).parents[1] / "cases"
DATES = ("ampm", "dmy", "eu_time", "mon", "short", "text")
REFUSED = {
    "25c_multilabel.svm": r"line 2 has several labels \(1,3\), but only one is allowed\. Use a table",
    "25e_libffm.txt": r"is a libffm file \(field:index:value\)\. Write each entry as index:value",
    "25k_bad_line_97.svm": r"line 97 has '2=0\.7' \(1 1:0\.5 2=0\.7\) instead of index:value",
}

# By file the kinds of its columns, of libsvm that of its target, and what is said of them and of the file.
READ = {
    "20_none_class.csv": (
        "number number word word",
        "'None' is a word in column 'disorder'. `--read missing=None` reads",
    ),
    "20c_na_class.csv": (
        "number number yes_no",
        "'NA' is a word in column 'garage'. `--read missing=NA` reads this as missing",
    ),
    "21_money_target.csv": (
        "number number number number yes_no",
        r"numbers in \$ .*numbers in % .*--words beds",
    ),
    "21b_money_features.csv": (
        "number number number number yes_no",
        r"in % .*in \$ .*in months .*in years, without a trailing \+, with half of the number after <",
    ),
    "21d_play.csv": (
        "number number number number",
        r"with K, M and B for .*'Varies with device' is a missing value.*without a trailing \+ \('1,000\+'\)",
    ),
    "25d_first_row_empty.svm": ("number", ""),
    "26_decimal_comma.tsv": (
        "number number word number",
        "with a decimal comma .*decimal comma .*decimal comma",
    ),
    "27_excel_title.csv": (
        "ignored number word number",
        r"dropped \('Quarterly yield report'\).*\[mm\].*at the end was dropped \('Sum' …\)",
    ),
    "27c_comments.csv": ("number number word number", "2 lines of comments at the beginning were dropped"),
    **{f"28_{form}.csv": ("date number number", "") for form in (*DATES, "time")},
    "28t_zone.csv": ("date number number", ""),
    "28z_ambiguous.csv": ("date number number", "'when' is read with the month first; .*`--read dates=day`"),
    "32_yes_variants.csv": ("number number word yes_no", "'YES' as 'Yes', 'NO' as 'No'"),
    "33_no_header_iris.csv": ("number number word number", "read as a row, .*`--read header=yes`"),
    "33c_adult_train.csv": ("number word number word yes_no", ""),
    "33c_adult_test.csv": ("number word number word yes_no", ""),
    "34_survey.csv": (
        "word word word word word date answers word word",
        "Several answers, between ';': Java, ",
    ),
    "36_train.csv": ("word number number", ""),
    "36_test.csv": ("word number number", ""),
    "36_test_digits.csv": ("word number number", ""),
    "37j_plus_minus_unicode.csv": ("number yes_no number", ""),
    "37l_na_dash.csv": ("number yes_no number", "'-' is a missing value"),
    "101_ticks.csv": ("yes_no yes_no yes_no number number", "Filled with 'x' or blank, .*`--ignore bike`"),
    "102_class_5B.csv": ("word word number number", "^ *Column 'hours' has only 9 distinct"),
    "103_long_ids.csv": ("word number number", "^ *Column 'hours' has only 9 distinct"),
    "104_blood_pressure.csv": ("pair number number", r"two numbers around '/' \('135/99'\); `--words blood"),
    "106_excel_errors.csv": ("number number number", "Errors .* missing: '#REF!', '#VALUE!'"),
    "108_several_answers.csv": (
        "answers number number",
        "Several answers, between ';': bus, bike, train, walk",
    ),
    "109_unix_seconds.csv": (
        "date number number",
        r"times since 1970, in UTC \(2020-05-29 05:06:20\); `--use",
    ),
    "112_repeated_patients.csv": ("number number number number number word number", "^ *Column 'visit'"),
    "24_zero_based_train.svm": ("number", ""),
    "24_zero_based_test.svm": ("number", ""),
}


def test_every_file_is_tested():
    assert {path.name for path in FOLDER.glob("*.*")} == READ.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", READ)
def test_files_are_read_as_they_are_meant(name):
    kinds, sentences = READ[name]
    source = read((FOLDER / name).read_bytes(), name=name)
    columns = columns_of(source)
    assert [column.kind for column in columns] == kinds.split()
    said = " ".join([*source.notes, *(words for column in columns for words in (column.note, column.asked))])
    assert re.search(sentences, said), said
    assert bool(said.strip()) == bool(sentences)
    lines = [line for line in (FOLDER / name).read_text().splitlines() if line.strip(" ;")]
    around = {"27_excel_title.csv": 4, "27c_comments.csv": 3, "33_no_header_iris.csv": 0}
    assert len(source) == len(lines) - around.get(name, 0 if source.table is None else 1)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_with_the_line_or_the_format(name, command):
    assert re.search(REFUSED[name], command("fit", FOLDER / name, code=2).err)


@pytest.mark.parametrize(
    ("name", "column", "cells"),
    [
        ("21_money_target.csv", "price", {0: 3473.82}),
        ("21_money_target.csv", "rate", {0: 51.3}),
        ("21b_money_features.csv", "term", {0: 36}),
        ("21b_money_features.csv", "emp_length", {0: 10, 1: 0.5}),
        ("21d_play.csv", "size", {0: np.nan, 1: 19.3e6}),
        ("21d_play.csv", "installs", {0: 1000, 2: 100}),
        ("26_decimal_comma.tsv", "Feuchte", {0: 0.63, 1: 0.465}),
        ("26_decimal_comma.tsv", "Ertrag", {0: 101.39}),
        ("27_excel_title.csv", "Yield", {0: 9.39, 239: 6.46}),
        ("37j_plus_minus_unicode.csv", "a", {0: 0.13, 1: -0.13}),
        ("37l_na_dash.csv", "a", {0: np.nan, 1: -0.132}),
        ("37l_na_dash.csv", "y", {0: np.nan, 1: -0.205}),
    ],
)
def test_cells_are_the_numbers_that_they_write(name, column, cells):
    source = read((FOLDER / name).read_bytes())
    (described,) = (each for each in columns_of(source) if each.name == column)
    numbers = numbers_of(source.table[column], described.notation)
    np.testing.assert_allclose(numbers[list(cells)], list(cells.values()))


def test_the_order_of_day_and_month_can_be_changed():
    source = read((FOLDER / "28z_ambiguous.csv").read_bytes(), Reading(dates="day"))
    (when, *_) = columns_of(source)
    assert (when.dates.form, when.asked) == ("%d/%m/%Y", "")


def test_words_that_are_missing_values_can_be_said():
    source = read((FOLDER / "20_none_class.csv").read_bytes(), Reading(missing="None"))
    *_, disorder = columns_of(source)
    assert (disorder.kind, disorder.missing, disorder.levels) == ("yes_no", 95, ("Insomnia", "Apnea"))


def test_offsets_are_told():
    for name, column in (("28t_zone.csv", "when"), ("34_survey.csv", "Timestamp")):
        source = read((FOLDER / name).read_bytes())
        recipe = first_recipe(source, columns_of(source))
        target = recipe.target or recipe.columns[-1].name
        _, encoder = learned(source, replace(recipe, target=target))
        assert f"Times of column {column!r} are local times as written" in " ".join(encoder.sentences_)


# ------------------------------------------------------------------------------------- fits and predictions

QUICK = ("--numbers", "line", "--rank", "5", "--max-epochs", "60")
QUICK += ("--lambda-sparse", "1e-4", "--lambda-w", "1e-4", "--lambda-p", "1e-4")


def score(fitted: Path, tested: Path, folder: Path) -> float:
    """Return R², accuracy of several classes, or AUC of two classes, of the predictions for a file."""
    assert main(["predict", str(fitted), str(tested), "--output", str(folder / "p.csv")]) == 0
    predicted = pd.read_csv(folder / "p.csv", keep_default_na=False)
    model = SavedModel.load(fitted / "model.npz")
    source = read(tested.read_bytes(), Reading(base=model.base))
    table = pd.DataFrame({"target": source.y}) if source.table is None else source.table
    y = model.target.encode(table)
    known = ~np.isnan(y) & (predicted["prediction"] != "").to_numpy()
    y, predicted = y[known], predicted[known]
    if model.target.task == "regression":
        return r2_score(model.target.decode(y), predicted["prediction"].astype(float))
    if model.target.task == "binary":
        return roc_auc_score(y, predicted[f"probability of {model.target.labels[1]}"].astype(float))
    return accuracy_score(np.array(model.target.labels)[y.astype(int)], predicted["prediction"])


def divided(name: str, folder: Path, above: int) -> tuple[Path, Path]:
    """Write a quarter of the rows of a file, and the others, each below the lines above them."""
    lines = (FOLDER / name).read_text().splitlines(keepends=True)
    head, rows = lines[:above], lines[above:]
    order = np.random.default_rng(0).permutation(len(rows))
    paths = folder / f"train_{name}", folder / f"test_{name}"
    for path, part in zip(paths, np.split(order, [3 * len(rows) // 4]), strict=True):
        path.write_text("".join([*head, *(rows[place] for place in sorted(part))]))
    return paths


FITS = [
    ("20_none_class.csv", "disorder", (), 0.9, ""),
    ("20c_na_class.csv", "garage", (), 0.9, ""),
    ("21_money_target.csv", "price", ("--log-target",), 0.9, r"Target 'price': Read as numbers in \$"),
    ("21b_money_features.csv", "default", (), 0.9, "Column 'term': Read as numbers in months"),
    # The rating of one row is cut off at 5, where size × b alone would give 7.6.
    ("21d_play.csv", "rating", (), 0.5, "'Varies with device' is a missing value"),
    ("26_decimal_comma.tsv", "Ertrag", (), 0.9, "Target 'Ertrag': Read as numbers with a decimal comma"),
    ("27c_comments.csv", "y", (), 0.9, "2 lines of comments"),
    *((f"28_{form}.csv", "y", (), 0.9, "Column 'when' is a date and becomes") for form in DATES),
    ("28t_zone.csv", "y", (), 0.9, "local times as written, without their offset"),
    ("32_yes_variants.csv", "smoker", (), 0.9, "'YES' as 'Yes'"),
    ("33_no_header_iris.csv", "column 4", (), 0.9, "`--read header=yes`"),
    (
        "34_survey.csv",
        "satisfaction",
        ("--task", "ordinal"),
        0.65,
        "ordered by their rating scale: Strongly disagree",
    ),
    ("36_train.csv", "y", (), 0.9, ""),
]
QUICK_ONES = (
    "20_none_class.csv",
    "26_decimal_comma.tsv",
    "28_ampm.csv",
    "32_yes_variants.csv",
    "33_no_header_iris.csv",
)


@pytest.mark.parametrize(
    ("name", "target", "options", "least", "sentence"),
    [
        *(pytest.param(*fit, marks=pytest.mark.slow) for fit in FITS),
        *((name, y, (*own, *QUICK), *expected) for name, y, own, *expected in FITS if name in QUICK_ONES),
    ],
)
def test_a_fit_predicts_rows_kept_out(name, target, options, least, sentence, tmp_path, command):
    train, test = divided(name, tmp_path, {"27c_comments.csv": 3, "33_no_header_iris.csv": 0}.get(name, 1))
    printed = command("fit", train, "--target", target, *options, "--output", tmp_path / "out").out
    assert re.search(sentence, printed), printed
    assert score(tmp_path / "out", test, tmp_path) >= least


def fitted(name: str, folder: Path, *options: str) -> Path:
    assert main(["fit", str(FOLDER / name), *options, "--output", str(folder / "out")]) == 0
    return folder / "out"


def test_a_model_remembers_the_base_of_libsvm(tmp_path):
    out = fitted("24_zero_based_train.svm", tmp_path, *QUICK[2:])
    assert SavedModel.load(out / "model.npz").base == "0"
    assert score(out, FOLDER / "24_zero_based_test.svm", tmp_path) >= 0.9
    # The second file by itself counts from 1; it may be said otherwise.
    assert read((FOLDER / "24_zero_based_test.svm").read_bytes()).reading.base == "1"


def test_classes_that_end_with_a_point_are_those_of_the_model(tmp_path, capsys):
    out = fitted("33c_adult_train.csv", tmp_path, "--target", "income", *QUICK)
    assert SavedModel.load(out / "model.npz").target.labels == ("<=50K", ">50K")
    assert score(out, FOLDER / "33c_adult_test.csv", tmp_path) >= 0.9
    said = capsys.readouterr().err
    assert re.search(r"income is known in 240 of these rows: AUC [\d.]+, Accuracy 0\.[89]", said), said
    # Other labels than the model's are told.
    text = (FOLDER / "33c_adult_test.csv").read_text().replace(">50K.", "rich", 5)
    (tmp_path / "rich.csv").write_text(text)
    assert main(["predict", str(out), str(tmp_path / "rich.csv")]) == 0
    said = capsys.readouterr()
    assert "The model does not have the class rich of 'income', which 5 rows have." in said.err
    assert "known in 235 of these rows" in said.err
    assert len(pd.read_csv(io.StringIO(said.out))) == 240


@pytest.mark.parametrize("name", ["36_test.csv", "36_test_digits.csv"])
def test_codes_are_those_of_the_model(name, tmp_path, capsys):
    out = fitted("36_train.csv", tmp_path, "--target", "y", *QUICK)
    assert score(out, FOLDER / name, tmp_path) >= 0.9
    assert "new to the model" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["37j_plus_minus_unicode.csv", "37l_na_dash.csv", "28_time.csv", "28z_ambiguous.csv"]
)
def test_files_without_much_to_learn_are_fitted_too(name, command):
    given = ("--target", "y", *QUICK[:4], "--max-epochs", "3", *QUICK[6:])
    assert ("dates=day" in command("fit", FOLDER / name, *given).out) == (name == "28z_ambiguous.csv")
