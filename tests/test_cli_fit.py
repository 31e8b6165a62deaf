"""``fmviz fit`` on files, uploads and registered data sets."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from fmviz.__main__ import main
from fmviz.cli._fit_report import summary
from fmviz.lab.files import default_path
from fmviz.lab.importing import import_upload
from fmviz.lab.runner import Run
from fmviz.lab.saved_model import SavedModel
from fmviz.lab.uploads import library
from fmviz.tables.recipe import first_recipe
from fmviz.tables.source import Reading


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(10, 3, size=(300, 5)), columns=list("abcde"))
    table["town"] = rng.choice(["Bonn", "Kiel"], 300)
    z = (table[list("abcde")] - 10) / 3
    table["price"] = (
        1000 + 50 * z["a"] * z["b"] - 40 * z["c"] * (table["town"] == "Kiel") + rng.normal(0, 1, 300)
    )
    return table


@pytest.fixture
def file(table, tmp_path):
    path = tmp_path / "houses.csv"
    table.to_csv(path, index=False, sep=";")
    return path


STRONG = ("--lambda-sparse", "0.01", "--rank", "4", "--set", "init_scale=0.1")


def test_a_table_is_fitted_and_reported(file, table, tmp_path, command):
    folder = tmp_path / "new" / "out"
    text = command("fit", file, "--target", "price", "--output", folder, *STRONG).out
    assert text.startswith("houses.csv: 300 rows, 240 for training, 6 features; target price (regression).")
    assert "Stored as run" not in text
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["result"]["status"] == "converged"
    assert report["result"]["certificate"] < 1e-3
    assert report["stored_run"] is None
    # In the target's own unit: the noise is 1, the spread about 60.
    assert report["metrics"]["RMSE, validation"] < 10
    pairs = pd.read_csv(folder / "interactions.csv")
    assert list(pairs) == ["feature_i", "feature_j", "weight", "rows_with_both"]
    assert set(pairs.loc[0, ["feature_i", "feature_j"]]) == {"a", "b"}
    assert pairs["weight"][0] > 0
    assert np.all(np.diff(pairs["weight"].abs()) <= 0)
    assert pairs["rows_with_both"][0] == 300
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count('class="fmviz"') >= 3
    assert page.count('<script type="module">') == 1
    assert "://" not in page.replace("http://www.w3.org/", "")
    assert "fmviz fit " in page
    # The saved model predicts on the table as it is.
    model = SavedModel.load(folder / "model.npz")
    assert np.sqrt(np.mean((model.predict(table) - table["price"]) ** 2)) < 10
    # A value that is missing in the next table is taken as the mean.
    gap = model.predict(table.assign(a=table["a"].where(table.index != 7)))
    assert np.isfinite(gap).all()
    assert np.flatnonzero(gap != model.predict(table)).tolist() == [7]


def test_the_number_of_interactions_is_searched(file, command):
    given = ("--target", "price", "--interactions", "6", "--json", "--rank", "4", "--set", "init_scale=0.1")
    report = json.loads(command("fit", file, *given).out)
    assert report["search"]["wanted"] == 6
    assert report["search"]["fits"] > 1
    if report["search"]["status"] == "found":
        assert 6 <= report["result"]["used_interactions"] <= 10
    else:
        assert "Not reachable" in report["search"]["message"]


def test_two_classes(file, table, tmp_path, command):
    table["dear"] = np.where(table["price"] > table["price"].median(), "yes", "no")
    table.loc[5, "a"] = np.nan
    table.drop(columns="price").to_csv(file, index=False)
    folder = tmp_path / "out"
    text = command("fit", file, "--target", "dear", "--missing", "drop", "--output", folder, *STRONG).out
    assert "Rows dropped because of missing values: 1 (a in 1)." in text
    assert "A positive score predicts dear = yes" in text
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["settings"]["loss"] == "logistic"
    assert report["data"]["rows"] == 299
    assert report["metrics"]["AUC, validation"] > 0.7
    words = SavedModel.load(folder / "model.npz").predict(table)
    assert words[5] is None
    assert set(words[words != None]) == {"no", "yes"}  # noqa: E711 - entry by entry


def test_an_upload_is_fitted_by_its_recipe(tmp_path, command, table):
    library._encoded._values.clear()
    file = library.keep_file(table.to_csv(index=False).encode())
    profile = library.profile(file, Reading())
    recipe = first_recipe(profile.source, profile.columns)
    name = import_upload(file, recipe, "houses").name
    given = ("--rank", "2", "--max-epochs", "5", "--json")
    report = json.loads(command("fit", name, "--output", tmp_path / "out", *given).out)
    assert report["stored_run"]
    model = SavedModel.load(tmp_path / "out" / "model.npz")
    assert model.encoder.to_dict() == library.encoded(file, recipe).encoder.to_dict()
    assert np.isfinite(model.predict(table)).all()
    # Errors are in the target's own unit.
    assert report["metrics"]["RMSE, validation"] > 1


def test_rows_of_a_group_stay_together_and_it_is_no_feature(file, table, tmp_path, command):
    table["day"] = [f"d{i % 30}" for i in range(300)]
    table.to_csv(file, index=False)
    text = command("fit", file, "--target", "price", "--group", "day", "--output", tmp_path, *STRONG).out
    assert "300 rows, 240 for training, 6 features" in text
    assert "Rows with the same day stay on the same side of every split." in text
    assert "240 held-out rows of 24 groups by day in 5 folds" in text
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["data"]["group"] == SavedModel.load(tmp_path / "model.npz").group == "day"


def test_strengths_and_a_candidate_are_chosen_by_folds(file, table, tmp_path, command):
    text = command("fit", file, "--target", "price", "--rank", "2", "--output", tmp_path).out
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["data"]["training_rows"] == 300
    errors = {row["300 held-out rows in 5 folds"]: row for row in report["candidates"]}
    assert f"the predictions of {report['predicts']} are best." in report["search"]["message"]
    assert errors[report["predicts"]]["RMSE (in price)"] < 0.1 * errors["the mean"]["RMSE (in price)"]
    # Errors of all candidates stand above the machine of sparse pairs, with its own.
    candidates, machine = text.split("Sparse pairs, fitted to 300 rows:")
    assert f"RMSE, training {report['metrics']['RMSE, training']:.4g}" in machine
    assert all(name in candidates for name in errors)
    # Parameters that no longer change are not an optimum.
    report["result"]["certificate"] = 0.5
    shown = summary(report, pd.read_csv(tmp_path / "interactions.csv"), 1)
    assert "certificate 5.0e-01 (the distance from optimality)" in shown
    noise = table.assign(price=np.random.default_rng(1).normal(size=300))
    noise.to_csv(file, index=False)
    command("fit", file, "--target", "price", "--strengths", "sparsest", "--output", tmp_path)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["predicts"] == "the mean"
    predicted = SavedModel.load(tmp_path / "model.npz").predict(noise)
    assert predicted == pytest.approx(np.full(300, noise["price"].mean()))


def test_every_class_has_its_columns_and_pairs_and_all_pages_agree(tmp_path, command):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"town": rng.choice(["A", "B", "C"], 600), "plan": rng.choice(["x", "y"], 600)})
    scores = rng.gumbel(size=(600, 3))
    scores[:, 0] += 4.0 * (table["town"].eq("A") & table["plan"].eq("x"))
    table["kind"] = np.array(["red", "green", "blue"])[scores.argmax(axis=1)]
    table.to_csv(file := tmp_path / "kinds.csv", index=False)
    text = command("fit", file, "--target", "kind", "--rank", "2", "--output", tmp_path).out
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [part["output"] for part in report["columns"]] == ["blue", "green", "red"]
    for part in report["columns"]:
        (sentence,) = (pair["sentence"] for pair in part["pairs"])
        printed = text.partition(f"Columns by their individual effect on predictions, {part['output']}:")[2]
        assert (sentence in printed, sentence in page) == (True, True)
    assert sentence.startswith("Where town is A and plan is x: +")


def test_libsvm(table, tmp_path, command):
    path, folder = tmp_path / "data.txt", tmp_path / "out"
    X = table[list("abcde")].to_numpy() / 10 - 1
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    dump_svmlight_file(X, y, str(path), zero_based=False)
    text = command("fit", path, "--output", folder, "--lambda-sparse", "1e-4", *STRONG[2:]).out
    assert "target target (binary)" in text
    model = SavedModel.load(folder / "model.npz")
    assert model.encoder is None
    assert model.feature_names == ("1", "2", "3", "4", "5")
    assert np.mean(model.predict(X) == y.astype(str)) > 0.8
    assert "is a libsvm file" in command("fit", path, "--target", "y", code=2).err
    path.write_text("1 999999999:2\n-1 1:1\n")
    too_wide = "has an index of 999,999,999, more than 200,000 features"
    assert too_wide in command("fit", path, code=2).err


def test_options_of_tables_are_none_of_registered_data(command):
    for option in (["--target", "y"], ["--words", "age"], ["--most-levels", "3"]):
        assert f"to which {option[0]} does not apply" in command("fit", "diabetes", *option, code=2).err


def test_a_registered_data_set_is_fitted_into_the_store(store, command):
    given = ("--max-epochs", "30", "--store", store.path, "--json")
    report = json.loads(command("fit", "balance_scale", *given).out)
    run = store.get(report["stored_run"])
    assert (run.origin, run.status) == ("command", report["result"]["status"])
    assert run.settings["dataset"] == "balance_scale"
    assert run.settings["validation"] == 0.2
    assert run.last["objective"] == report["result"]["objective"]
    assert store.parameters(run.id) is not None


def test_the_number_of_threads_changes_no_number(file, tmp_path, command, monkeypatch):
    monkeypatch.setattr("fmviz.engine.design._BLOCK_ROWS", 60)
    reports = []
    for jobs in ("1", "2"):
        text = command(
            *("fit", file, "--target", "price", "--json", "--jobs", jobs, "--solver", "apgd"), *STRONG
        ).out
        reports.append(json.loads(text)["metrics"])
    assert reports[0] == reports[1]
    assert reports[0]["RMSE, validation"] < 10


def test_ctrl_c_leaves_a_stopped_run(store, command, monkeypatch):
    real = Run.snapshots

    def interrupted(self, *given, **more):
        for snapshot in real(self, *given, **more):
            yield snapshot
            if snapshot.epoch == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(Run, "snapshots", interrupted)
    said = command("fit", "balance_scale", "--store", store.path, "--tol", "0", code=130)
    assert said.err == "Interrupted.\n"
    (run,) = store.runs()
    assert (run.status, run.epoch) == ("stopped", 3)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ((), "--target is missing; choose one of the columns a, b, c, d, e, town, price"),
        (("--target", "cost"), "--target 'cost' is not a column"),
        (("--target", "price", "--task", "binary"), "300 classes"),
        (("--target", "price", "--group", "day"), "--group 'day' is not a column"),
        (("--target", "price", "--group", "price"), "'price' is not a column other than the target"),
        (("--target", "price", "--use", "town"), "--use 'town' lacks a kind"),
        (("--target", "price", "--use", "town=colour"), "kind = 'colour'"),
        (("--target", "price", "--read", "colour=red"), "--read 'colour=red' is not known"),
        (("--target", "price", "--rank", "0"), "rank = 0"),
        (("--target", "price", "--regularizer", "l7"), "l7"),
        (("--target", "price", "--loss", "logistic"), "needs classes"),
        (("--target", "price", "--regularizer", "l21", "--solver", "pcd"), "Use PBCD"),
        (("--target", "price", "--set", "nonsense"), "--set 'nonsense' lacks a value"),
        (("--target", "price", "--set", "colour=1"), "Unknown setting 'colour'"),
        (("--target", "price", "--validation", "2"), "validation = 2"),
        (("--target", "price", "--most-levels", "0"), "most_levels = 0"),
        (("--target", "price", "--top", "0"), "--top 0"),
        (("--target", "price", "--interactions", "-1"), "target_interactions"),
    ],
)
def test_errors_are_one_sentence(file, more, sentence, command):
    said = command("fit", file, *more, code=2).err
    assert sentence in said
    assert said.count("\n") == 1


@pytest.mark.slow
def test_files_are_written_though_nobody_reads_along(file, tmp_path):
    folder = tmp_path / "out"
    fit = f"{sys.executable} -u -m fmviz fit {file} --target price --output {folder}"
    line = f"{fit} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    # On a slow machine there are lines of progress.
    errors = [line for line in done.stderr.splitlines() if not re.match(r"\d+ s: ", line)]
    assert (done.returncode, errors) == (0, [])
    names = {path.name for path in folder.iterdir()}
    assert names == {"model.npz", "interactions.csv", "report.json", "report.html"}


@pytest.fixture
def big(tmp_path):
    """Return a Parquet file of words with a planted pair, which is read in several batches and parts."""
    rng, n = np.random.default_rng(0), 4_000
    user, item, day = (rng.integers(levels, size=n) for levels in (40, 25, 7))
    first, second = rng.normal(size=(2, 40)), rng.normal(size=(2, 25))
    price = rng.normal(10.0, 3.0, size=n)
    y = 50.0 + 5.0 * (first[:, user] * second[:, item]).sum(axis=0) + 0.5 * price + rng.normal(size=n)
    words = {"user": [f"u{u}" for u in user], "item": [f"i{i}" for i in item], "day": [f"d{d}" for d in day]}
    path = tmp_path / "big.parquet"
    pd.DataFrame({**words, "price": price, "y": y}).to_parquet(path, row_group_size=500)
    return path


ALL = ("--target", "y", "--rows", "all", "--rank", "4")
SHORT = ("--max-epochs", "12")


@pytest.fixture
def in_batches(monkeypatch, tmp_path):
    monkeypatch.setenv("FMVIZ_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.setattr("fmviz.tables.batches._BATCH_CELLS", 2_500)
    monkeypatch.setattr("fmviz.lab.store.rows._PART_ROWS", 1_000)


@pytest.mark.usefixtures("in_batches")
def test_all_rows_are_fitted_from_disk(big, tmp_path, command):
    folder = tmp_path / "out"
    printed = command("fit", big, *ALL, "--jobs", "2", "--output", folder)
    assert "big.parquet has 4,000 rows, which are read in two passes" in printed.err
    assert "big.parquet: 4,000 rows, 3,200 for training, 73 features; target y (regression)." in printed.out
    assert "for columns divided by their root mean square, have the lowest loss" in printed.out
    assert "1 of 6 pairs of columns stands out from chance" in printed.out
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    (pair,) = report["columns"]["pairs"]
    assert {pair["first"], pair["second"]} == {"user", "item"}
    mean, columns, pairs = (row["RMSE (in y)"] for row in report["candidates"])
    # The noise is 1.
    assert pairs < 1.3 < 5.0 < columns < mean
    assert report["metrics"]["RMSE, validation"] == pytest.approx(pairs)
    rows = pd.read_parquet(big).head(500)
    model = SavedModel.load(folder / "model.npz")
    assert np.sqrt(np.mean((model.predict(rows) - rows["y"]) ** 2)) < 1.3
    assert report["result"]["certificate"] < 0.1
    assert not [*default_path().parent.glob("**/rows_*")]


@pytest.mark.usefixtures("in_batches")
def test_an_interrupted_fit_to_all_rows_continues(big, command, monkeypatch, capsys):
    from fmviz.lab.search import all_rows

    save, epochs = all_rows._save, []

    def interrupted(file, epoch, parameters):
        save(file, epoch, parameters)
        epochs.append(epoch)
        if len(epochs) == 30:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(all_rows, "_save", interrupted)
        assert main(["fit", str(big), *ALL]) == 130
    (folder,) = default_path().parent.glob("**/rows_*")
    last = epochs[-1]
    monkeypatch.setattr("fmviz.lab.store.rows._learned", None)
    monkeypatch.setattr(all_rows, "_save", lambda file, epoch, parameters: epochs.append(epoch))
    capsys.readouterr()
    printed = command("fit", big, *ALL, "--json")
    assert f"Continuing in {folder}." in printed.err
    assert last in epochs[30:]
    assert json.loads(printed.out)["columns"]["pairs"][0]["first"] in ("user", "item")
    assert not folder.exists()


@pytest.mark.usefixtures("in_batches")
def test_all_rows_of_other_targets_and_settings(big, command):
    table = pd.read_parquet(big)
    table["size"] = pd.cut(table["y"], [-99, 50, 60, 999], labels=["low", "mid", "high"]).astype(str)
    table["n"] = np.random.default_rng(0).poisson(np.exp(table["y"].clip(45, 65) / 10 - 5))
    table.to_parquet(big)
    classes = command("fit", big, "--target", "size", "--ignore", "y", "--ignore", "n", *ALL[2:], *SHORT).out
    assert classes.count("of 6 pairs of columns stand") == 3
    counts = ("--target", "n", "--ignore", "y", "--ignore", "size", "--loss", "poisson", *ALL[2:], *SHORT)
    report = json.loads(command("fit", big, *counts, "--json").out)
    mean, columns, pairs = ([*row.values()][1] for row in report["candidates"])
    assert pairs < columns < mean
    strengths = ("--regularizer", "ti", "--lambda-sparse", "2e-3", "--lambda-p", "1e-3", "--lambda-w", "1e-3")
    report = json.loads(command("fit", big, *ALL, *strengths, "--json").out)
    assert report["settings"]["lambda_sparse"] == 2e-3
    assert report["settings"]["regularizer"] == "ti"
    assert report["result"]["used_interactions"] < 73 * 72 // 2


def test_options_that_do_not_apply_to_all_rows(big, file, command):
    for line, message in (
        ((*ALL, "--group", "user"), "--group does not apply to --rows all"),
        ((*ALL, "--interactions", "5"), "--interactions does not apply to --rows all"),
        (("--target", "z", "--rows", "all"), "--target 'z' is not a column"),
        ((*ALL, "--regularizer", "ti"), "chooses strengths for smooth regularizers"),
        (("--target", "y", "--dask", "tcp://127.0.0.1:1"), "--dask is for a file with --rows all"),
    ):
        assert message in command("fit", big, *line, code=2).err
