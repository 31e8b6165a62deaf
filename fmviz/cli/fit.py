"""``fmviz fit``: fit a model to a file or to a registered data set."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmviz.cli._terminal import (
    Progress,
    add_reading,
    add_store,
    open_store,
    print_json,
    read_source,
    to_stderr,
)
from fmviz.lab.typography import cell
from fmviz.lab.uploads import is_upload

if TYPE_CHECKING:
    import numpy as np

    from fmviz.engine.sampling.posterior import Posterior
    from fmviz.engine.snapshot import Snapshot
    from fmviz.lab.datasets import Dataset
    from fmviz.lab.experiment import Experiment
    from fmviz.lab.interpretation.effects import Effects
    from fmviz.lab.runner import Run
    from fmviz.lab.store import RunStore
    from fmviz.tables.encoded import Encoded
    from fmviz.tables.kinds import Column
    from fmviz.tables.recipe import Recipe
    from fmviz.tables.source import Source
    from fmviz.tables.target import Task

HELP = "fit a sparse machine to a CSV, TSV, Parquet or libsvm file and rank its interactions"

# Defaults for a first fit to standardised columns.
_FIRST = {
    "rank": 10,
    "lambda_w": 1e-3,
    "lambda_p": 1e-3,
    "lambda_sparse": 1e-3,
    "max_epochs": 1_000,
    "init_scale": 0.1,
}
# The grid of λ in the search for a number of interactions.
_STRENGTHS = tuple(10.0**e for e in range(-7, 2))
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


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "data", metavar="DATA", help="a CSV, TSV, Parquet or libsvm file, or the name of a data set"
    )
    table = parser.add_argument_group("the table; other options are detected, and listed in the report")
    table.add_argument(
        "--target", metavar="COLUMN", help="the column to predict, or several, separated by commas"
    )
    table.add_argument(
        "--task",
        choices=("auto", "regression", "binary", "class", "ordinal"),
        default="auto",
        help="a number, two classes, more classes, or classes in an order (default: what it looks like)",
    )
    table.add_argument("--positive", default="", metavar="CLASS", help="the class to tell from all others")
    table.add_argument(
        "--order", default="", metavar="A,B,…", help="ordered classes, ascending (by size or letters)"
    )
    table.add_argument(
        "--log-target",
        action="store_true",
        help="fit to the logarithm of a positive number; predictions are in its own unit",
    )
    table.add_argument(
        "--missing",
        choices=("drop", "impute", "mark"),
        help="leave rows with a missing value out, take the mean, or take it and mark where (default: mark)",
    )
    table.add_argument(
        "--use",
        action="append",
        default=[],
        metavar="COLUMN=KIND",
        help="what a column is: number, word, yes_no, date, text or ignored; repeatable",
    )
    table.add_argument(
        "--words", action="append", default=[], metavar="COLUMN", help="the same as --use COLUMN=word"
    )
    table.add_argument(
        "--ignore", action="append", default=[], metavar="COLUMN", help="the same as --use COLUMN=ignored"
    )
    table.add_argument(
        "--scaling", choices=("standard", "range", "none"), default="standard", help="of numbers"
    )
    table.add_argument(
        "--numbers",
        choices=("auto", "line", "curve"),
        default="auto",
        help="straight lines only, curves beside them, or whichever predicts better (default)",
    )
    table.add_argument(
        "--rare", type=int, metavar="N", help="words of fewer rows share a feature (5; 1 below 1000 rows)"
    )
    table.add_argument(
        "--most-levels", type=int, metavar="N", help="words of a column with a feature of their own (all)"
    )
    add_reading(table)
    model = parser.add_argument_group("the model; defaults are those of the data set, or of a first fit")
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
    """A finished fit.

    Attributes
    ----------
    run, end, history : Run, Snapshot, list
        The run, its last snapshot, and the records of all snapshots.
    encoded : Encoded or None
        The encoded data of a file or an upload.
    source : Source or None
        The file as read.
    search : dict or None
        The result of the search for strengths or a number of interactions.
    stored : str or None
        The id in the run store, for data sets with a name.
    averaged : Posterior or None
        Samples of a Bayesian machine, if they predict the validation rows better.
    command : str
        The command line.
    validated : mapping of str to float
        The record of the fit to the training rows, with its metrics.
    effects : Effects or None
        What reads the machine that predicts by columns.
    n_pairs : int or None
        How many pairs of columns are read: the fewest that predict within one standard error of the best.
    """

    run: Run
    end: Snapshot
    history: list[dict[str, Any]]
    encoded: Encoded | None
    source: Source | None
    search: dict[str, Any] | None
    stored: str | None
    averaged: Posterior | None
    command: str
    validated: Mapping[str, Any]
    effects: Effects | None = None
    n_pairs: int | None = None


def run(arguments: argparse.Namespace) -> int:
    """Fit, print a summary, and write the files; return 1 if the run cannot be stored."""
    from fmviz.cli import _fit_report
    from fmviz.lab.datasets import DATASETS
    from fmviz.lab.runner import Run
    from fmviz.paths import accepted_range

    if arguments.top < 1:
        raise ValueError(f"--top {arguments.top} ranks nothing; give a number from 1.")
    if arguments.interactions is not None:
        accepted_range(arguments.interactions)
    known = arguments.data in DATASETS or is_upload(arguments.data)
    registered = known and not Path(arguments.data).is_file()
    if registered:
        _refuse_of_tables(arguments)
    search = None
    table: _Table | None = None
    if registered:
        prepared, encoded = _registered(arguments)
    else:
        prepared, table = _own(arguments)
        encoded = table.encoded
    again = Run.prepare if table is None else table.run
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
    tuned = not registered and _left_to_the_data(prepared, _given(arguments))
    if tuned:
        prepared, search = _tuned_run(prepared, again)
    if arguments.interactions is not None:
        prepared, reached = _searched(prepared, again, arguments.interactions)
        search = (
            reached
            if search is None
            else {**search, **reached, "message": f"{search['message']} {reached['message']}"}
        )
    end, history, stored, trouble = _fitted(prepared, open_store(arguments) if registered else None)
    averaged, reading, validated = None, None, {**end.record(), "rows": prepared.problem.design.n_samples}
    if tuned and search is not None:
        averaged, words = _averaged_predictions(prepared, end, encoded.target.scale if encoded else 1.0)
        search["message"] += words
    if table is not None and prepared.validation is not None and _reads_by_columns(prepared):
        rows, y = prepared.validation[:2]
        reading = _effects(prepared, end, averaged).enough(rows.matrix, y)
    if tuned and table is not None:
        # What is kept has seen all rows.
        prepared, encoded = table.run_on_all(prepared.experiment)
        end, history, _, _ = _fitted(prepared, None)
        averaged = averaged and _samples(prepared)
    effects = None if reading is None else _effects(prepared, end, averaged)
    command = f"fmviz {shlex.join(arguments.given)}"
    source = None if table is None else table.source
    fit = Fit(
        prepared,
        end,
        history,
        encoded,
        source,
        search,
        stored,
        averaged,
        command,
        validated,
        effects,
        reading,
    )
    report, pairs = _fit_report.report(fit, arguments.top)
    try:
        if arguments.output is not None:
            _fit_report.write(fit, report, pairs, arguments.output)
    finally:
        # Even if the files cannot be written: the fit may have taken hours.
        if arguments.json:
            print_json(report)
        else:
            print(_fit_report.summary(report, pairs, len(prepared.dataset.outputs)))
    if trouble:
        to_stderr(trouble)
    return 1 if trouble else 0


def _refuse_of_tables(arguments: argparse.Namespace) -> None:
    """Raise ValueError if options of tables are given for a registered data set."""
    unsaid: dict[str, Any] = {
        **{"target": None, "task": "auto", "positive": "", "order": "", "log_target": False},
        **{"missing": None, "use": [], "words": [], "ignore": [], "scaling": "standard", "rare": None},
        **{"most_levels": None, "read": [], "numbers": "auto"},
    }
    given = [name for name, default in unsaid.items() if getattr(arguments, name) != default]
    if given:
        option = f"--{given[0].replace('_', '-')}"
        raise ValueError(
            f"{arguments.data} is a registered data set and is read as it is; leave {option} out."
        )


def _registered(arguments: argparse.Namespace) -> tuple[Run, Encoded | None]:
    from fmviz.lab.experiment import suggested
    from fmviz.lab.runner import Run
    from fmviz.lab.uploads import library

    given = _given(arguments)
    first = suggested(arguments.data, given.get("model")).to_dict()
    prepared = Run.prepare(_experiment({**first, **given, "dataset": arguments.data}))
    upload = library.find(arguments.data) if is_upload(arguments.data) else None
    return prepared, None if upload is None else library.encoded(upload.file, upload.recipe)


@dataclass(frozen=True, eq=False)
class _Table:
    """A file of one's own: as read, its recipe, and what it becomes."""

    source: Source
    recipe: Recipe
    columns: Sequence[Column]
    name: str
    train: np.ndarray
    encoded: Encoded

    @cached_property
    def dataset(self) -> Dataset:
        """The data, encoded by what the training rows hold."""
        from fmviz.lab.datasets import Dataset

        return Dataset.of_table(self.encoded, self.name, self.name)

    def run(self, experiment: Experiment) -> Run:
        """Return a run on the training rows, validated on the others."""
        import numpy as np

        from fmviz.lab.runner import prepare

        inside = np.isin(self.encoded.rows, self.train)
        return prepare(self.dataset, experiment, np.flatnonzero(inside), np.flatnonzero(~inside))

    def run_on_all(self, experiment: Experiment) -> tuple[Run, Encoded]:
        """Return a run on all rows, encoded by what all of them hold, with the same curves."""
        import numpy as np

        from fmviz.lab.datasets import Dataset
        from fmviz.lab.runner import prepare
        from fmviz.tables.encoded import encode

        encoder = self.encoded.encoder
        recipe = self.recipe if encoder is None else replace(self.recipe, numbers=encoder.bases_)
        encoded = encode(self.source, recipe, None, self.columns)
        dataset = Dataset.of_table(encoded, self.name, self.name)
        every = np.arange(len(dataset.y))
        return prepare(dataset, replace(experiment, validation=0.0), every, every[:0]), encoded


