"""The page Interactions: columns, pairs, the matrix W, a single prediction and outliers of a stored run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.lab.background.tasks import manager
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.experiment import suggested
from fmviz.lab.interpretation.outliers import LISTED, Suspicion, rows_table, suspicious_rows
from fmviz.lab.runs.program import program
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.store import RunStore, StoredRun, store
from fmviz.lab.store.table import title_of_run
from fmviz.metrics import COLUMNS, in_units, listed
from fmviz.report import html, of_stored
from fmviz.ui import navigation, shell, widgets
from fmviz.ui.escape import plain
from fmviz.ui.interactions import columns, pairs, row
from fmviz.ui.interactions.opened import Opened, in_background, latest_findings, opened
from fmviz.ui.settings.state import Settings, Text
from fmviz.ui.train.settings import train_query
from fmviz.ui.widgets import OUTPUT, choose_output

OFFERED = 100
_VIEWS = {
    # The name of this view in older links.
    "attributes": "Columns",
    "pairs": "Pairs of features",
    "matrix": "Matrix",
    "row": "One row",
    "suspects": "Wrong rows",
}
TABLE = (
    Text("run", limit=40, help="Id of the run."),
    ParamSpec("view", "choice", "attributes", choices=tuple(_VIEWS), help="View of the model."),
    OUTPUT,
    *pairs.TABLE,
    *columns.TABLE,
    *row.TABLE,
)
# Settings that are reset when another run is chosen.
_OWN = ("output", "find", "pair", "row", "change", "seek")
# Maximum number of attributes in the table and in the file.
_COLUMNS, _IN_FILE = 24, 200


def render() -> None:
    """Draw the page."""
    bound = Settings("interactions", TABLE, unread=("dataset", "seed"))
    with shell.page("Interactions", bound) as settings:
        shell.heading(
            settings,
            "Interactions",
            "Inspect a trained model: which features interact, how strongly and in which unit, and the terms "
            "of a single prediction.",
        )
        runs = store()
        run = _pick(settings, runs)
        job = manager().job(settings["run"])
        if job is not None and job.state.active:
            st.info("This run is still training. Its interactions appear when it ends.")
            train = {**job.experiment.to_query(), "run": job.id}
            navigation.page_link(navigation.TRAIN, train, label="Watch it in Train")
        elif run is None:
            _empty(settings)
        else:
            _read(settings, runs, run)


def _pick(settings: Settings, runs: RunStore) -> StoredRun | None:
    """Draw the menu of runs; return the chosen run if it is in the store."""
    known = {run.id: run for run in runs.runs(limit=OFFERED) if run.ended and run.last}
    wanted = settings["run"]
    known |= {run.id: run for run in runs.get_many([wanted]) if run.last}
    missing, trained = wanted and wanted not in known, manager().job(wanted) is not None
    if missing and not trained:
        st.warning(
            f"The run {plain(wanted)} of this link is not in this store. Choose another run, or import it "
            "with `fmviz runs import`.",
            icon=":material/link_off:",
        )
    if not known or (missing and trained):
        return None
    # The menu lists the run of the link even if it is unknown.
    names = {} if wanted in known else {wanted: f"{wanted} (not here)", "": "Choose a run"}
    names |= {run: f"{title_of_run(stored)} ({run[:4]})" for run, stored in known.items()}
    widgets.control(
        settings,
        "run",
        st.selectbox,
        "Run",
        list(names),
        format_func=names.__getitem__,
        help=f"The newest {OFFERED}; the Runs page lists all.",
        width=560,
        then=lambda: settings.reset(*_OWN),
    )
    return known.get(settings["run"])


def _read(settings: Settings, runs: RunStore, run: StoredRun) -> None:
    try:
        reading = opened(run.id, run.updated, str(runs.path), runs, settings["output"])
    except ValueError as error:
        st.error(plain(error), icon=":material/error:")
        st.button(
            "Choose another run",
            icon=":material/undo:",
            key="interactions_other",
            on_click=settings.set,
            kwargs={"run": ""},
        )
        return
    _header(reading, settings["strengths"])
    choose_output(settings, reading.full_dataset)
    views = [view for view in _VIEWS if reading.by_columns or view != "attributes"]
    if settings["view"] not in views:
        settings.set(view="pairs")
    widgets.control(
        settings,
        "view",
        st.segmented_control,
        "Read it by",
        views,
        format_func=_VIEWS.__getitem__,
        required=True,
    )
    draw = {
        "attributes": partial(columns.draw, settings),
        "pairs": partial(pairs.draw, settings),
        "matrix": partial(columns.draw_matrix, settings) if reading.by_columns else pairs.draw_matrix,
        "row": partial(row.draw, settings),
        "suspects": _draw_suspects,
    }
    draw[settings["view"]](reading)


def _header(reading: Opened, strengths: str) -> None:
    run, dataset, wording = reading.run, reading.dataset, reading.wording
    what = (
        f"f is {wording.what}" if wording.binary or wording.log_link else f"f predicts {dataset.target_name}"
    )
    if wording.scale != 1.0:
        what += ", and effects are in its unit"
    used = [run.last.get(f"used_{name}", 0) for name in ("interactions", "features")]
    figures = [f"{used[0]:,} interactions of {used[1]:,} features"]
    # The primary metric of predictions, and the metric of support recovery.
    telling = {COLUMNS[name].on_rows: name for name in reversed(listed(run.last))}
    values = in_units({name: run.last[name] for name in telling.values()}, dataset.unit)
    figures += [
        plain(f"{label}{reading.full_dataset.contrast if label.startswith('AUC') else ''} {value:.4g}")
        for label, value in values.items()
    ]
    with st.container(horizontal=True, vertical_alignment="center", key="interactions_header"):
        st.markdown(
            f"**{plain(dataset.title)}**, {reading.experiment.model.label.lower()}: {plain(what)}. "
            f"{' · '.join(figures)}.",
            width="content",
        )
        navigation.page_link(
            navigation.TRAIN,
            {**reading.experiment.to_query(), "run": run.id},
            label="Open in Train",
            icon=":material/open_in_new:",
        )
        source = widgets.linked(program(reading.experiment), plain(title_of_run(run)))

        def page() -> str:
            findings = [latest_findings(reading, strengths)] if reading.by_columns else []
            return html(replace(of_stored(run, store(), source), findings=findings))

        widgets.save_page("interactions_report", page, f"interactions-{run.id[:6]}")
    if run.data_hash and data_hash(reading.full_dataset) != run.data_hash:
        st.warning(
            "The data set has changed since this run was trained; counts and rows below use the new data. "
            "Train the model again to be safe.",
            icon=":material/sync_problem:",
        )


def _empty(settings: Settings) -> None:
    """Draw a link that trains an example, unless the choice of a run is hidden."""
    if settings.shows("run"):
        name = next(n for n in ("bike", "planted_interactions") if dataset_spec(n).unavailable() is None)
        with st.container(border=True, key="interactions_empty"):
            st.markdown("No run chosen. Open one from *Train* or *Runs*, or train an example:")
            navigation.page_link(
                navigation.TRAIN,
                train_query(suggested(name)),
                label=f"Train on {plain(dataset_spec(name).title)}",
                icon=":material/play_circle:",
            )


# ------------------------------------------------------------------------------------------------ outliers


def _draw_suspects(reading: Opened) -> None:
    """Draw outliers; a run without a capped loss is refitted with one in the background."""
    if reading.model.multi_output:
        st.info(
            "Outliers need a model with one output, or one class against all others.",
            icon=":material/info:",
        )
        return

    def make(should_stop: Callable[[], bool]) -> Iterator[Suspicion]:
        yield suspicious_rows(reading.experiment, reading.parameters, reading.output, should_stop)

    results = in_background(reading, "suspects", make, "Fitting with a capped loss.")
    if not results:
        return
    suspicion = results[-1]
    places, dataset, errors = suspicion.listed, suspicion.dataset, suspicion.errors
    st.markdown(plain(suspicion.message))
    table = rows_table(dataset, errors, places[:LISTED], _COLUMNS)
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
                help="1 − y·f: 0 on the margin, above 1 if the other class is predicted."
                if errors.binary
                else "Prediction minus target.",
            ),
            "wrong in truth": st.column_config.CheckboxColumn("Wrong in truth"),
        },
        alt="Rows with the largest deviations, and their values.",
    )
    more = f" Showing {LISTED} of {places.size:,} rows; the file has all." if places.size > LISTED else ""
    with st.container(horizontal=True, vertical_alignment="center", key="suspects_box"):
        widgets.download(
            "These rows (CSV)",
            lambda: rows_table(dataset, errors, places, _IN_FILE).to_csv(index=False),
            f"suspicious-{reading.run.id[:6]}.csv",
            key="suspects_csv",
        )
        st.caption(f"A large deviation may be a data error, or something the model cannot represent.{more}")
