"""The page Runs: find, open, compare, export and delete stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

import numpy as np
import streamlit as st

from fmviz.engine.penalties import ALL_PENALTIES
from fmviz.lab.datasets import DATASETS
from fmviz.lab.runs.program import program
from fmviz.lab.store import BROKEN, INTERRUPTED, RunStore, StoredRun, store
from fmviz.lab.store.archive import export_runs
from fmviz.lab.store.table import label_of, runs_table, title_of_run
from fmviz.lab.values import to_query
from fmviz.report import html, of_stored
from fmviz.typography import cell, counted
from fmviz.ui import navigation, shell, widgets
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings, Several, Text

SHOWN = 500
_NAMED = 5
_ORIGINS = {"page": "Train page", "sweep": "Sweep", "command": "Command line", "python": "Python"}
_STATUS = {
    "converged": "✓ converged",
    "epochs": "◷ epoch limit",
    "seconds": "◷ time limit",
    "stalled": "◌ stalled",
    "rank": "◷ rank limit",
    "stopped": "■ stopped",
    "diverged": "↗ diverged",
    "failed": "✕ failed",
    "running": "▶ running",
    "paused": "‖ paused",
    "interrupted": "⚡ interrupted",
    "broken": "✕ damaged",
}
TABLE = (
    Several("data", (), tuple(DATASETS), help="Filter by data set; empty for all."),
    Several("penalty", (), tuple(ALL_PENALTIES), help="Filter by regularizer; empty for all."),
    Several("origin", (), tuple(_ORIGINS), help="Filter by origin; empty for all."),
    Text("find", help="Text in the title, the settings or the message."),
)
_TOLD = "fmviz:runs:told"


def render() -> None:
    """Draw the page."""
    with shell.page("Runs", Settings("runs", TABLE, unread=("dataset", "seed"))) as settings:
        shell.heading(
            settings,
            "Runs",
            "All runs with settings, curves and parameters, including failed and interrupted ones. "
            "Select rows to open, compare, export or delete.",
        )
        runs = store()
        if (sentence := st.session_state.pop(_TOLD, None)) is not None:
            st.success(plain(sentence), icon=":material/check:")
        with st.container(horizontal=True, vertical_alignment="bottom", key="runs_filters"):
            widgets.control(
                settings,
                "find",
                st.text_input,
                "Find",
                placeholder="title, setting, message",
                icon=":material/search:",
            )
            for name, label, words in (
                ("data", "Data set", {name: spec.title for name, spec in DATASETS.items()}),
                ("penalty", "Regularizer", {name: spec.label for name, spec in ALL_PENALTIES.items()}),
                ("origin", "Started from", _ORIGINS),
            ):
                widgets.several(settings, name, label, labels=words, menu=True)
        _history(settings, runs)


def _history(settings: Settings, runs: RunStore) -> None:
    listed = runs.runs(
        dataset=settings["data"],
        regularizer=settings["penalty"],
        origin=settings["origin"],
        text=settings["find"],
        limit=SHOWN + 1,
    )
    if not listed:
        _empty(settings)
        return
    if len(listed) > SHOWN:
        listed = listed[:SHOWN]
        st.caption(f"Showing the newest {SHOWN} runs; use the filters to narrow the list.")
    else:
        # The table's toolbar floats here and would cover the filters.
        st.caption(f"{counted(len(listed), 'run')}.")
    picked = _table(listed)
    _actions(runs, picked)
    if len(picked) == 1:
        _draw_run(runs, picked[0])


def _table(listed: Sequence[StoredRun]) -> list[StoredRun]:
    frame = runs_table(listed)
    # In the server's local time, as on the page Papers.
    frame["when"] = [datetime.fromtimestamp(run.created) for run in listed]
    frame["status"] = frame["status"].map(lambda name: _STATUS.get(name, name))
    for name in ("dataset", "regularizer", "model", "solver"):
        frame[name] = [label_of(name, value) if isinstance(value, str) else "" for value in frame[name]]
    frame["run"] = [run.removeprefix(f"{data} · ") for run, data in frame[["run", "dataset"]].values]
    # Two points are no curve.
    curves = [values if len(values) > 2 else [] for values in frame["spark"]]
    frame["spark"] = [np.log10(v) if min(v, default=0.0) > 0.0 else v for v in curves]
    shown = [
        *("run", "dataset", "status", "spark", "objective", "interactions", "metric", "when", "features"),
        *("regularizer", "lambda_sparse", "lambda_p", "model", "solver", "rank", "epochs", "seconds"),
    ]
    event = st.dataframe(
        frame[shown].style.format(cell, subset=["objective", "lambda_sparse", "lambda_p"], na_rep="–"),
        hide_index=True,
        selection_mode="multi-row",
        on_select="rerun",
        # A new list starts without a selection.
        key=f"fmviz:runs:table:{hash(tuple(run.id for run in listed))}",
        height=min(35 * (len(listed) + 1) + 3, 460),
        row_height=35,
        column_config={
            "run": st.column_config.TextColumn("Run", width=170),
            "dataset": st.column_config.TextColumn("Data set", width=215),
            "status": st.column_config.TextColumn("Ended", width=110),
            "when": st.column_config.DatetimeColumn("Started", format="YYYY-MM-DD HH:mm", width=135),
            "spark": st.column_config.LineChartColumn(
                "Objective, log scale",
                help="The objective from the first epoch to the last, on a log axis.",
                width=125,
                color="auto-inverse",
            ),
            "objective": st.column_config.NumberColumn("at the end", width=90),
            "interactions": st.column_config.NumberColumn("Interactions", format="localized", width=95),
            "features": st.column_config.NumberColumn("Features", format="localized", width="small"),
            "metric": st.column_config.TextColumn("Quality", width=190),
            "regularizer": st.column_config.TextColumn("Regularizer", width="small"),
            "lambda_sparse": st.column_config.NumberColumn("λ", width="small"),
            "lambda_p": st.column_config.NumberColumn("λ_p", width="small"),
            "model": st.column_config.TextColumn("Model", width="small"),
            "solver": st.column_config.TextColumn("Solver", width="small"),
            "rank": st.column_config.NumberColumn("Rank", width="small"),
            "epochs": st.column_config.NumberColumn("Epochs", format="localized", width="small"),
            "seconds": st.column_config.NumberColumn("Solver s", format="%.2f", width="small"),
        },
    )
    return [listed[i] for i in event["selection"]["rows"] if i < len(listed)]


def _actions(runs: RunStore, picked: list[StoredRun]) -> None:
    sound = [run.id for run in picked if run.status != BROKEN]
    single = picked[0] if len(picked) == 1 else None
    with st.container(horizontal=True, vertical_alignment="center", key="runs_actions"):
        if single is not None and sound:
            navigation.page_link(
                navigation.TRAIN,
                _link(single),
                label="Resume in Train" if single.status == INTERRUPTED else "Open in Train",
                icon=":material/open_in_new:",
                help="The finished run; an interrupted run resumes from its last save.",
            )
            if single.ended and single.last:
                navigation.page_link(
                    navigation.INTERACTIONS, {"run": single.id}, label="Interactions explained"
                )
        elif len(sound) > 1:
            navigation.page_link(navigation.COMPARE, {"runs": ",".join(sound)}, label=f"Compare {len(sound)}")
        elif not picked:
            st.caption("Select one row to open, two or more to compare.", width="content")
        st.download_button(
            "Export",
            data=lambda: export_runs(runs, sound),
            file_name=f"fmviz-{len(sound)}-runs.zip",
            mime="application/zip",
            icon=":material/download:",
            key="runs_export",
            disabled=not sound,
            on_click="ignore",
            help="Settings, curves and parameters in one file, for `fmviz runs import`.",
        )
        ended = [run for run in picked if run.ended]
        if not ended:
            st.button("Delete", icon=":material/delete:", key="runs_delete", disabled=True)
            return
        names = ", ".join(f"**{plain(title_of_run(run))}**" for run in ended[:_NAMED])
        more = f" and {len(ended) - _NAMED} more" if len(ended) > _NAMED else ""
        widgets.confirm_delete(
            "runs_delete",
            f"Deletes {names}{more} with settings, curves and parameters.",
            partial(_delete, runs, [run.id for run in picked]),
        )


def _link(run: StoredRun) -> dict[str, str]:
    """Return the query that opens a run on the training page."""
    try:
        return {**run.experiment.to_query(), "run": run.id}
    except ValueError:
        return {"run": run.id}


def _delete(runs: RunStore, ids: list[str]) -> None:
    st.session_state[_TOLD] = f"{counted(runs.delete(ids), 'run')} deleted."


def _draw_run(runs: RunStore, run: StoredRun) -> None:
    with st.container(border=True, key="runs_one"):
        st.markdown(f"**{plain(title_of_run(run))}** · {plain(run.id)}")
        st.markdown(plain(run.message))
        if run.status == BROKEN:
            return
        if run.details:
            with st.expander("Details", icon=":material/info:"):
                st.code(run.details, language=None, wrap_lines=True)
        key = f"fmviz:runs:title:{run.id}"
        st.text_input(
            "Title",
            value=run.title,
            key=key,
            max_chars=200,
            on_change=lambda: runs.rename(run.id, str(st.session_state[key])),
            width=420,
        )
        libraries = ", ".join(f"{name} {value}" for name, value in run.versions.items())
        st.caption(plain(f"Data {run.data_hash or 'not loaded'} · {libraries or 'versions unknown'}"))
        try:
            experiment = run.experiment
        except ValueError as error:
            st.warning(plain(error), icon=":material/history:")
            return
        halted = run.status in ("stopped", "paused", INTERRUPTED)
        source = widgets.linked(
            program(experiment, run.epoch if halted else None),
            f"{title_of_run(run)}: {run.message}",
            data={experiment.dataset.name: run.data_hash} if run.data_hash else {},
            versions=run.versions,
        )
        widgets.save_page("runs_report", lambda: html(of_stored(run, runs, source)), f"run-{run.id}")
        widgets.python_block(source)


def _empty(settings: Settings) -> None:
    with st.container(border=True, key="runs_empty"):
        if any(settings[name] for name in ("data", "penalty", "origin", "find")):
            st.markdown("No run matches the filters.")
            st.button(
                "Show all runs", icon=":material/filter_alt_off:", key="runs_all", on_click=settings.reset
            )
            return
        st.markdown("No runs yet. Train a model, or try the example:")
        name = "planted_interactions"
        navigation.page_link(
            navigation.TRAIN,
            to_query({"dataset": name, "seed": 0, **DATASETS[name].suggested, "play": True}),
            label="Train the example",
            icon=":material/play_circle:",
        )
