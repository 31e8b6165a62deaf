"""Uploads: hostile files, types of columns, recipes, sizes, the library, and runs on them."""

from __future__ import annotations

import dataclasses
import re
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from inline_executor import InlineExecutor
from lab.hostile_files import FILES, SCRIPT, Hostile
from programs import run_afresh
from small_tables import csv_bytes, decided, dense

from fmviz.engine.design import Design
from fmviz.engine.errors import StoppedError
from fmviz.lab import importing, untrusted
from fmviz.lab.background import tasks
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.catalog import dataset_spec, load
from fmviz.lab.datasets import DATASETS, Dataset
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.files import data_folder
from fmviz.lab.runner import Run
from fmviz.lab.runs.program import program
from fmviz.lab.search.findings import Findings, read_findings
from fmviz.lab.search.first_fit import FirstFit, first_fit
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.store import RunStore
from fmviz.lab.store.table import title_of_run
from fmviz.lab.uploads import is_upload, library
from fmviz.lab.uploads.library import Size
from fmviz.tables import limits
from fmviz.tables.encoded import encode
from fmviz.tables.files import read
from fmviz.tables.recipe import Choice, Recipe, columns_of, first_recipe
from fmviz.tables.source import Reading

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


def build(source, recipe):
    return Dataset.of_table(encode(source, recipe), "x", "X")


