"""Interactions of a run: the choice of their order, and a table of the strongest."""

from __future__ import annotations

import streamlit as st

from fmviz.engine.interactions.weights import interactions_of, pairs_of
from fmviz.engine.settings import ParamSpec
from fmviz.figures.training import metrics_in
from fmviz.lab.background.job import JobView
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.datasets import Dataset
from fmviz.lab.runner import truth_of
from fmviz.ui import widgets
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings, Values
from fmviz.ui.train import why_zero
from fmviz.ui.train.matrices import Look, order_name, sets_table, strongest_slice
from fmviz.ui.train.panels import Scene, TrainPanel
from fmviz.ui.widgets import OUTPUT, choose_output


def looked_at(view: JobView, settings: Values) -> Look | None:
    """Return the order that is shown, above 2 with the strongest slice; None for models with pairs only."""
    model = view.machine
    if model.plain or view.thinned is None or not view.thinned.factors:
        return None
    orders = model.orders
    order = settings["order"] if settings["order"] in orders else orders[0]
    return Look(model, order, strongest_slice(interactions_of(model, view.thinned, order)))


def choose(view: JobView, settings: Settings) -> Look | None:
    """Draw the choice of an order; return the chosen one, or None for models with pairs only."""
    look = looked_at(view, settings)
    if look is None or len(orders := look.model.orders) < 2:
        return look
    if settings["order"] != look.order:
        settings.set(order=look.order)
    widgets.control(
        settings,
        "order",
        st.segmented_control,
        "Interactions of",
        orders,
        format_func=lambda m: order_name(m).capitalize(),
        required=True,
    )
    return looked_at(view, settings)


# ------------------------------------------------------------------------------------------------- tables


VIEW = (
    ParamSpec(
        "support",
        "bool",
        False,
        help="Colour each cell as true positive, false negative, false positive or true negative.",
    ),
    ParamSpec(
        "order",
        "int",
        2,
        2,
        10,
        symbol="m",
        help="Number of interacting features. Above two, the matrix is the slice at the strongest other "
        "features.",
    ),
    OUTPUT,
    *why_zero.VIEW,
)
"""The settings for the display of interactions."""
_TOP = 10


def draw_options(view: JobView | None, dataset: Dataset, settings: Settings) -> None:
    """Draw the options of the matrices and curves that apply to this run.

    Parameters
    ----------
    view : JobView or None
        The run of all outputs, if it has parameters.
    dataset : Dataset
        The data with all outputs.
    settings : Settings
        The settings of the page.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="train_options"):
        output = choose_output(settings, dataset)
        single = dataset.of_output(output)
        look = None if view is None else choose(view.of_output(output), settings)
        d = single.X.shape[1]
        if (truth_of(single) if look is None else look.truth(single)[0]) is not None:
            few = d <= EXACT_FEATURES
            widgets.param(
                settings,
                "support",
                "Compare with the truth",
                disabled=not few,
                help=None
                if few
                else f"Available for up to {EXACT_FEATURES} features; each tile covers many interactions.",
            )
        if settings.shows("curves"):
            axes = {"used_bases": "Bases", "epoch": "Epochs", "seconds": "Seconds"}
            widgets.param(settings, axis_of(view), "Curves against", labels=axes)
            if metrics := [] if view is None else metrics_in(view.last):
                widgets.choose_metric(
                    settings,
                    "metric",
                    "Metric",
                    [metric.name for metric in metrics],
                    st.segmented_control,
                    required=True,
                    help=" ".join(f"{metric.label} is {metric.help}." for metric in metrics),
                )
        if look is not None:
            names = ", ".join(plain(single.feature_names[j]) for j in look.at)
            words = f"The {order_name(look.order)}{f' with {names}' if names else ''}: {plain(look.label())}"
            st.markdown(f"**{words}**", width="content")


def axis_of(view: JobView | None) -> str:
    """Return the name of the setting for the horizontal axis of the curves."""
    return "against" if view is not None and "used_bases" in view.last else "x"


def draw_notes(view: JobView) -> None:
    """Draw a caption that explains a matrix of tiles."""
    thinned = view.thinned
    assert thinned is not None
    if thinned.n_features > EXACT_FEATURES:
        dropped = (
            f" The {thinned.n_dropped:,} rows of smallest norm are omitted." if thinned.n_dropped else ""
        )
        st.caption(
            f"{thinned.n_features:,} features are drawn as tiles in the colour of their largest interaction; "
            f"tiles in the colour of zero contain none.{dropped}"
        )


# -------------------------------------------------------------------------------------------------- pairs


def _kind(scene: Scene) -> str:
    return "interactions" if scene.look is None else order_name(scene.look.order)


def _draw_pairs(scene: Scene, settings: Settings) -> None:
    """Draw a table of the strongest pairs, or of the strongest sets of the chosen order."""
    view, look, name = scene.fit, scene.look, _kind(scene)
    thinned, notes = view.thinned, []
    if look is None or not thinned.factors:
        ranking = pairs_of(view.machine, view.parameters).ranked(_TOP)
    else:
        every = interactions_of(look.model, thinned, look.order)
        among = every.within()
        ranking = among.ranked(_TOP)
        if among.rows.size < every.rows.size or thinned.n_dropped:
            notes.append(f"Among the {among.rows.size:,} features with the largest entries.")
        if among.repeats:
            times = "2 wᵢⱼ: f contains xᵀWx, with both triangles of W"
            times = times if look.order == 2 else f"{look.order:d}! times its entry"
            notes.append(f"Weights are {times}. Products with repeated features are not listed.")
    table = sets_table(ranking.sets, ranking.weight, scene.data)
    if table.empty:
        st.caption(f"The model uses no {name}.")
        return
    rows = st.column_config.NumberColumn(
        format="localized",
        help="Rows in which all features are non-zero. A set without such rows (for instance several values "
        "of the same attribute) changes no prediction on these data.",
    )
    st.dataframe(
        table,
        key="train_pairs",
        hide_index=True,
        height=35 * (_TOP + 1) + 3,
        column_config={
            "Weight": st.column_config.NumberColumn(
                format="%.4g", help="Coefficient of the product of the features."
            ),
            "Rows with both": rows,
            "Rows with all": rows,
            "In truth": st.column_config.CheckboxColumn(help=f"Whether these are true {name}."),
        },
        alt=f"The {name} of features with the largest weights.",
    )
    if notes:
        st.caption(" ".join(notes))


PAIRS = TrainPanel(
    "pairs",
    lambda scene: f"The strongest {_kind(scene)}",
    "pairs",
    lambda scene: scene.drawn,
    draw=_draw_pairs,
)
