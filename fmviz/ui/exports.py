"""Downloads of a finished run: curves, model and program."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.lab.background.job import JobView
from fmviz.lab.background.task import TaskState
from fmviz.lab.runs.changes import with_strengths
from fmviz.lab.runs.program import program
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.store.packing import pack_parameters
from fmviz.lab.store.table import title_of_settings
from fmviz.ui import widgets


def draw_exports(view: JobView) -> None:
    """Draw the downloads of an ended or paused run, and its program."""
    if view.parameters is None or view.dataset is None:
        return
    dataset, parameters, experiment, last = view.dataset, view.parameters, view.experiment, view.last
    kind = f"{experiment.model.name}-{experiment.regularizer.name}".removeprefix("fm-")
    name = f"{experiment.dataset}-{kind}-seed{experiment.seed}"
    st.markdown("**Downloads**")
    with st.container(horizontal=True, key="train_exports"):
        widgets.save_page("train_page", partial(page, view), f"run-{name}")
        widgets.download(
            "Curves (CSV)",
            lambda: with_strengths(pd.DataFrame(view.history), experiment).to_csv(index=False),
            f"curves-{name}.csv",
            key="train_curves_csv",
            help=("One row per epoch" if view.stride == 1 else f"Every {view.stride:,}th epoch")
            + ", with all metrics and strengths.",
        )
        widgets.download(
            "Model (npz)",
            lambda: pack_parameters(
                {
                    **{part: array for part, array in parameters.items() if array.size},
                    "feature_names": np.array(dataset.feature_names),
                    "outputs": np.array(dataset.outputs),
                    "experiment": np.array(experiment.to_json()),
                }
            ),
            f"model-{name}.npz",
            key="train_npz",
            help="All parameters (P or W, w, bias, …), names of features and outputs, and settings, for "
            "numpy.load.",
        )
    widgets.python_block(
        widgets.linked(
            script(view),
            f"{title_of_settings(experiment.to_dict(), view.epoch)}, {view.epoch:,} epochs: objective "
            f"{last['objective']:.10g}",
            data={experiment.dataset.name: data_hash(dataset)},
        ),
        f"Repeats this run and prints: objective {last['objective']:.10g}, used features "
        f"{last['used_features']:.0f}, used interactions {last['used_interactions']:.0f}.",
    )


def page(view: JobView) -> str:
    """Return the run as a page with the matrices of its epochs."""
    from fmviz.report import Outcome, html

    return html(
        Outcome(
            title_of_settings(view.experiment.to_dict(), view.epoch, heading=True),
            view.experiment,
            view.machine,
            view.message,
            view.history,
            view.parameters,
            view.dataset,
            program=script(view),
            frames=view.frames,
        )
    )


def script(view: JobView) -> str:
    """Return a program that repeats the run up to its last epoch and prints the results."""
    return program(
        view.experiment, view.epoch if view.state in (TaskState.PAUSED, TaskState.STOPPED) else None
    )
