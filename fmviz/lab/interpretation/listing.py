"""The strongest interactions and linear weights of a fit as rows of tables, in the target's own unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fmviz.engine.interactions.of_order import interactions_of, orders_of, pairs_of
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.lab.interpretation.reading import ranking_words, table_of_pairs
from fmviz.lab.interpretation.wording import Wording

__all__ = ["listed_pairs", "listed_sets", "listed_weights"]


def listed_pairs(model: Model, parameters: Parameters, wording: Wording, top: int) -> dict[str, Any]:
    """Return the strongest pairs of one output, each with its sentence.

    Parameters
    ----------
    model : Model
        With its own parameters.
    parameters : Parameters
        What was fitted.
    wording : Wording
        Says what a weight does.
    top : int
        At most so many pairs; none of two levels of one attribute.

    Returns
    -------
    dict
        ``rows``; ``words``, how many there are, or why there are none; ``strongest``, the first sentence.
    """
    try:
        pairs = pairs_of(model, parameters)
    except ValueError as error:
        return {"words": str(error), "strongest": "", "rows": []}
    attributes = wording.attributes
    found = pairs.ranked(top, attributes.codes if attributes.grouped else None)
    table = table_of_pairs(found.i, found.j, found.weight, wording.dataset, wording)
    names = {
        "sentence": "in words",
        "effect": _heading(wording),
        "rows_with_both": "rows with both",
        "spread": "typical size",
        "feature_i": "feature",
        "feature_j": "with feature",
    }
    return {
        "words": ranking_words(found, higher=len(orders_of(model)) > 1),
        "strongest": table["sentence"][0] if len(table) else "",
        "rows": table[[*names]].rename(columns=names).to_dict("records"),
    }


def listed_sets(model: Model, parameters: Parameters, wording: Wording, top: int) -> Iterator[dict[str, Any]]:
    """Yield the strongest interactions of more than two features, for every order; see `listed_pairs`."""
    names = wording.dataset.feature_names
    for order in orders_of(model):
        if order == 2:
            continue
        interactions = interactions_of(model, parameters, order)
        sets, weight = interactions.within().ranked(top)
        heads = ["feature", *(f"feature {place}" for place in range(2, order + 1))]
        rows = [
            {
                **dict(zip(heads, (names[j] for j in features), strict=True)),
                _heading(wording): float(w) * wording.scale,
            }
            for features, w in zip(sets, weight, strict=True)
        ]
        yield {"order": order, "used": interactions.n_used(), "first": len(rows), "rows": rows}


def listed_weights(parameters: Parameters, wording: Wording, top: int) -> dict[str, Any]:
    """Return the bias and the strongest linear weights of one output; see `listed_pairs`."""
    w, names = parameters.w, wording.dataset.feature_names
    order = np.argsort(-np.abs(w), kind="stable")[:top]
    rows = [{"feature": names[j], _heading(wording): float(w[j]) * wording.scale} for j in order if w[j] != 0]
    return {"bias": wording.added(parameters.intercept), "rows": rows}


def _heading(wording: Wording) -> str:
    return f"weight, in {wording.unit}"
