"""The interactions of a run: their matrix beside the true one, and the strongest pairs in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine.counting import used_mask
from fmviz.engine.interactions.of_order import pairs_of
from fmviz.engine.interactions.pairs import GivenPairs
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.engine.settings import ParamSpec
from fmviz.figures.palette import regularizer_color
from fmviz.lab.background.job_view import JobView
from fmviz.lab.background.thinned import (
    EXACT_FEATURES,
    N_TILES,
    Frame,
    Thinned,
    ThinnedFactors,
)
from fmviz.lab.datasets import Dataset
from fmviz.lab.interpretation.pair_table import named_pairs
from fmviz.lab.interpretation.support import CLASSES, compare_supports
from fmviz.lab.interpretation.windows import tile_labels
from fmviz.lab.runner import pairs_matrix
from fmviz.ui import widgets
from fmviz.ui.components.matrix_view import (
    NOT_AN_INTERACTION,
    CellClass,
    ClassesFrame,
    CodesFrame,
    FactorFrame,
    Panel,
    encode_codes,
    matrix_view,
)
from fmviz.ui.escape import plain
from fmviz.ui.outputs import OUTPUT
from fmviz.ui.state import Settings
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
# Blue and orange for what is wrong, as apart as can be for all kinds of colour vision; green between them in
# lightness for what is right.
_CLASSES = tuple(
    CellClass(label.capitalize(), light, dark)
    for label, light, dark in zip(
        CLASSES,
        ("#f2f3f5", "#0a8f5b", "#56b4e9", "#b8460e"),
        ("#1c212b", "#22b57c", "#2f74b5", "#f08a3c"),
        strict=True,
    )
)
# What all pictures of the filmstrip may weigh on their way to the browser.
STRIP_BYTES = 2_500_000


def truth_of(dataset: Dataset | None) -> np.ndarray | None:
    """Return the true weights, or ones at the true pairs, or None where neither is known."""
    if dataset is None:
        return None
    return dataset.truth if dataset.truth is not None else pairs_matrix(dataset)


def draw_matrix(view: JobView, dataset: Dataset, settings: Settings) -> Look | None:
    """Draw PPᵀ or W, or the order that is looked at; with the truth beside it where it is known.

    Returns
    -------
    Look or None
        What is looked at, where there is a choice.
    """
    if view.thinned is None or not np.isfinite(view.thinned.values).all():
        return None
    title = st.empty()
    look = higher_order.choose(view, settings)
    title.markdown(f"**{_title(view, dataset, look)}**")
    d = dataset.X.shape[1]
    truth, sized = (truth_of(dataset), dataset.truth is not None) if look is None else look.truth(dataset)
    compared = truth is not None and _compare_toggle(settings, d)
    # Where there are several outputs, the slices above go through the epochs.
    frames = _strip(view, look, compared) if not view.state.active and view.output is None else ()
    scrub = len(frames) > 1
    shown = frames if scrub else (last_frame(view),)
    learned = _panel(view, dataset, shown, look)
    panels = [learned]
    structure_only = None
    if truth is not None and compared:
        panels.append(_support_panel(dataset, truth, shown, look))
    elif truth is not None:
        panel = _truth_panel(dataset, truth, sized, look)
        if sized:
            panels.append(panel)
        else:
            # Ones, which say nothing about the size of the weights: not on the same scale.
            structure_only = panel
    names = dataset.feature_names if isinstance(learned.frames[0], FactorFrame) else None
    options: dict[str, Any] = {"show": "gram", "feature_names": names, "columns": 2, "max_height": 400}
    if names is not None and why_zero.explains(view):
        why_zero.take_click(settings, "train_matrix", d)
        options |= {"clickable": True, "mark": why_zero.mark(settings, d)}
    # A key a run: a new one starts at its last epoch.
    driver = driver_key(view)
    if scrub:
        options["driver_key"] = driver
    if structure_only is None and len(panels) == 2:
        matrix_view(panels, key="train_matrix", **options)
    else:
        left, right = st.columns(2)
        with left:
            matrix_view(panels, key="train_matrix", **options)
        if structure_only is not None:
            with right:
                matrix_view([structure_only], key="train_truth", columns=1, max_height=400)
    if scrub:
        keys = [frame.key for frame in learned.frames]
        st.select_slider(
            "Look back: the matrix at an earlier epoch",
            keys,
            value=keys[-1],
            key=driver,
            help="Drag, or use the arrow keys. The picture follows while you drag; when you let go, the "
            "curves mark the epoch.",
        )
    _notes(view)
    return look


def driver_key(view: JobView) -> str:
    """Return the key of the slider over the epochs."""
    return f"train_frame_{view.id}_{view.epoch}"


def looked_at(view: JobView) -> int | None:
    """Return the earlier epoch that the filmstrip of a run at rest shows, or None."""
    key = None if view.state.active else st.session_state.get(driver_key(view))
    epoch = next((frame.epoch for frame in view.frames if frame.key == key), None)
    return None if epoch == view.epoch else epoch


def _compare_toggle(settings: Settings, d: int) -> bool:
    """Draw the choice to compare with the truth; return whether that is to be drawn."""
    few = d <= EXACT_FEATURES
    words = None if few else f"Drawn for up to {EXACT_FEATURES} features: tiles hold many pairs each."
    on = widgets.param(
        settings, "support", "Compare with the truth, pair by pair", disabled=not few, help=words
    )
    return bool(on) and few


def _title(view: JobView, dataset: Dataset, look: Look | None) -> str:
    if look is None:
        of = (
            ""
            if view.output is None
            else f" of {plain((dataset.class_labels or ('', dataset.target_name))[1])}"
        )
        return f"The interactions {view.machine.notation.weights}{of}"
    held = ", ".join(plain(dataset.feature_names[j]) for j in look.at)
    return f"The {order_name(look.order)}{f' with {held}' if held else ''}: {look.label()}"


def _notes(view: JobView) -> None:
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


def last_frame(view: JobView) -> Frame:
    """Return the frame of the last parameters."""
    assert view.thinned is not None
    return Frame(view.epoch, view.last["used_interactions"], view.last["objective"], view.thinned)


def _strip(view: JobView, look: Look | None, compared: bool) -> tuple[Frame, ...]:
    """Return frames of finite factors, few enough for the wire."""
    frames = [frame for frame in view.frames if frame.finite]
    if not frames or view.dataset is None:
        return ()
    d = view.dataset.X.shape[1]
    if look is None and isinstance(frames[0].thinned, ThinnedFactors) and d <= EXACT_FEATURES:
        weight = 4 * d * view.experiment.rank
    else:
        weight = min(d, N_TILES) ** 2 if d > EXACT_FEATURES else d**2
    most = max(2, STRIP_BYTES // (weight + (d**2 if compared else 0)))
    if len(frames) > most:
        kept = np.unique(np.linspace(0, len(frames) - 1, most).round().astype(int))
        frames = [frames[i] for i in kept]
    return tuple(frames)


def _panel(view: JobView, dataset: Dataset, frames: tuple[Frame, ...], look: Look | None) -> Panel:
    records = {record["epoch"]: record for record in view.history}
    drawn = [
        _picture(frame.thinned, frame.key, _caption(frame, records, look, view), look) for frame in frames
    ]
    d = dataset.X.shape[1]
    notation = view.machine.notation
    labels: Sequence[str] | None = tile_labels(d) if d > EXACT_FEATURES else None
    if labels is None and isinstance(drawn[0], CodesFrame):
        labels = dataset.feature_names
    return Panel(
        "Learned",
        drawn,
        color=regularizer_color(view.experiment.regularizer),
        row_labels=labels,
        col_labels=labels,
        factor_label=notation.matrix,
        **_named(look.label() if look else notation.weights, d),
    )


def _named(label: str, d: int) -> dict[str, Any]:
    """Return the name of a picture; tiles say so by themselves."""
    return {"gram_label": label} if d <= EXACT_FEATURES else {}


def _support_panel(
    dataset: Dataset, truth: np.ndarray, frames: tuple[Frame, ...], look: Look | None
) -> Panel:
    """Return the learned support against the true one, an epoch a frame."""
    held = look.at if look is not None else ()
    drawn = []
    for frame in frames:
        found = compare_supports(truth, _learned_support(frame.thinned, look), held)
        codes = found.codes.copy()
        np.fill_diagonal(codes, NOT_AN_INTERACTION)
        codes[list(held)] = codes[:, list(held)] = NOT_AN_INTERACTION
        exactly = "exactly recovered (PSSR 1)" if found.exact else "not exactly recovered (PSSR 0)"
        caption = f"epoch {frame.epoch:,}: F1 {found.f1:.3f}, {exactly}"
        drawn.append(ClassesFrame(codes, found.counts, key=frame.key, caption=caption))
    return Panel(
        "Against the truth",
        drawn,
        row_labels=dataset.feature_names,
        col_labels=dataset.feature_names,
        gram_label="support",
        classes=_CLASSES,
    )


def _learned_support(thinned: Thinned, look: Look | None) -> np.ndarray:
    if look is not None and isinstance(thinned, ThinnedFactors):
        codes = np.asarray(look.picture(thinned, "", "").codes)
        return np.asarray((codes != 0) & (codes != NOT_AN_INTERACTION))
    if isinstance(thinned, ThinnedFactors):
        return used_mask(thinned.dense())
    return thinned.values != 0


def _caption(frame: Frame, records: dict[int, dict[str, Any]], look: Look | None, view: JobView) -> str:
    count, name = frame.used_interactions, "interactions"
    if look is not None:
        count = records.get(frame.epoch, {}).get(f"used_interactions_{look.order}", count)
        name = order_name(look.order)
    where = "" if view.output is None else " in all outputs"
    return f"epoch {frame.epoch:,}: {count:,} {name}{where}"


def _picture(thinned: Thinned, key: str, caption: str, look: Look | None = None) -> FactorFrame | CodesFrame:
    exact = thinned.n_features <= EXACT_FEATURES
    if look is not None and isinstance(thinned, ThinnedFactors):
        return look.picture(thinned, key, caption)
    if isinstance(thinned, ThinnedFactors):
        if exact:
            return FactorFrame(thinned.dense(), key=key, caption=caption)
        codes, scale = encode_codes(thinned.tiles())
    else:
        codes, scale = encode_codes(thinned.values, grey_diagonal=exact)
    return CodesFrame(codes, scale, key=key, caption=caption)


def _truth_panel(dataset: Dataset, truth: np.ndarray, known: bool, look: Look | None) -> Panel:
    d = truth.shape[0]
    n_pairs = int(np.triu(truth != 0, 1).sum())
    exact = d <= EXACT_FEATURES
    codes, scale = encode_codes(truth if exact else GivenPairs.of(truth).pooled(N_TILES), grey_diagonal=exact)
    if look is not None and exact:
        held = list(look.at)
        codes[held] = codes[:, held] = NOT_AN_INTERACTION
    name = "pairs" if look is None else order_name(look.order)
    labels = dataset.feature_names if exact else tile_labels(d)
    frame = CodesFrame(codes, scale, caption=f"{n_pairs:,} {name if look else 'interactions'}")
    return Panel(
        "In truth" if known else "In truth (which, not how much)",
        [frame],
        row_labels=labels,
        col_labels=labels,
        **_named("W" if known else name, d),
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
    weight = "⟨pᵢ, pⱼ⟩" if view.machine.factorised else "wᵢⱼ"
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
