"""Where the present code has what these tests ask for.

What outlives a rewriting, the command line, links, pages and copied programs, the tests use themselves. All
else they ask here, so that this is the one file to follow a module that moves or an interface that changes.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fmviz.__main__ import main
from fmviz.lab.background import tasks
from fmviz.lab.background.pool import InlineExecutor
from fmviz.lab.background.tasks import TaskManager
from fmviz.lab.experiment import Experiment
from fmviz.lab.papers import ARTEFACTS
from fmviz.lab.papers.results import last_kept
from fmviz.lab.runner import Run
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.saved_model import SavedModel
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.search.sweep_run import results
from fmviz.lab.store import RunStore

Settings = dict[str, Any]
FIGURES = ("objective", "used_features", "used_interactions", "certificate")


def command(*given: str) -> Any:
    """Return what ``fmviz`` prints as JSON with these arguments; it must succeed."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(list(given)) == 0
    return json.loads(said.getvalue()) if "--json" in given else said.getvalue()


# ------------------------------------------------------------------------------------------------- settings


def told(experiment: Experiment) -> Settings:
    """Return all settings of an experiment by the names that they had, flat."""
    return experiment.to_dict()


def of_link(query: Mapping[str, str]) -> tuple[Experiment, int]:
    """Return the experiment of a link, and of how many of its settings it says that they cannot be taken."""
    experiment, notices = Experiment.from_query(query)
    return experiment, len(notices)


def of_json(text: str) -> Experiment:
    """Return the experiment that was written as JSON."""
    return Experiment.from_json(text)


def cells_of(text: str) -> list[Settings]:
    """Return the settings of all fits of a sweep that was written as TOML or JSON."""
    return [told(cell) for cell in SweepPlan.from_text(text).cells]


# ----------------------------------------------------------------------------------------------------- runs


def trained(experiment: Experiment) -> tuple[Settings, dict[str, np.ndarray]]:
    """Return the figures of a run made now, as `figures` tells them, and its arrays."""
    run = Run.prepare(experiment)
    snapshots = list(run.snapshots())
    end = snapshots[-1]
    assert end.status is not None
    found = figures([one.record() for one in snapshots])
    found |= {"status": str(end.status.reason), "data_hash": data_hash(run.dataset)}
    return found, _arrays(run, end.parameters)


def figures(records: list[Settings]) -> Settings:
    """Return the figures of a run from its records, epoch by epoch and at the end.

    One that diverges tells its last finite epoch twice.
    """
    records = list({one["epoch"]: one for one in records}.values())
    trace = {name: [one[name] for one in records] for name in FIGURES}
    return {"trace": trace, "last": records[-1], "epoch": records[-1]["epoch"]}


def stored(store: RunStore, run: str) -> dict[str, np.ndarray]:
    """Return the arrays of a stored run, and what it predicts for the first rows that it was trained on."""
    parameters = store.parameters(run)
    assert parameters is not None
    return _arrays(Run.prepare(store.get(run).experiment), parameters)


def _arrays(run: Run, parameters: Any) -> dict[str, np.ndarray]:
    names = ("P", "w", "W", "coefficients")
    kept = {name: value for name in names if (value := getattr(parameters, name)) is not None}
    predicted = run.problem.model.predict(run.problem.design, parameters)
    return kept | {"intercept": np.array(parameters.intercept), "predict": predicted}


def go_on(store: RunStore, run: str) -> list[Settings]:
    """Let an interrupted run go on to its end; return all its records."""
    TaskManager(InlineExecutor(), open_store=lambda: store).resume(run)
    return store.trace(run)


def checkpoint(store: RunStore, run: str) -> int | None:
    """Return the epoch from which an interrupted run goes on, or None where it begins anew."""
    found = store.checkpoint(run)
    return None if found is None else found.epoch


def known_fits(store: RunStore, plan: Settings) -> dict[str, list[float]]:
    """Return the objective and the used interactions of the fits of a sweep that need not be made again."""
    found = results(SweepPlan.from_dict(plan), store).values()
    return {run.id: [run.last["objective"], run.last["used_interactions"]] for run in found}


def kept_paper(store: RunStore, artefact: str) -> tuple[dict[str, list[Settings]], list[list[str]]]:
    """Return the tables of a kept figure of a paper, and statement, verdict and measurement of its checks."""
    result = last_kept(ARTEFACTS[artefact], "quick", store)
    assert result is not None
    tables = {name: list(rows) for name, rows in result.tables.items()}
    return tables, [[one.statement, one.verdict, one.measured] for one in result.checks]


def predicted(model: Path, table: Path) -> list[Any]:
    """Return what a saved model predicts for a table."""
    found: list[Any] = SavedModel.load(model).predict(pd.read_csv(table)).tolist()
    return found


# ---------------------------------------------------------------------------------------------------- pages


@contextlib.contextmanager
def serving(store: RunStore) -> Iterator[None]:
    """Let pages make their runs at once and write them to a store."""
    before = tasks.install(TaskManager(InlineExecutor(), open_store=lambda: store))
    try:
        yield
    finally:
        tasks.install(before)
