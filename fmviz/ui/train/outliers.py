"""Histogram of residuals under a capped loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from fmviz.engine.parameters import Parameters
from fmviz.figures import training as figures
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.outliers import Errors, caps_of, errors_of
from fmviz.lab.runner import Run
from fmviz.ui import navigation
from fmviz.ui.charts import chart
from fmviz.ui.settings.state import Settings
from fmviz.ui.train.panels import Scene, TrainPanel


@st.cache_resource(max_entries=8, show_spinner="Computing the residuals.")
def _fit(
    run: str, epoch: int, output: int, _experiment: Experiment, _parameters: Parameters
) -> tuple[Errors, float, float] | None:
    """Return the training residuals, ε₁ and ε₁ + ε₂; `_parameters` are those of all outputs."""
    prepared = Run.prepare(_experiment).of_output(output)
    caps = caps_of(prepared.problem.loss)
    return None if caps is None else (errors_of(prepared, _parameters), *caps)


def _of(scene: Scene) -> Any:
    """Return the result of `_fit`, or None if outputs share a basis."""
    if not scene.drawn or scene.experiment.model.multi_output:
        return None
    view: Any = scene.view
    return _fit(view.id, view.epoch, view.output or 0, view.experiment, view.parameters)


def _draw(scene: Scene, settings: Settings) -> None:
    """Draw the residuals of one output."""
    view, (errors, near, reach) = scene.fit, _of(scene)
    aside, binary, wrong = errors.beyond(reach), errors.binary, errors.wrong
    groups = {"kept": ~aside, "set aside": aside}
    if wrong is not None:
        groups = {name: mask & ~wrong for name, mask in groups.items()}
        groups |= {"wrong, kept": ~aside & wrong, "wrong, set aside": aside & wrong}
    # The histogram ends beyond ε₁ + ε₂.
    far = 3.0 * reach
    if not np.isfinite(far) or far == 0.0:
        far = float(np.quantile(np.abs(errors.signed), 0.995)) or 1.0
    lines = [(near, "ε₁")] if near > 0.0 or not binary else []
    if np.isfinite(reach):
        lines.append((reach, "ε₁ + ε₂"))
    if not binary:
        lines += [(-place, "") for place, _ in lines]
    words = f"{int(aside.sum()):,} of {aside.size:,} rows lie beyond ε₁ + ε₂."
    st.caption(f"Dashed lines: caps. {words}")
    chart(
        figures.residuals(
            errors.signed,
            {name: mask for name, mask in groups.items() if mask.any()},
            (-far, far),
            lines,
            "1 − y·f: above 1 on the wrong side" if binary else "residual f − y",
        ),
        key="train_caps_residuals",
        alt=f"Histogram of the residuals; {words}",
    )
    if view.saved:
        output = {} if view.output is None else {"output": str(view.output)}
        navigation.page_link(
            navigation.INTERACTIONS,
            {"run": view.id, "view": "suspects", **output},
            label="Outliers",
        )


SET_ASIDE = TrainPanel("outliers", "Rows set aside", "", lambda scene: _of(scene) is not None, draw=_draw)
