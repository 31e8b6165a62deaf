"""Python programs that repeat a run, a sweep, a comparison or a figure of a paper."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable, Sequence

from fmviz.engine.models import MODELS
from fmviz.lab.experiment import Experiment
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.uploads.names import is_upload
from fmviz.lab.values import to_python

__all__ = [
    "equal_sparsity_program",
    "experiment_source",
    "opening",
    "paper_program",
    "program",
    "sweep_program",
]


def experiment_source(experiment: Experiment) -> str:
    """Return the call that makes an experiment, as Python source."""
    given = {
        field.name: getattr(experiment, field.name)
        for field in dataclasses.fields(experiment)
        if getattr(experiment, field.name) != field.default
    }
    given = {"dataset": experiment.dataset, "seed": experiment.seed, **given}
    arguments = "\n".join(f"    {name}={to_python(value)}," for name, value in given.items())
    return f"Experiment(\n{arguments}\n)"


def _data(name: str) -> str:
    """Return the lines that see to it that a data set of one's own is there."""
    if not is_upload(name):
        return ""
    from fmviz.lab.uploads.library import find

    if (found := find(name)) is None:
        return ""
    arguments = ",\n".join(map(to_python, (found.title, name, found.recipe.to_dict())))
    return (
        "# The data are kept on the computer that they were uploaded to. Elsewhere, put their file beside "
        f"this program.\nimport_file(\n{textwrap.indent(arguments, '    ')},\n)\n"
    )


def opening(datasets: Iterable[str], *imports: str) -> str:
    """Return how a program begins: its imports, then what brings the data sets that are somebody's own.

    Parameters
    ----------
    datasets : iterable of str
        Names of the data sets that the program uses.
    *imports : str
        ``from module import name, ...``, each of another module.
    """
    brought = "".join(map(_data, dict.fromkeys(datasets)))
    if brought:
        imports += ("from fmviz.lab.uploads.importing import import_file",)
    return "\n".join(sorted(imports)) + "\n\n" + brought


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
        opening(
            [experiment.dataset],
            "from fmviz.lab.experiment import Experiment",
            "from fmviz.lab.runner import Run",
        )
        + f"experiment = {experiment_source(experiment)}\n"
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


def sweep_program(plan: SweepPlan) -> str:
    """Return a program that carries out a sweep and prints its means over the seeds."""
    return (
        opening(
            (cell.dataset for cell in plan.cells),
            "from fmviz.lab.store import RunStore",
            "from fmviz.lab.search.sweep_plan import SweepPlan",
            "from fmviz.lab.search.sweep_run import carry_out",
            "from fmviz.lab.search.sweep_run import fits_table, main_metric, means_table",
        )
        + f"plan = SweepPlan.from_dict(\n{textwrap.indent(to_python(plan.to_dict()), '    ')}\n)\n"
        'store = RunStore("sweep.sqlite")  # what is there already is not fitted again\n'
        "table = fits_table(plan, ((fit.index, fit.run) for fit in carry_out(plan, store)))\n"
        "store.close()\n"
        "metric = main_metric(table)\n"
        'print(f"mean and std of {metric}")\n'
        "print(means_table(table, list(plan.grid), metric).to_string(index=False))\n"
    )


def equal_sparsity_program(
    experiment: Experiment, regularizers: Sequence[str], target: int, accept: tuple[int, int]
) -> str:
    """Return a program that compares regularizers at equal sparsity and prints what each has come to."""
    names = to_python(list(regularizers))
    return (
        opening(
            [experiment.dataset],
            "from fmviz.lab.search.equal_sparsity import at_equal_sparsity",
            "from fmviz.lab.experiment import Experiment",
        )
        + f"experiment = {experiment_source(experiment)}\n"
        "last = {}\n"
        f"for fit in at_equal_sparsity(experiment, {names}, {target}, accept={accept!r}):\n"
        "    last[fit.experiment.regularizer] = fit\n"
        "for name, fit in sorted(last.items()):\n"
        '    print(f"{name}: lambda {fit.experiment.lambda_sparse:.6g}, "\n'
        '          f"{fit.used_interactions} interactions, {fit.used_features} features")\n'
        "    for metric, value in fit.metrics.items():\n"
        '        print(f"    {metric} {value:.6g}")\n'
    )


def paper_program(artefact: str, budget: str) -> str:
    """Return a program that makes an artefact of a paper again and prints what its checks found."""
    return (
        "from fmviz.lab.papers import ARTEFACTS\n\n"
        f"for result in ARTEFACTS[{to_python(artefact)}].run({to_python(budget)}):\n"
        "    pass  # it grows; the last is complete\n"
        "for check in result.checks:\n"
        '    print(f"{check.verdict}: {check.case}. {check.measured}")\n'
        "# the numbers: result.tables\n"
    )
