"""Ranking, search and tables of pairwise interactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.engine.interactions.weights import (
    PairWeights,
    Ranking,
    interactions_of,
    nothing,
    pairs_of,
)
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.lab.datasets import Dataset
from fmviz.lab.interpretation.wording import Wording


def name_matches(text: str, names: Sequence[str], groups: Sequence[str]) -> list[np.ndarray]:
    """Return a mask of matching names for each term of a search; a pair must match all terms.

    Parameters
    ----------
    text : str
        Parts of names separated by semicolons; quoted terms match exactly.
    names : sequence of str
        Names of features or attributes.
    groups : sequence of str
        The attribute of each name, also searched.
    """
    pairs = [(n.lower(), g.lower()) for n, g in zip(names, groups, strict=True)]

    def matches(word: str) -> np.ndarray:
        if len(word) > 2 and word[0] == word[-1] == '"':
            return np.array([word[1:-1] in pair for pair in pairs])
        return np.array([word in n or word in g for n, g in pairs])

    return [matches(word) for part in text.split(";") if (word := part.strip().lower())]


def exact_search(name: str) -> str:
    """Return a search for exactly this name, or "" if it contains a quote or semicolon."""
    return "" if set(name) & set(';"') else f'"{name}"'


def table_of_pairs(pairs: np.ndarray, weight: np.ndarray, dataset: Dataset, wording: Wording) -> pd.DataFrame:
    """Return pairs as a table.

    Parameters
    ----------
    pairs, weight : ndarrays
        Sets and weights of a `fmviz.engine.interactions.weights.Ranking`.
    dataset : Dataset
        The data, with feature names.
    wording : Wording
        Describes weights.

    Returns
    -------
    DataFrame
        Columns ``feature_i``, ``feature_j``, ``weight``, ``effect`` (the weight in units of the prediction),
        ``rows_with_both``, ``spread`` (the root mean square of the pair's term over the rows, in the same
        unit) and ``sentence``, of the pairs that occur in some row, indexed as `pairs`.
    """
    table = named_pairs(pairs, weight, dataset)
    pairs, weight = pairs[table.index], weight[table.index]
    table.insert(3, "effect", weight * wording.scale)
    table["spread"] = np.abs(weight) * wording.scale * np.sqrt(mean_squares(dataset, pairs))
    table["sentence"] = [
        wording.pair(int(i), int(j), float(value)) for (i, j), value in zip(pairs, weight, strict=True)
    ]
    return table


def ranking_words(ranking: Ranking, higher: bool) -> str:
    """Return the numbers of used and listed pairs as a sentence; `higher`: whether there are higher orders.

    If no pair is listed, the sentence contains the reason.
    """
    if not ranking.total and ranking.siblings:
        return f"All {ranking.siblings:,} used pairs lie within columns and belong to main effects."
    if not ranking.total:
        return "The model uses no pairs: the regularizer has set all weights to zero."
    said = f"{ranking.total:,} used pairs" if ranking.total != 1 else "1 used pair"
    if ranking.total > ranking.weight.size:
        said += f"; listed are the {ranking.weight.size} of largest weight"
    if ranking.siblings:
        said += f". {ranking.siblings:,} more lie within columns and belong to main effects"
    said += ". Each sentence describes a weight, which depends on the coding of levels"
    if higher:
        said += "; products of three and more features are separate terms"
    return f"{said}."


def strongest_features(
    each: Sequence[PairWeights], most: int, between: Callable[[], None] = nothing
) -> tuple[np.ndarray, int]:
    """Return the features with the largest Σ |w| over used pairs, ascending, and the number of used ones."""
    strength, count = np.zeros(each[0].n_features), np.zeros(each[0].n_features, dtype=int)
    for pairs in each:
        for at, to, weight, used in pairs.upper(between):
            size = np.where(used, np.abs(weight), 0.0)
            for side, axis in ((at, 1), (to, 0)):
                strength[pairs.rows[side]] += size.sum(axis=axis)
                count[pairs.rows[side]] += used.sum(axis=axis)
    places = np.flatnonzero(count)
    return np.sort(places[np.argsort(-strength[places], kind="stable")[:most]]), places.size


# Maximum number of entries per block of columns.
_BLOCK = 4_000_000
# Column-wise copies of X, cached for later pairs.
_by_columns: WeakKeyDictionary[Dataset, Any] = WeakKeyDictionary()


def rows_with_all(dataset: Dataset, sets: np.ndarray) -> np.ndarray:
    """Count the rows of the data in which all features of each set, shape (t, m), are non-zero."""
    counts = [np.asarray((terms != 0).sum(axis=0)).ravel() for terms in _products(dataset, sets)]
    return np.concatenate([np.empty(0, dtype=int), *counts])


def mean_squares(dataset: Dataset, sets: np.ndarray) -> np.ndarray:
    """Return the mean of (Π x_j)² over the rows of the data for each set of features, shape (t, m)."""
    means = [np.asarray(terms.power(2).mean(axis=0)).ravel() for terms in _products(dataset, sets)]
    return np.concatenate([np.empty(0), *means])


def _products(dataset: Dataset, sets: np.ndarray) -> Iterator[sp.csc_array]:
    """Yield the products of the features of some sets as columns."""
    if dataset not in _by_columns:
        _by_columns[dataset] = sp.csc_array(dataset.X)
    X = _by_columns[dataset]
    step = max(1, _BLOCK // max(1, X.shape[0]))
    for begin in range(0, len(sets), step):
        first, *others = sets[begin : begin + step].T
        terms = X[:, first]
        for features in others:
            terms = terms.multiply(X[:, features])
        yield sp.csc_array(terms)


def named_pairs(pairs: np.ndarray, weight: np.ndarray, dataset: Dataset) -> pd.DataFrame:
    """Return the pairs that occur in some row, with feature names; columns as in `pair_table`."""
    names = np.asarray(dataset.feature_names, dtype=object)
    table = pd.DataFrame(names[pairs], columns=["feature_i", "feature_j"])
    table = table.assign(weight=weight, rows_with_both=rows_with_all(dataset, pairs))
    return table[table["rows_with_both"] > 0]


def pair_table(model: Model, parameters: Parameters, dataset: Dataset, top: int) -> pd.DataFrame:
    """Return the pairs of features from different columns with the largest weights.

    Parameters
    ----------
    model : Model
        The model with its parameters.
    parameters : Parameters
        The fitted parameters.
    dataset : Dataset
        The data, with feature names.
    top : int
        Maximum number of pairs.

    Returns
    -------
    DataFrame
        Columns ``feature_i``, ``feature_j``, ``weight`` and ``rows_with_both`` of used pairs that occur in
        some row, sorted by descending |weight|. With several outputs, the rows of each output in turn, and a
        first column ``output``.

    Raises
    ------
    ValueError
        If the model has no pairs.
    """
    parts, codes = [], np.unique(dataset.groups, return_inverse=True)[1]
    for c in range(model.n_outputs_of(parameters)):
        ranking = pairs_of(*model.of_output(parameters, c)).ranked(top, codes)
        parts.append(named_pairs(ranking.sets, ranking.weight, dataset))
        if dataset.outputs:
            parts[-1].insert(0, "output", dataset.outputs[c])
    return pd.concat(parts, ignore_index=True)


def listed_pairs(model: Model, parameters: Parameters, wording: Wording, top: int) -> dict[str, Any]:
    """Return the strongest pairs of one output with their sentences.

    Parameters
    ----------
    model : Model
        The model with its parameters.
    parameters : Parameters
        The fitted parameters.
    wording : Wording
        Describes weights.
    top : int
        Maximum number of pairs; pairs of levels of the same attribute are excluded.

    Returns
    -------
    dict
        ``rows``; ``words``, their number or the reason for none; ``strongest``, the first sentence.
    """
    try:
        pairs = pairs_of(model, parameters)
    except ValueError as error:
        return {"words": str(error), "strongest": "", "rows": []}
    ranking = pairs.ranked(top, wording.attributes.of_column)
    table = table_of_pairs(ranking.sets, ranking.weight, wording.dataset, wording)
    names = {
        "sentence": "in words",
        "effect": _heading(wording),
        "rows_with_both": "rows with both",
        "spread": "typical size",
        "feature_i": "feature",
        "feature_j": "with feature",
    }
    return {
        "words": ranking_words(ranking, higher=len(model.orders) > 1),
        "strongest": "".join(table["sentence"].head(1)),
        "rows": table[[*names]].rename(columns=names).to_dict("records"),
    }


def listed_sets(model: Model, parameters: Parameters, wording: Wording, top: int) -> Iterator[dict[str, Any]]:
    """Yield the strongest interactions of each order above two; see `listed_pairs`."""
    names = wording.dataset.feature_names
    for order in filter((2).__lt__, model.orders):
        interactions = interactions_of(model, parameters, order)
        sets, weight, *_ = interactions.within().ranked(top)
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
