"""The Python program that repeats a run."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from fmviz.engine.models import MODELS
from fmviz.lab.experiment import Experiment

__all__ = ["experiment_source", "program", "python_value"]


def python_value(value: Any) -> str:
    """Return a setting's value as Python source."""
    if isinstance(value, tuple):
        value = tuple(tuple(item) if isinstance(item, tuple) else item for item in value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def experiment_source(experiment: Experiment) -> str:
    """Return the call that makes an experiment, as Python source."""
    given = {
        field.name: getattr(experiment, field.name)
        for field in dataclasses.fields(experiment)
        if getattr(experiment, field.name) != field.default
    }
    given = {"dataset": experiment.dataset, "seed": experiment.seed, **given}
    arguments = "\n".join(f"    {name}={python_value(value)}," for name, value in given.items())
    return f"Experiment(\n{arguments}\n)"


def program(experiment: Experiment, until: int | None = None) -> str:
    """Return a program that repeats a run and prints its figures.

    Parameters
    ----------
    experiment : Experiment
        The settings of the run.
    until : int, optional
        The epoch at which somebody halted it; without it the program runs to its own end.
    """
    halt = "    pass\n"
    if until is not None:
        halt = f"    if snapshot.epoch == {until}:\n        break  # where this run was halted\n"
    return (
        "from fmviz.lab.experiment import Experiment\n"
        "from fmviz.lab.runner import Run\n\n"
        f"experiment = {experiment_source(experiment)}\n"
        "for snapshot in Run.prepare(experiment).snapshots():\n"
        + halt
        + '\nprint(f"epoch {snapshot.epoch}")\n'
        'print(f"objective {snapshot.objective:.10g}")\n'
        'print(f"used features {snapshot.used_features}")\n'
        'print(f"used interactions {snapshot.used_interactions}")\n'
        f"# {MODELS[experiment.model].notation.matrix}, w and the bias"
        + (" and λ" if "coefficients" in experiment.machine.shapes(1, 1) else "")
        + ": snapshot.parameters\n"
    )
