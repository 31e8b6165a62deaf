"""The interactions of a run: what is looked at of them, and the strongest pairs in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine.interactions.of_order import pairs_of
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.settings import ParamSpec
from fmviz.figures import training as figures
from fmviz.lab.background.job import JobView
from fmviz.lab.background.thinned import EXACT_FEATURES, ThinnedFactors
from fmviz.lab.datasets import Dataset
from fmviz.lab.interpretation.pair_table import named_pairs
from fmviz.lab.runner import truth_of
from fmviz.ui import widgets
from fmviz.ui.escape import plain
from fmviz.ui.outputs import OUTPUT, choose_output
from fmviz.ui.settings.state import Settings
from fmviz.ui.train import higher_order, why_zero
from fmviz.ui.train.matrix_options import Look, order_name

VIEW = (
    ParamSpec(
        "support",
        "bool",
        False,
        help="Every pair in the colour of what it is: truly there and found, missed, wrongly found, or "
        "rightly left out.",
    ),
    OUTPUT,
    *why_zero.VIEW,
)
"""The settings of what is drawn of the interactions."""
TOP_PAIRS = 10
_HEADS = {
    "feature_i": "Feature",
    "feature_j": "with feature",
    "weight": "Weight",
    "rows_with_both": "Rows with both",
}


def draw_options(view: JobView | None, dataset: Dataset, settings: Settings) -> tuple[int, Look | None]:
    """Draw the choices of what the matrices show, as far as there are any.

    Parameters
    ----------
    view : JobView or None
        The run of all outputs, once it has parameters.
    dataset : Dataset
        The data with all their outputs.
    settings : Settings
        The page's.

    Returns
    -------
    output : int
        Which of several outputs is looked at.
    look : Look or None
        The order that is looked at, where there is a choice.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="train_options"):
        output = choose_output(settings, dataset)
        one = dataset.of_output(output)
        look = None if view is None else higher_order.choose(view.of_output(output), settings)
        d = one.X.shape[1]
        if (truth_of(one) if look is None else look.truth(one)[0]) is not None:
            few = d <= EXACT_FEATURES
            widgets.param(
                settings,
                "support",
                "Compare with the truth, pair by pair",
                disabled=not few,
                help=None
                if few
                else f"Drawn for up to {EXACT_FEATURES} features: tiles hold many pairs each.",
            )
        if settings.shows("curves"):
            _curve_options(view, settings)
        if look is not None:
            held = ", ".join(plain(one.feature_names[j]) for j in look.at)
            words = f"The {order_name(look.order)}{f' with {held}' if held else ''}: {plain(look.label())}"
            st.markdown(f"**{words}**", width="content")
    return output, look


def axis_of(view: JobView | None) -> str:
    """Return the setting that has the axis of the curves."""
    return "against" if view is not None and "used_bases" in view.last else "x"


def _curve_options(view: JobView | None, settings: Settings) -> None:
    names = figures.metric_names(view.last) if view is not None else []
    words = {"used_bases": "Bases", "epoch": "Epochs", "seconds": "Seconds"}
    widgets.param(settings, axis_of(view), "Curves against", labels=words)
    if not names:
        return
    if settings["metric"] not in names:
        settings.set(metric=names[0])
    widgets.control(
        settings,
        "metric",
        st.segmented_control,
        "Prediction measured by",
        names,
        format_func=figures.METRICS.__getitem__,
        required=True,
    )


def draw_notes(view: JobView) -> None:
    """Draw what is to be said of a picture that holds tiles, or nothing."""
    thinned = view.thinned
    assert thinned is not None
    if thinned.n_features > EXACT_FEATURES:
        text = (
            f"{thinned.n_features:,} features are drawn as tiles; each has the colour of its largest "
            "interaction, and only a tile without any has the colour of zero."
        )
        if thinned.n_dropped:
            text += f" The {thinned.n_dropped:,} rows of least norm are left out of the picture."
        st.caption(text)
    largest = np.abs(thinned.values).max(initial=0.0)
    if view.machine.convex or not isinstance(thinned, ThinnedFactors):
        if largest == 0.0 and view.epoch > 0:
            st.info(
                "**W has no interaction.** Its penalties outweigh what any pair would gain. Lower λ or "
                "λ_tr, and press Play.",
                icon=":material/lightbulb:",
            )
    elif largest < 1e-6 * view.experiment.init_scale:
        how = "all but" if thinned.rows.size else "exactly"
        letter = view.machine.notation.matrix
        st.info(
            f"**{letter} is {how} zero.** That is a stationary point of every factorization machine, and a "
            "strong regularizer drives a small start into it for good. Lower λ or λₚ, or raise the scale of "
            "the start, and press Play.",
            icon=":material/lightbulb:",
        )


# -------------------------------------------------------------------------------------------------- pairs


def draw_pairs(view: JobView, dataset: Dataset, look: Look | None = None) -> None:
    """Draw the table of the strongest pairs, or of the strongest sets of the order that is looked at."""
    if view.thinned is None or view.parameters is None:
        return
    if look is not None:
        higher_order.draw_sets(view, dataset, look, TOP_PAIRS)
        return
    st.markdown("**The strongest interactions**")
    thinned = view.thinned if isinstance(view.thinned, ThinnedFactors) and view.state.active else None
    table = pairs_table(view.machine, thinned or view.parameters, dataset)
    machine = view.machine
    weight = (
        "⟨pᵢ, pⱼ⟩"
        if machine.plain and not machine.weighted
        else f"Entry (i, j) of {machine.notation.weights}"
    )
    if table.empty:
        st.caption("The model uses no interaction.")
        return
    st.dataframe(
        table,
        key="train_pairs",
        hide_index=True,
        height=35 * (TOP_PAIRS + 1) + 3,
        column_config={
            "Weight": st.column_config.NumberColumn(
                format="%.4g", help=f"{weight}: what the product xᵢ·xⱼ adds to the prediction, per unit."
            ),
            "Rows with both": st.column_config.NumberColumn(
                format="localized",
                help="Rows in which both features are not zero. A pair with none, such as two values of one "
                "attribute, changes no prediction on these data.",
            ),
            "In truth": st.column_config.CheckboxColumn(help="Whether the pair truly interacts."),
        },
        alt="The pairs of features with the largest weights.",
    )
    if (table["Rows with both"] == 0).any():
        st.caption(
            "Pairs with 0 rows never occur together here, such as two values of one attribute: the "
            "regularizer left them, but they change no prediction on these data."
        )
    if thinned is not None and thinned.n_dropped:
        st.caption(f"Among the {thinned.rows.size:,} rows of largest norm, while the run goes on.")


def pairs_table(
    model: Model, found: Parameters | ThinnedFactors, dataset: Dataset, top: int = TOP_PAIRS
) -> pd.DataFrame:
    """Return the strongest pairs in words: the two features, their weight, and whether it is so in truth."""
    pairs = pairs_of(model, found).ranked(top)
    table = named_pairs(pairs.i, pairs.j, pairs.weight, dataset).rename(columns=_HEADS)
    truth = truth_of(dataset)
    if truth is not None:
        table["In truth"] = truth[pairs.i, pairs.j] != 0
    return table
