"""Machines whose outputs share a basis have no path on this page: the way to a sweep over their λ."""

from __future__ import annotations

import streamlit as st

from fmviz.engine.models import SharedBasis
from fmviz.engine.penalties import OUTPUT_PENALTIES
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.experiment import suggested
from fmviz.lab.interpretation.threshold import emptying_strength
from fmviz.lab.runner import load_dataset
from fmviz.lab.search.strength_path import strengths
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.values import to_query
from fmviz.paths.shared_basis import LARGEST_SHARE, SMALLEST_SHARE
from fmviz.ui import navigation, widgets
from fmviz.ui.settings.state import Settings

_POINTS = 8


def draw(settings: Settings) -> None:
    """Draw the way to a sweep, where there are several outputs."""
    name, outputs = settings["dataset"], load_dataset(settings["dataset"]).outputs
    if len(outputs) < 2:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="path_outputs"):
        st.markdown(
            f":material/account_tree: On this page each of the {len(outputs)} outputs has a machine of its "
            "own. With one basis shared by all of them, λ decides how many bases there are: sweep it to see.",
            width="stretch",
        )
        if widgets.action(settings, "shared_basis", "Sweep a shared basis", icon=":material/grid_on:"):
            query = to_query({"dataset": name, "own": True, "plan": basis_sweep(name).to_toml()})
            st.switch_page(navigation.SWEEPS.script, query_params=query)


def basis_sweep(dataset: str) -> SweepPlan:
    """Return the sweep over λ, down from the λ_max of the data, for the norms of the rows of V."""
    first = suggested(dataset, SharedBasis.name)
    top = emptying_strength(first) or first.lambda_sparse / SMALLEST_SHARE
    norms = (penalty.name for penalty in OUTPUT_PENALTIES.values() if not penalty.smooth)
    return SweepPlan.from_dict(
        {
            "title": f"A shared basis on {dataset_spec(dataset).title}",
            "suggested": True,
            "base": {"model": SharedBasis.name},
            "dataset": {"dataset": dataset},
            "method": [{"regularizer": name} for name in norms],
            "grid": {"lambda_sparse": strengths(SMALLEST_SHARE * top, LARGEST_SHARE * top, _POINTS)},
        }
    )
