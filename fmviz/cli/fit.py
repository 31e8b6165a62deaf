"""``fmviz fit``: fit a machine to a file of one's own, or to a registered data set."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmviz.cli._terminal import Progress, add_store, open_store
from fmviz.lab.tables.cells import cell
from fmviz.lab.values import plain

if TYPE_CHECKING:
    from fmviz.engine.snapshot import Snapshot
    from fmviz.lab.experiment import Experiment
    from fmviz.lab.runner import Run
    from fmviz.lab.tables.fit import OwnData

HELP = "fit a sparse machine to a CSV, TSV or libsvm file and rank its interactions"

# What a first fit to standardised columns starts from.
_FIRST = {
    "rank": 10,
    "lambda_w": 1e-3,
    "lambda_p": 1e-3,
    "lambda_sparse": 1e-3,
    "max_epochs": 1_000,
    "init_scale": 0.1,
}
_STRENGTHS = tuple(10.0**e for e in range(-7, 2))
_PRINTED = 10
_OPTIONS: dict[str, type] = {
    "regularizer": str,
    "solver": str,
    "loss": str,
    "rank": int,
    "lambda_w": float,
    "lambda_p": float,
    "lambda_sparse": float,
    "max_epochs": int,
    "tol": float,
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help="a CSV, TSV or libsvm file, or a registered data set")
    table = parser.add_argument_group("the table")
    table.add_argument("--target", metavar="COLUMN", help="the column to predict")
    table.add_argument("--task", choices=("auto", "regression", "binary"), default="auto")
    table.add_argument(
        "--missing",
        choices=("drop", "impute"),
        default="drop",
        help="leave rows with a missing value out (default), or take the mean",
    )
    table.add_argument(
        "--words", action="append", default=[], metavar="COLUMN", help="numbers that are names; repeatable"
    )
    table.add_argument(
        "--ignore", action="append", default=[], metavar="COLUMN", help="no feature; repeatable"
    )
    table.add_argument(
        "--most-levels", type=int, metavar="N", help="different words a column may have (1000)"
    )
    model = parser.add_argument_group("the model; what is not said comes from the data set, or a first guess")
    for name, kind in _OPTIONS.items():
        model.add_argument(f"--{name.replace('_', '-')}", dest=name, type=kind, metavar=kind.__name__.upper())
    model.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other setting of an experiment, for instance fit_linear=false; repeatable",
    )
    model.add_argument("--interactions", type=int, metavar="N", help="search the λ that uses about N pairs")
    parser.add_argument("--validation", type=float, default=0.2, help="share of rows kept out (default: 0.2)")
    parser.add_argument("--seed", type=int, default=0, help="draws the split and the start (default: 0)")
    parser.add_argument("--top", type=int, default=1000, help="pairs in interactions.csv (default: 1000)")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="a folder for model.npz, interactions.csv, report.json and report.html",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    add_store(parser)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit that has ended: run, end and course, the data where they are somebody's own, the command."""

    run: Run
    end: Snapshot
    history: list[dict[str, Any]]
    own: OwnData | None
    search: dict[str, Any] | None
    stored: str | None
    command: str


def run(arguments: argparse.Namespace) -> int:
    """Fit, print a summary, and write the files."""
    from fmviz.cli import _fit_report
    from fmviz.lab.datasets import DATASETS
    from fmviz.lab.uploads.names import is_upload

    if arguments.top < 1:
        raise ValueError(f"--top {arguments.top} ranks nothing; give a number from 1.")
    known = arguments.data in DATASETS or is_upload(arguments.data)
    registered = known and not Path(arguments.data).is_file()
    if registered:
        _refuse_of_tables(arguments)
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
    prepared, own = _registered(arguments) if registered else _own(arguments)
    search = None
    if arguments.interactions is not None:
        prepared, search = _searched(prepared, own, arguments.interactions)
    fit = _fitted(prepared, own, search, arguments)
    report, pairs = _fit_report.report(fit, arguments.top)
    if arguments.output is not None:
        _fit_report.write(fit, report, pairs, arguments.output)
    if arguments.json:
        print(json.dumps(plain(report), indent=1, ensure_ascii=False))
    else:
        print(_fit_report.summary(report, pairs.head(_PRINTED)))
    return 0


def _refuse_of_tables(arguments: argparse.Namespace) -> None:
    """Raise where options are given that only say how a table is read."""
    if arguments.target is not None:
        raise ValueError(
            f"{arguments.data} is a registered data set and has its own target; leave --target out."
        )
    plain_ones: dict[str, Any] = {
        "task": "auto",
        "missing": "drop",
        "words": [],
        "ignore": [],
        "most_levels": None,
    }
    given = [name for name, default in plain_ones.items() if getattr(arguments, name) != default]
    if given:
        option = f"--{given[0].replace('_', '-')}"
        raise ValueError(
            f"{arguments.data} is a registered data set and is read as it is; leave {option} out."
        )


def _registered(arguments: argparse.Namespace) -> tuple[Run, None]:
    from fmviz.lab.experiment import suggested
    from fmviz.lab.runner import Run

    given = _given(arguments)
    first = suggested(arguments.data, given.get("model")).to_dict()
    return Run.prepare(_experiment({**first, **given, "dataset": arguments.data})), None


