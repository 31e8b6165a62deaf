"""``fmviz fit``: fit a model to a file or to a registered data set."""

from __future__ import annotations

import argparse
import json
import math
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmviz.cli._terminal import (
    READING,
    STORE,
    Progress,
    declare,
    open_store,
    print_json,
    read_source,
    reading_of,
    to_stderr,
)
from fmviz.lab.uploads import is_upload

if TYPE_CHECKING:
    from fmviz.lab.runner import Run
    from fmviz.lab.search.findings import Findings
    from fmviz.lab.search.first_fit import FirstFit
    from fmviz.lab.store import RunStore
    from fmviz.tables.encoded import Encoded
    from fmviz.tables.encoder import TableEncoder
    from fmviz.tables.kinds import Column
    from fmviz.tables.recipe import Recipe
    from fmviz.tables.source import Source
    from fmviz.tables.target import TargetEncoding, Task

HELP = "fit a sparse factorization machine to a CSV, TSV, Parquet or libsvm file and rank its interactions"

# Defaults for a first fit to standardized columns.
_FIRST = {
    "rank": 10,
    "lambda_w": 1e-3,
    "lambda_p": 1e-3,
    "lambda_sparse": 1e-3,
    "max_epochs": 1_000,
    "init_scale": 0.1,
}
_KEPT_OUT = 0.2
# Strengths are chosen to within half a decade; few digits of the weights suffice.
_TUNED_TOL = 1e-3
_OPTIONS: dict[str, type] = {
    "model": str,
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


def _number_of_rows(text: str) -> float:
    if text != "all" and not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor all")
    return math.inf if text == "all" else int(text)


# The options of a table, for `argparse`.
_TABLE: dict[str, dict[str, Any]] = {
    "--target": {"metavar": "COLUMN", "help": "the column to predict, or several, separated by commas"},
    "--task": {
        "choices": ("auto", "regression", "binary", "class", "ordinal"),
        "default": "auto",
        "help": "the task: a number, two classes, several classes, or ordered classes (default: detected)",
    },
    "--positive": {"default": "", "metavar": "CLASS", "help": "the positive class, against all others"},
    "--order": {
        "default": "",
        "metavar": "A,B,…",
        "help": "ordered classes, ascending (default: numerical or alphabetical order)",
    },
    "--log-target": {
        "action": argparse.BooleanOptionalAction,
        "help": "fit the logarithm of a positive target, with predictions in the original unit (default: if "
        "the target is skewed and validation prefers it)",
    },
    "--missing": {
        "choices": ("drop", "impute", "mark"),
        "help": "drop rows with a missing value, impute the mean, or impute it and add an indicator "
        "(default: mark)",
    },
    "--use": {
        "action": "append",
        "default": [],
        "metavar": "COLUMN=KIND",
        "help": "the kind of a column: number, word, yes_no, date, text or ignored; repeatable",
    },
    "--words": {
        "action": "append",
        "default": [],
        "metavar": "COLUMN",
        "help": "the same as --use COLUMN=word",
    },
    "--ignore": {
        "action": "append",
        "default": [],
        "metavar": "COLUMN",
        "help": "the same as --use COLUMN=ignored",
    },
    "--rows": {
        "type": _number_of_rows,
        "metavar": "N",
        "help": "read at most N rows, drawn at random (default: up to 1,000,000 rows with 10,000,000 cells), "
        "or all: fit pairs of columns to every row of a Parquet, Feather or CSV file, encoded on disk",
    },
    "--group": {
        "default": "",
        "metavar": "COLUMN",
        "help": "rows with the same value, such as a date or a person, stay on the same side of every split; "
        "the column is not a feature unless selected by --use",
    },
    "--keep-copies": {
        "action": "store_true",
        "default": False,
        "help": "keep columns that say the same as another, and let splits divide equal rows",
    },
    "--scaling": {
        "choices": ("standard", "range", "none"),
        "default": "standard",
        "help": "of numbers",
    },
    "--numbers": {
        "choices": ("auto", "line", "curve"),
        "default": "auto",
        "help": "straight lines only, additional curves, or whichever predicts better (default)",
    },
    "--rare": {
        "type": int,
        "metavar": "N",
        "help": "categories with fewer rows share a feature (default: 5; 1 below 1000 rows)",
    },
    "--most-levels": {
        "type": int,
        "metavar": "N",
        "help": "the maximum number of categories per column with separate features (default: all)",
    },
}


add = partial(
    declare,
    {
        "": {
            "data": {
                "metavar": "DATA",
                "help": "a CSV, TSV, Parquet or libsvm file, or the name of a data set",
            },
            "--validation": {
                "type": float,
                "help": "share of rows kept out of training (default: 0.2, or 0 if strengths are chosen by "
                "validation, in which case errors are measured by folds)",
            },
            "--strengths": {
                "choices": ("best", "sparsest"),
                "default": "best",
                "help": "the best prediction, or the sparsest machine within one standard error of it "
                "(default: best)",
            },
            "--seed": {"type": int, "default": 0, "help": "seed of the split and the start (default: 0)"},
            "--jobs": {
                "type": int,
                "default": 1,
                "metavar": "N",
                "help": "threads for 20,000 rows or more, -1 for one per core; the results are equal "
                "(default: 1)",
            },
            "--dask": {
                "metavar": "ADDRESS",
                "help": "the scheduler of a Dask cluster for --rows all, tcp://host:port; its workers read "
                "the folder of the run store",
            },
            "--top": {"type": int, "default": 1000, "help": "pairs in interactions.csv (default: 1000)"},
            "--output": {
                "type": Path,
                "metavar": "DIR",
                "help": "a folder for model.npz, interactions.csv, report.json and report.html",
            },
            "--json": {"action": "store_true", "help": "print the report as JSON"},
            **STORE,
        },
        "the table; other options are detected and listed in the report": {**_TABLE, **READING},
        "the model; defaults are those of the data set, or of a first fit": {
            **{
                f"--{name.replace('_', '-')}": {"dest": name, "type": kind, "metavar": kind.__name__.upper()}
                for name, kind in _OPTIONS.items()
            },
            "--set": {
                "action": "append",
                "default": [],
                "metavar": "NAME=VALUE",
                "help": "any other setting of an experiment, such as fit_linear=false; repeatable",
            },
            "--interactions": {
                "type": int,
                "metavar": "N",
                "help": "search for the λ at which about N pairs are used",
            },
        },
    },
)


@dataclass(frozen=True, eq=False)
class Fit:
    """A finished fit.

    Attributes
    ----------
    last : FirstFit
        The fit, with the contest if its strengths were chosen by validation.
    encoded : Encoded or None
        The encoded data of a file or an upload.
    encoding : callable or None
        As for `FirstFit.saved_model`.
    source : Source or None
        The file as read.
    search : dict or None
        The result of the search for strengths or a number of interactions.
    command : str
        The command line.
    findings : sequence of Findings
        The effects of columns in every output; none if the model has no such effects.
    """

    last: FirstFit
    encoded: Encoded | None
    encoding: Callable[[str], Encoded] | None
    source: Source | None
    search: dict[str, Any] | None
    command: str
    findings: Sequence[Findings] = ()


def run(arguments: argparse.Namespace) -> int:
    """Fit, print a summary, and write the files; return 1 if the run cannot be stored."""
    from fmviz.cli import _fit_report
    from fmviz.engine.threads import Threads
    from fmviz.estimators.cluster import Cluster, connected
    from fmviz.lab.datasets import DATASETS
    from fmviz.paths import accepted_range

    for option, number in (("--top", arguments.top), ("--rows", arguments.rows)):
        if number is not None and number < 1:
            raise ValueError(f"{option} {number} is too small; use a number from 1.")
    if arguments.interactions is not None:
        accepted_range(arguments.interactions)
    # Validated before reading the data, which may be slow.
    arguments.mapper = Threads.of(arguments.jobs)
    known = arguments.data in DATASETS or is_upload(arguments.data)
    with Progress() as progress, ExitStack() as stack:
        of = _of_registered if known and not Path(arguments.data).is_file() else _of_file
        if of is _of_file and arguments.rows == math.inf:
            of = _of_all_rows
            if arguments.dask:
                client = stack.enter_context(connected(arguments.dask))
                arguments.mapper = Cluster(client=client)
        elif arguments.dask:
            raise ValueError("--dask is for a file with --rows all; add it, or omit --dask.")
        fit = of(arguments, progress)
    report, pairs = _fit_report.report(fit, arguments.top)
    try:
        if arguments.output is not None:
            _fit_report.write(fit, report, pairs, arguments.output)
    finally:
        # Even if the files cannot be written: the fit may have taken hours.
        if arguments.json:
            print_json(report)
        else:
            print(_fit_report.summary(report, pairs, len(fit.last.run.dataset.outputs)))
    if fit.last.trouble:
        to_stderr(fit.last.trouble)
    return 1 if fit.last.trouble else 0


def _of_registered(arguments: argparse.Namespace, progress: Progress) -> Fit:
    """Fit to a named data set and store the run."""
    from fmviz.lab.experiment import Experiment, suggested
    from fmviz.lab.runner import Run
    from fmviz.lab.uploads import library

    for option, about in {**_TABLE, "--read": {"default": []}}.items():
        if getattr(arguments, option[2:].replace("-", "_")) != about.get("default"):
            raise ValueError(
                f"{arguments.data} is a registered data set, to which {option} does not apply; omit it."
            )
    given = _given(arguments)
    first = suggested(arguments.data, given.get("model")).to_dict()
    prepared = Run.prepare(Experiment.from_dict({**first, **given, "dataset": arguments.data}))
    upload = library.find(arguments.data) if is_upload(arguments.data) else None
    encoding = None if upload is None else partial(library.in_bases, upload)
    with closing(open_store(arguments)) as store:
        return _fit(arguments, prepared, encoding, progress, store=store)


def _of_file(arguments: argparse.Namespace, progress: Progress) -> Fit:
    """Fit to a file with the settings of a first fit."""
    import numpy as np

    from fmviz.engine.schedule import STRENGTHS
    from fmviz.lab.datasets import Dataset
    from fmviz.lab.experiment import Experiment
    from fmviz.lab.runner import prepare, split
    from fmviz.lab.search.tuning import can_be_tuned, with_settings
    from fmviz.tables.curves import EVERY
    from fmviz.tables.encoded import encode
    from fmviz.tables.recipe import columns_of, row_groups

    given = _given(arguments)
    choose = not set(STRENGTHS).intersection(given)
    if arguments.validation is None:
        given["validation"] = 0.0 if choose else _KEPT_OUT
    # Validated before reading the data, which may be slow.
    asked = Experiment.from_dict({**_first_settings(given), **given})
    progress.tell(f"Reading {arguments.data}.")
    source, name = read_source(arguments.data, arguments.read, arguments.no_limits, arguments.rows or 0)
    if arguments.rows is None and "drawn at random" in " ".join(source.notes[:1]):
        progress.clear()
        to_stderr(f"{name}: {source.notes[0]} To fit all rows, encoded on disk, use --rows all.")
    progress.tell(f"Encoding {len(source):,} rows.")
    columns = columns_of(source)
    recipe = _recipe(source, columns, name, arguments)
    train, _ = split(len(source), asked.validation, asked.seed, row_groups(source, recipe))

    @cache
    def encoding(numbers: str) -> Encoded:
        return encode(source, replace(recipe, numbers=numbers or recipe.numbers), train, columns)

    encoded = encoding("")
    # Other bases keep the decision on the target.
    recipe = replace(recipe, logarithm=encoded.target.logarithm)
    dataset, inside = Dataset.of_table(encoded, name, name), np.isin(encoded.rows, train)
    if recipe.numbers in ("auto", "curve"):
        dataset = replace(dataset, every=lambda: Dataset.of_table(encoding(EVERY), name, name))
    loss = "squared" if dataset.task == "regression" else "logistic"
    experiment = Experiment.from_dict({**_first_settings(given, dataset.task), "loss": loss, **given})
    prepared = prepare(dataset, experiment, np.flatnonzero(inside), np.flatnonzero(~inside))
    choose = choose and can_be_tuned(prepared.problem)
    if choose and "tol" not in given:
        prepared = with_settings(prepared, {"tol": _TUNED_TOL})
    return _fit(arguments, prepared, encoding, progress, source, choose=choose)


def _of_all_rows(arguments: argparse.Namespace, progress: Progress) -> Fit:
    """Fit to all rows of a file, encoded on disk."""
    from fmviz.engine.penalties import get_penalty
    from fmviz.engine.schedule import STRENGTHS
    from fmviz.lab.experiment import Experiment
    from fmviz.lab.files import expanded
    from fmviz.lab.search.all_rows import FIRST, all_rows_fit
    from fmviz.lab.store.rows import cost, folder_of, stored_rows
    from fmviz.paths.validation import finished
    from fmviz.tables.batches import TableFile, TableSample
    from fmviz.tables.recipe import columns_of, learned
    from fmviz.tables.source import Source

    for option, present in (
        ("--group", arguments.group),
        ("--interactions", arguments.interactions is not None),
        ("--validation 0", arguments.validation == 0),
        ("--strengths", arguments.strengths != "best"),
    ):
        if present:
            raise ValueError(f"{option} does not apply to --rows all; omit it, or draw a sample by --rows N.")
    given = _given(arguments)
    choose, smooth = (
        not set(STRENGTHS).intersection(given),
        get_penalty(given.get("regularizer", "l2")).smooth,
    )
    if choose and not smooth:
        raise ValueError(
            "--rows all chooses strengths for smooth regularizers such as l2 only; give --lambda-sparse, "
            "--lambda-p and --lambda-w, for instance those of a fit to a sample of the rows."
        )
    file = TableFile(expanded(arguments.data), reading_of(arguments.read))
    name, reading = file.path.name, file.reading
    first = Source(reading, next(file.batches()))
    # Validated before reading all rows.
    _recipe(first, columns_of(first), name, arguments)
    asked = {option: getattr(arguments, option[2:].replace("-", "_")) for option in _TABLE}
    folder = folder_of(file, asked)
    progress.clear()
    to_stderr(f"Continuing in {folder}." if folder.is_dir() else cost(file))

    def learn(sample: TableSample) -> tuple[TargetEncoding, TableEncoder | None]:
        source = Source(reading, sample.table)
        every = sample.columns(reading.usual_decimal, reading.dates, reading.missing)
        # Splits cannot keep groups together.
        columns = [replace(column, hint="") for column in every]
        return learned(source, _recipe(source, columns, name, arguments), None, columns, sample.words)

    _make(arguments.output)
    rows = finished(stored_rows(file, folder, learn), progress.tell)
    task = rows.target.task
    loss = "squared" if task == "regression" else "logistic"
    experiment = Experiment.from_dict(
        {
            **_first_settings(given, task),
            **FIRST,
            "loss": loss,
            **({} if smooth else {"solver": "auto"}),
            **given,
        }
    )
    steps = all_rows_fit(rows, name, experiment, arguments.mapper, choose=choose)
    last, findings, encoded = finished(steps, lambda step: progress.tell(step.message))
    rows.delete()
    command = f"fmviz {shlex.join(arguments.given)}"
    return Fit(last, encoded, lambda numbers: encoded, first, dict(last.search), command, findings)


def _fit(
    arguments: argparse.Namespace,
    prepared: Run,
    encoding: Callable[[str], Encoded] | None,
    progress: Progress,
    source: Source | None = None,
    *,
    choose: bool = False,
    store: RunStore | None = None,
) -> Fit:
    """Fit, show the progress, and interpret the result by columns."""
    from fmviz.lab.search.contest import announced, contest_of
    from fmviz.lab.search.findings import described_outputs
    from fmviz.lab.search.first_fit import FirstFit, first_fit
    from fmviz.paths.validation import finished

    _make(arguments.output)
    prepared = replace(prepared, problem=replace(prepared.problem, mapper=arguments.mapper))
    sparsest = arguments.strengths == "sparsest"
    if choose and (words := announced(prepared)):
        progress.clear()
        to_stderr(words)
    asked = {"sparsest": sparsest, "choose": choose, "interactions": arguments.interactions}
    for step in first_fit(prepared, store, **asked, origin="command"):
        progress.tell(step.message)
        if isinstance(step, FirstFit):
            last = step
    search, contest, run = dict(last.search), last.contest, last.run
    if contest is not None:
        search["message"] += f" {last.message}"
    findings: list[Findings] = []
    if source is not None and run.problem.model.plain and len(run.dataset.columns) > 1:
        if contest is None and run.problem.n_machines is None:
            contest = finished(contest_of(run), lambda step: progress.tell(step.message))
        findings = finished(described_outputs(contest, last.chosen, run, last.end.parameters, last.posterior))
    encoded = None if encoding is None else encoding("")
    if encoded is not None:
        encoded = replace(encoded, target=encoded.target.for_loss(prepared.problem.loss))
    command = f"fmviz {shlex.join(arguments.given)}"
    return Fit(last, encoded, encoding, source, search or None, command, findings)


def _make(folder: Path | None) -> None:
    """Make the output folder before a fit that may take long."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)


def _first_settings(given: dict[str, Any], task: Task = "regression") -> dict[str, Any]:
    """Return the defaults of a first fit of a model for a task."""
    from fmviz.engine.models import get_model
    from fmviz.lab.experiment import Experiment, suited_settings

    model = get_model(given.get("model", "fm"))
    chosen = suited_settings(model, task)
    suited = Experiment.from_dict({**chosen, "model": model.name})
    # The defaults of the model override those of a first fit, even if they are defaults of experiments.
    named = {name: value for name, value in suited.to_dict().items() if name in chosen}
    return {**_FIRST, **suited.to_dict(defaults=False), **named}


def _recipe(source: Source, columns: Sequence[Column], name: str, arguments: argparse.Namespace) -> Recipe:
    """Return the default recipe of a file, with the options of the command line applied."""
    from fmviz.tables.recipe import Choice, first_recipe

    group = " ".join(arguments.group.split())
    first = first_recipe(source, columns).grouped(group)
    names = [choice.name for choice in first.columns]
    if source.table is None and arguments.target is not None:
        raise ValueError(f"{name} is a libsvm file: the first number of a row is the target; omit --target.")
    if source.table is not None and arguments.target is None:
        raise ValueError(f"--target is missing; choose one of the columns {', '.join(names)}.")
    # Column names may contain commas.
    asked = " ".join((arguments.target or "").split())
    targets = [asked] if asked in names else [" ".join(name.split()) for name in asked.split(",")]
    said = [("--target", name, "") for name in targets] if asked else []
    said += [("--group", group, "")] if group else []
    for text in arguments.use:
        column, sign, kind = text.rpartition("=")
        if not sign:
            raise ValueError(f"--use {text!r} lacks a kind; write it as town=word.")
        said.append(("--use", column, kind))
    said += [("--words", column, "word") for column in arguments.words]
    said += [("--ignore", column, "ignored") for column in arguments.ignore]
    for option, column, _ in said:
        if column not in names:
            raise ValueError(f"{option} {column!r} is not a column; the columns are {', '.join(names)}.")
    rules = {choice.name: arguments.missing or choice.missing for choice in first.columns}
    kinds = {choice.name: choice.kind for choice in first.columns} | {
        name: kind for _, name, kind in said if kind
    }
    return replace(
        first.corrected(Choice(column, kind, rules[column]) for column, kind in kinds.items()),
        target=targets[0] or first.target,
        also=tuple(targets[1:]),
        task="ordinal" if arguments.order and arguments.task == "auto" else arguments.task,
        positive=arguments.positive,
        order=tuple(word.strip() for word in arguments.order.split(",") if word.strip()),
        logarithm=arguments.log_target if arguments.log_target is not None else not arguments.loss and "auto",
        distinct=not arguments.keep_copies,
        scaling=arguments.scaling,
        rare=first.rare if arguments.rare is None else arguments.rare,
        most_levels=arguments.most_levels,
        numbers=arguments.numbers,
    )


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings given on the command line."""
    given = {name: value for name in _OPTIONS if (value := getattr(arguments, name)) is not None}
    for text in arguments.set:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise ValueError(f"--set {text!r} lacks a value; write it as fit_linear=false.")
        if name == "dataset":
            raise ValueError(
                "--set dataset=… is not possible; pass the name of the data set instead of a file."
            )
        try:
            given[name] = json.loads(value)
        except json.JSONDecodeError:
            given[name] = value
    share = _KEPT_OUT if arguments.validation is None else arguments.validation
    return {**given, "validation": share, "seed": arguments.seed}
