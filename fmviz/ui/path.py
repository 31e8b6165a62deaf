"""The λ-path page: interactions and metrics along λ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from fmviz.engine.penalties import PENALTIES
from fmviz.engine.settings import ParamSpec
from fmviz.figures import strength_path as figures
from fmviz.lab.background.task import TaskState, TaskView
from fmviz.lab.background.tasks import PLANS, manager
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.experiment import SPECS, Experiment, suggested
from fmviz.lab.interpretation.comparison import SHRINKAGE, chosen_words
from fmviz.lab.runner import load_dataset
from fmviz.lab.runs.provenance import data_hash
from fmviz.lab.search.equal_sparsity import matched, suggested_target
from fmviz.lab.search.strength_path import (
    METHODS,
    PathFit,
    PathPlan,
    fit_words,
    metrics_in,
    path_program,
    path_table,
    range_of_walks,
    strengths,
    trace,
)
from fmviz.lab.store.table import SOLVED
from fmviz.metrics import (
    COLUMNS,
    USED_FEATURES,
    USED_INTERACTIONS,
    Metric,
)
from fmviz.paths import accepted_range, grid
from fmviz.stage.pictures import chart_of_figure
from fmviz.typography import counted, typeset
from fmviz.ui import arena, navigation, path_pairs, shell, widgets
from fmviz.ui.charts import chart, curves
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings, Several
from fmviz.ui.starts import draw_thresholds, follow_data
from fmviz.ui.train.settings import train_query
from fmviz.ui.watching import controls, draw_fits, shared_task

_SPECS = {spec.name: spec for spec in SPECS}
_ORDER_WORDS = {"informed": "Informed", "up": "Upwards", "down": "Downwards", "cold": "Cold"}
_ORDER_HELP = {
    "informed": "Upwards on a fixed grid of twelve λ per decade from an informed start; each fit starts at "
    "the solution of the next smaller λ, as in Compare, Sweeps and fmviz.find_lambda.",
    "up": "Each fit starts at the solution of the next smaller λ.",
    "down": "Each fit starts at the solution of the next larger λ. Once P is 0, it stays 0.",
    "cold": "Each fit starts at the random start of the seed, as on the Train page.",
}
_METRICS = tuple(name for name, metric in COLUMNS.items() if metric.function)
_SHARED = ("rank", "lambda_w", "lambda_p")
TABLE: tuple[ParamSpec | Several, ...] = (
    Several("penalties", ("l1", "l21", "ti", "cs"), METHODS, help="One path for each Ω."),
    ParamSpec("low", "float", 1e-3, 1e-12, 1e6, log=True, help="The smallest λ of the path."),
    ParamSpec("high", "float", 1e1, 1e-12, 1e6, log=True, help="The largest λ of the path."),
    ParamSpec("points", "int", 13, 2, 60, help="Values of λ, evenly spaced on a log scale."),
    ParamSpec(
        "order",
        "choice",
        "up",
        choices=tuple(_ORDER_HELP),
        help=" ".join(f"{_ORDER_WORDS[name]}: {words}" for name, words in _ORDER_HELP.items()),
    ),
    *(_SPECS[name] for name in _SHARED),
    replace(_SPECS["validation"], default=0.2),
    ParamSpec(
        "target",
        "int",
        0,
        0,
        1_000_000,
        help="Target number of pairs: each path is read at the weakest λ that leaves about this many; 0: at "
        "its best fit.",
    ),
    ParamSpec("metric", "choice", _METRICS[0], choices=_METRICS, help="Metric that ranks the fits."),
    ParamSpec("who", "choice", "ti", choices=METHODS, help="Regularizer of the fit that is shown."),
    ParamSpec(
        "at",
        "float",
        0.0,
        0.0,
        1e6,
        help="λ of the fit that is shown. Clicking a point of a curve also selects it; by default it "
        "follows Pairs.",
    ),
    ParamSpec("run", "bool", False, help="A link with run=1 computes the path."),
)
_SHOWN = "fmviz:path:shown"
_STYLE = """<style>
[class*="st-key-path_box"] .katex-display {margin: 0; font-size: 0.95em}
[class*="st-key-path_box"] .katex-display > .katex > .katex-html {white-space: normal}
</style>"""


def render() -> None:
    """Draw the page."""
    settings = Settings(
        "path",
        TABLE,
        parts=("path", "suggest", "start", "stop", "charts", "select", "select_stop", "fit", "exports"),
        expert=("order", "lambda_w", "lambda_p", "validation", "suggest"),
    )
    linked = settings.read_url()
    with shell.page("λ-path", settings):
        brought = ("low", "high", "order", "run", *_SHARED)
        follow_data(settings, linked, brought, partial(load_suggested, settings))
        st.html(_STYLE)
        # A visit opens with the path of the default data set, which the server computes once.
        default = settings["dataset"] == settings.table["dataset"].default
        opens = default and settings.brought <= {"level"}
        has_result = opens or _SHOWN in st.session_state or (settings["run"] and not settings.notices)
        shell.heading(
            settings,
            "λ-path",
            "The strength λ controls how many interactions a model uses. Fit models at many λ for several "
            "regularizers Ω, and compare interactions and error.",
            folded=has_result,
        )
        if not shell.available(settings):
            return
        base = base_of(settings)
        if settings.shows("path", "The path"):
            _declare(settings, base, folded=has_result)
            try:
                plan = _plan(settings, base)
            except ValueError as error:
                st.error(plain(error), icon=":material/block:")
            else:
                _path(settings, plan, linked, opens)


def base_of(settings: Settings) -> Experiment:
    """Return the experiment common to all fits: the settings, else the suggestions for the data set."""
    suggestions = suggested(settings["dataset"], "fm").to_dict()
    values = {name: suggestions[name] for name in _SPECS if name in suggestions} | {
        "regularizer": "ti",
        "solver": "auto",
        "lambda_sparse": 1.0,
        "start": "warm" if settings["order"] == "informed" else "random",
    }
    return Experiment.from_dict(values | settings.as_dict(*_SHARED, "validation", "dataset", "seed"))


def load_suggested(settings: Settings) -> None:
    """Load the suggested settings of the chosen data set."""
    values = suggested(settings["dataset"], "fm").to_dict()
    settings.set(**{name: values[name] for name in _SHARED})
    settings.set(order="informed", target=suggested_target(load_dataset(settings["dataset"])))
    low, high = range_of_walks(base_of(settings), settings["penalties"])
    settings.set(low=low, high=high)


# ---------------------------------------------------------------------------------------------- settings


def _declare(settings: Settings, base: Experiment, *, folded: bool) -> None:
    line = (
        f"{widgets.labels_of(settings['penalties'])} · λ from {typeset(settings['low'])} to "
        f"{typeset(settings['high'])} · rank {settings['rank']:,}"
    )
    with shell.settings_box("path_box", line, folded=folded):
        with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
            widgets.regularizers(settings, "penalties", place=st.container(width="content"))
            widgets.param(
                settings, "order", "Start of fits", labels=_ORDER_WORDS, place=st.container(width="content")
            )
        first, second = st.columns([3, 4], gap="medium")
        with first:
            left, right = st.columns(2)
            widgets.scale(settings, "low", r"$\lambda$ from", steps=(1, 3), place=left)
            widgets.scale(settings, "high", r"$\lambda$ to", steps=(1, 3), place=right)
            draw_thresholds(*(replace(base, regularizer=name) for name in settings["penalties"]))
            if settings["order"] != "informed":
                widgets.param(settings, "points", r"$\lambda$ values", style="slider")
        with second:
            left, right = st.columns(2)
            widgets.param(settings, "rank", "Rank $k$", style="number", place=left)
            widgets.scale(settings, "lambda_w", r"Strength $\lambda_w$", place=left)
            widgets.param(settings, "validation", "Validation share", style="slider", place=right)
            widgets.scale(settings, "lambda_p", r"Strength $\lambda_p$", place=right)
        if settings["level"] == "expert":
            _explain(settings, base)
        widgets.suggest(settings, load_suggested, "Load the suggested range and settings for this data set.")


def _explain(settings: Settings, base: Experiment) -> None:
    """Draw the objective and the settings common to all fits."""
    st.latex(r"\tfrac1N\sum_n \ell(f(x_n),y_n)+\lambda_w\|w\|^2+\lambda_p\|P\|_F^2+\lambda\,\Omega(P)")
    terms = [*(["a linear term"] if base.fit_linear else []), *(["a bias"] if base.fit_intercept else [])]
    loss, title = base.loss.label.lower(), plain(base.dataset.spec.title)
    st.caption(
        f"{_ORDER_HELP[settings['order']]} As suggested for {title}: {loss} loss, "
        f"{' and '.join(terms) or 'neither linear term nor bias'}, start N(0, {base.init_scale:g}²), at "
        f"most {base.max_epochs:,} epochs, tolerance {base.tol:g}. The solver is the default for the "
        "regularizer."
    )


def _plan(settings: Settings, base: Experiment) -> PathPlan:
    low, high, order = (settings[name] for name in ("low", "high", "order"))
    lambdas = strengths(low, high, settings["points"])
    if order == "informed":
        lambdas, order = grid(low, high) or lambdas, "up"
    plan = PathPlan(base, settings["penalties"], lambdas, order)
    for name in plan.regularizers:
        plan.method(name)
    return plan


# ------------------------------------------------------------------------------------------------ the run


def _start(settings: Settings, **changes: Any) -> None:
    """Compute the path of the current settings with some changes; reuse finished fits of the last path."""
    settings.set(**changes, run=True)
    plan, before = _plan(settings, base_of(settings)), st.session_state.get(_SHOWN)
    known = () if before is None else plan.known(before[0], before[1].view().items)
    st.session_state[_SHOWN] = (
        plan,
        manager().submit(f"path:{plan.digest}", partial(trace, plan, known=known), PLANS),
    )


def _path(settings: Settings, plan: PathPlan, linked: bool, opens: bool) -> None:
    # The session keeps the task longer than the server's list; another session may have started it.
    shown, there = st.session_state.get(_SHOWN), manager().get(f"path:{plan.digest}")
    if settings["run"] and there is not None and (there.state.active or there.state is TaskState.FINISHED):
        if shown is None or shown[1] is not there:
            st.session_state[_SHOWN] = plan, there
    elif (
        settings["run"]
        and linked
        and not settings.notices
        and plan.total
        and (shown is None or shown[0] != plan)
    ):
        _start(settings)
    elif shown is None and plan.total and (opens or (there and there.state is TaskState.FINISHED)):
        st.session_state[_SHOWN] = plan, shared_task(f"path:{plan.digest}", partial(trace, plan), queue=PLANS)
    shown = st.session_state.get(_SHOWN)
    task = None if shown is None else shown[1]
    active = task is not None and task.state.active
    stale = shown is not None and shown[0] != plan
    row = controls(
        settings,
        task,
        f"Run {counted(plan.total, 'fit')}" if task is None or stale else "Run again",
        partial(_start, settings),
        disabled=not plan.total or (active and not stale),
    )
    if not plan.total:
        st.info("Choose at least one regularizer above.", icon=":material/touch_app:")
    if shown is None:
        st.caption("No path yet. Press **Run**, or choose an example from **Presets**.")
        return
    if stale:
        st.warning(
            "Settings changed since this path was computed. Press **Run** to update it; unchanged paths "
            "are reused.",
            icon=":material/sync_problem:",
        )
    draw_fits(
        shown[1],
        partial(_draw_result, settings, shown[0], row),
        row,
        total=shown[0].total,
        now=fit_words,
        parts=lambda view: len({fit.experiment.regularizer for fit in view.items}),
    )


# -------------------------------------------------------------------------------------------------- result


def _draw_result(settings: Settings, plan: PathPlan, row: DeltaGenerator, view: TaskView) -> None:
    """Draw the curves of a path, one of its fits, and downloads."""
    table = path_table(view.items)
    metrics = metrics_in(table)
    dataset, wanted = load_dataset(plan.base.dataset), settings["target"]
    names = list(dict.fromkeys(table["regularizer"]))
    if settings["who"] not in names:
        settings.set(who=names[0])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        widgets.param(
            settings,
            "target",
            "Pairs",
            style="number",
            most=math.comb(dataset.X.shape[1], 2),
            then=lambda: settings.set(at=0.0),
            place=st.container(width=130),
        )
        metric = widgets.choose_metric(settings, "metric", "Judged by", list(metrics), width=220)
        if not view.state.active and settings.shows("fit", "One fit of the path"):
            widgets.control(
                settings,
                "who",
                st.segmented_control,
                "Regularizer Ω",
                names,
                format_func=lambda name: PENALTIES[name].label,
                required=True,
                place=st.container(width="content"),
            )
            widgets.control(
                settings,
                "at",
                st.select_slider,
                r"Strength $\lambda$",
                [0.0, *table["lambda_sparse"][table["regularizer"] == settings["who"]]],
                format_func=lambda value: (
                    f"{value:g}" if value else f"{wanted:,} pairs" if wanted else "Best"
                ),
            )
    sought = matched(table, ["regularizer"], wanted, metric.name) if wanted else _best(table, metric)
    picked = None if view.state.active else _picked(settings, table, sought)
    if wanted:
        st.markdown(plain(chosen_words(sought, metric, accepted_range(wanted))))
        st.caption(f"{SHRINKAGE} The page Compare computes them.")
    else:
        each = [
            f"{r['label']} {r['used_interactions']:,} ({r[metric.name]:.3g})" for _, r in sought.iterrows()
        ]
        st.markdown(plain(f"Pairs at the best {metric.label}: {' · '.join(each)}."))
    if picked is not None and wanted:
        with row:
            navigation.page_link(
                navigation.COMPARE,
                settings.link(dataset=settings["dataset"], seed=settings["seed"])
                | {"fighters": ",".join(plan.regularizers), "target": str(wanted), "seeds": "3"},
                label="Over three seeds",
                help="Compare applies the same rule on three seeds and refits.",
            )
    if settings.shows("charts", "Curves"):
        _charts(settings, plan, table, metric, picked, sought if wanted else None, view)
    if picked is not None and settings.shows("fit", "One fit of the path"):
        _point(plan, picked, metric, view)
    if picked is not None and settings.shows("exports", "Table and downloads"):
        _takeaway(plan, table, metrics)
        widgets.save_page(
            "path_page",
            partial(_page, plan, view, table, metric, picked["lambda_sparse"]),
            f"path-{plan.base.dataset}",
        )


def _page(plan: PathPlan, view: TaskView, table: pd.DataFrame, metric: Metric, strength: float) -> str:
    """Return the path as a page: its curves and, where possible, matrices."""
    drawable = all(map(_drawable, view.items))
    return arena.page(
        "along λ",
        plan.base,
        arena.models_along(plan, view, plan.lambdas) if drawable else dict.fromkeys(plan.regularizers, ()),
        start=plan.lambdas.index(strength),
        charts=[
            chart_of_figure(shown.label, figures.path(table, shown))
            for shown in (USED_INTERACTIONS, USED_FEATURES, metric)
        ],
        program=path_program(plan),
    )


def _drawable(fit: PathFit) -> bool:
    own = fit.parameters
    return own is not None and own.P.ndim == 2 and len(own.P) <= EXACT_FEATURES


def _charts(
    settings: Settings,
    plan: PathPlan,
    table: pd.DataFrame,
    metric: Metric,
    picked: pd.Series | None,
    sought: pd.DataFrame | None,
    view: TaskView,
) -> None:
    chosen = None if picked is None else (str(picked["regularizer"]), float(picked["lambda_sparse"]))
    figure = figures.path(
        table,
        metric,
        x="used_interactions",
        chosen=chosen,
        mark=settings["target"] or None,
        matched=sought,
        height=300,
    )
    key, alt = (
        f"path_{metric.name}_used_interactions",
        figures.describe_path(table, metric, "used_interactions"),
    )
    if view.state.active:
        curves(figure, key=key, alt=alt, live=True)
    else:
        chart(
            figure,
            key,
            alt,
            on_select=partial(_pick, settings, f"{key}_chart"),
            selection_mode="points",
        )
    if chosen is not None and all(map(_drawable, view.items)):
        band = None
        if sought is not None:
            own = sought[(sought["regularizer"] == chosen[0]) & ~sought["nearest"]]
            band = next(zip(own["λ"], own["strongest"], strict=True), None)
        path_pairs.draw(settings, plan, view, *chosen, band)


def _pick(settings: Settings, key: str) -> None:
    """Show the fit of the clicked point."""
    for point in st.session_state[key]["selection"]["points"]:
        if data := point.get("customdata"):
            settings.set(who=data[0], at=float(data[1]))
            return


def _best(table: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """Return the best and sparsest fit of every path."""
    ordered = table.sort_values(
        metric.name, ascending=metric.better == "larger", kind="stable", na_position="first"
    ).iloc[::-1]
    return ordered.drop_duplicates("regularizer").sort_index()


def _picked(settings: Settings, table: pd.DataFrame, sought: pd.DataFrame) -> pd.Series:
    """Return the chosen fit."""
    rows = table[table["regularizer"] == settings["who"]]
    if not settings["at"]:
        return sought[sought["regularizer"] == settings["who"]].iloc[0]
    place = (rows["lambda_sparse"] / settings["at"]).map(math.log).abs().idxmin()
    if rows.loc[place, "lambda_sparse"] != settings["at"]:
        settings.set(at=float(rows.loc[place, "lambda_sparse"]))
    return rows.loc[place]


def _point(plan: PathPlan, row: pd.Series, metric: Metric, view: TaskView) -> None:
    name = str(row["regularizer"])
    experiment = replace(plan.method(name), lambda_sparse=float(row["lambda_sparse"]))
    dataset = load_dataset(plan.base.dataset)
    with st.container(border=True, key="path_point"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                plain(
                    f"{row['label']} at λ = {row['lambda_sparse']:.4g}: {row['used_interactions']:,} "
                    f"interactions of {row['used_features']:,} features, objective {row['objective']:.5g}, "
                    f"{metric.label} {row[metric.name]:.5g}; {row['status']} after {row['epochs']:,} "
                    "epochs."
                ),
                width="content",
            )
            widgets.certificate_badge(float(row["certificate"]), SOLVED)
            navigation.page_link(
                navigation.TRAIN,
                train_query(experiment),
                label="**Open in Train**",
                help="Same settings. The run reproduces these numbers only for cold starts: the objective "
                "of a factorization machine has many stationary points.",
            )
        for fit in view.items:
            if fit.experiment == experiment and _drawable(fit):
                pictures = {name: [arena.fitted(fit.parameters.P, "", dataset)]}
                arena.draw_panels(pictures, dataset, "path_matrix", 300)


def _takeaway(plan: PathPlan, table: pd.DataFrame, metrics: Mapping[str, Metric]) -> None:
    st.subheader("Downloads")
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
            **{name: number(metric.label, format="%.5g") for name, metric in metrics.items()},
            "epochs": number("Epochs", format="localized", width="small"),
            "certificate": number("Certificate", format="%.1e", width="small"),
            "status": st.column_config.TextColumn("Ended", width="small"),
        },
    )
    widgets.python_block(
        widgets.linked(
            path_program(plan),
            f"Paths of {', '.join(plan.regularizers)} on {plan.base.dataset}, seed {plan.base.seed}",
            data={plan.base.dataset.name: data_hash(load_dataset(plan.base.dataset))},
        ),
        "Repeats the fits and prints the same counts.",
    )
