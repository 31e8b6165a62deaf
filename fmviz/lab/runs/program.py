"""Python programs that repeat a run or a comparison."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence

from fmviz.lab.experiment import SPECS, Experiment
from fmviz.lab.runs.provenance import versions as present_versions
from fmviz.lab.uploads import is_upload
from fmviz.lab.values import to_python

_INSTALL = """\
# Requires fmviz: pip install .  in its source folder. Alternatively, save this program in that folder and run
# it with .venv/bin/python, created by `make run`.
"""


def with_header(
    script: str,
    result: str,
    *,
    link: str = "",
    data: Mapping[str, str] | None = None,
    versions: Mapping[str, str] | None = None,
) -> str:
    """Return a program with a header on its result, data and versions.

    Parameters
    ----------
    script : str
        The program.
    result : str
        A description of the result.
    link : str
        Address of the page of the result.
    data : mapping of str to str, optional
        Hashes by `fmviz.lab.runs.provenance.data_hash` by data set.
    versions : mapping of str to str, optional
        The versions of the software, by default those of this process.
    """
    listed = {"data ": data or {}, "made with ": versions or present_versions()}
    lines = [result, link]
    lines += [words + ", ".join(map(" ".join, pairs.items())) for words, pairs in listed.items() if pairs]
    # No line breaks: text after them would be executed.
    return "".join(f"# {' '.join(line.split())}\n" for line in lines if line) + _INSTALL + "\n" + script


def experiment_source(experiment: Experiment) -> str:
    """Return the constructor call of an experiment as Python source."""
    given = {
        "dataset": experiment.dataset.name,
        "seed": experiment.seed,
        **experiment.to_dict(defaults=False),
    }
    arguments = "\n".join(f"    {name}={to_python(value)}," for name, value in given.items())
    if given.keys() <= {spec.name for spec in SPECS}:
        return f"Experiment(\n{arguments}\n)"
    return f"Experiment.from_dict(dict(\n{arguments}\n))"


def _data(name: str) -> str:
    """Return the lines that import an uploaded data set."""
    if not is_upload(name):
        return ""
    from fmviz.lab.uploads.library import find

    if (upload := find(name)) is None:
        return ""
    arguments = ",\n".join(map(to_python, (upload.title, name, upload.recipe.to_dict())))
    return (
        "# The data are stored on the computer of the upload. Elsewhere, put their file next to "
        f"this program.\nimport_file(\n{textwrap.indent(arguments, '    ')},\n)\n"
    )


def opening(datasets: Iterable[str], *imports: str) -> str:
    """Return the imports of a program, followed by the import of uploaded data sets.

    Parameters
    ----------
    datasets : iterable of str
        The names of the data sets.
    *imports : str
        Import statements, one for each module.
    """
    if brought := "".join(map(_data, dict.fromkeys(datasets))):
        imports += ("from fmviz.lab.importing import import_file",)
    return "\n".join(sorted(imports)) + "\n\n" + brought


def program(experiment: Experiment, until: int | None = None) -> str:
    """Return a program that repeats a run and prints its results.

    Parameters
    ----------
    experiment : Experiment
        The settings of the run.
    until : int, optional
        The epoch at which the run was stopped, if it was.
    """
    halted = f"    if snapshot.epoch == {until}:\n        break  # the run was stopped here\n"
    return (
        opening(
            [experiment.dataset.name],
            "from fmviz.lab.experiment import Experiment",
            "from fmviz.lab.runner import Run",
        )
        + f"experiment = {experiment_source(experiment)}\n"
        "for snapshot in Run.prepare(experiment).snapshots():\n"
        + ("    pass\n" if until is None else halted)
        + '\nprint(f"epoch {snapshot.epoch}")\n'
        'print(f"objective {snapshot.objective:.10g}")\n'
        'print(f"used features {snapshot.used_features}")\n'
        'print(f"used interactions {snapshot.used_interactions}")\n'
        f"# {experiment.model.notation.matrix}, w and the bias"
        + (" and λ" if "coefficients" in experiment.model.shapes(1, 1) else "")
        + ": snapshot.parameters\n"
    )


def equal_sparsity_program(
    experiment: Experiment, regularizers: Sequence[str], target: int, seeds: int
) -> str:
    """Return a program that compares regularizers at equal sparsity and prints the results of all seeds."""
    names = to_python(list(regularizers))
    return (
        opening(
            [experiment.dataset.name],
            "from fmviz.lab.search.equal_sparsity import at_equal_sparsity",
            "from fmviz.lab.experiment import Experiment",
        )
        + f"experiment = {experiment_source(experiment)}\n"
        "last = {}\n"
        f"for fit in at_equal_sparsity(experiment, {names}, {target}, seeds={seeds}):\n"
        "    last[fit.experiment.regularizer.name, fit.experiment.seed] = fit\n"
        # The order of the searches varies.
        "for (name, seed), fit in sorted(last.items()):\n"
        '    print(f"{name}, seed {seed}: lambda {fit.experiment.lambda_sparse:.6g}, "\n'
        '          f"{fit.used_interactions} interactions, {fit.used_features} features")\n'
        "    for metric, value in fit.metrics.items():\n"
        '        print(f"    {metric} {value:.6g}")\n'
    )
