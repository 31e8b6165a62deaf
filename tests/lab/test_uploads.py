"""Uploads: hostile files, types of columns, recipes, sizes, the library, and runs on them."""

from __future__ import annotations

import dataclasses
import gzip
import io
import re
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from lab.hostile_files import FILES, SCRIPT, Hostile
from programs import run_afresh

from fmviz.engine.design import Design
from fmviz.engine.errors import StoppedError
from fmviz.lab import importing
from fmviz.lab.background import tasks
from fmviz.lab.background.pool import InlineExecutor
from fmviz.lab.catalog import dataset_spec, load
from fmviz.lab.datasets import DATASETS
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.importing import first_settings
from fmviz.lab.places import data_folder
from fmviz.lab.runner import Run
from fmviz.lab.runs.program import equal_sparsity_program, program
from fmviz.lab.search.equal_sparsity import search_program
from fmviz.lab.search.strength_path import PathPlan, path_program
from fmviz.lab.search.sweep_plan import SweepPlan, sweep_program
from fmviz.lab.store import RunStore
from fmviz.lab.store.table import title_of_run
from fmviz.lab.tables import limits, untrusted
from fmviz.lab.tables.column_types import described, likely_target
from fmviz.lab.tables.encoding import encode
from fmviz.lab.tables.files import read
from fmviz.lab.tables.recipe import Choice, Recipe, first_recipe
from fmviz.lab.tables.source import Reading
from fmviz.lab.tables.values import date_format, date_parts, dates_of, numbers_of
from fmviz.lab.uploads import example, is_upload, library
from fmviz.lab.uploads.size import Size
from fmviz.paths.validation import finished

ROOT = Path(__file__).resolve().parents[2]
# What a machine that is shared by many may take; an own core needs a fraction.
SLOWEST = 5.0


