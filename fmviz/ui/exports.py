"""What can be taken away from a finished run: curves, factors, the model, and the program that repeats it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.lab.job import JobState, JobView
from fmviz.ui import widgets


def draw_exports(view: JobView) -> None:
    """Draw the downloads of an ended or paused run, and its program."""
    if view.parameters is None or view.dataset is None:
        return
    dataset, parameters = view.dataset, view.parameters
    name = f"{view.experiment.dataset}-{view.experiment.regularizer}-seed{view.experiment.seed}"
    st.markdown("**Take it with you**")
    with st.container(horizontal=True, key="train_exports"):
        widgets.download(
            "Curves (CSV)",
            lambda: pd.DataFrame(view.history).to_csv(index=False),
            f"curves-{name}.csv",
            key="train_curves_csv",
            help="One row an epoch, all figures." if view.stride == 1 else f"Every {view.stride}th epoch.",
        )
        widgets.download(
            "P (CSV)",
            lambda: factors_csv(dataset.feature_names, parameters.P),
            f"P-{name}.csv",
            key="train_p_csv",
            help="One row a feature, with its name; in full precision.",
        )
        widgets.download(
            "Model (npz)",
            lambda: widgets.npz_of(
                {
                    "P": parameters.P,
                    "w": parameters.w,
                    "intercept": np.array(parameters.intercept),
                    "feature_names": np.array(dataset.feature_names),
                    "experiment": np.array(view.experiment.to_json()),
                }
            ),
            f"model-{name}.npz",
            key="train_npz",
            help="P, w, the bias, the feature names and the settings: numpy.load opens it.",
        )
    last = view.last
    widgets.python_block(
        script(view),
        note=f"Repeats this run and prints: objective {last['objective']:.10g}, used features "
        f"{last['used_features']}, used interactions {last['used_interactions']}.",
    )


def factors_csv(names: tuple[str, ...], P: np.ndarray) -> str:
    """Return P as CSV text with the feature names in front, exact zeros as 0."""
    columns: dict[str, Any] = {"feature": list(names)}
    for s in range(P.shape[1]):
        columns[f"p{s + 1}"] = [0 if x == 0 else x for x in P[:, s].tolist()]
    return widgets.csv_of(columns)


def script(view: JobView) -> str:
    """Return a program that repeats the run as far as it went and prints its figures."""
    experiment = view.experiment
    given = {
        field.name: getattr(experiment, field.name)
        for field in dataclasses.fields(experiment)
        if getattr(experiment, field.name) != field.default
    }
    given = {"dataset": experiment.dataset, "seed": experiment.seed, **given}
    arguments = "\n".join(f"    {name}={widgets.python_value(value)}," for name, value in given.items())
    halt = ""
    if view.state in (JobState.PAUSED, JobState.STOPPED):
        halt = f"    if snapshot.epoch == {view.epoch}:\n        break  # where this run was {view.state}\n"
    return (
        "from fmviz.lab.experiment import Experiment\n"
        "from fmviz.lab.runner import Run\n\n"
        f"experiment = Experiment(\n{arguments}\n)\n"
        "for snapshot in Run.prepare(experiment).snapshots():\n"
        + (halt or "    pass\n")
        + '\nprint(f"epoch {snapshot.epoch}")\n'
        'print(f"objective {snapshot.objective:.10g}")\n'
        'print(f"used features {snapshot.used_features}")\n'
        'print(f"used interactions {snapshot.used_interactions}")\n'
        "# P, w and the bias: snapshot.parameters\n"
    )
