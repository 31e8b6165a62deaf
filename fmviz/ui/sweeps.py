"""The page Sweeps: define, run, stop and resume grids of fits."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from fmviz.choices import why_not
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.settings import ParamSpec
from fmviz.figures import strength_path
from fmviz.lab.background.task import Task, TaskState, TaskView
from fmviz.lab.background.tasks import manager
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.experiment import Experiment, suggested
from fmviz.lab.search.strength_path import range_of_walks
from fmviz.lab.search.sweep_plan import SweepPlan, sweep_program
from fmviz.lab.search.sweep_run import (
    Fitted,
    carry_out,
    fits_table,
    main_metric,
    means_table,
)
from fmviz.lab.store import store
from fmviz.metrics import COLUMNS, USED_INTERACTIONS
from fmviz.paths import grid
from fmviz.typography import counted, typeset, with_spread
from fmviz.ui import navigation, shell, widgets
from fmviz.ui.charts import curves
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings, Several
from fmviz.ui.starts import START_LABELS, STARTS, draw_thresholds, follow_data
from fmviz.ui.watching import controls, draw_fits

_BASE: dict[str, Any] = {"validation": 0.2, "solver": "auto"}
TABLE = (
    Several(
        "penalties",
        ("l1", "l21", "ti", "cs"),
        tuple(name for name in PENALTIES if why_not(name) is None),
        help="One method per regularizer.",
    ),
    ParamSpec(
        "low",
        "float",
        1e-2,
        1e-12,
        1e6,
        log=True,
        help=r"The smallest $\lambda$ of the grid, in $\lambda\,\Omega(P)$.",
    ),
    ParamSpec("high", "float", 1e1, 1e-12, 1e6, log=True, help=r"The largest $\lambda$ of the grid."),
    ParamSpec("points", "int", 6, 1, 50, help="Number of values, evenly spaced on a log scale."),
    STARTS,
    ParamSpec("seeds", "int", 3, 1, 100, help="Seeds 0, 1, …; each has its own start and split."),
)


# Numeric columns and their formats.
_FORMS = {
    "lambda_sparse": ".3g",
    "mean": ".4g",
    "std": ".2g",
    "interactions": ",.0f",
    "interactions_std": ",.0f",
}


def render() -> None:
    """Draw the page."""
    settings = Settings("sweeps", TABLE, parts=("start", "stop"), expert=("starts",), unread=("seed",))
    linked = settings.read_url()
    with shell.page("Sweeps", settings):
        follow_data(settings, linked, ("low", "high", "points"), partial(_load_range, settings))
        shell.heading(
            settings,
            "Sweeps",
            "Fit many models: methods × strengths × seeds. Results go to the run store; stored fits are not "
            "repeated, and stopped sweeps resume.",
        )
        if not shell.available(settings):
            return
        plan, trouble = None, ""
        try:
            plan = _plan(settings)
        except ValueError as error:
            trouble = str(error)
        task = None if plan is None else manager().get(f"sweep:{_name(plan)}")
        line = (
            f"{widgets.labels_of(settings['penalties'])} · λ from {typeset(settings['low'], 'g')} to "
            f"{typeset(settings['high'], 'g')} · {counted(settings['seeds'], 'seed')}"
        )
        with shell.settings_box("sweeps_box", line, folded=task is not None):
            widgets.regularizers(settings, "penalties")
            labels = {"low": "λ from", "high": "λ to", "points": "λ values", "seeds": "Seeds"}
            if settings["starts"] == "warm":
                del labels["points"]
            for column, (name, label) in zip(st.columns(len(labels)), labels.items(), strict=True):
                widgets.param(settings, name, label, place=column)
            widgets.param(settings, "starts", "Start", labels=START_LABELS)
            draw_thresholds(*(replace(_base(settings), regularizer=name) for name in settings["penalties"]))
        if plan is None:
            st.error(plain(trouble), icon=":material/block:")
        else:
            _run(settings, plan, task)


def _name(plan: SweepPlan) -> str:
    return hashlib.sha256(plan.to_json().encode()).hexdigest()[:12]


def _base(settings: Settings) -> Experiment:
    """Return the settings common to all fits."""
    return replace(suggested(settings["dataset"]), **_BASE)


def _load_range(settings: Settings) -> None:
    low, high = range_of_walks(_base(settings), settings["penalties"])
    settings.set(low=low, high=high)


def _plan(settings: Settings) -> SweepPlan:
    lambdas: Any = {"from": settings["low"], "to": settings["high"], "count": settings["points"]}
    if settings["starts"] == "warm":
        lambdas = list(grid(settings["low"], settings["high"])) or lambdas
    return SweepPlan.from_dict(
        {
            "title": f"Regularizers on {dataset_spec(settings['dataset']).title}",
            "suggested": True,
            "base": _BASE | ({} if settings["starts"] == "random" else {"start": settings["starts"]}),
            "dataset": {"dataset": settings["dataset"]},
            "method": [{"regularizer": name} for name in settings["penalties"]],
            "grid": {"lambda_sparse": lambdas},
            "seeds": settings["seeds"],
        }
    )


def _run(settings: Settings, plan: SweepPlan, task: Task | None) -> None:
    name, total = _name(plan), len(plan.cells)
    row = controls(
        settings,
        task,
        f"Run {counted(total, 'fit')}"
        if task is None or task.state is TaskState.FINISHED
        else f"Go on with {counted(total, 'fit')}",
        lambda: manager().submit(
            f"sweep:{name}",
            lambda should_stop: carry_out(plan, store(), should_stop=should_stop, sweep=name),
        ),
    )
    if task is None:
        st.caption(
            "No fits of this sweep in this session. Press **Run**, or choose an example from **Presets**."
        )
        return
    draw_fits(
        task,
        partial(_draw, settings, plan, name),
        row,
        total=total,
        now=lambda fit: "Fitting.",
        parts=lambda view: 10 * len(view.items) // total,
        end=_stored,
    )


def _stored(view: TaskView) -> str:
    """Return a sentence on the number of fits from the store."""
    n = sum(not fit.fresh for fit in view.items)
    return f" {n:,} of them from the store." if n else ""


def _draw(settings: Settings, plan: SweepPlan, name: str, view: TaskView) -> None:
    fits: list[Fitted] = list(view.items)
    table = fits_table(plan, ((fit.index, fit.run) for fit in fits))
    if failed := [fit.run.message for fit in fits if fit.run.status == "failed"]:
        count = f"{counted(len(failed), 'fit')} failed{'; the first' if len(failed) > 1 else ''}"
        st.warning(f"{count}: {plain(failed[0])}", icon=":material/error:")
    judged = COLUMNS[main_metric(table)]
    means = means_table(table, list(plan.grid), judged.name)
    if means.empty:
        return
    first = means.iloc[0]
    strengths = plan.grid["lambda_sparse"]
    edges = {
        min(strengths): " The smallest λ of the grid: a better one may lie below it.",
        max(strengths): " The largest λ of the grid: a better one may lie above it.",
    }
    edge = edges.get(first["lambda_sparse"], "") if len(edges) > 1 else ""
    st.markdown(
        f"**Best{' so far' if view.state.active else ''}: {plain(first['method'])} at "
        f"λ = {typeset(first['lambda_sparse'])}.**{edge} {judged.label} "
        f"{with_spread(first['mean'], first['std'])}, {first['interactions']:,.0f} interactions; means over "
        f"{counted(first['fits'], 'seed')}."
    )
    st.dataframe(
        means[["method", *_FORMS, "fits"]].style.format(
            {name: partial(typeset, form=form) for name, form in _FORMS.items()}, na_rep="–"
        ),
        hide_index=True,
        key="sweeps_table",
        height=35 * (min(len(means), 6) + 1) + 3,
        column_config={
            "method": "Method",
            "lambda_sparse": "λ",
            "mean": judged.label,
            "std": "± std",
            "interactions": "Interactions",
            "interactions_std": "± std ",
            "fits": "Fits",
        },
    )
    if len(strengths) > 1:
        named = {"method": "label", "mean": judged.name, "interactions": USED_INTERACTIONS.name}
        for column, shown, error in zip(
            st.columns(2), (judged, USED_INTERACTIONS), ("std", None), strict=True
        ):
            figure = strength_path.path(means.rename(columns=named), shown, error=error, height=340)
            if shown is judged and judged.axis == "log" and means["mean"].min() > 0:
                figure.update_yaxes(type="log", minallowed=None, exponentformat="power")
            curves(
                figure,
                key=f"sweeps_{shown.name}",
                alt=f"{shown.label} against λ, one curve per method.",
                live=view.state.active,
                place=column,
            )
        st.caption(
            f"Means over the seeds{'.' if view.state.active else '; bars are one standard deviation.'}"
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        widgets.download(
            "All fits (CSV)", lambda: table.to_csv(index=False), f"sweep-{name}.csv", key="sweeps_csv"
        )
        widgets.download("Sweep (JSON)", plan.to_json, f"sweep-{name}.json", key="sweeps_json")
        navigation.page_link(navigation.RUNS, {"origin": "sweep"}, label="See the runs")
    if not view.state.active:
        widgets.python_block(
            widgets.linked(
                sweep_program(plan),
                f"{plan.title or 'A sweep'}: {len(fits):,} of {len(plan.cells):,} fits",
                data={str(fit.run.settings.get("dataset")): fit.run.data_hash for fit in fits},
            ),
            "Runs all fits and prints the table above.",
        )