def measure(source, recipe):
    return Size.of(encode(source, recipe))


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A run store, and a folder for own data beside it."""
    monkeypatch.setenv("FMVIZ_STORE", str(tmp_path / "runs.sqlite"))
    library._profiles._values.clear()
    library._sizes._values.clear()
    return tmp_path


def entered(frame: pd.DataFrame | None = None, title="my table.csv", **changes) -> library.Upload:
    file = library.keep_file(csv_bytes(table() if frame is None else frame))
    profile = library.profile(file, Reading())
    first = first_recipe(profile.source, profile.columns)
    recipe = dataclasses.replace(first, **{"numbers": "line", **changes})
    return importing.import_upload(file, recipe, title)


# ---------------------------------------------------------------------------------------------- hostile


@pytest.mark.sample(20)
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
        columns = columns_of(source)
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
            assert int((dataset.X != 0).sum()) == int(size.columns["Non-zeros"].sum())
            assert np.isfinite(dataset.y).all()
            assert np.isfinite(dataset.X.data if sp.issparse(dataset.X) else dataset.X).all()
            assert len(dataset.feature_names) == len(dataset.groups) == size.features
    assert time.process_time() - begin < SLOWEST
    assert refused == file.refused, said
    assert re.search(file.says, " ".join(said)), said
    for sentence in said:
        assert sentence.endswith("."), sentence
        assert "\n" not in sentence


def test_nothing_larger_than_the_limits_is_kept(here, monkeypatch):
    monkeypatch.setattr(limits, "UPLOADS", limits.Limits(file=1_000))
    with pytest.raises(ValueError, match="Take a sample of its rows"):
        library.keep_file(bytes(1_001))
    assert not data_folder().exists()


@pytest.mark.skipif(sys.platform != "linux", reason="limits hold on Linux")
@pytest.mark.parametrize("encoding", [False, True])
def test_columns_are_described_and_encoded_within_limits(here, monkeypatch, encoding):
    """A wide table of words that are nearly dates costs the server no more than its limit."""
    rows = [[f"{(i + j) % 9} Jan" for j in range(700)] for i in range(20)]
    data = csv_bytes(pd.DataFrame(rows, columns=[f"c{j}" for j in range(700)]))
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
    data = b"1 1:2 4:1.5\n-1 2:1\n1 3:-0.1\n" if kind == "libsvm" else csv_bytes(frame)
    source, recipe = decided(data)
    there, columns = untrusted.describe_confined(data, Reading())
    assert columns == columns_of(source)
    here, other = encode(source, recipe), untrusted.encode_confined(there, recipe)
    assert sp.issparse(here.X) == sp.issparse(other.X) == (kind != "table")
    assert np.array_equal(dense(here), dense(other))
    assert np.array_equal(here.y, other.y)
    assert (here.target, here.notes) == (other.target, other.notes)
    if kind != "libsvm":
        assert here.encoder.to_dict() == other.encoder.to_dict()
        assert here.encoder.columns_ == other.encoder.columns_


def test_the_limit_of_the_server_is_that_of_the_page():
    config = (ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    assert f"maxUploadSize = {limits.UPLOADS.file // 1_000_000}\n" in config


@pytest.mark.parametrize(
    ("make", "target"), [(lambda: csv_bytes(table()), "y"), (lambda: library.example().data, "cnt")]
)
def test_the_size_is_told_before(make, target):
    source, recipe = decided(make(), target=target)
    size, dataset = measure(source, recipe), build(source, recipe)
    X = sp.csr_array(dataset.X)
    assert (size.rows, size.features, int(size.columns["Non-zeros"].sum())) == (*X.shape, X.nnz)
    design = Design(dataset.X)
    n_bytes = sum(part.nbytes for part in (*design.columns, *design.rows) if isinstance(part, np.ndarray))
    assert size.bytes_of_x == pytest.approx(n_bytes, rel=0.02)
    assert size.columns["Features"].sum() == X.shape[1]


# ------------------------------------------------------------------------------------------- suggestions


def test_a_first_fit_suggests_its_strengths_for_its_model(here):
    upload = entered()
    first = suggested(upload.name)
    chosen = dataclasses.replace(first, lambda_sparse=0.25, lambda_p=0.5, rank=3)
    importing.suggest(chosen)
    assert suggested(upload.name) == dataclasses.replace(chosen, rank=first.rank)
    shared = suggested(upload.name, "shared_basis")
    importing.suggest(dataclasses.replace(shared, lambda_sparse=0.125))
    assert suggested(upload.name).model.name == "shared_basis"
    assert suggested(upload.name).lambda_sparse == 0.125
    assert suggested(upload.name, "fm").lambda_sparse == 0.25


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
    assert Experiment.from_json(experiment.to_json()) == experiment
    assert Experiment.from_query(experiment.to_query()) == experiment
    end = Run.prepare(experiment).end()
    assert end.used_interactions > 0
    plan = SweepPlan(datasets=({"dataset": upload.name},), grid={"lambda_sparse": [0.1, 1.0]}, suggested=True)
    assert {cell.dataset.name for cell in plan.cells} == {upload.name}
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


def test_runs_on_own_data_are_kept_and_reopened(here, monkeypatch):
    upload, store = entered(), RunStore()
    monkeypatch.setattr(tasks, "_manager", TaskManager(InlineExecutor(), open_store=lambda: store))
    job = tasks.manager().start(dataclasses.replace(suggested(upload.name), max_epochs=5))
    run = store.get(job.id)
    assert run.experiment.dataset.name == upload.name
    assert title_of_run(run).startswith("my table.csv · TI")
    assert len(run.data_hash) == 16
    tasks._manager = TaskManager(InlineExecutor(), open_store=lambda: store)  # as after a restart
    again = tasks.manager().open(job.id, "somebody").view()
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
    script = folder / "again.py"
    script.write_text(program(experiment), encoding="utf-8")

    (folder / "my table.csv").write_bytes(csv_bytes(frame))
    # Where the data have never been; on their own computer nothing has to be brought.
    output = run_afresh(script, folder=folder, FMVIZ_STORE=folder / "runs.sqlite")
    assert f"objective {end.objective:.10g}\n" in output
    assert f"used interactions {end.used_interactions}\n" in output
    (folder / "my table.csv").write_bytes(b"a,b\n1,2\n")
    recipe = upload.recipe.to_dict()
    with pytest.raises(ValueError, match="is not the file"):
        importing.import_file(str(folder / "my table.csv"), "own_" + "1" * 20, recipe)
    with pytest.raises(ValueError, match="Put its file there"):
        importing.import_file(str(folder / "no table.csv"), "own_" + "1" * 20, recipe)
    importing.import_file(str(folder / "no table.csv"), upload.name, recipe)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_hour_and_weekday_act_together_on_dates_that_were_kept_out(here, seed):
    sample = library.example()
    file = library.keep_file(sample.data)
    profile = library.profile(file, Reading())
    first = first_recipe(profile.source, profile.columns).grouped(sample.group)
    recipe = first.corrected(Choice(name, "word") for name in sample.words)
    name = importing.import_upload(file, dataclasses.replace(recipe, target=sample.target), "bike").name
    asked = dataclasses.replace(suggested(name), seed=seed)
    assert "'group': 'dteday'" in program(asked).replace('"', "'")
    run = Run.prepare(asked)
    assert not {*run.row_groups[0]} & {*run.row_groups[1]}
    fit = next(step for step in first_fit(run) if isinstance(step, FirstFit))
    reading = read_findings(fit.run, fit.end.parameters)
    by = next(step for step in reading if isinstance(step, Findings))
    assert {*by.effects.pairs.loc[0, ["first", "second"]]} == {"hr", "weekday"}
    assert " held-out rows of " in by.candidates.columns[0]
    mean, alone, *_, curves = by.candidates["RMSE (in cnt)"]
    assert curves < 2 / 3 * alone < mean


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


def test_the_example_has_the_columns_that_it_names():
    hours = library.example()
    assert {hours.target, hours.group, *hours.words} <= {*read(hours.data).table}
