"""Write the sample of stored files: run once, with the code of commit a8ed998a, in a checkout of it.

git worktree add ../a8ed998a a8ed998a
cd ../a8ed998a
PYTHONPATH=. python ../fmviz/tests/samples/make.py
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

FOLDER = Path(__file__).resolve().parent
STORE = FOLDER / "store.db"
os.environ["FMVIZ_STORE"] = str(STORE)

from fmviz.__main__ import main as command  # noqa: E402
from fmviz.engine.fit import never  # noqa: E402
from fmviz.lab import importing  # noqa: E402
from fmviz.lab.experiment import Experiment  # noqa: E402
from fmviz.lab.runner import Run  # noqa: E402
from fmviz.lab.saved_model import SavedModel  # noqa: E402
from fmviz.lab.search import sweep_run  # noqa: E402
from fmviz.lab.search.sweep_plan import SweepPlan  # noqa: E402
from fmviz.lab.store import RunStore, recorder, stored_run  # noqa: E402
from fmviz.lab.store.archive import export_runs  # noqa: E402
from fmviz.lab.uploads import library  # noqa: E402
from fmviz.tables.recipe import first_recipe  # noqa: E402
from fmviz.tables.source import Reading  # noqa: E402

SMALL: dict[str, Any] = {"rank": 3, "max_epochs": 6, "init_scale": 0.1}
MONKS: dict[str, Any] = {**SMALL, "dataset": "monks1", "loss": "logistic", "lambda_p": 1e-3}
DRAWN: dict[str, Any] = {
    **SMALL,
    "dataset": "synthetic",
    **{"dataset_n_samples": 60, "dataset_d_true": 12, "dataset_b": 3, "dataset_d_noise": 4},
    "lambda_p": 0.05,
    "lambda_sparse": 0.1,
}
RUNS: dict[str, dict[str, Any]] = {
    "changed": {**DRAWN, "validation": 0.25, "seed": 3, "changes": ((3, "lambda_sparse", 0.5),)},
    "informed": {
        **DRAWN,
        "regularizer": "cs",
        "start": "informed",
        "solver": "pbcd",
        "solver_anderson": 4,
    },
    "caps": {**DRAWN, "loss": "capped", "caps": "auto"},
    "third_order": {**DRAWN, "model": "hofm", "regularizer": "omega_ti"},
    "convex": {**MONKS, "model": "convex_fm", "regularizer": "l2", "lambda_sparse": 0.0},
    "classes": {**SMALL, "dataset": "iris", "loss": "logistic", "regularizer": "l21", "lambda_sparse": 1e-3},
    "shared": {
        **{**SMALL, "dataset": "iris", "loss": "logistic", "model": "shared_basis", "regularizer": "l21"},
        **{"solver": "conditional_gradient", "lambda_p": 0.0, "lambda_sparse": 0.02},
    },
    "deleted": DRAWN,
    "cut": {**DRAWN, "max_epochs": 50},
}
PLAN = """
title = "TI against CS"
[base]
rank = 2
max_epochs = 6
[[method]]
regularizer = "ti"
[[method]]
regularizer = "cs"
[grid]
lambda_sparse = [1.0]
"""


def table() -> pd.DataFrame:
    """Return a small table with numbers, units, words, dates, texts and gaps."""
    rng = np.random.default_rng(0)
    age, town = rng.integers(20, 60, 40).astype(float), rng.choice(["Ulm", "Bonn", "Kiel"], 40)
    y = age / 10 + 3.0 * (town == "Ulm") * (age > 40) + rng.normal(0, 0.1, 40)
    age[3] = np.nan
    since = pd.date_range("2024-01-01", periods=40, freq="9D").strftime("%Y-%m-%d")
    rent = [f"${rent:,}" for rent in rng.integers(800, 1_600, 40)]
    likes = [" ".join(words) for words in rng.choice(["tea", "milk", "rye", "jam", "figs"], (40, 4))]
    town[5] = "ULM"
    columns = {"age": age, "town": town, "since": since, "rent": rent, "likes": likes}
    return pd.DataFrame({**columns, "y": y.round(3), "smoker": y > 5})


def upload(data: bytes, title: str, target: str) -> str:
    """Enter a file as a data set; return its name."""
    file = library.keep_file(data)
    result = library.profile(file, Reading())
    recipe = replace(first_recipe(result.source, result.columns), target=target)
    return importing.import_upload(file, recipe, title, owner="somebody").name


def record(store: RunStore, name: str, experiment: Experiment) -> None:
    """Make a run and write it to the store as pages and commands do; "cut" is left while it goes on."""
    writer = recorder.Recorder(lambda: store, experiment, origin="command")
    writer.id = name
    for snapshot in writer.snapshots(lambda: Run.prepare(experiment), never):
        if name == "cut" and snapshot.epoch == 12:
            return


def figures(store: RunStore, name: str) -> dict[str, Any]:
    """Return the numbers of a stored run."""
    run, parameters = store.get(name), store.parameters(name)
    assert parameters is not None
    sums = {key: [float(value.sum()), float(abs(value).sum())] for key, value in parameters.items()}
    fields = {key: getattr(run, key) for key in ("digest", "status", "epoch", "data_hash", "last")}
    objectives = [record["objective"] for record in store.trace(name)]
    return {**fields, "query": run.experiment.to_query(), "sums": sums, "objectives": objectives}


def fit(name: str, data: str, *options: str) -> list[Any]:
    """Fit a model by the command; save it, and return what it predicts of a table, or of single features."""
    given = ["fit", data, "--rank", "3", *options, "--output", "fit", "--store", "fit/store.db"]
    with contextlib.redirect_stdout(io.StringIO()):
        assert command(given) == 0
    Path("fit/model.npz").replace(name)
    for path in Path("fit").iterdir():
        path.unlink()
    Path("fit").rmdir()
    return SavedModel.load(name).predict(np.eye(17) if data == "monks1" else table()).tolist()


def main() -> None:
    """Write all files beside this one."""
    text = table().to_csv(index=False)
    data = text.encode()
    own, dropped = upload(data, "people.csv", "y"), upload(data + b"\n", "Thrown away", "smoker")
    library.delete(dropped)
    store = RunStore(STORE)
    for name, settings in {
        **RUNS,
        "own": {**SMALL, "dataset": own, "lambda_w": 0.1, "lambda_p": 1e-5, "lambda_sparse": 1e-5},
    }.items():
        recorder.FLUSH_SECONDS = recorder.CHECKPOINT_SECONDS = -1.0 if name == "cut" else float("inf")
        with mock.patch.object(stored_run, "_owner_of", return_value="elsewhere/1/1"):
            record(store, name, Experiment.from_dict(settings))
    store.rename("changed", "Strength changed on the way")
    store.delete(["deleted"])
    plan = SweepPlan.from_text(PLAN)
    fits = {fit.index: fit.run.id for fit in sweep_run.carry_out(plan, store, n_jobs=1, sweep="ti-cs")}
    (FOLDER / "runs.zip").write_bytes(export_runs(store, ["changed", "convex", "cut"]))
    (FOLDER / "plan.toml").write_text(PLAN, encoding="utf-8")
    with contextlib.chdir(FOLDER):
        Path("people.csv").write_text(text, encoding="utf-8")
        strengths = ["--lambda-p", "1e-5", "--lambda-sparse", "1e-5", "--max-epochs", "9"]
        models = {
            "model.npz": ["people.csv", "--target", "y", "--ignore", "smoker", *strengths],
            "curves.npz": [
                *("people.csv", "--target", "y", "--ignore", "smoker", "--numbers", "curve", *strengths)
            ],
            "classes.npz": ["people.csv", "--target", "smoker", "--ignore", "y", *strengths],
            "registered.npz": ["monks1", *strengths],
            # Without given strengths samples are drawn, which predict rents at random better than a fit.
            "averaged.npz": [
                *("people.csv", "--target", "rent"),
                *(f"--ignore={name}" for name in ("smoker", "since", "likes")),
            ],
        }
        predictions = {name: fit(name, *options) for name, options in models.items()}
        Path("people.csv").unlink()
    expected = {
        "runs": {name: figures(store, name) for name in (*RUNS, "own") if name != "deleted"},
        "fits": [fits[index] for index in sorted(fits)],
        "own": own,
        "dropped": dropped,
        "predictions": predictions,
    }
    (FOLDER / "expected.json").write_text(json.dumps(expected) + "\n", encoding="utf-8")
    store.close()
    with contextlib.closing(sqlite3.connect(STORE)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA page_size = 512")
        # Whoever wrote them has been silent since.
        connection.execute("UPDATE runs SET updated = updated - 100000")
        connection.commit()
        connection.execute("VACUUM")


if __name__ == "__main__":
    main()