def _own(arguments: argparse.Namespace) -> tuple[Run, _Table]:
    """Return the run on a file with the settings of a first fit, and the file."""
    from fmviz.lab.runner import split
    from fmviz.tables.encoded import encode
    from fmviz.tables.recipe import columns_of

    given = _given(arguments)
    # Validated before reading the data, which may take long.
    asked = _experiment({**_first_settings(given), **given})
    source, name = read_source(arguments.data, arguments.read, arguments.no_limits)
    columns = columns_of(source)
    recipe = _recipe(source, columns, name, arguments)
    train, _ = split(len(source), asked.validation, asked.seed)
    table = _Table(source, recipe, columns, name, train, encode(source, recipe, train, columns))
    return table.run(_first(table.dataset, given)), table


def _first(dataset: Dataset, given: dict[str, Any]) -> Experiment:
    """Return the settings of a first fit to a data set, with given ones."""
    loss = "squared" if dataset.task == "regression" else "logistic"
    return _experiment({**_first_settings(given, dataset.task), "loss": loss, **given})


def _first_settings(given: dict[str, Any], task: Task = "regression") -> dict[str, Any]:
    """Return the defaults of a first fit of the given model to data of a task."""
    from fmviz.engine.models import get_model
    from fmviz.lab.experiment import Experiment, suited_settings

    model = get_model(given.get("model", "fm"))
    chosen = suited_settings(model, task)
    suited = Experiment(model=model.name, **chosen)
    # Settings that suit the model override those of a first fit, even if they are defaults of experiments.
    named = {name: value for name, value in suited.to_dict().items() if name in chosen}
    return {**_FIRST, **suited.to_dict(defaults=False), **named}


