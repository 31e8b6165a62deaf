"""What is learned of a table, and applied to the next one."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from small_tables import csv_bytes, decided, dense, frame, learn, source_of

from fmviz import FactorizationMachineRegressor, TableEncoder
from fmviz.lab.datasets import Dataset
from fmviz.tables import curves
from fmviz.tables.columns import TextColumn
from fmviz.tables.encoded import applied, encode
from fmviz.tables.kinds import described
from fmviz.tables.limits import MOST_LEVELS

WORDS = pd.DataFrame({"a": ["$1,000", "$2,500.5", "-", "$30"] * 10, "b": ["x ", "X", "y", "x"] * 10})


def again(encoder: TableEncoder) -> TableEncoder:
    """Return an encoder that was kept as JSON."""
    return TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))


def names(encoded) -> list[str]:
    return encoded.encoder.get_feature_names_out().tolist()


def apply(encoded, table):
    """Encode a table by what was learned of another one."""
    return applied(source_of(table), encoded.target, encoded.encoder)


def test_numbers_are_standardised_and_words_become_columns():
    table = frame()
    encoded = learn(table, kinds={"code": "word"})
    assert names(encoded) == [
        *("age", "town=Bonn", "town=Kiel", "town=Ulm"),
        *("code=10", "code=20", "code=100"),
    ]
    X = dense(encoded)
    assert abs(X[:, 0].mean()) < 1e-12
    assert X[:, 0].std() == pytest.approx(1)
    assert (X[:, 1:4].sum(axis=1) == 1).all()
    assert (X[:, 1] == (table["town"] == "Bonn")).all()
    assert (X[:, 6] == (table["code"] == 100)).all()
    assert encoded.y.std() == pytest.approx(1)
    dataset = Dataset.of_table(encoded, "mine", "Mine")
    assert dataset.groups == ("age", "town", "town", "town", "code", "code", "code")


@pytest.mark.parametrize("numbers", ["line", "8 hats and 32 bins"])
def test_lines_and_curves_end_where_numbers_are_rare(numbers):
    area = np.r_[np.linspace(500.0, 4_000.0, 999), 50_000.0]
    rain = np.where(np.arange(1_000) < 995, 0.0, np.linspace(1.0, 40.0, 1_000))
    table = pd.DataFrame({"area": area, "rain": rain, "rating": 1 + (np.arange(1_000) > 997), "y": area})
    encoder = TableEncoder(numbers=numbers).fit(table[["area", "rain", "rating"]])
    low, high = encoder.columns_[0].ends
    assert (low, high) == pytest.approx((514.0, 3_989.5), abs=1.0)
    # The rare numbers of a column of zeros, and rare levels, are kept.
    assert encoder.columns_[1].ends[1] > 39.0
    assert encoder.columns_[2].ends == (1.0, 2.0)
    far = table.iloc[[0, 1]].assign(area=[1e6, high], rain=[-1.0, 0.0])
    for kept in (encoder, again(encoder)):
        X = dense(kept.transform(far))
        place = [column == "area" for column in kept.groups_]
        assert (X[0, place] == X[1, place]).all()
        assert kept.notes(kept.read(far)) == [
            "1 row lies beyond what was seen: area 1,000,000, up to 50,000.",
            "1 row lies beyond what was seen: rain -1, from 0.",
        ]


def test_texts_become_their_words():
    rng = np.random.default_rng(0)
    words = rng.choice(["good", "bad"], 60)
    table = pd.DataFrame(
        {
            "review": [f"it was {word} and cheap {i}" for i, word in enumerate(words)],
            "y": rng.normal(size=60),
        }
    )
    encoded = learn(table)
    assert encoded.encoder.columns_ == (
        TextColumn(name="review", missing="impute", words=("and", "bad", "cheap", "good", "it", "was")),
    )
    place = names(encoded).index("review:good")
    assert (dense(encoded)[:, place] == table["review"].str.contains("good")).all()
    assert again(encoded.encoder).columns_ == encoded.encoder.columns_
    assert (again(encoded.encoder).transform(table) == dense(encoded)).all()


def test_new_data_may_hold_new_words_but_no_words_for_numbers():
    table = frame(200).assign(
        smoker=["no", "yes"] * 100, rare=["often"] * 190 + ["seldom"] * 4 + ["never"] * 4 + ["once"] * 2
    )
    learned = learn(table, rare=5, missing="drop")
    new = table.tail(4).assign(
        town=["Rom", "Ulm", "Rom", "Ulm"],
        smoker=["no", "?", "perhaps", "yes"],
        rare=["new", "never", None, "often"],
    )
    encoded = apply(learned, new.drop(columns="y"))
    assert encoded.y is None
    assert encoded.rows.tolist() == [0, 1, 3]
    assert list(encoded.notes[1:]) == [
        "Column 'town' has words that are new to the model (Rom) in 1 row; they count as none of its levels.",
        "Column 'smoker' has words that are new to the model (?) in 1 row; they count as none of its levels.",
        "Column 'rare' has words that are new to the model (new) in 1 row; they count as (other).",
    ]
    assert dense(encoded)[
        :, [names(learned).index("town=Ulm"), names(learned).index("rare=(other)")]
    ].tolist() == [
        [0.0, 1.0],
        [1.0, 1.0],
        [1.0, 0.0],
    ]
    with pytest.raises(ValueError, match="'age' contains 'old'"):
        apply(learned, new.assign(age=["old", "young", None, None]))
    with pytest.raises(ValueError, match="lacks the column 'age'"):
        apply(learned, new.drop(columns="age"))


def test_dates_are_read_as_they_were_when_they_were_learned():
    days = [f"{i % 28 + 1:02d}/{i % 12 + 1:02d}/{2020 + i % 3}" for i in range(60)]
    table = pd.DataFrame({"when": days, "y": np.arange(60.0)})
    learned = learn(table)
    assert learned.encoder.dates_ == {"when": "%d/%m/%Y"}
    # By itself it would be the third of February.
    encoded = apply(learned, pd.DataFrame({"when": ["02/03/2021"]}))
    assert dense(encoded)[0, names(learned).index("when.month=03-Mar")] == 1.0
    assert (dense(again(learned.encoder).transform(table)) == dense(learned)).all()


def test_numbers_of_the_next_table_are_read_by_the_notation_of_the_first():
    encoder = TableEncoder(numbers="line").fit(WORDS)
    assert encoder.sentences_[0] == "Column 'a': Read as numbers in $ ('$1,000'). '-' is a missing value."
    assert "'X' as 'x'" in " ".join(encoder.sentences_)
    assert encoder.get_feature_names_out().tolist() == ["a", "a=(missing)", "b=y"]
    mean, scale = encoder.columns_[0].center, encoder.columns_[0].scale
    X = again(encoder).transform(pd.DataFrame({"a": ["2000", "$70", "-", "?"], "b": ["Y", " y", "x", "z"]}))
    expected = [[(2000 - mean) / scale, 0, 1], [(70 - mean) / scale, 0, 1], [0, 1, 0], [0, 1, 0]]
    np.testing.assert_allclose(X, expected)


@pytest.mark.parametrize("numbers", ["line", "curve", "auto"])
def test_curves_stand_beside_the_line_and_belong_to_its_column(numbers):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.uniform(-2, 2, 400), "flag": rng.choice([0, 1], 400)})
    y = np.sin(3 * table["x"]) + 0.1 * rng.normal(size=400)
    encoder = TableEncoder(numbers=numbers).fit(table, y)
    assert (encoder.bases_ == "line") == (numbers == "line")
    column = encoder.columns_[0]
    assert bool(column.curves) == (numbers != "line")
    assert encoder.groups_ == ("x",) * len(column.feature_names) + ("flag",)
    assert not getattr(encoder.columns_[1], "curves", ())
    X = dense(encoder.transform(table))
    kept = again(encoder)
    assert (dense(kept.transform(table)) == X).all()
    assert (kept.columns_, kept.sentences_, kept.get_params()) == (
        encoder.columns_,
        encoder.sentences_,
        encoder.get_params(),
    )
    widths = [basis.width for basis in column.curves]
    for at, width in zip(1 + np.cumsum([0, *widths[:-1]]), widths, strict=False):
        np.testing.assert_allclose(X[:, at : at + width].sum(axis=1), 1.0)
    if numbers == "auto":
        assert f"Numbers enter as curves of {encoder.bases_}" in encoder.sentences_[-1]
    # Beyond the knots a curve goes on level, and a missing value has none.
    far = dense(encoder.transform(pd.DataFrame({"x": [99.0, table["x"].max(), np.nan], "flag": [0, 0, 0]})))
    assert (far[0, 1:] == far[1, 1:]).all()
    assert not far[2].any()


def test_curves_are_chosen_with_groups_of_rows_kept_together(monkeypatch):
    kept = []

    def losses(X, y, prior, inside, out, binary):
        kept.append((inside, out))
        return np.ones(len(out))

    monkeypatch.setattr(curves, "_losses", losses)
    table, groups = pd.DataFrame({"x": np.sin(np.arange(90.0))}), np.arange(90) // 9
    TableEncoder().learn(table, described(table), np.arange(90.0), groups)
    order = np.random.default_rng(0).permutation(90)
    assert len(kept) == 3 * len(curves.BASES)
    assert all(not {*groups[order[inside]]} & {*groups[order[out]]} for inside, out in kept)


def test_the_line_is_kept_where_no_curve_is_better():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    encoder = TableEncoder().fit(table, table["a"] - table["b"] + 0.5 * rng.normal(size=300))
    assert encoder.bases_ == "line"
    assert encoder.sentences_[-1].startswith("Numbers enter as straight lines")


def test_it_is_an_estimator_among_others():
    table = frame(60)
    encoder = clone(TableEncoder(numbers="line", rare=2, use={"code": "word"}))
    assert encoder.get_params()["use"] == {"code": "word"}
    pipe = make_pipeline(encoder, FactorizationMachineRegressor(rank=2, tol=0.1)).fit(
        table.drop(columns="y"), table["y"]
    )
    assert pipe.predict(table).shape == (60,)
    X = np.column_stack([np.arange(30) / 4, np.arange(30) % 7])
    assert TableEncoder(numbers="line").fit(X).get_feature_names_out().tolist() == ["column 1", "column 2"]


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"numbers": "spline"}, "numbers = 'spline'"),
        ({"scaling": "log"}, "scaling = 'log'"),
        ({"use": {"age": "colour"}}, r"use\['age'\] = 'colour'"),
        (
            {"use": {"size": "number"}},
            "use has the unknown column 'size'; the columns are age, town, code, y",
        ),
        ({"missing": "guess"}, "missing = 'guess'"),
        ({"missing": {"age": "guess"}}, r"missing\['age'\] = 'guess'"),
        ({"rare": 0}, "rare = 0"),
        ({"most_levels": 1.5}, "most_levels = 1.5"),
    ],
)
def test_wrong_parameters_are_named(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        TableEncoder(**parameters).fit(frame())


def test_constant_columns_are_left_out_and_told():
    table = frame().assign(constant=1.0, same="x", none=np.nan)
    encoder = learn(table, kinds={"constant": "number", "same": "word", "none": "number"}).encoder
    assert [column.name for column in encoder.columns_] == ["age", "town", "code"]
    assert [sentence for sentence in encoder.sentences_ if "left out" in sentence] == [
        *(
            f"Column {name!r} is left out: it has the same value in all rows."
            for name in ("constant", "same")
        ),
        "Column 'none' is left out: it has no values.",
    ]


@pytest.mark.parametrize(
    ("table", "settings", "sentence"),
    [
        (frame(), {"target": "z"}, "'z' is not a column"),
        (frame().assign(y=3), {}, "is always '3'"),
        (frame().assign(y=np.nan), {}, "has no values"),
        (frame(), {"target": "town", "task": "binary"}, r"3 classes \(Bonn, Kiel, Ulm\)"),
        (frame(), {"target": "town", "task": "regression"}, "contains words"),
        (frame(), {"task": "binary"}, "40 classes"),
        (frame(), {"kinds": dict.fromkeys(("age", "town", "code"), "ignored")}, "No column is left"),
        (frame(), {"kinds": {"town": "date"}}, "fewer than two distinct dates"),
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


def test_missing_values_are_dropped_filled_or_marked():
    table = frame(200).astype({"age": float})
    table.loc[:9, "age"] = np.nan
    table.loc[5:14, "town"] = None
    source, first = decided(csv_bytes(table))
    assert [(choice.name, choice.missing) for choice in first.columns] == [
        *(("age", "mark"), ("town", "mark"), ("code", "impute"), ("y", "impute")),
    ]

    def with_rules(age, town, **changes):
        rules = {"age": age, "town": town}
        columns = [type(c)(c.name, c.kind, rules.get(c.name, "drop")) for c in first.columns]
        return encode(source, first.corrected(columns))

    marked = with_rules("mark", "mark")
    assert {"age=(missing)", "town=(missing)"} <= set(names(marked))
    X = dense(marked)
    assert X[:, names(marked).index("age=(missing)")].sum() == 10
    assert (X[:10, 0] == 0).all()
    assert with_rules("drop", "drop").y.size == 185
    assert with_rules("drop", "impute").y.size == 190
    assert with_rules("drop", "drop").notes == (
        "Rows dropped because of missing values: 15 (age in 10, town in 10).",
    )
    filled = with_rules("impute", "impute")
    assert filled.y.size == 200
    assert "town=(missing)" not in names(filled)
    ranged = encode(*decided(csv_bytes(table), scaling="range"))
    assert dense(ranged)[0, 0] == pytest.approx((table["age"].mean() - 20) / 39, abs=0.02)
    # In a transformer rows cannot go, so that they are NaN.
    features = table.drop(columns="y")
    X = TableEncoder(numbers="line", missing={"age": "drop"}).fit(features).transform(features)
    assert np.flatnonzero(np.isnan(dense(X)).all(axis=1)).tolist() == list(range(10))


def test_values_that_are_missing_in_the_next_table_alone_are_told():
    days = pd.date_range("2024", periods=40, freq="33D").astype(str)
    learned = learn(frame().assign(when=days))
    new = frame(4).astype({"age": float}).assign(town=["Ulm", None, "Ulm", None], when=[None, *days[:3]])
    new.loc[2, "age"] = np.nan
    assert list(apply(learned, new).notes) == [
        "Column 'age' has no readable value in 1 row, which counts as its mean.",
        "Column 'town' has no readable value in 2 rows, which counts as none of its levels.",
        "Column 'when' has no readable value in 1 row, which counts as none of its levels.",
    ]


def test_rare_words_share_a_feature():
    table = frame(300).assign(town=[f"t{i // 2}" for i in range(20)] + ["Kiel"] * 140 + ["Bonn"] * 140)
    encoder = learn(table, rare=3).encoder
    assert [name for name in encoder.get_feature_names_out() if name.startswith("town")] == [
        *("town=Bonn", "town=Kiel", "town=(other)"),
    ]
    assert "10 rare words of column 'town', in fewer than 3 rows, share a feature." in encoder.sentences_
    assert any(
        "none of its 12 words is in 200 rows" in said for said in learn(table, rare=200).encoder.sentences_
    )


def test_levels_are_as_many_as_there_are_unless_fewer_are_asked_for():
    many = pd.DataFrame({"user": [f"u{i // 2}" for i in range(2_400)], "y": np.arange(2_400) % 97 / 7})
    assert len(names(learn(many))) == 1_200 > MOST_LEVELS
    assert sp.issparse(learn(many).X)
    few = learn(many, most_levels=10)
    assert len(names(few)) == 11
    assert "1,190 rare words of column 'user'" in few.encoder.sentences_[0]


def test_a_second_column_of_the_name_of_a_part_of_a_date_is_refused():
    table = pd.DataFrame(
        {"when": [f"2024-{i % 12 + 1:02d}-03" for i in range(30)], "when.month": np.arange(30) % 7}
    )
    assert [column.kind for column in described(table)] == ["date", "number"]
    with pytest.raises(ValueError, match=r"Two columns become 'when.month'"):
        TableEncoder().fit(table)


def test_blanks_in_names_do_not_keep_a_frame_from_a_model_of_a_file():
    rows = [b"%d,%d\n" % (n % 11, n % 7) for n in range(30)]
    source, recipe = decided(b"cement (a)  (kg) ,y\n" + b"".join(rows))
    encoder = encode(source, recipe).encoder
    assert encoder.transform(pd.DataFrame({"cement (a)  (kg) ": [1.0, 2.0]})).shape[0] == 2


def test_a_column_without_any_value_in_the_next_table_counts_as_its_mean():
    x = np.arange(200.0)
    table = pd.DataFrame({"x": x, "z": x % 7, "g": np.where(x % 2, "a", "b")})
    encoder = TableEncoder(numbers="curve").fit(table, np.sin(x / 20))
    empty = encoder.transform(table.head(1).assign(x=np.nan))
    assert np.isfinite(dense(empty)).all()
    assert encoder.transform(table.head(0)).shape == (0, empty.shape[1])


def test_yes_is_the_same_however_the_next_table_says_it():
    yes = np.arange(60) % 3 == 0
    table = pd.DataFrame({"old": yes, "x": np.arange(60.0) % 13})
    encoder = TableEncoder(numbers="line").fit(table, np.arange(60.0))
    first = dense(encoder.transform(table))
    for other in (yes.astype(int), np.where(yes, "yes", "no"), np.where(yes, "TRUE", "FALSE")):
        np.testing.assert_array_equal(dense(encoder.transform(table.assign(old=other))), first)
