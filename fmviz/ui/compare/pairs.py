"""Interactions of several runs: the difference of two W, and stability across seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from fmviz.engine.settings import ParamSpec
from fmviz.figures import comparison as figures
from fmviz.lab.background.thinned import EXACT_FEATURES
from fmviz.lab.interpretation.comparison import (
    Weights,
    difference,
    selected_counts,
    stability,
)
from fmviz.lab.interpretation.windows import tile_labels
from fmviz.lab.runner import load_dataset
from fmviz.lab.store import RunStore, StoredRun
from fmviz.lab.store.table import seeds_folded, title_of_group, title_of_run
from fmviz.ui import widgets
from fmviz.ui.charts import curves
from fmviz.ui.components.matrix_view import CodesFrame, Panel, encode_codes, matrix_view
from fmviz.ui.escape import plain
from fmviz.ui.settings.state import Settings

TABLE = (
    ParamSpec("one", "int", 0, 0, 23, help=r"The run whose $W=PP^\top$ is taken."),
    ParamSpec("other", "int", 1, 0, 23, help=r"The run whose $W=PP^\top$ is subtracted."),
)


def draw(settings: Settings, runs: RunStore, picked: list[StoredRun]) -> None:
    """Draw the difference of two runs, and the stability of runs that differ in their seed alone."""
    st.subheader("Which pairs they weigh differently")
    _difference(settings, runs, picked)
    repeated = [group for group in seeds_folded(picked) if len(group) > 1]
    st.subheader("Which pairs come back from seed to seed")
    if not repeated:
        st.caption(
            "No two of these runs differ in their seed alone. Train the same settings from other seeds "
            "(*Reseed*), or sweep over seeds."
        )
        return
    for group in repeated:
        _stability(runs, group)


@st.cache_data(max_entries=64, show_spinner=False)
def _weights(run: str, updated: float, _runs: RunStore) -> Weights | str:
    """Return the pair weights of a run, or why there are none."""
    del updated  # A run that has grown has others.
    found, parameters = _runs.get(run), _runs.parameters(run)
    if parameters is None:
        return f"{title_of_run(found)} has no parameters: it ended before its first epoch."
    try:
        return Weights.of(found.experiment.machine, parameters)
    except ValueError as error:
        return str(error)


def _difference(settings: Settings, runs: RunStore, picked: list[StoredRun]) -> None:
    for name, fallback in (("one", 0), ("other", 1)):
        if settings[name] >= len(picked):
            settings.set(**{name: fallback})
    left, right = st.columns(2)
    for column, name, label in ((left, "one", "W of"), (right, "other", "minus W of")):
        widgets.control(
            settings,
            name,
            column.selectbox,
            label,
            range(len(picked)),
            format_func=lambda place: f"{title_of_run(picked[place])} ({picked[place].id[:4]})",
        )
    one, other = picked[settings["one"]], picked[settings["other"]]
    if one.data_hash != other.data_hash:
        st.caption("These two runs have different data: their pairs are not the same.")
        return
    found = [_weights(run.id, run.updated, runs) for run in (one, other)]
    told = [w for w in found if isinstance(w, str)]
    weights = [w for w in found if isinstance(w, Weights)]
    if told or len(weights) < 2:
        st.caption(plain(" ".join(told)))
        return
    apart = difference(*weights)
    d = len(weights[0].W)
    exact = d <= EXACT_FEATURES
    labels = _names(one, d) if exact else tile_labels(d)
    panels = []
    for title, matrix, caption in (
        ("First", weights[0].W, _pairs(weights[0].used)),
        ("Second", weights[1].W, _pairs(weights[1].used)),
        ("First − second", None, ""),
    ):
        values = apart if matrix is None else difference(Weights(matrix, matrix != 0), _nothing(d))
        codes, scale = encode_codes(values, grey_diagonal=exact)
        panels.append(
            Panel(
                title,
                [CodesFrame(codes, scale, caption=caption)],
                row_labels=labels,
                col_labels=labels,
                gram_label="W",
            )
        )
    matrix_view(panels, key="compare_difference", columns=3, max_height=360)
    both = int(np.triu(weights[0].used & weights[1].used, 1).sum())
    either = int(np.triu(weights[0].used | weights[1].used, 1).sum())
    st.caption(
        f"{both:,} pairs are used by both, of {either:,} used by either"
        + (f": {both / either:.0%} (Jaccard)." if either else ".")
    )


def _names(run: StoredRun, d: int) -> Sequence[str]:
    """Return the names of the features; their numbers where the data are no longer here, and say so."""
    try:
        experiment = run.experiment
        return load_dataset(experiment.dataset, **dict(experiment.dataset_params)).feature_names
    except (ValueError, OSError) as error:
        st.caption(f"The features are numbered from 1, since their names cannot be read. {plain(error)}")
        return [str(j) for j in range(1, d + 1)]


def _nothing(d: int) -> Weights:
    return Weights(np.zeros((d, d)), np.zeros((d, d), dtype=bool))


def _pairs(used: np.ndarray) -> str:
    return f"{int(np.triu(used, 1).sum()):,} interactions"


def _stability(runs: RunStore, group: list[StoredRun]) -> None:
    found = [_weights(run.id, run.updated, runs) for run in group]
    weights = [w for w in found if isinstance(w, Weights)]
    seeds = ", ".join(plain(run.settings.get("seed", 0)) for run in group)
    st.markdown(f"**{plain(title_of_group(group))}**: {seeds}")
    if len(weights) < len(group):
        st.caption(plain(" ".join(dict.fromkeys(w for w in found if isinstance(w, str)))))
        return
    hashes = {run.data_hash for run in group}
    if len(hashes) > 1:
        st.caption("The data of these runs are not the same.")
        return
    counts, key = selected_counts(weights), group[0].id
    if not counts.any():
        st.caption("None of these runs uses a pair.")
        return
    left, right = st.columns([1, 2])
    with left:
        curves(
            figures.shares(counts.tolist()),
            key=f"compare_shares_{key}",
            alt=f"How many pairs are used by 1 to {len(group)} of the runs.",
            live=False,
        )
    with right:
        table = stability(weights, _names(group[0], len(weights[0].W)))
        st.dataframe(
            table,
            hide_index=True,
            key=f"compare_stability_{key}",
            height=260,
            column_config={
                "Selected in": st.column_config.ProgressColumn(
                    format="percent",
                    min_value=0,
                    max_value=1,
                    help="The share of the runs that use the pair.",
                ),
                "Mean weight": st.column_config.NumberColumn(
                    format="%.4g", help="Over the runs that use the pair."
                ),
                "Same sign": st.column_config.NumberColumn(
                    format="percent", help="The share of them whose weight has the sign of the mean."
                ),
            },
        )