def _own(arguments: argparse.Namespace) -> tuple[Run, OwnData]:
    from fmviz.lab.tables.encoding import MOST_LEVELS
    from fmviz.lab.tables.files import is_libsvm, read_bytes, read_text_table
    from fmviz.lab.tables.fit import from_libsvm, from_table, prepare

    data, name = read_bytes(arguments.data), Path(arguments.data).name
    # Checked before the data, which may take long to read.
    first = _experiment({**_FIRST, **_given(arguments)})
    split: dict[str, Any] = {"validation": first.validation, "seed": first.seed, "task": arguments.task}
    if is_libsvm(data):
        if arguments.target is not None:
            raise ValueError(
                f"{name} is a libsvm file, whose first number is the target; leave --target out."
            )
        own = from_libsvm(data, name, **split)
    else:
        table = read_text_table(data, name)
        if arguments.target is None:
            raise ValueError(
                f"--target is missing; name one of the columns {', '.join(map(str, table.columns))}."
            )
        own = from_table(
            table,
            arguments.target,
            name,
            missing=arguments.missing,
            words=arguments.words,
            ignored=arguments.ignore,
            most_levels=MOST_LEVELS if arguments.most_levels is None else arguments.most_levels,
            **split,
        )
    if own.target.task == "binary" and "loss" not in _given(arguments):
        first = replace(first, loss="logistic")
    return prepare(own, first), own


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that the command line names."""
    given = {name: value for name in _OPTIONS if (value := getattr(arguments, name)) is not None}
    for text in arguments.set:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise ValueError(f"--set {text!r} names no value; write it as fit_linear=false.")
        if name == "dataset":
            raise ValueError(
                "--set dataset=… is not what is fitted to; name the data set in place of a file."
            )
        try:
            given[name] = json.loads(value)
        except json.JSONDecodeError:
            given[name] = value
    return {**given, "validation": arguments.validation, "seed": arguments.seed}


def _experiment(settings: dict[str, Any]) -> Experiment:
    from fmviz.lab.experiment import Experiment

    return Experiment.from_dict(settings)


def _searched(prepared: Run, own: OwnData | None, wanted: int) -> tuple[Run, dict[str, Any]]:
    """Return the run at the strength whose fit uses about so many pairs, and what the search came to."""
    from fmviz.engine.drive import Budget
    from fmviz.lab.runner import Run
    from fmviz.lab.tables.fit import prepare
    from fmviz.paths import search_lambda

    experiment, progress = prepared.experiment, Progress()
    probes = []
    for probe in search_lambda(
        prepared.problem,
        wanted,
        grid=_STRENGTHS,
        narrowest=1e-9,
        solver=experiment.solver,
        budget=Budget(experiment.max_epochs, None, experiment.tol, report_every=None),
        init_scale=experiment.init_scale,
        random_state=[experiment.seed, 1],
    ):
        probes.append(probe)
        progress.tell(probe.message)
    progress.clear()
    # By ratio: half as many or twice as many are as near, and none is far from some.
    nearest = min(probes, key=lambda one: abs(math.log((one.used_interactions + 1) / (wanted + 1))))
    best = probes[-1] if probes[-1].status == "found" else nearest
    found = replace(experiment, lambda_sparse=best.lambda_sparse)
    words = probes[-1].message
    if probes[-1].status != "found":
        words += f" Taken is λ = {best.lambda_sparse:.6g} with {best.used_interactions:,}."
    told = {"wanted": wanted, "status": probes[-1].status, "message": words, "fits": len(probes)}
    return (Run.prepare(found) if own is None else prepare(own, found)), told


def _fitted(
    prepared: Run, own: OwnData | None, search: dict[str, Any] | None, arguments: argparse.Namespace
) -> Fit:
    """Fit, into the store where an experiment describes all of it."""
    from fmviz.lab.runs.recorder import Recorder

    store = recorder = None
    if own is None:
        store = open_store(arguments)
        recorder = Recorder(lambda: store, prepared.experiment, origin="command")
        recorder.prepared(prepared.dataset)
    checkpoints: dict[str, Any] = {} if recorder is None else {"keep": recorder.keep}
    snapshots = prepared.snapshots(**checkpoints)
    history: list[dict[str, Any]] = []
    end = None
    try:
        for end in _told(snapshots, prepared.experiment.max_epochs):
            history.append(end.record())
            if recorder is not None:
                recorder.add(end)
                if end.status is not None:
                    recorder.end(end.status.reason, end.status.message)
    finally:
        if recorder is not None and (end is None or end.status is None):
            recorder.end("stopped", "Stopped by the keyboard.")
        if store is not None:
            store.close()
    assert end is not None, "every run has a last snapshot"
    if recorder is not None and recorder.trouble:
        raise ValueError(recorder.trouble)
    stored = None if recorder is None else recorder.run
    return Fit(prepared, end, history, own, search, stored, f"fmviz {shlex.join(arguments.given)}")


def _told(snapshots: Iterator[Snapshot], epochs: int) -> Iterator[Snapshot]:
    """Yield snapshots, and show the progress a few times a second."""
    progress, shown = Progress(every=0), 0.0
    for snapshot in snapshots:
        if time.monotonic() - shown > 0.2:
            shown = time.monotonic()
            progress.tell(
                f"epoch {snapshot.epoch:,} of at most {epochs:,}: objective {cell(snapshot.objective)}, "
                f"{snapshot.used_interactions:,} interactions"
            )
        yield snapshot
    progress.clear()
