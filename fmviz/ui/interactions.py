"""The interactions of a run: the matrix PPᵀ beside the truth, and the strongest pairs in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine.pairs import ranked_pairs
from fmviz.engine.snapshot import ThinnedFactors
from fmviz.figures.palette import regularizer_color
from fmviz.lab.datasets import Dataset
from fmviz.lab.job import Frame, JobView
from fmviz.lab.runner import pairs_matrix
from fmviz.lab.tiles import pooled_interactions, pooled_matrix, tile_labels
from fmviz.ui.components.matrix_view import CodesFrame, FactorFrame, Panel, encode_codes, matrix_view

EXACT_FEATURES = 512
N_TILES = 128
TOP_PAIRS = 10
# What all pictures of the filmstrip may weigh on their way to the browser.
STRIP_BYTES = 2_500_000


def truth_of(dataset: Dataset | None) -> np.ndarray | None:
    """Return the true weights, or ones at the true pairs, or None where neither is known."""
    if dataset is None:
        return None
    return dataset.truth if dataset.truth is not None else pairs_matrix(dataset)


def draw_matrix(view: JobView, dataset: Dataset) -> None:
    """Draw PPᵀ, with the truth beside it where it is known."""
    if view.factors is None or not np.isfinite(view.factors.values).all():
        return
    st.markdown("**The interactions PPᵀ**")
    frames = _strip(view) if not view.state.active else ()
    scrub = len(frames) > 1
    learned = _panel(view, dataset, frames if scrub else (_last_frame(view),))
    panels = [learned]
    structure_only = None
    truth = truth_of(dataset)
    if truth is not None:
        panel = _truth_panel(dataset, truth)
        if dataset.truth is not None:
            panels.append(panel)
        else:
            # Ones, which say nothing about the size of the weights: not on the same scale.
            structure_only = panel
    names = dataset.feature_names if isinstance(learned.frames[0], FactorFrame) else None
    options: dict[str, Any] = {"show": "gram", "feature_names": names, "columns": 2, "max_height": 400}
    # A key a run: a new one starts at its last epoch.
    driver = f"train_frame_{view.id}_{view.epoch}"
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
            help="Drag, or use the arrow keys. The picture follows while you drag.",
        )
    _notes(view)


def _notes(view: JobView) -> None:
    factors = view.factors
    assert factors is not None
    if factors.n_features > EXACT_FEATURES:
        text = (
            f"{factors.n_features:,} features are drawn as tiles; each has the colour of its largest "
            "interaction, and only a tile without any has the colour of zero."
        )
        if factors.n_dropped:
            text += f" The {factors.n_dropped:,} rows of least norm are left out of the picture."
        st.caption(text)
    vanished = np.abs(factors.values).max(initial=0.0) < 1e-6 * view.experiment.init_scale
    if vanished:
        how = "all but" if factors.rows.size else "exactly"
        st.info(
            f"**P is {how} zero.** That is a stationary point of every factorization machine, and a strong "
            "penalty drives a small start into it for good. Lower λ̃ or λₚ, or raise the scale of the start, "
            "and press Play.",
            icon=":material/lightbulb:",
        )


def _last_frame(view: JobView) -> Frame:
    assert view.factors is not None
    return Frame(view.epoch, view.last["used_interactions"], view.last["objective"], view.factors)


def _strip(view: JobView) -> tuple[Frame, ...]:
    """Return frames of finite factors, few enough for the wire."""
    frames = [f for f in view.frames if np.isfinite(f.factors.values).all()]
    if not frames or view.dataset is None:
        return ()
    d = view.dataset.X.shape[1]
    weight = 4 * d * view.experiment.rank if d <= EXACT_FEATURES else N_TILES**2
    most = max(2, STRIP_BYTES // weight)
    if len(frames) > most:
        kept = np.unique(np.linspace(0, len(frames) - 1, most).round().astype(int))
        frames = [frames[i] for i in kept]
    return tuple(frames)


def _panel(view: JobView, dataset: Dataset, frames: tuple[Frame, ...]) -> Panel:
    drawn = [_picture(frame.factors, f"epoch {frame.epoch:,}", _caption(frame)) for frame in frames]
    d = dataset.X.shape[1]
    labels = tile_labels(d, N_TILES) if d > EXACT_FEATURES else None
    return Panel(
        "Learned",
        drawn,
        color=regularizer_color(view.experiment.regularizer),
        row_labels=labels,
        col_labels=labels,
        factor_label="P",
        # Tiles say so by themselves.
        **({"gram_label": "PPᵀ"} if labels is None else {}),
    )


def _caption(frame: Frame) -> str:
    return f"epoch {frame.epoch:,}: {frame.used_interactions:,} interactions"


def _picture(factors: ThinnedFactors, key: str, caption: str) -> FactorFrame | CodesFrame:
    if factors.n_features <= EXACT_FEATURES:
        return FactorFrame(factors.dense(), key=key, caption=caption)
    tiles = pooled_interactions(factors.rows, factors.values, factors.n_features, N_TILES)
    codes, scale = encode_codes(tiles)
    return CodesFrame(codes, scale, key=key, caption=caption)


def _truth_panel(dataset: Dataset, truth: np.ndarray) -> Panel:
    d = truth.shape[0]
    n_pairs = int(np.triu(truth != 0, 1).sum())
    exact = d <= EXACT_FEATURES
    codes, scale = encode_codes(truth if exact else pooled_matrix(truth, N_TILES), grey_diagonal=exact)
    labels = dataset.feature_names if exact else tile_labels(d, N_TILES)
    known = dataset.truth is not None
    frame = CodesFrame(codes, scale, caption=f"{n_pairs:,} interactions")
    return Panel(
        "In truth" if known else "In truth (which pairs, not how much)",
        [frame],
        row_labels=labels,
        col_labels=labels,
        **({"gram_label": "W" if known else "pairs"} if exact else {}),
    )


# -------------------------------------------------------------------------------------------------- pairs


def draw_pairs(view: JobView, dataset: Dataset) -> None:
    """Draw the table of the strongest pairs."""
    if view.factors is None or view.parameters is None:
        return
    st.markdown("**The strongest interactions**")
    table = pairs_table(view.factors if view.state.active else view.parameters.P, dataset)
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
                format="%.4g", help="⟨pᵢ, pⱼ⟩: what the product xᵢ·xⱼ adds to the prediction, per unit."
            ),
            "In truth": st.column_config.CheckboxColumn(help="Whether the pair truly interacts."),
        },
        alt="The pairs of features with the largest weights.",
    )
    if view.state.active and view.factors.n_dropped:
        st.caption(f"Among the {view.factors.rows.size:,} rows of largest norm, while the run goes on.")


def pairs_table(P: np.ndarray | ThinnedFactors, dataset: Dataset, top: int = TOP_PAIRS) -> pd.DataFrame:
    """Return the strongest pairs in words: the two features, their weight, and whether it is so in truth."""
    if isinstance(P, ThinnedFactors):
        i, j, weight = ranked_pairs(P.values, top)
        i, j = P.rows[i], P.rows[j]
    else:
        i, j, weight = ranked_pairs(P, top)
    names = np.asarray(dataset.feature_names, dtype=object)
    table = pd.DataFrame({"Feature": names[i], "with feature": names[j], "Weight": weight})
    truth = truth_of(dataset)
    if truth is not None:
        table["In truth"] = truth[i, j] != 0
    return table
