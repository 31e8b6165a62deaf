"""The result of a λ-path: curves, one fit of them, the table and the program."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from fmviz.engine.penalties import PENALTIES
from fmviz.figures import strength_path as figures
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.comparison import LOWER_IS_BETTER
from fmviz.lab.runner import load_dataset
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.search.strength_path import (
    PathFit,
    PathPlan,
    metrics_in,
    path_program,
    path_table,
)
from fmviz.ui import arena, navigation, widgets
from fmviz.ui.charts import chart, curves
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings
from fmviz.ui.train.settings import train_query
from fmviz.ui.watching import failure, pace

_HEIGHT = 300


def draw(settings: Settings, plan: PathPlan, view: TaskView) -> None:
    """Draw how far a path is, its curves, one of its fits, and what can be taken away."""
    fits: list[PathFit] = list(view.items)
    live = view.state.active
    if live:
        words = "Preparing the data."
        if fits:
            last = fits[-1].experiment
            words = (
                f"{PENALTIES[last.regularizer].label} at λ = {last.lambda_sparse:.4g} uses "
                f"{fits[-1].values['used_interactions']:,} interactions."
            )
        done = f"{len(fits):,} of {plan.total:,} fits in {pace(view, len(fits), plan.total)}. {words}"
        st.progress(min(len(fits) / plan.total, 1.0), text=done)
    elif view.state is TaskState.FAILED:
        failure(view)
        st.caption("Change the setting that the sentence names, then press Run.")
    else:
        stopped = "Stopped: " if view.state is TaskState.STOPPED else ""
        st.caption(f"{stopped}{len(fits):,} of {plan.total:,} fits in {view.elapsed:.1f} s.")
    if not fits:
        return
    table = path_table(fits)
    metrics = metrics_in(table)
    d = load_dataset(plan.base.dataset, **dict(plan.base.dataset_params)).X.shape[1]
    if settings["metric"] not in metrics:
        settings.set(metric=next(iter(metrics)))
    with st.container(horizontal=True, vertical_alignment="bottom", key="path_view"):
        with st.container(width=240):
            widgets.control(
                settings,
                "metric",
                st.selectbox,
                "Judged by",
                list(metrics),
                format_func=metrics.__getitem__,
            )
        with st.container(width="content"):
            widgets.param(settings, "counts", "Counts", labels={"linear": "Linear", "log": "Logarithmic"})
    picked = None if live else _picked(settings, table)
    if settings.shows("charts", "Curves"):
        _charts(settings, plan, table, metrics, d, picked, view)
    if picked is not None and settings.shows("fit", "One fit of the path"):
        _point(settings, plan, table, picked, metrics, d)
    if picked is not None and settings.shows("exports", "Table and downloads"):
        _takeaway(plan, table, metrics)


def _charts(
    settings: Settings,
    plan: PathPlan,
    table: pd.DataFrame,
    metrics: dict[str, str],
    d: int,
    picked: pd.Series | None,
    view: TaskView,
) -> None:
    chosen = None if picked is None else (str(picked["regularizer"]), float(picked["lambda_sparse"]))
    live, metric = view.state.active, settings["metric"]
    panels: list[tuple[str, str, str, dict[str, Any]]] = [
        ("used_interactions", "Used interactions", "lambda_sparse", {"total": d * (d - 1) // 2}),
        ("used_features", "Used features", "lambda_sparse", {"total": d}),
        ("objective", "Objective", "lambda_sparse", {}),
        (metric, metrics[metric], "lambda_sparse", {}),
        (metric, metrics[metric], "used_interactions", {}),
    ]
    if "support_f1" in table and metric != "support_f1":
        panels.append(("support_f1", "Support F1", "lambda_sparse", {}))
    elif "support_f1" in table:
        panels.append(("estimation_error", "Estimation error", "lambda_sparse", {}))
    fit = None if chosen is None else _drawable(chosen, view)
    # Beside the curves whose points choose it.
    widths = [1, 1] if fit is None else [3, 3, 2]
    left, right, *rest = st.columns(widths)
    if fit is not None:
        with rest[0]:
            _matrix(plan, fit)
    cells = [left, right, *(cell for _ in range(2, len(panels), 3) for cell in st.columns(3))]
    for cell, (y, title, x, more) in zip(cells, panels, strict=False):
        if y not in table:
            continue
        with cell:
            against = "λ" if x == "lambda_sparse" else "interactions"
            st.markdown(f"**{plain(title)} against {against}**")
            figure = figures.path(
                table,
                y,
                title,
                x=x,  # type: ignore[arg-type]
                chosen=chosen,
                ends=(plan.lambdas[0], plan.lambdas[-1]),
                log_counts=settings["counts"] == "log",
                **more,
            )
            key = f"path_{y}_{x}"
            alt = figures.describe_path(table, y, title, x)  # type: ignore[arg-type]
            if live:
                curves(figure, key=key, alt=alt, live=True)
            else:
                chart(
                    figure,
                    key,
                    alt,
                    on_select=partial(_pick, settings, f"{key}_chart"),
                    selection_mode="points",
                )


def _drawable(chosen: tuple[str, float], view: TaskView) -> PathFit | None:
    """Return a fit of the path, where its matrix can be drawn."""
    for fit in view.items:
        one: Experiment = fit.experiment
        if (one.regularizer, one.lambda_sparse) == chosen and fit.parameters is not None:
            P = fit.parameters.P
            return fit if P.ndim == 2 and P.shape[0] <= EXACT_FEATURES else None
    return None


def _matrix(plan: PathPlan, fit: PathFit) -> None:
    assert fit.parameters is not None, "a fit that can be drawn has parameters"
    dataset = load_dataset(plan.base.dataset, **dict(plan.base.dataset_params))
    name = fit.experiment.regularizer
    st.markdown(f"**The fit at λ = {fit.experiment.lambda_sparse:.4g}**")
    picture = arena.fitted(fit.parameters.P, "", dataset, compared=True)
    arena.draw_panels({name: [picture]}, dataset, "path_matrix", _HEIGHT)


def _pick(settings: Settings, key: str) -> None:
    """Show the fit whose point was clicked."""
    points = st.session_state[key]["selection"]["points"]
    for point in points:
        told = point.get("customdata")
        if told:
            settings.set(who=told[0], at=float(told[1]))
            return


def best_row(rows: pd.DataFrame, metric: str) -> pd.Series:
    """Return the row with the best metric, the sparsest of equals; the first where there is none."""
    known = rows.dropna(subset=[metric])
    if known.empty:
        return rows.iloc[0]
    value = known[metric].min() if metric.endswith(LOWER_IS_BETTER) else known[metric].max()
    return known[known[metric] == value].iloc[-1]


def _picked(settings: Settings, table: pd.DataFrame) -> pd.Series:
    """Return the fit that is to be shown."""
    names = list(dict.fromkeys(table["regularizer"]))
    if settings["who"] not in names:
        settings.set(who=names[0])
    rows = table[table["regularizer"] == settings["who"]]
    if not settings["at"]:
        return best_row(rows, settings["metric"])
    place = (rows["lambda_sparse"] / settings["at"]).map(math.log).abs().idxmin()
    if rows.loc[place, "lambda_sparse"] != settings["at"]:
        settings.set(at=float(rows.loc[place, "lambda_sparse"]))
    return rows.loc[place]


def _point(
    settings: Settings,
    plan: PathPlan,
    table: pd.DataFrame,
    picked: pd.Series,
    metrics: dict[str, str],
    d: int,
) -> None:
    st.subheader("One fit of the path")
    names = list(dict.fromkeys(table["regularizer"]))
    rows = table[table["regularizer"] == settings["who"]]
    with st.container(border=True, key="path_point"):
        with st.container(horizontal=True, vertical_alignment="top", gap="large"):
            with st.container(width="content"):
                widgets.control(
                    settings,
                    "who",
                    st.segmented_control,
                    "Regularizer Ω",
                    names,
                    format_func=lambda name: PENALTIES[name].label,
                    required=True,
                )
            widgets.control(
                settings,
                "at",
                st.select_slider,
                r"Strength $\lambda$",
                [0.0, *rows["lambda_sparse"]],
                format_func=lambda value: f"{value:g}" if value else "Best",
            )
        experiment = replace(plan.method(settings["who"]), lambda_sparse=float(picked["lambda_sparse"]))
        metric = settings["metric"]
        cells = (
            ("λ", f"{picked['lambda_sparse']:.4g}", "The strength of the sparsity regularizer Ω."),
            (
                "Interactions",
                f"{picked['used_interactions']:,}",
                f"Used interactions, of {d * (d - 1) // 2:,}; counted exactly.",
            ),
            ("Features", f"{picked['used_features']:,}", f"Used features, of {d:,}."),
            ("Objective", f"{picked['objective']:.5g}", "Loss and penalties, the sum that is minimised."),
            (metrics[metric], f"{picked[metric]:.5g}", "What the fit is judged by, see above."),
            ("Epochs", f"{picked['epochs']:,}", f"The fit ended as {plain(picked['status'])}."),
        )
        with st.container(horizontal=True, gap="small", key="path_numbers"):
            for label, value, words in cells:
                st.metric(plain(label), value, help=plain(words), width=132)
            widgets.certificate_badge(float(picked["certificate"]), 1e-3)
        with st.container(horizontal=True, vertical_alignment="center"):
            navigation.page_link(
                navigation.TRAIN,
                train_query(experiment),
                label="**Open in Train**",
            )
            st.caption(_train_words(plan, picked))


def _train_words(plan: PathPlan, picked: pd.Series) -> str:
    if plan.order == "cold":
        return "The same settings, start and seed: the run ends with these numbers."
    if plan.order == "onwards":
        return (
            "The same settings. The run makes a start of its own, not at a neighbour of the path, and may "
            "end elsewhere: the objective of a factorization machine has many stationary points."
        )
    return (
        "The same settings. The run begins at the start that the seed draws, not at a neighbour of the path, "
        "and may end elsewhere: the objective of a factorization machine has many stationary points."
    )


def _takeaway(plan: PathPlan, table: pd.DataFrame, metrics: dict[str, str]) -> None:
    st.subheader("Take it with you")
    shown = ["label", "lambda_sparse", "used_interactions", "used_features", "objective"]
    shown += [*metrics, "epochs", "certificate", "status"]
    number = st.column_config.NumberColumn
    st.dataframe(
        table[shown],
        hide_index=True,
        height=280,
        key="path_table",
        column_config={
            "label": st.column_config.TextColumn("Regularizer", width="small"),
            "lambda_sparse": number("λ", format="%.4g", width="small"),
            "used_interactions": number("Interactions", format="localized", width="small"),
            "used_features": number("Features", format="localized", width="small"),
            "objective": number("Objective", format="%.6g", width="small"),
            **{name: number(words, format="%.5g") for name, words in metrics.items()},
            "epochs": number("Epochs", format="localized", width="small"),
            "certificate": number("Certificate", format="%.1e", width="small"),
            "status": st.column_config.TextColumn("Ended", width="small"),
        },
    )
    widgets.download(
        "The path (CSV)",
        lambda: table.drop(columns="label").to_csv(index=False),
        f"path-{plan.base.dataset}-seed{plan.base.seed}.csv",
        key="path_csv",
        help="One row a fit, all figures in full precision.",
    )
    dataset = load_dataset(plan.base.dataset, **dict(plan.base.dataset_params))
    source = widgets.linked(
        path_program(plan),
        f"Paths of {', '.join(plan.regularizers)} on {plan.base.dataset}, seed {plan.base.seed}",
        data={plan.base.dataset: data_hash(dataset)},
    )
    widgets.python_block(source, "Makes the same fits and prints the same counts.")