def _recipe(source: Source, columns: Sequence[Column], name: str, arguments: argparse.Namespace) -> Recipe:
    """Return the default recipe of a file with the options of the command line."""
    from fmviz.tables.recipe import Choice, first_recipe

    first = first_recipe(source, columns)
    names = [choice.name for choice in first.columns]
    if source.table is None and arguments.target is not None:
        raise ValueError(f"{name} is a libsvm file, whose first number is the target; leave --target out.")
    if source.table is not None and arguments.target is None:
        raise ValueError(f"--target is missing; name one of the columns {', '.join(names)}.")
    # Names of columns may contain commas.
    asked = " ".join((arguments.target or "").split())
    targets = [asked] if asked in names else [" ".join(name.split()) for name in asked.split(",")]
    said = [("--target", name, "") for name in targets] if asked else []
    for text in arguments.use:
        column, sign, kind = text.rpartition("=")
        if not sign:
            raise ValueError(f"--use {text!r} names no kind; write it as town=word.")
        said.append(("--use", column, kind))
    said += [("--words", column, "word") for column in arguments.words]
    said += [("--ignore", column, "ignored") for column in arguments.ignore]
    for option, column, _ in said:
        if column not in names:
            raise ValueError(f"{option} {column!r} is no column; there are {', '.join(names)}.")
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
        logarithm=arguments.log_target,
        scaling=arguments.scaling,
        rare=first.rare if arguments.rare is None else arguments.rare,
        most_levels=arguments.most_levels,
        numbers=arguments.numbers,
    )


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


def _left_to_the_data(prepared: Run, given: Iterable[str]) -> bool:
    """Return whether to choose the strengths by validation: none is given, and the machine can be tuned."""
    from fmviz.lab.search.tuning import can_be_tuned

    named = {"lambda_w", "lambda_p", "lambda_sparse"}.intersection(given)
    return not named and can_be_tuned(prepared.problem)


def _tuned_run(prepared: Run, again: Callable[[Experiment], Run]) -> tuple[Run, dict[str, Any]]:
    """Return the run with the strengths that predict best, and the record of the search."""
    from fmviz.lab.search.tuning import tuned, with_strengths
    from fmviz.paths.validation import finished

    progress = Progress(every=0)
    settings, validation = finished(tuned(prepared), lambda trial: progress.tell(trial.message))
    progress.clear()
    record = {"message": validation.message, "tried": [trial.record() for trial in validation.trials]}
    return again(with_strengths(prepared, settings)), record


