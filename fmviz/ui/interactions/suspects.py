"""Rows that look wrong: their values, the prediction, and a file of them."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from fmviz.engine.parameters import Parameters
from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.outliers import (
    LISTED,
    Errors,
    Suspicion,
    compared_losses,
    comparison,
    rows_table,
    suspicions,
)
from fmviz.ui import widgets
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.watching import failure, watch

_LOSSES = {"cap": "With a cap", "logistic": "Logistic", "huber": "Huber", "squared": "Squared"}
BY = ParamSpec(
    "by",
    "choice",
    "cap",
    choices=tuple(_LOSSES),
    help="Under which loss rows look wrong. A cap lets go of rows that are far off; the squared loss follows "
    "them, the others less.",
)
"""By which loss a list is."""

_SHOWN = 24
_IN_FILE = 200


def draw(
    settings: Settings,
    experiment: Experiment,
    parameters: Parameters,
    dataset: Dataset,
    key: str,
    output: int = 0,
) -> None:
    """Draw the rows that look wrong to a run, fitted anew with a cap where it has none, beside other lists.

    Parameters
    ----------
    settings : Settings
        Of a page, with `BY`.
    experiment, parameters, dataset, output
        Of a run, and of one of its outputs.
    key : str
        Names the run, and this state of it.
    """
    tasks, name = manager(), f"suspects:{key}"
    make = partial(suspicions, experiment, parameters, output)
    task = tasks.get(name) or tasks.submit(name, make, most=len(_LOSSES))
    active = task.state.active

    def body(view: TaskView) -> None:
        _listed(settings, view, dataset, key)

    watch(task, body)
    if active:
        st.button("Stop", icon=":material/stop:", key="suspects_stop", on_click=task.stop)
    elif task.state is TaskState.STOPPED:
        st.button(
            "Look again",
            icon=":material/replay:",
            key="suspects_again",
            on_click=tasks.forget,
            args=(name,),
        )


def _listed(settings: Settings, view: TaskView, dataset: Dataset, key: str) -> None:
    """Draw the lists that are there, and how far the others are."""
    names = _names(view)
    found: dict[str, Suspicion] = dict(zip(names, view.items, strict=False))
    if view.state is TaskState.FAILED:
        failure(view)
    if found:
        st.markdown(plain(f"{found['cap'].message} {comparison(list(found.values()))}"))
        widgets.control(
            settings,
            "by",
            st.segmented_control,
            "List by",
            names,
            format_func=_LOSSES.__getitem__,
            required=True,
        )
        by = settings["by"] if settings["by"] in names else "cap"
        if (chosen := found.get(by)) is not None:
            aside = int(chosen.aside.sum())
            order = chosen.errors.ranked()[: max(LISTED, aside)]
            draw_rows(dataset, chosen.errors, order, f"{key[:6]}-{chosen.loss}", "listed")
    if view.state.active:
        _progress(view)
    elif len(found) < len(names):
        st.caption(plain(view.message))


def _names(view: TaskView) -> tuple[str, ...]:
    """Return the names of the lists that there will be, as far as that is known."""
    if not view.items:
        return ("cap",)
    return ("cap", *compared_losses(binary=view.items[0].errors.binary))


def _progress(view: TaskView) -> None:
    names = _names(view)
    now = _LOSSES[names[min(len(view.items), len(names) - 1)]]
    st.caption(f":material/hourglass_top: Fitting: {now[0].lower()}{now[1:]}. {view.elapsed:.0f} s so far.")


def draw_rows(dataset: Dataset, errors: Errors, places: np.ndarray, file: str, key: str) -> None:
    """Draw rows as a table, the most suspicious first, and offer all of them as a CSV.

    Parameters
    ----------
    dataset : Dataset
        Of one output.
    errors : Errors
        Of the fit.
    places : int ndarray
        The rows, by their place among those of the fit.
    file : str
        Names the file.
    key : str
        Unique on the page.
    """
    if not places.size:
        st.caption("No row is set aside.")
        return
    st.markdown("**These rows look wrong**")
    table = rows_table(dataset, errors, places[:LISTED], _SHOWN)
    st.dataframe(
        table,
        key=f"{key}_suspects",
        hide_index=True,
        height=35 * (min(8, len(table)) + 1) + 3,
        column_config={
            "row": st.column_config.NumberColumn("Row", format="localized", help="Counted from 1."),
            "target": st.column_config.Column("In the data"),
            "prediction": st.column_config.Column("Prediction"),
            "off by": st.column_config.NumberColumn(
                "Off by",
                format="%.4g",
                help="1 − y·f: 0 is the margin, above 1 the prediction is the other class."
                if errors.binary
                else "The prediction minus the data.",
            ),
            "wrong in truth": st.column_config.CheckboxColumn("Wrong in truth"),
        },
        alt="The rows that are furthest off, with their values.",
    )
    more = (
        f" The first {LISTED} of {places.size:,} are shown; the file has all." if places.size > LISTED else ""
    )
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_suspects_box"):
        widgets.download(
            "These rows (CSV)",
            lambda: rows_table(dataset, errors, places, _IN_FILE).to_csv(index=False),
            f"suspicious-{file}.csv",
            key=f"{key}_suspects_csv",
        )
        st.caption(f"A row that is far off may be an error, or what the model does not know.{more}")