def table(n=200, seed=0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    town = rng.choice(["Bonn", "Kiel", "Ulm"], n)
    age = rng.integers(20, 60, n)
    # An interaction, so that there is something to find.
    y = 2.0 * (town == "Ulm") * (age - 40) / 10 + rng.normal(size=n)
    return pd.DataFrame({"age": age, "town": town, "smoker": rng.choice(["no", "yes"], n), "y": y.round(6)})


def bytes_of(frame: pd.DataFrame, **options) -> bytes:
    return frame.to_csv(index=False, **options).encode()


def decided(data: bytes, **changes):
    source = read(data)
    columns = () if source.table is None else described(source.table, source.reading.decimal)
    return source, dataclasses.replace(first_recipe(source, columns), **changes)


def build(source, recipe):
    return encode(source, recipe).dataset("x", "X")


def measure(source, recipe):
    return Size.of(encode(source, recipe))


def dense(dataset) -> np.ndarray:
    return dataset.X.toarray() if sp.issparse(dataset.X) else dataset.X


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A run store, and a folder for own data beside it."""
    monkeypatch.setenv("FMVIZ_STORE", str(tmp_path / "runs.sqlite"))
    library._profiles.clear()
    library._sizes.clear()
    return tmp_path


def entered(frame: pd.DataFrame | None = None, title="my table.csv", **changes) -> library.Upload:
    file = library.keep_file(bytes_of(table() if frame is None else frame))
    profile = library.profile(file, Reading())
    recipe = dataclasses.replace(first_recipe(profile.source, profile.columns), **changes)
    return finished(importing.import_upload(file, recipe, title))


@pytest.mark.parametrize(
    ("numbers", "decimal"),
    [
        ("12.5;0.998\n7.25;0.25", "point"),
        ("12,5;1.234\n7,25;1.500", "comma"),
        ("1.234;2\n1.500;3", "comma"),
        ("12.5;1,5\n7.25;2,5", "comma"),
    ],
)
def test_where_semicolons_divide_the_numbers_say_their_decimal_sign(numbers, decimal):
    source = read(f"a;b\n{numbers}\n".encode())
    assert source.reading.decimal == decimal
    again = read(f"a;b\n{numbers}\n".encode(), source.reading)
    pd.testing.assert_frame_equal(again.table, source.table)


# ---------------------------------------------------------------------------------------------- hostile


@pytest.mark.sample(30)
@pytest.mark.parametrize("file", FILES, ids=lambda file: re.sub(r"\W", "_", file.name)[:30])
def test_hostile_files_get_a_sentence_or_are_read(file: Hostile):
    data = file.make()
    said: list[str] = []
    begin = time.process_time()
    refused = False
    try:
        source = read(data, name=file.name)
    except ValueError as error:
        refused = True
        said.append(str(error))
    else:
        said += source.notes
        columns = () if source.table is None else described(source.table, source.reading.decimal)
        said += [column.note for column in columns if column.note]
        recipe = first_recipe(source, columns)
        try:
            size = measure(source, recipe)
            said += size.notes
            dataset = build(source, recipe)
        except ValueError as error:
            said.append(str(error))
        else:
            assert dataset.X.shape == (size.rows, size.features)
            assert int((dataset.X != 0).sum()) == size.entries
            assert np.isfinite(dataset.y).all()
            assert np.isfinite(dataset.X.data if sp.issparse(dataset.X) else dataset.X).all()
            assert len(dataset.feature_names) == len(dataset.groups) == size.features
    assert time.process_time() - begin < SLOWEST
    assert refused == file.refused, said
    assert re.search(file.says, " ".join(said)), said
    for sentence in said:
        assert sentence.endswith("."), sentence
        assert "\n" not in sentence
        assert "Traceback" not in sentence


def test_nothing_larger_than_the_limits_is_kept(here, monkeypatch):
    monkeypatch.setattr(limits, "UPLOADS", limits.Limits(file=1_000))
    with pytest.raises(ValueError, match="Take a sample of its rows"):
        library.keep_file(bytes(1_001))
    with pytest.raises(ValueError, match="more than 1 kB"):
        read(bytes(1_001), within=limits.UPLOADS)
    assert not data_folder().exists()
    with pytest.raises(ValueError, match="more than 10 rows"):
        read(b"a,y\n" + b"1,2\n" * 11, within=limits.Limits(rows=10))
    with pytest.raises(ValueError, match="18 cells"):
        read(b"a,b,y\n" + b"1,2,3\n" * 6, within=limits.Limits(cells=15))


@pytest.mark.skipif(sys.platform != "linux", reason="limits hold on Linux")
@pytest.mark.parametrize("encoding", [False, True])
def test_columns_are_described_and_encoded_within_limits(here, monkeypatch, encoding):
    """A wide table of words that are nearly dates costs the server no more than its limit."""
    rows = [[f"{(i + j) % 9} Jan" for j in range(700)] for i in range(20)]
    data = bytes_of(pd.DataFrame(rows, columns=[f"c{j}" for j in range(700)]))
    file = library.keep_file(data)
    if encoding:
        source = library._profiles.get((file, Reading()), lambda: library.Profile(read(data), ())).source
        recipe = Recipe(columns=tuple(Choice(name, "word") for name in source.table), target="c0")
    monkeypatch.setattr(untrusted, "_SECONDS", 0.2)

    def make(should_stop=lambda: False):
        if encoding:
            return library.encoded(file, recipe, should_stop)
        return library.profile(file, Reading(), should_stop)

    begin = time.process_time()
    with pytest.raises(ValueError, match="takes longer than 0 s"):
        make()
    with pytest.raises(StoppedError):
        make(lambda: True)
    assert time.process_time() - begin < SLOWEST / 5


@pytest.mark.parametrize("kind", ["table", "sparse table", "libsvm"])
def test_what_another_process_encodes_is_the_same(kind):
    frame = table()
    if kind == "sparse table":
        words = [f"w{i // 3}" for i in range(200)]
        frame = frame.assign(word=words, when="2024-01-" + frame.age.astype(str), y=["a", "b", "c", "a"] * 50)
    data = b"1 1:2 4:1.5\n-1 2:1\n1 3:-0.1\n" if kind == "libsvm" else bytes_of(frame)
    source, recipe = decided(data)
    there, columns = untrusted.describe_confined(data, Reading())
    assert columns == (() if source.table is None else described(source.table, source.reading.decimal))
    here, other = encode(source, recipe), untrusted.encode_confined(there, recipe)
    assert sp.issparse(here.X) == sp.issparse(other.X) == (kind != "table")
    assert np.array_equal(dense(here), dense(other))
    assert np.array_equal(here.y, other.y)
    assert (here.target, here.encoding, here.notes()) == (other.target, other.encoding, other.notes())


def test_the_limit_of_the_server_is_that_of_the_page():
    config = (ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    assert f"maxUploadSize = {limits.UPLOADS.file // 1_000_000}\n" in config


# ----------------------------------------------------------------------------------------------- reading


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
    assert numbers_of(pd.Series(["1.500", "2.500"]), "comma").tolist() == [1500.0, 2500.0]
    with pytest.raises(ValueError, match="delimiter"):
        Reading(delimiter="dash")


def test_lines_that_are_too_long_can_be_left_out():
    data = b"a,b,y\n1,2,3\n1,2,3,4,5\n3,2,1\n"
    with pytest.raises(ValueError, match="saw 5"):
        read(data)
    source = read(data, Reading(lines="fitting"))
    assert source.table["y"].tolist() == [3, 1]
    assert "1 lines have too many fields" in source.notes[0]


def test_parquet_is_read_as_the_same_table():
    frame = table().assign(when=pd.date_range("2024", periods=200, freq="7h"))
    sink = io.BytesIO()
    frame.to_parquet(sink)
    parsed = read(sink.getvalue()).table
    assert list(parsed.columns) == list(frame.columns)
    assert parsed["age"].tolist() == frame["age"].tolist()
    assert [column.kind for column in described(parsed)] == ["number", "word", "yes_no", "number", "date"]


# ----------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("words", "decimal", "numbers"),
    [
        (["1,234", "12", "-1,234,567.5"], "point", [1234, 12, -1234567.5]),
        (["1.234,5", "0,5", "7"], "comma", [1234.5, 0.5, 7]),
        (["1 234", "1'000", "1e3"], "point", [1234, 1000, 1000]),
        (["1,23", "x", "1e400", "inf", ""], "point", [np.nan] * 5),
        (["0x10", "1_000", "٣", "--1"], "point", [np.nan, np.nan, np.nan, np.nan]),
    ],
)
def test_numbers_are_read_as_people_write_them(words, decimal, numbers):
    read_numbers = numbers_of(pd.Series(words), decimal)
    if words[2] == "٣":  # whatever pandas makes of other digits is a number or none
        read_numbers[2] = np.nan
    assert np.array_equal(read_numbers, numbers, equal_nan=True)


@pytest.mark.parametrize(
    "words",
    [
        ["2024-01-31", "2024-02-29T10:30:00", "2023-12-24 08:00"],
        ["31.1.2024", "29.2.2024", "24.12.2023"],
        ["2024-01-31T10:00:00+05:00", "2024-02-29T10:00:00Z", "2024-12-24T10:00:00-03:00"],
    ],
)
def test_dates_become_their_parts(words, rng):
    assert dates_of(pd.Series(words), date_format(pd.Series(words))).notna().all()
    dates = pd.Series(rng.choice(words, 60), name="when")
    parts = date_parts(dates, date_format(dates))
    assert "when.weekday" in parts
    assert set(parts["when.month"].dropna()) <= {"01-Jan", "02-Feb", "12-Dec"}
    assert date_format(pd.Series(["x", "y"])) == ""


def test_columns_are_told_apart(rng):
    n = 120
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
    assert likely_target(described(frame)) == "price"
    assert likely_target(described(frame.drop(columns="price"))) == "amount"
    assert likely_target(described(frame[["amount", "town"]])) == "town"


def test_a_recipe_is_the_same_after_json():
    _, recipe = decided(bytes_of(table()), positive="yes", scaling="range", rare=3)
    assert Recipe.from_dict(recipe.to_dict()) == recipe
    for broken in ({}, {"reading": 3, "columns": []}, {**recipe.to_dict(), "target": 1, "more": 2}):
        with pytest.raises(ValueError, match="no recipe"):
            Recipe.from_dict(broken)


def test_scalings():
    for scaling, low, high in (("range", 0.0, 1.0), ("none", 20.0, 59.0)):
        source, recipe = decided(bytes_of(table()), scaling=scaling)
        X = dense(build(source, recipe))
        assert (X[:, 0].min(), X[:, 0].max()) == (low, high)


def test_missing_values_are_dropped_filled_or_marked():
    frame = table().astype({"age": float})
    frame.loc[:9, "age"] = np.nan
    frame.loc[5:14, "town"] = None
    source, first = decided(bytes_of(frame))
    assert {c.name: c.missing for c in first.columns if c.missing != "drop"} == {
        "age": "mark",
        "town": "mark",
    }

    def with_rules(age, town):
        rules = {"age": age, "town": town}
        columns = tuple(dataclasses.replace(c, missing=rules.get(c.name, "drop")) for c in first.columns)
        return build(source, dataclasses.replace(first, columns=columns))

    marked = build(source, first)
    assert "age=(missing)" in marked.feature_names
    assert "town=(missing)" in marked.feature_names
    X = dense(marked)
    assert X[:, marked.feature_names.index("age=(missing)")].sum() == 10
    assert (X[:10, 0] == 0).all()
    assert with_rules("drop", "drop").y.size == 185
    assert with_rules("drop", "impute").y.size == 190
    filled = with_rules("impute", "impute")
    assert filled.y.size == 200
    assert "town=(missing)" not in filled.feature_names
    ranged = build(source, dataclasses.replace(first, scaling="range"))
    assert dense(ranged)[0, 0] == pytest.approx((frame["age"].mean() - 20) / 39, abs=0.02)


def test_rare_words_share_a_feature():
    frame = table(300).assign(town=[f"t{i // 2}" for i in range(20)] + ["Kiel"] * 140 + ["Bonn"] * 140)
    source, recipe = decided(bytes_of(frame), rare=3)
    names = build(source, recipe).feature_names
    assert [name for name in names if name.startswith("town")] == ["town=Bonn", "town=Kiel", "town=(other)"]
    none = dataclasses.replace(recipe, rare=200)
    assert any("none of its 12 words has 200 rows" in note for note in measure(source, none).notes)


def test_one_class_against_the_others():
    frame = table()
    source, recipe = decided(bytes_of(frame), target="town")
    with pytest.raises(ValueError, match=r"3 classes \(Bonn, Kiel, Ulm\); choose the one"):
        measure(source, dataclasses.replace(recipe, task="binary"))
    assert measure(source, recipe).labels == ("Bonn", "Kiel", "Ulm")
    data = build(source, dataclasses.replace(recipe, positive="Kiel"))
    assert data.class_labels == ("not Kiel", "Kiel")
    assert ((data.y == 1) == (frame["town"] == "Kiel")).all()
    flipped = dataclasses.replace(recipe, target="smoker", positive="no")
    assert build(source, flipped).class_labels == ("yes", "no")
    numbers = dataclasses.replace(recipe, task="regression")
    with pytest.raises(ValueError, match="regression wants numbers"):
        measure(source, numbers)


def test_libsvm_classes():
    source, recipe = decided(b"1 1:1 3:2\n2 2:1\n3 1:4\n" * 5)
    assert build(source, recipe).task == "regression"
    data = build(source, dataclasses.replace(recipe, positive="2"))
    assert data.class_labels == ("not 2", "2")
    assert (data.y == 1).sum() == 5


@pytest.mark.parametrize("make", [lambda: bytes_of(table()), lambda: example.example().data])
def test_the_size_is_told_before(make):
    source, recipe = decided(make())
    size, dataset = measure(source, recipe), build(source, recipe)
    X = sp.csr_array(dataset.X)
    assert (size.rows, size.features, size.entries) == (*X.shape, X.nnz)
    assert size.sparse == sp.issparse(dataset.X)
    design = Design(dataset.X)
    n_bytes = sum(part.nbytes for part in (*design.columns, *design.rows) if isinstance(part, np.ndarray))
    assert size.bytes_of_X == pytest.approx(n_bytes, rel=0.02)
    assert size.bytes_of_P(7) == 7 * 8 * X.shape[1]
    assert sum(part.features for part in size.parts) == X.shape[1]


# ------------------------------------------------------------------------------------------- suggestions


def test_strengths_follow_the_scale():
    X, y = np.random.default_rng(0).normal(size=(400, 6)), np.zeros(400)
    y += X[:, 0] * X[:, 1]
    names = tuple("abcdef")
    base = dataclasses.replace(
        load("balance_scale"), task="regression", y=y, X=X, feature_names=names, groups=names
    )
    settings = finished(first_settings(base))
    assert 1e-4 < settings["lambda_sparse"] < 0.25
    assert settings["start"] == "informed"
    scaled = finished(first_settings(dataclasses.replace(base, y=128 * y, X=sp.csr_array(2 * X))))
    assert scaled["lambda_sparse"] == pytest.approx(512 * settings["lambda_sparse"], rel=0.1)


@pytest.mark.parametrize("dataset", ["diabetes", "monks1", "balance_scale"])
def test_the_first_fit_says_something(dataset):
    settings = finished(first_settings(load(dataset)))
    end = Run.prepare(Experiment(dataset=dataset, **settings)).end()
    d = load(dataset).X.shape[1]
    assert 0 < end.used_interactions < d * (d - 1) // 2
    linear = Run.prepare(Experiment(dataset=dataset, **{**settings, "lambda_sparse": 1e4})).end()
    assert linear.used_interactions == 0
    assert end.metrics["validation_loss"] < linear.metrics["validation_loss"]


def test_strengths_of_one_basis_are_searched_alone(here, monkeypatch, rng):
    a, b = rng.normal(size=(2, 90)).round(2)
    kinds = np.where(a * b > 0.4, "high", np.where(a * b < -0.4, "low", "none"))
    table = "a,b,kind\n" + "".join(f"{x},{y},{kind}\n" for x, y, kind in zip(a, b, kinds, strict=True))
    file = library.keep_file(table.encode())
    profile = library.profile(file, Reading())
    recipe = dataclasses.replace(first_recipe(profile.source, profile.columns), target="kind")

    def of_each(*_):
        raise AssertionError("no machine for each class is asked for")
        yield

    with monkeypatch.context() as patch:
        patch.setattr(importing, "first_settings", of_each)
        upload = finished(importing.import_upload(file, recipe, "kinds", model="shared_basis"))
    assert upload.has_strengths("shared_basis")
    assert not upload.has_strengths()
    settings = suggested(upload.name)
    assert settings.model == "shared_basis"
    assert settings.lambda_sparse == upload.suited["shared_basis"]["lambda_sparse"]
    end = Run.prepare(dataclasses.replace(settings, max_epochs=5)).end()
    assert end.used_interactions == 1


# ----------------------------------------------------------------------------------------------- the shelf


def test_a_set_is_found_by_its_name_everywhere(here):
    upload = entered()
    assert is_upload(upload.name)
    spec = dataset_spec(upload.name)
    assert (spec.title, spec.task, spec.unavailable()) == ("my table.csv", "regression", None)
    assert upload.name not in DATASETS
    data = load(upload.name)
    assert data.X.shape == (upload.rows, upload.features) == (200, 5)
    experiment = suggested(upload.name)
    assert (experiment.dataset, experiment.loss) == (upload.name, "squared")
    assert Experiment.from_json(experiment.to_json()) == experiment
    assert Experiment.from_query(experiment.to_query()) == (experiment, [])
    end = Run.prepare(experiment).end()
    assert end.used_interactions > 0
    plan = SweepPlan(datasets=({"dataset": upload.name},), grid={"lambda_sparse": [0.1, 1.0]}, suggested=True)
    assert {cell.dataset for cell in plan.cells} == {upload.name}
    # The same file and decisions are the same set, others are not.
    assert entered().name == upload.name
    assert entered(rare=2).name != upload.name
    assert len(list(data_folder().glob("file_*"))) == 1


def test_a_set_that_is_not_here_is_told(here):
    name = "own_" + "0" * 20
    spec = dataset_spec(name)
    assert "not on this computer" in spec.unavailable()
    with pytest.raises(ValueError, match="not on this computer"):
        Run.prepare(Experiment(dataset=name))
    for wrong in ("own_../../etc/passwd", "own_0", "OWN_" + "0" * 20, "own_" + "g" * 20):
        assert not is_upload(wrong)
        with pytest.raises(ValueError, match="not known"):
            Experiment(dataset=wrong)
        with pytest.raises(ValueError, match="not known"):
            dataset_spec(wrong)
    for wrong in ("../runs", "", "f" * 31):
        assert library.size_of_file(wrong) is None


def test_a_deleted_set_is_gone_with_its_file(here):
    upload = entered()
    assert library.delete(upload.name)
    with pytest.raises(ValueError, match="Upload its file"):
        load(upload.name)
    assert library.size_of_file(upload.file) is None
    assert not library.delete(upload.name)


def test_a_file_stays_as_long_as_a_set_is_made_of_it(here):
    first, other = entered(), entered(target="smoker")
    assert first.file == other.file
    library.delete(first.name)
    assert load(other.name).y.size == 200


def test_files_that_no_set_is_made_of_go_after_a_while(here, monkeypatch):
    kept = entered(table(seed=1))
    lone = library.keep_file(b"a,y\n1,2\n")
    monkeypatch.setattr(library, "_IDLE_SECONDS", -60.0)
    library.keep_file(b"something,new\n1,2\n")
    assert library.size_of_file(lone) is None
    assert load(kept.name).y.size == 200


def test_a_broken_entry_is_no_set(here):
    upload = entered()
    path = data_folder() / f"{upload.name}.json"
    for text in ("", "[]", "{}", '{"version": 1}', path.read_text().replace("standard", "wild")):
        path.write_text(text)
        assert library.find(upload.name) is None
        assert dataset_spec(upload.name).unavailable()


def test_runs_on_own_data_are_kept_and_reopened(here, request):
    upload, store = entered(), RunStore()
    before = tasks.install(tasks.TaskManager(InlineExecutor(), open_store=lambda: store))
    request.addfinalizer(lambda: tasks.install(before))
    job = tasks.manager().start(dataclasses.replace(suggested(upload.name), max_epochs=5))
    run = store.get(job.id)
    assert run.experiment.dataset == upload.name
    assert title_of_run(run).startswith("my table.csv · TI")
    assert len(run.data_hash) == 16
    tasks.install(tasks.TaskManager(InlineExecutor(), open_store=lambda: store))  # as after a restart
    again = tasks.manager().reopen(job.id, "somebody").view()
    assert again.dataset.feature_names == load(upload.name).feature_names
    assert again.last["objective"] == job.view().last["objective"]


@pytest.mark.slow
def test_a_copied_program_runs_here_and_elsewhere(here, tmp_path):
    frame = table().rename(columns={"town": "to\"w'n\\", "smoker": SCRIPT})
    upload = entered(frame, title="my table.csv")
    experiment = dataclasses.replace(suggested(upload.name), max_epochs=10)
    end = list(Run.prepare(experiment).snapshots())[-1]
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "again.py").write_text(program(experiment), encoding="utf-8")

    (folder / "my table.csv").write_bytes(bytes_of(frame))
    # Where the data have never been; on their own computer nothing has to be brought.
    said = run_afresh("again.py", folder=folder, FMVIZ_STORE=folder / "runs.sqlite")
    assert f"objective {end.objective:.10g}\n" in said
    assert f"used interactions {end.used_interactions}\n" in said
    (folder / "my table.csv").write_bytes(b"a,b\n1,2\n")
    recipe = upload.recipe.to_dict()
    with pytest.raises(ValueError, match="is not the file"):
        importing.import_file(str(folder / "my table.csv"), "own_" + "1" * 20, recipe)
    with pytest.raises(ValueError, match="Put its file there"):
        importing.import_file(str(folder / "no table.csv"), "own_" + "1" * 20, recipe)
    importing.import_file(str(folder / "no table.csv"), upload.name, recipe)


@pytest.mark.slow
def test_programs_of_many_fits_run_elsewhere_too(here, tmp_path):
    frame = table()
    upload = entered(frame, title="my table.csv")
    base = dataclasses.replace(suggested(upload.name), max_epochs=3)
    plan = SweepPlan(datasets=[{"dataset": upload.name}], base={"max_epochs": 3}, seeds=[0])
    programs = [
        equal_sparsity_program(base, ["ti"], 3, (2, 4)),
        path_program(PathPlan(base, regularizers=("ti",), lambdas=(1.0, 0.1))),
        search_program(base, 3, grid=(0.1, 1.0)),
        sweep_program(plan),
    ]
    (tmp_path / "my table.csv").write_bytes(bytes_of(frame))
    (tmp_path / "again.py").write_text("\n".join(programs), encoding="utf-8")
    said = run_afresh("again.py", folder=tmp_path, FMVIZ_STORE=tmp_path / "runs.sqlite")
    assert "mean and std of" in said


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("../../etc/passwd.csv", "passwd.csv"),
        ("C:\\data\\my table.csv", "my table.csv"),
        (f"{SCRIPT}.csv", "script .csv"),
        ("**bold** [x](javascript:1) :material/home: $a$ `c`", "home a c"),
        ("", "My data"),
        ("=1+1\n\ttwo", "1+1 two"),
        ("x" * 200, "x" * 80),
    ],
)
def test_titles_are_plain_words(given, title):
    assert library.title_of(given) == title


def test_gzip_is_the_same_file_in_less():
    data = bytes_of(table())
    assert read(gzip.compress(data)).table.equals(read(data).table)


def test_the_example_is_there_without_its_file(monkeypatch):
    flights = example.example()
    assert flights.target in read(flights.data).table
    monkeypatch.setattr(example.Files, "find", lambda self, name: None)
    other = example.example()
    source, recipe = decided(other.data)
    assert recipe.target == other.target == "target"
    assert measure(source, recipe).rows == 442