def _samples(prepared: Run) -> Posterior | None:
    """Return samples of a Bayesian machine, where there can be any."""
    from fmviz.lab.search.averaged import averaged
    from fmviz.paths.validation import finished

    return finished(averaged(prepared))


def _reads_by_columns(prepared: Run) -> bool:
    """Return whether a machine has one output and pairs of columns to read."""
    model = prepared.problem.model
    return prepared.problem.n_machines is None and model.name == "fm" and len(prepared.dataset.columns) > 1


def _effects(prepared: Run, end: Snapshot, averaged: Posterior | None) -> Effects:
    """Return what reads the machine that predicts by columns."""
    from fmviz.lab.interpretation.effects import Effects, as_posterior

    dataset = prepared.dataset
    posterior = averaged or as_posterior(end.parameters, dataset.task == "binary")
    scaling = dataset.target_scaling
    assert not isinstance(scaling, tuple), "there is one output"
    return Effects(
        posterior, prepared.problem.design.matrix, dataset.columns, 1.0 if scaling is None else scaling.scale
    )


def _averaged_predictions(prepared: Run, end: Snapshot, scale: float) -> tuple[Posterior | None, str]:
    """Return samples of a Bayesian machine if they predict better, and a sentence on the comparison."""
    from fmviz.lab.search.averaged import Average

    if prepared.validation is None or (posterior := _samples(prepared)) is None:
        return None, ""
    average = Average.beside(prepared, end.parameters, posterior)
    assert average.score is not None, "rows were kept out"
    assert average.own_score is not None, "rows were kept out"
    which = "AUC" if posterior.binary else "RMSE"
    unit = 1.0 if posterior.binary else scale
    sampled, own = (unit * abs(score) for score in (average.score, average.own_score))
    compared = f"{which} {sampled:.4g} on the rows kept out, this one {own:.4g}"
    if not average.better:
        return None, f" An average over samples of a Bayesian machine predicts no better ({compared})."
    return (
        posterior,
        f" Predictions with model.npz are averages over samples of a Bayesian machine, which are better "
        f"({compared}).",
    )


def _searched(prepared: Run, again: Callable[[Experiment], Run], wanted: int) -> tuple[Run, dict[str, Any]]:
    """Search the λ whose fit uses about so many pairs; return its run, and the record of the search."""
    from fmviz.engine.drive import Budget, chosen_solver
    from fmviz.paths import search_lambda

    experiment, progress = prepared.experiment, Progress()
    solver = chosen_solver(prepared.problem, experiment.solver, dict(experiment.solver_params))
    probes = []
    for probe in search_lambda(
        prepared.problem,
        wanted,
        grid=_STRENGTHS,
        narrowest=1e-9,
        solver=solver,
        budget=Budget(experiment.max_epochs, None, experiment.tol, report_every=None),
        start=experiment.start,
        init_scale=experiment.init_scale,
        random_state=[experiment.seed, 1],
    ):
        probes.append(probe)
        progress.tell(probe.message)
    progress.clear()
    # The distance of counts is that of their logarithms.
    nearest = min(probes, key=lambda probe: abs(math.log((probe.used_interactions + 1) / (wanted + 1))))
    best = probes[-1] if probes[-1].status == "found" else nearest
    chosen = replace(experiment, lambda_sparse=best.lambda_sparse)
    words = probes[-1].message
    if probes[-1].status != "found":
        words += f" Taken is λ = {best.lambda_sparse:.6g} with {best.used_interactions:,}."
    record = {"wanted": wanted, "status": probes[-1].status, "message": words, "fits": len(probes)}
    return again(chosen), record


def _fitted(prepared: Run, store: RunStore | None) -> tuple[Snapshot, list[dict[str, Any]], str | None, str]:
    """Fit; return the last snapshot, all records, the id in the store, and an error message of the store.

    The fit goes on if it cannot be stored.
    """
    from fmviz.lab.store.recorder import Recorder

    recorder = None
    if store is not None:
        recorder = Recorder(lambda: store, prepared.experiment, origin="command")
        recorder.prepared(prepared.dataset)
    checkpoints: dict[str, Any] = {} if recorder is None else {"keep": recorder.keep}
    snapshots = prepared.snapshots(**checkpoints)
    history: list[dict[str, Any]] = []
    end = None
    try:
        for end in _with_progress(snapshots, prepared.experiment.max_epochs):
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
    if recorder is None or recorder.trouble:
        return end, history, None, "" if recorder is None else recorder.trouble
    return end, history, recorder.run, ""


def _with_progress(snapshots: Iterator[Snapshot], epochs: int) -> Iterator[Snapshot]:
    """Yield snapshots, and show their progress a few times a second."""
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
