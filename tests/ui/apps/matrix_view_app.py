"""A page of its own for the browser tests: two factors and one ready matrix, driven by a slider."""

import dataclasses

import numpy as np
import streamlit as st

from fmviz.figures.palette import regularizer_color
from fmviz.stage import CodesFrame, FactorFrame, Panel, View, encode_codes
from fmviz.ui.components import matrix_view

st.set_page_config(layout="wide")
query = st.query_params
rows, cols = int(query.get("d", 24)), int(query.get("k", 6))
count = int(query.get("panels", 2))
rng = np.random.default_rng(3)
P = rng.standard_normal((rows, cols))
levels = np.linspace(0.0, 2.0, 9)
keys = [f"λ = {x:g}" for x in levels]


def soft(strength: float, group: bool) -> np.ndarray:
    """Shrink entries, or whole rows."""
    size = np.linalg.norm(P, axis=1, keepdims=True) if group else np.abs(P)
    return P * np.maximum(1 - strength * (np.sqrt(cols) / 1.6 if group else 1) / size, 0)


def factor_panel(title: str, name: str, group: bool) -> Panel:
    """Return one panel with a frame per strength."""
    frames = []
    for key, strength in zip(keys, 1.6 * levels, strict=True):
        Q = soft(float(strength), group)
        pairs = int(np.triu((Q != 0).astype(int) @ (Q != 0).T.astype(int), 1).astype(bool).sum())
        total = rows * (rows - 1) // 2
        frames.append(
            FactorFrame(Q, key=key, caption=f"{title} at {key}: {pairs:,} of {total:,} interactions")
        )
    return Panel(title, frames, color=regularizer_color(name))


runs = st.session_state["runs"] = st.session_state.get("runs", 0) + 1
st.markdown(f"script runs: {runs}")
if not ("toggle" in query and st.checkbox("Hide")):
    st.select_slider("Strength", options=keys, value=keys[2], key="strength of it")
names = ["ti", "l21", "l1", "cs"]
panels = [factor_panel(f"Panel {name}", name, name in ("l21", "cs")) for name in names[:count]]
if "tiles" in query:
    tiles = [f"features {a}–{a + 99}" for a in range(0, 1200, 100)]
    W = rng.standard_normal((12, 12)) * (rng.random((12, 12)) < 0.4)
    codes, scale = encode_codes(W + W.T)
    frame = CodesFrame(codes, scale, caption="pooled")
    panels.append(Panel("Tiles", [frame], row_labels=tiles, col_labels=tiles))
matrix_view(
    View(panels, driver_key="strength of it", clickable="click" in query),
    key="view",
    on_cell=lambda cell: st.session_state.update(picked=dataclasses.astuple(cell)),
)
st.markdown(f"picked: {st.session_state.get('picked')}")
if "empty" in query:
    matrix_view(View([]), key="nothing")
