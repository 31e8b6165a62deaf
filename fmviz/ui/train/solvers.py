"""A panel of the page Train: convergence, optionally compared with other solvers of the same problem."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from fmviz.engine.compatibility import best_solver
from fmviz.engine.solvers import SOLVERS as KNOWN
from fmviz.figures import training as figures
from fmviz.figures.comparison import overlay
from fmviz.lab.background.tasks import TooManyJobsError, manager
from fmviz.lab.experiment import Experiment, name_of
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.store import StoredRun, store
from fmviz.lab.store.lowest import same_problem
from fmviz.ui import session_uploads, widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.train.panels import Scene, TrainPanel
from fmviz.ui.watching import watch

_RIVAL = "fmviz:train:rival"


def _draw(scene: Scene, settings: Settings) -> None:
    """Draw the newest runs of other solvers beside this one, a sentence on F*, and a button for another."""
    view, features = scene.fit, len(scene.data.feature_names)
    now = view.experiment.under(view.experiment.strengths(view.epoch))
    auto = best_solver(now.formulation, features)
    runs: dict[str, StoredRun] = {}
    for run in same_problem(now, data_hash(scene.run.dataset)):  # type: ignore[union-attr, arg-type]
        runs.setdefault(str(run.settings["solver"]).replace("auto", auto), run)
    mine = name_of(now.solver).replace("auto", auto)
    runs.pop(mine, None)
    if runs:
        floors = [(each.after, each.value) for each in scene.lowest]
        course = pd.DataFrame(view.history)
        lines = [(f"{KNOWN[mine].label}, this run", course.assign(gap=figures.gap(course, floors)))]
        for name, run in runs.items():
            course = pd.DataFrame(store().trace(run.id))
            gap = figures.gap(course, [(-1, floors[-1][1])])
            lines.append((f"{KNOWN[name].label}, run {run.id[:4]}", course.assign(gap=gap)))
        drawn = [(name, now.regularizer.name, course) for name, course in lines]
        alt = f"F − F* and certificate of {', '.join(name for name, _ in lines)}."
        chart(overlay(drawn, *figures.CONVERGENCE, x=scene.x), "train_solvers", alt)  # type: ignore[arg-type]
    row = st.container(horizontal=True, vertical_alignment="center")
    row.caption(plain(scene.lowest[-1].sentence), width="content")
    job = manager().job(st.session_state.get(_RIVAL))
    active = job is not None and job.state.active
    if job is not None and active:
        watch(job, lambda view: None, lambda view: (f"{len(view.items):,} epochs of another solver.", None))
    able = [
        name
        for name, solver in KNOWN.items()
        if name not in (mine, *runs)
        and features <= solver.most_features
        and solver.why_not(now.formulation) is None
    ]
    if able:
        with row:
            widgets.action(
                settings,
                "rival",
                "Compare with another solver",
                icon=":material/stacked_line_chart:",
                on_click=_start,
                args=(replace(now, solver=able[0]),),
                disabled=active,
                help=f"Trains the same problem with {KNOWN[able[0]].label}, and draws both curves.",
            )


def _start(experiment: Experiment) -> None:
    browser = session_uploads.owner()
    try:
        job = manager().start(experiment, f"rivals of {browser}", browser=browser)
    except TooManyJobsError as error:
        st.toast(plain(str(error)), icon=":material/hourglass_top:")
    else:
        st.session_state[_RIVAL] = job.id


SOLVERS = TrainPanel("solvers", "Convergence", "curves", lambda scene: scene.drawn, draw=_draw)
