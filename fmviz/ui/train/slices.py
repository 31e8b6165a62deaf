"""Draw the weights of every output of a run side by side, and the bases that they share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from fmviz.engine.interactions.weights import interactions_of, orders_of, pairs_of
from fmviz.engine.models import Model
from fmviz.figures.training import evenly
from fmviz.lab.background.job import JobView
from fmviz.lab.background.thinned import Frame, ThinnedBasis, ThinnedWeights, tile_labels
from fmviz.lab.datasets import Dataset
from fmviz.ui.components.matrix_view import CodesFrame, Panel, encode_codes, matrix_view
from fmviz.ui.settings.state import Settings
from fmviz.ui.train.matrices import last_frame

# So many slices are drawn at once, from the chosen output on.
_MOST = 12
# Up to this number of slices, V is drawn beside them, else below.
_FEW = 4
# More features than this are drawn as tiles.
_EXACT, _TILES = 128, 64
_STRIP_BYTES = 2_000_000
_HEIGHT = 210
# Least number of rows of V, so that the picture does not jump with every new basis.
_LEAST_ROWS = 8


def draw(view: JobView, settings: Settings) -> None:
    """Draw the weights of every output of a run, and the bases that they share; nothing for one output."""
    dataset, parameters = view.dataset, view.parameters
    if dataset is None or parameters is None or not dataset.outputs or not parameters.finite():
        return
    model = view.machine.of_output(parameters, 0)[0]
    if model.factorised and 2 not in orders_of(model):
        return
    frames = _frames(view, len(dataset.outputs))
    shared = isinstance(frames[-1].thinned, ThinnedBasis)
    # The slider of the stage chooses the epoch here, too.
    driver = "train_matrix" if len(frames) > 1 else None
    few = len(dataset.outputs) <= _FEW
    left, right = st.columns([2, 1]) if shared and few else (st.container(), None)
    with left:
        _slices(view, dataset, model, frames, settings, driver)
    if shared:
        with right or st.container():
            _output_layer(dataset, frames, driver)


def _frames(view: JobView, m: int) -> tuple[Frame, ...]:
    """Return the frames to draw: the last of an active run, else as many as the payload allows."""
    # A resumed run has only its last epoch.
    finite = [frame for frame in view.frames if frame.finite] or [last_frame(view)]
    if view.state.active or len(finite) < 2:
        return tuple(finite[-1:])
    assert view.dataset is not None, "there is something to draw"
    cells = min(view.dataset.X.shape[1], _EXACT) ** 2 * min(m, _MOST)
    most = max(2, _STRIP_BYTES // cells)
    return tuple(finite[i] for i in evenly(len(finite), most))


def _slices(
    view: JobView,
    dataset: Dataset,
    model: Model,
    frames: Sequence[Frame],
    settings: Settings,
    driver: str | None,
) -> None:
    d, m = dataset.X.shape[1], len(dataset.outputs)
    each = {"class": "class", "ordinal": "level", "several": "label"}.get(dataset.task, "target")
    few = "" if m <= _MOST else f"; {_MOST} of {m}, from the chosen one on"
    st.markdown(f"**What speaks for each {each}**: the weights of all pairs, one slice a {each}{few}")
    first = max(0, min(settings["output"], m - _MOST))
    shown = range(first, min(m, first + _MOST))
    labels = dataset.feature_names if d <= _EXACT else tile_labels(d, _TILES)
    panels = [
        Panel(
            name if len(name := dataset.outputs[c]) <= 24 else f"{name[:23]}…",
            [_slice(model, frame, c) for frame in frames],
            row_labels=labels,
            col_labels=labels,
            gram_label="W",
        )
        for c in shown
    ]
    if dataset.truth is not None and dataset.truth.ndim == 3 and d <= _EXACT and m <= 6:
        for c in shown:
            codes, scale = encode_codes(dataset.truth[c], grey_diagonal=True)
            panels.append(
                Panel(
                    f"{dataset.outputs[c]}, in truth",
                    [CodesFrame(codes, scale)],
                    row_labels=labels,
                    col_labels=labels,
                    gram_label="W",
                )
            )
    columns = len(shown) if len(shown) <= _FEW else -(-len(shown) // 2)
    matrix_view(
        panels,
        key="train_slices",
        driver_key=driver,
        columns=min(columns, 6),
        min_width=90,
        max_height=_HEIGHT if len(panels) <= 4 else _HEIGHT // 4 * 3,
    )


def _slice(model: Model, frame: Frame, c: int) -> CodesFrame:
    thinned = frame.thinned.of_output(c)
    if thinned.n_features > _EXACT:
        weights = isinstance(thinned, ThinnedWeights)
        tiles = thinned.values if weights else pairs_of(model, thinned, entries=True).pooled(_TILES)
        codes, scale = encode_codes(tiles)
    elif isinstance(thinned, ThinnedWeights):
        codes, scale = encode_codes(thinned.values, grey_diagonal=True)
    else:
        interactions = interactions_of(model, thinned, entries=True)
        codes, scale = encode_codes(interactions.matrix(), grey_diagonal=not interactions.repeats)
    return CodesFrame(codes, scale, key=frame.key)


def _output_layer(dataset: Dataset, frames: Sequence[Frame], driver: str | None) -> None:
    """Draw V, the weights of the bases in every output."""
    st.markdown("**The bases they share**: the rows of V")
    last: ThinnedBasis = frames[-1].thinned
    rows = max(_LEAST_ROWS, *(len(frame.thinned.V) for frame in frames))
    drawn = []
    for frame in frames:
        V = np.zeros((rows, len(dataset.outputs)))
        V[: len(frame.thinned.V)] = frame.thinned.V
        codes, scale = encode_codes(V)
        n = len(frame.thinned.V)
        drawn.append(CodesFrame(codes, scale, key=frame.key, caption=f"{n:,} bas{'is' if n == 1 else 'es'}"))
    matrix_view(
        [
            Panel(
                "",
                drawn,
                row_labels=basis_labels(last, dataset, rows),
                col_labels=dataset.outputs,
                gram_label="V",
            )
        ],
        key="train_output_layer",
        driver_key=driver,
        columns=1,
        min_width=120,
        max_height=330,
        named=True,
    )


def basis_labels(basis: ThinnedBasis, dataset: Dataset, rows: int) -> list[str]:
    """Return a label for every row of V: its number and the features with the largest entries."""
    labels = []
    for r in range(rows):
        name = f"basis {r + 1}"
        if r < len(basis.V):
            h = basis.factors.values[:, r]
            top = np.argsort(-np.abs(h), kind="stable")[:2]
            name += ": " + ", ".join(dataset.feature_names[basis.factors.rows[j]] for j in top if h[j])
        labels.append(name)
    return labels
