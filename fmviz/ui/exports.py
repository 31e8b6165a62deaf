"""Downloads of a finished run: curves, parameters, model and program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.figures.tabular import defused
from fmviz.lab.background.job import JobView
from fmviz.lab.background.task import TaskState
from fmviz.lab.runs.changes import with_strengths
from fmviz.lab.runs.program import program
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.store.table import title_of_settings
from fmviz.ui import widgets
from fmviz.ui.train.interactions import column_factors, column_headings


def draw_exports(view: JobView) -> None:
    """Draw the downloads of an ended or paused run, and its program."""
    if view.parameters is None or view.dataset is None:
        return
    dataset, parameters, experiment = view.dataset, view.parameters, view.experiment
    # If the penalty acts on V, P holds the bases.
    shared = parameters.get("V")
    letter = "P" if shared is not None else experiment.model.notation.matrix
    matrix = parameters.P if parameters.W is None else parameters.W
    several, columns = matrix.ndim == 3, matrix.shape[-1]
    machine = experiment.model
    kind = f"{experiment.model.name}-{experiment.regularizer.name}".removeprefix("fm-")
    headings = dataset.feature_names if letter == "W" else column_headings(machine, columns)
    more, said = {}, ""
    if machine.columnar:
        orders = [
            kernel.degree or 0
            for part, kernel in machine.parts(columns)  # type: ignore[attr-defined]
            for _ in range(part.stop - part.start)
        ]
        more, said = {"column_order": np.array(orders)}, "the order of every column"
    elif machine.lifted:
        more, said = (
            {"column_factor": np.array(column_factors(machine, columns))},
            "the factor of every column",
        )
    if parameters.coefficients is not None:
        more["coefficients"] = parameters.coefficients
    if shared is not None:
        more, said = {"V": shared}, "V, what every output takes of each basis"
    if dataset.outputs:
        more["outputs"] = np.array(dataset.outputs)
    name = f"{experiment.dataset}-{kind}-seed{experiment.seed}"
    source = widgets.linked(
        script(view),
        f"{title_of_settings(experiment.to_dict(), view.epoch)}, {view.epoch:,} epochs: objective "
        f"{view.last['objective']:.10g}",
        data={experiment.dataset.name: data_hash(dataset)},
    )
    st.markdown("**Take it with you**")
    with st.container(horizontal=True, key="train_exports"):
        widgets.download(
            "Curves (CSV)",
            lambda: with_strengths(pd.DataFrame(view.history), experiment).to_csv(index=False),
            f"curves-{name}.csv",
            key="train_curves_csv",
            help=("One row an epoch" if view.stride == 1 else f"Every {view.stride:,}th epoch")
            + ", all figures, and the strengths of the epoch.",
        )
        widgets.download(
            f"{letter} (CSV)",
            lambda: matrix_csv(
                [f"{output}: {name}" for output in dataset.outputs for name in dataset.feature_names]
                if several
                else dataset.feature_names,
                matrix.reshape(-1, columns),
                headings,
            ),
            f"{letter}-{name}.csv",
            key=f"train_{letter.lower()}_csv",
            help="One row a feature, with its name; in full precision."
            + (" The diagonal is no interaction." if letter == "W" else ""),
        )
        if shared is not None:
            widgets.download(
                "V (CSV)",
                lambda: matrix_csv(
                    headings, shared, dataset.outputs or (dataset.target_name,), rows="column of P"
                ),
                f"V-{name}.csv",
                key="train_v_csv",
                help="One row a basis, a column of P; one column an output.",
            )
        if parameters.coefficients is not None and not several:
            widgets.download(
                "λ (CSV)",
                lambda: pd.DataFrame({"column": headings, "lambda": parameters.multipliers}).to_csv(
                    index=False
                ),
                f"lambda-{name}.csv",
                key="train_lambda_csv",
                help="The weight of every column of P.",
            )
        widgets.download(
            "Model (npz)",
            lambda: widgets.npz_of(
                {
                    letter: matrix,
                    **more,
                    "w": parameters.w,
                    "intercept": np.array(parameters.intercept),
                    "feature_names": np.array(dataset.feature_names),
                    "experiment": np.array(experiment.to_json()),
                }
            ),
            f"model-{name}.npz",
            key="train_npz",
            help=f"{letter}, w, the bias, the feature names and the settings"
            + (f", and {said}" if said else "")
            + (" and its weight" if parameters.coefficients is not None else "")
            + ": numpy.load opens it.",
        )
    last = view.last
    widgets.python_block(
        source,
        f"Repeats this run and prints: objective {last['objective']:.10g}, used features "
        f"{last['used_features']:.0f}, used interactions {last['used_interactions']:.0f}.",
    )


def matrix_csv(
    names: Sequence[str], matrix: np.ndarray, columns: Sequence[str], rows: str = "feature"
) -> str:
    """Return a matrix as CSV text with the feature names in front, exact zeros as 0.

    Parameters
    ----------
    names : sequence of str
        The features.
    matrix : (d, k) ndarray
        P or W.
    columns : sequence of str
        The heading.
    rows : str
        What a row is, the heading of the first column.
    """
    values = [[0 if x == 0 else x for x in row] for row in matrix.tolist()]
    table = pd.DataFrame(values, [*map(defused, names)], [*map(defused, columns)], dtype=object)
    return table.to_csv(index_label=rows, lineterminator="\n")


def script(view: JobView) -> str:
    """Return a program that repeats the run as far as it went and prints its figures."""
    halted = view.state in (TaskState.PAUSED, TaskState.STOPPED)
    return program(view.experiment, view.epoch if halted else None)
