"""The bases shared by several outputs, with their weights in every output."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fmviz.lab.background.job import JobView
from fmviz.lab.background.thinned import Thinned
from fmviz.lab.datasets import Dataset
from fmviz.stage import CodesFrame, Panel, View, encode_codes
from fmviz.ui.components import matrix_view
from fmviz.ui.train.matrices import last_frame

# Minimum number of rows of V; prevents jumps of the picture with every new basis.
_LEAST_ROWS = 8


def draw(view: JobView) -> None:
    """Draw V, the weights of the bases in every output, for runs with one; the stage chooses the epoch."""
    dataset, parameters = view.dataset, view.parameters
    if dataset is None or parameters is None or not parameters.finite():
        return
    # A resumed run has only its last epoch.
    frames = [frame for frame in view.frames if frame.finite] or [last_frame(view)]
    frames = frames[-1:] if view.state.active else frames
    last: Thinned = frames[-1].thinned
    st.markdown("**The bases they share**: the rows of V")
    rows = max(_LEAST_ROWS, *(len(frame.thinned.V) for frame in frames))
    drawn = []
    for frame in frames:
        n = len(frame.thinned.V)
        codes, scale = encode_codes(np.pad(frame.thinned.V, ((0, rows - n), (0, 0))))
        drawn.append(CodesFrame(codes, scale, key=frame.key, caption=f"{n:,} bas{'is' if n == 1 else 'es'}"))
    panel = Panel(
        "",
        drawn,
        row_labels=basis_labels(last, dataset, rows),
        col_labels=dataset.outputs,
        gram_label="V",
    )
    shown = View(
        [panel],
        driver_key="train_matrix" if len(frames) > 1 else None,
        columns=1,
        min_width=120,
        max_height=330,
        named=True,
    )
    matrix_view(shown, key="train_output_layer")


def basis_labels(basis: Thinned, dataset: Dataset, rows: int) -> list[str]:
    """Return a label for every row of V: its number and the features with the largest entries."""
    labels = []
    for r in range(rows):
        name = f"basis {r + 1}"
        if r < len(basis.V):
            h = basis.values[:, r]
            top = np.argsort(-np.abs(h), kind="stable")[:2]
            name += ": " + ", ".join(dataset.feature_names[basis.rows[j]] for j in top if h[j])
        labels.append(name)
    return labels
