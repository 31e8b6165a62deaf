"""One row, taken apart for every output beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from fmviz.engine.losses import loss_of_outputs
from fmviz.engine.target import Target
from fmviz.figures.classes import contributions
from fmviz.lab.interpretation.decomposition import Decomposition, decompose, words_of
from fmviz.ui import widgets
from fmviz.ui.charts import chart
from fmviz.ui.interactions.opened import Opened

_TERMS, _OUTPUTS = 12, 12


def draw(reading: Opened, x: np.ndarray, place: int) -> None:
    """Draw what the terms of a row add to every output; nothing where there is one."""
    names = reading.whole.outputs
    if not names:
        return
    each = [
        decompose(*reading.whole_model.of_output(reading.whole_parameters, c), x) for c in range(len(names))
    ]
    scores = np.array([one.predicted for one in each])
    if not np.isfinite(scores).all():
        return
    table = terms_table(each, reading.whole.feature_names)
    shown = np.sort(np.argsort(-scores, kind="stable")[:_OUTPUTS])
    # What sets outputs apart comes first.
    spread = np.ptp(table.to_numpy(), axis=1)
    listed = table.iloc[np.argsort(-spread, kind="stable")[:_TERMS]].copy()
    if len(table) > _TERMS:
        listed.loc[f"the other {len(table) - _TERMS:,} terms"] = table.sum(axis=0) - listed.sum(axis=0)
    heads = _heads(reading, scores)
    st.markdown("**Every output of this row**: what each term adds to each score")
    chart(
        contributions(
            listed.to_numpy()[:, shown],
            list(listed.index),
            [heads[c] for c in shown],
            dark=st.context.theme.type == "dark",
        ),
        key="interactions_every_output",
        alt=f"What the {len(listed)} terms that differ most add to the scores of {len(shown)} outputs.",
    )
    if len(shown) < len(names):
        st.caption(f"The {len(shown)} outputs of largest score, of {len(names)}.")
    widgets.download(
        "Terms of every output (CSV)",
        lambda: table.set_axis(names, axis=1).rename_axis("term").reset_index().to_csv(index=False),
        f"terms-{reading.run.id[:6]}-row{place + 1}-every-output.csv",
        key="interactions_terms_of_all_csv",
    )


def terms_table(each: Sequence[Decomposition], features: tuple[str, ...]) -> pd.DataFrame:
    """Return the terms of a row, a column an output; a term that one output lacks is 0 there."""
    columns = []
    for one in each:
        found = pd.Series([t.value for t in one.terms], index=[words_of(t, features) for t in one.terms])
        columns.append(found.groupby(level=0, sort=False).sum())
    return pd.concat(columns, axis=1).fillna(0.0)


def _heads(reading: Opened, scores: np.ndarray) -> list[str]:
    """Return the outputs with their scores, and with their probabilities where there are any."""
    whole = reading.whole
    scalings = whole.target_scaling if isinstance(whole.target_scaling, tuple) else (None,) * len(scores)
    if whole.task == "regression":
        told = [
            score if one is None else one.decode(score) for score, one in zip(scores, scalings, strict=True)
        ]
        return [f"{name}<br>{value:.4g}" for name, value in zip(whole.outputs, told, strict=True)]
    target = Target.of(whole.target_of(whole.y))
    loss = reading.experiment.criterion
    if reading.whole_model.multi_output:
        loss = loss_of_outputs(loss, target)
    p = loss.probability(scores[None, :])
    if p is None:
        return [f"{name}<br>{score:.3g}" for name, score in zip(whole.outputs, scores, strict=True)]
    # Of ordered classes an output has the probability that the class is at most this one.
    found = (p if whole.task == "ordinal" else target.probabilities(p))[0]
    return [
        f"{name}<br>{score:.3g} · {chance:.0%}"
        for name, score, chance in zip(whole.outputs, scores, found, strict=True)
    ]
