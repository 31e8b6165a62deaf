"""The Python program that repeats a run."""

from __future__ import annotations

import dataclasses
import json
import pprint
import textwrap
from typing import Any

from fmviz.engine.models import MODELS
from fmviz.lab.datasets import is_own
from fmviz.lab.experiment import Experiment

__all__ = ["program", "python_value"]


def python_value(value: Any) -> str:
    """Return a setting's value as Python source."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _data(name: str) -> str:
    """Return the lines that see to it that a data set of one's own is there."""
    if not is_own(name):
        return ""
    from fmviz.lab.own.shelf import find

    if (found := find(name)) is None:
        return ""
    recipe = pprint.pformat(found.recipe.to_dict(), width=96, sort_dicts=False)
    arguments = ",\n".join([python_value(found.title), python_value(name), recipe])
    return (
        "# The data are kept on the computer on which they were brought. Elsewhere put their file beside "
        f"this.\nbring(\n{textwrap.indent(arguments, '    ')},\n)\n"
    )


def program(experiment: Experiment, until: int | None = None) -> str:
    """Return a program that repeats a run and prints its figures.

    Parameters
    ----------
    experiment : Experiment
        The settings of the run.
    until : int, optional
        The epoch at which somebody halted it; without it the program runs to its own end.
    """
    given = {
        field.name: getattr(experiment, field.name)
        for field in dataclasses.fields(experiment)
        if getattr(experiment, field.name) != field.default
    }
    given = {"dataset": experiment.dataset, "seed": experiment.seed, **given}
    arguments = "\n".join(f"    {name}={python_value(value)}," for name, value in given.items())
    halt = "    pass\n"
    if until is not None:
        halt = f"    if snapshot.epoch == {until}:\n        break  # where this run was halted\n"
    imports = ["from fmviz.lab.experiment import Experiment"]
    if is_own(experiment.dataset):
        imports.append("from fmviz.lab.own.shelf import bring")
    imports.append("from fmviz.lab.runner import Run")
    return (
        "\n".join(imports)
        + "\n\n"
        + _data(experiment.dataset)
        + f"experiment = Experiment(\n{arguments}\n)\n"
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
