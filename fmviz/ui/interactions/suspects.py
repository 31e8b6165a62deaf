"""List the rows that look wrong to a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import streamlit as st

from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.interpretation.outliers import LISTED, Suspicion, rows_table, suspicious_rows
from fmviz.ui import widgets
from fmviz.ui.escape import plain
from fmviz.ui.interactions.opened import Opened
from fmviz.ui.watching import failure, watch

GONE = {"by": "Rows are listed by the loss with a cap."}
_SHOWN = 24
_IN_FILE = 200


def draw(reading: Opened) -> None:
    """Draw the rows that look wrong, fitted anew with a cap in the background where the run has none."""
    if reading.against >= 0 or reading.model.multi_output:
        st.info(
            "Rows look wrong to a machine of one output, or of one class against all others.",
            icon=":material/info:",
        )
        return

    def make(should_stop: Callable[[], bool]) -> Iterator[Suspicion]:
        yield suspicious_rows(reading.experiment, reading.parameters, reading.output, should_stop)

    tasks, name = manager(), f"suspects:{reading.key}"
    task = tasks.get(name) or tasks.submit(name, make, most=1)
    active = task.state.active

    def body(view: TaskView) -> None:
        if view.state is TaskState.FAILED:
            failure(view)
        elif view.state.active:
            st.caption(f":material/hourglass_top: Fitting with a cap. {view.elapsed:.0f} s so far.")
        elif view.items:
            _rows(reading, view.items[0])
        else:
            st.caption(plain(view.message))

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


def _rows(reading: Opened, found: Suspicion) -> None:
    """Draw rows as a table, the most suspicious first, and offer all of them as a CSV."""
    places, dataset, errors = found.listed, reading.dataset, found.errors
    st.markdown(plain(found.message))
    table = rows_table(dataset, errors, places[:LISTED], _SHOWN)
    st.dataframe(
        table,
        key="suspects_rows",
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
    with st.container(horizontal=True, vertical_alignment="center", key="suspects_box"):
        widgets.download(
            "These rows (CSV)",
            lambda: rows_table(dataset, errors, places, _IN_FILE).to_csv(index=False),
            f"suspicious-{reading.run.id[:6]}.csv",
            key="suspects_csv",
        )
        st.caption(f"A row that is far off may be an error, or what the model does not know.{more}")
