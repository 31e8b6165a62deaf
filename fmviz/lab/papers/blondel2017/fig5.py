"""Figure 5 of blondel2017: refits of the output layer against refits of both layers, basis by basis."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from fmviz.engine.shared_basis.path import accuracy_on
from fmviz.engine.solvers import get_solver
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.class_machines import Trial, problems, split_of
from fmviz.lab.papers.protocols.classes import by_margin, here, names
from fmviz.lab.papers.protocols.trials import each
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Said, over, verdict

OUTPUT, FULL = "output layer", "both layers"
_REFITS = {OUTPUT: "output", FULL: "full"}
# Objectives that differ by less are equal.
_EQUAL = 1e-6
OBJECTIVE, ACCURACY = "objective, relative difference", "accuracy"


def course(trial: Trial, steps: int, strength: float, accuracy: float) -> Row:
    """Return the objectives and the accuracies of a method, step by step."""
    split = split_of(trial.data, trial.seed)
    train, _, test = problems(split, loss="logistic", penalty="l1_l2", rank=steps)
    train = train.at(lambda_sparse=strength / split.train.y.size)
    own: dict[str, Any] = {"refit": _REFITS[trial.method], "bases": 1, "accuracy": accuracy}
    method, right = get_solver("conditional_gradient", own).on(train), accuracy_on(test)
    rng = np.random.default_rng([trial.seed, 1])
    method.start(train.start(0.0, rng), rng)
    values, scores = [], []
    for _ in range(steps):
        method.epoch()
        end = method.parameters()
        values.append(train.objective(end))
        scores.append(100.0 * right(end))
    method.close()
    return {"objective": values, "accuracy": scores}


def _run(repro: Reproduction) -> Iterator[str]:
    settings = repro.settings
    own = {name: settings[name] for name in ("steps", "strength", "accuracy")}
    found = here(repro)
    trials = [
        Trial(name, method, seed) for seed, name, method in product(range(settings["splits"]), found, _REFITS)
    ]
    repro.total += len(trials)
    courses: dict[tuple[str, int], dict[str, Row]] = {}
    for trial, row in each(repro, partial(course, **own), trials, ("objective", "accuracy"), "fig5", own):
        both = courses.setdefault((trial.data, trial.seed), {})
        both[trial.method] = row
        if len(both) == len(_REFITS) and not any(one.get("failure") for one in both.values()):
            _draw(repro, trial, both)
        yield f"{trial.data}, split {trial.seed + 1}: {trial.method}"


def _draw(repro: Reproduction, trial: Trial, both: dict[str, Row]) -> None:
    """Add the points of one split to the table "lines"."""
    lowest = min(value for row in both.values() for value in row["objective"])
    for method, row in both.items():
        for step, (value, score) in enumerate(zip(row["objective"], row["accuracy"], strict=True), start=1):
            point = {"method": method, "seed": trial.seed, "x": step}
            repro.row("lines", panel=f"{trial.data}: {OBJECTIVE}", **point, y=value / lowest - 1.0)
            repro.row("lines", panel=f"{trial.data}: {ACCURACY}", **point, y=score)


def _pairs(quantity: str, tables: Tables, settings: Settings) -> Iterator[tuple[str, dict[int, list[float]]]]:
    """Yield for every data set by how much full refits are above, by the split and the step."""
    for name in names(tables, settings):
        values = {
            (row["method"], row["seed"], row["x"]): row["y"]
            for row in rows_where(tables, "lines", panel=f"{name}: {quantity}")
        }
        found: dict[int, list[float]] = {}
        for (method, seed, step), value in values.items():
            if method == FULL:
                found.setdefault(seed, []).append(value - values[OUTPUT, seed, step])
        yield name, found


def _not_always(found: dict[int, list[float]]) -> Said:
    every = np.concatenate(list(found.values()))
    behind = int(np.count_nonzero(every > -_EQUAL))
    return verdict(behind > 0), f"Of {every.size} steps full refits end no lower in {behind}."


def _more_right(found: dict[int, list[float]]) -> Said:
    return by_margin([float(np.mean(one)) for one in found.values()])


ARTEFACT = figure(
    __name__,
    _run,
    {
        "objective": over(partial(_pairs, OBJECTIVE), _not_always),
        "accuracy": over(partial(_pairs, ACCURACY), _more_right),
    },
    strength=0.1,
    accuracy=1e-5,
)
