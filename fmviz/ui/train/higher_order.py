"""Controls, tables and charts of models that are sums over the columns of P."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine.interactions.of_order import interactions_of, orders_of
from fmviz.engine.models import Model
from fmviz.engine.settings import ParamSpec
from fmviz.figures.column_weights import signed_bars, sorted_by_size
from fmviz.lab.background.job import JobView
from fmviz.lab.background.thinned import ThinnedFactors
from fmviz.lab.datasets import Dataset
from fmviz.ui import widgets
from fmviz.ui.charts import chart
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings, Whole
from fmviz.ui.train.matrix_options import (
    Look,
    completed,
    order_name,
    sets_table,
    true_sets,
)

VIEW = (
    ParamSpec("order", "int", 2, 2, 10, symbol="m", help="How many features interact."),
    Whole("slice", help="A slice is the matrix of all sets that have these features, by their other two."),
    Whole("subset", help="The weight of their product in the prediction."),
)
"""The settings of what is looked at."""
_LIVE_WORK = 1e6
_LAMBDA = "\N{GREEK SMALL LETTER LAMDA}ₛ"


def looked_at(view: JobView, settings: Settings) -> Look | None:
    """Return the order and slice that are looked at, or None for models of pairs alone."""
    model = view.machine
    several = model.columnar or model.lifted
    if not several or not isinstance(view.thinned, ThinnedFactors) or view.dataset is None:
        return None
    orders = orders_of(model)
    order = settings["order"] if len(orders) > 1 and settings["order"] in orders else orders[0]
    if order == 2:
        return Look(model, 2)
    return Look(model, order, completed(interactions_of(model, view.thinned, order), settings["slice"]))


def choose(view: JobView, settings: Settings) -> Look | None:
    """Draw the choice of order and slice; return what is looked at, or None for models of pairs alone."""
    look = looked_at(view, settings)
    if look is None or view.dataset is None:
        return None
    orders = orders_of(look.model)
    with st.container(horizontal=True, vertical_alignment="bottom", key="train_orders", width="content"):
        if len(orders) > 1:
            if settings["order"] not in orders:
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
            look = looked_at(view, settings) or look
        if look.order > 2:
            names = view.dataset.feature_names
            _features(
                settings,
                "slice",
                "Slice at",
                names,
                most=look.order - 2,
                placeholder="Automatic: " + ", ".join(names[j] for j in look.at),
            )
    return look


def _features(
    settings: Settings, name: str, label: str, names: tuple[str, ...], *, most: int | None, placeholder: str
) -> None:
    if not settings.shows(name, label):
        return
    fits = tuple(j for j in settings[name] if j < len(names))[:most]
    if fits != settings[name]:
        settings.set(**{name: fits})
    # The browser takes a value that is assigned in a fragment's first run for none and reports that as a
    # change; a default it keeps.
    key = settings.key(name)
    start: dict[str, Any] = {}
    if key not in st.session_state:
        start["default"] = list(fits)
    elif tuple(st.session_state[key]) != fits:
        st.session_state[key] = list(fits)
    st.multiselect(
        label,
        range(len(names)),
        format_func=lambda j: names[j],
        max_selections=most,
        placeholder=placeholder,
        disabled=settings.locks(name),
        help=settings.help(name),
        width=420,
        key=key,
        on_change=lambda: settings.set(**{name: st.session_state[key]}),
        **start,
    )


def order_words(model: Model, last: dict[str, float]) -> str:
    """Return the counts of every order in a sentence, or "" where there is one order only."""
    parts = [
        f"{last[f'used_interactions_{m}']:,} {order_name(m)} of {last[f'used_features_{m}']:,} features"
        for m in orders_of(model)
        if f"used_interactions_{m}" in last
    ]
    return "By order: " + " · ".join(parts) + "." if parts else ""


def interaction_columns(model: Model, history: Iterable[str]) -> dict[str, str] | None:
    """Return the columns of a history that count the interactions of each order, with their names."""
    known = set(history)
    parts = {f"used_interactions_{m}": order_name(m) for m in orders_of(model)}
    return {column: name for column, name in parts.items() if column in known} or None


def true_counts(model: Model, dataset: Dataset | None, several: bool) -> dict[str, Any]:
    """Return what `fmviz.figures.training.sparsity` takes of the truth, as far as it is known.

    With `several`, the interactions of each order are counted in a column of their own.
    """
    if dataset is None:
        return {}
    known = {m: sets for m in (2, 3) if (sets := true_sets(dataset, m)) is not None}
    if not known:
        return {}
    counts = {
        f"used_interactions_{m}" if several else "used_interactions": len(known[m])
        for m in orders_of(model) or (2,)
        if m in known
    }
    features = {j for sets in known.values() for one in sets for j in one}
    return {"true_interactions": counts, "true_features": len(features)}


# ------------------------------------------------------------------------------------------------- tables


def draw_sets(view: JobView, dataset: Dataset, look: Look, top: int) -> None:
    """Draw the table of the sets with the largest weights of the order that is looked at."""
    if not isinstance(view.thinned, ThinnedFactors) or not np.isfinite(view.thinned.values).all():
        return
    name = order_name(look.order)
    st.markdown(f"**The strongest {name}**")
    every = interactions_of(look.model, view.thinned, look.order)
    listed = every.within(_LIVE_WORK) if view.state.active else every.within()
    table = sets_table(listed, dataset, top)
    if table.empty:
        st.caption(f"The model uses no {name}.")
        return
    st.dataframe(
        table,
        key="train_sets",
        hide_index=True,
        height=35 * (top + 1) + 3,
        column_config={
            "Weight": st.column_config.NumberColumn(
                format="%.4g", help="What the product of the features adds to the prediction, per unit."
            ),
            "Rows with all": st.column_config.NumberColumn(
                format="localized",
                help="Rows in which all are not zero. A set with none, such as several values of one "
                "attribute, changes no prediction on these data.",
            ),
            "In truth": st.column_config.CheckboxColumn(help=f"Whether the {name} truly interact."),
        },
        alt=f"The {name} of features with the largest weights.",
    )
    if listed.rows.size < every.rows.size or view.thinned.n_dropped:
        st.caption(f"Among the {listed.rows.size:,} features of largest entries.")
    if listed.repeats:
        times = {2: "2 wᵢⱼ: f holds xᵀWx, with both triangles of W", 3: "3! times its entry"}.get(
            look.order, f"{look.order}! times its entry"
        )
        st.caption(
            f"A weight here is {times}. Products in which a feature occurs more than once are not listed."
        )


def draw_subset(view: JobView, dataset: Dataset, settings: Settings) -> None:
    """Draw the choice of a subset of features and its weight, for the model of all subsets."""
    if view.machine.order is not None or not isinstance(view.thinned, ThinnedFactors):
        return
    st.markdown("**The weight of a subset**")
    with st.container(horizontal=True, vertical_alignment="bottom", key="train_subset_row"):
        names = dataset.feature_names
        _features(settings, "subset", "Features", names, most=None, placeholder="Choose some features")
        chosen = settings["subset"]
        if chosen:
            weight = interactions_of(view.machine, view.thinned, 2).entry(chosen)
            st.metric(" × ".join(plain(names[j]) for j in chosen), f"{weight:.4g}", width="content")
        else:
            st.caption(
                "Any number of them: the weight of their product is Σₛ Πⱼ pⱼₛ over the columns of P.",
                width="content",
            )


# ---------------------------------------------------------------------------------------- column weights


def draw_columns(view: JobView, look: Look) -> None:
    """Draw the weights of the columns and, of pairs, the eigenvalues of W, once the run rests."""
    if view.state.active or view.parameters is None:
        return
    weighted = view.parameters.coefficients is not None
    spectral = look.order == 2 and (weighted or look.model.lifted)
    if not (weighted or spectral):
        return
    interactions = interactions_of(look.model, view.parameters, look.order)
    places = iter(st.columns(2))
    if weighted:
        _draw_coefficients(next(places), sorted_by_size(interactions.coefficients))
    if spectral:
        _draw_spectrum(next(places), interactions.eigenvalues(), look.model.notation.weights)


def _draw_coefficients(place: Any, weights: np.ndarray) -> None:
    with place:
        st.markdown(f"**The weights {_LAMBDA} of the columns**")
        positive, negative = int((weights > 0).sum()), int((weights < 0).sum())
        chart(
            signed_bars(weights, x="column, by |λ|", y=_LAMBDA),
            key="train_coefficients",
            alt=f"{positive} positive and {negative} negative weights, sorted by size.",
        )
        st.caption(
            f"{positive:,} positive, {negative:,} negative, {weights.size - positive - negative} zero."
        )


def _draw_spectrum(place: Any, eigenvalues: np.ndarray, formula: str) -> None:
    with place:
        st.markdown(f"**The spectrum of W = {formula}**")
        up = int((eigenvalues > 0).sum())
        chart(
            signed_bars(eigenvalues, x="eigenvalue, by size", y="value"),
            key="train_spectrum",
            alt=f"{up} positive and {eigenvalues.size - up} negative eigenvalues, sorted by size.",
        )
        st.caption(f"Rank {eigenvalues.size:,}: {up:,} positive, {eigenvalues.size - up} negative.")


def column_headings(model: Model, n_columns: int) -> list[str]:
    """Return a name for every column of P.

    It says the order of the column, p2_1, p2_2, …, p3_1, …, or in a lifted model its factor, u1_1, …, u2_1,
    …; p1, p2, … where there is one order.
    """
    if model.lifted:
        parts = column_factors(model, n_columns)
        return [f"u{t}_{s % (n_columns // parts[-1]) + 1}" for s, t in enumerate(parts)]
    if not model.by_order:
        return [f"p{s + 1}" for s in range(n_columns)]
    return [
        f"p{kernel.degree}_{s + 1}"
        for columns, kernel in model.parts(n_columns)  # type: ignore[attr-defined]
        for s in range(columns.stop - columns.start)
    ]


def column_orders(model: Model, n_columns: int) -> list[int]:
    """Return the order of every column of P, 0 for all subsets."""
    return [
        kernel.degree or 0
        for columns, kernel in model.parts(n_columns)  # type: ignore[attr-defined]
        for _ in range(columns.stop - columns.start)
    ]


def column_factors(model: Model, n_columns: int) -> list[int]:
    """Return for every column of P = [U¹ … U^m] of a lifted model which factor it is of, from 1."""
    m = model.degree  # type: ignore[attr-defined]
    return [t + 1 for t in range(m) for _ in range(n_columns // m)]


def coefficients_table(view: JobView) -> pd.DataFrame:
    """Return λ, a row a column of P."""
    assert view.parameters is not None
    weights = view.parameters.multipliers
    names = column_headings(view.machine, weights.size)
    return pd.DataFrame({"column": names, "lambda": weights})
