"""Rank, search and tabulate interactions of pairs of features and of attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.engine.interactions.of_order import interactions_of, orders_of, pairs_of
from fmviz.engine.interactions.pairs import PairWeights, Ranking, nothing
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.lab.datasets import Dataset
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.wording import Wording

MOST_GROUPS = 1_500
"""So many attributes have their strengths taken by pairs."""


@dataclass(frozen=True)
class Search:
    """A search of pairs by the names of their features.

    Attributes
    ----------
    words : str
        Parts of the names of features or attributes, separated by semicolons, in quotation marks whole names;
        a pair has each of them in one at least of its two features.
    """

    words: str = ""

    def hits(self, names: Sequence[str], groups: Sequence[str] | None = None) -> list[np.ndarray]:
        """Return for every word which of the names contain it.

        Parameters
        ----------
        names : sequence of str
            Of features, or of attributes.
        groups : sequence of str, optional
            The attribute of each, which counts as part of its name.
        """
        own = [name.lower() for name in names]
        group = own if groups is None else [name.lower() for name in groups]
        matches = []
        for word in (part.strip().lower() for part in self.words.split(";")):
            if len(word) > 2 and word[0] == word[-1] == '"':
                matches.append(np.array([word[1:-1] in pair for pair in zip(own, group, strict=True)]))
            elif word:
                matches.append(np.array([word in n or word in g for n, g in zip(own, group, strict=True)]))
        return matches

    @staticmethod
    def exactly(name: str) -> str:
        """Return the words that match exactly this name, or "" if it contains a quote or semicolon."""
        return "" if set(name) & set(';"') else f'"{name}"'


def table_of_pairs(
    i: np.ndarray, j: np.ndarray, weight: np.ndarray, dataset: Dataset, wording: Wording
) -> pd.DataFrame:
    """Return pairs as a table.

    Parameters
    ----------
    i, j, weight : ndarrays
        The features and weights, as in `fmviz.engine.interactions.pairs.Ranking`.
    dataset : Dataset
        Names the features, and has the rows.
    wording : Wording
        Says what a weight does.

    Returns
    -------
    DataFrame
        Columns ``feature_i``, ``feature_j``, ``weight``, ``effect`` (the weight in units of what is
        predicted), ``rows_with_both``, ``spread`` (the root mean square of the pair's term over the rows, in
        the same units) and ``sentence``.
    """
    table = named_pairs(i, j, weight, dataset)
    table.insert(3, "effect", weight * wording.scale)
    table["spread"] = np.abs(weight) * wording.scale * np.sqrt(mean_squares(dataset, i, j))
    table["sentence"] = [
        wording.pair(int(a), int(b), float(value)) for a, b, value in zip(i, j, weight, strict=True)
    ]
    return table


def ranking_words(ranking: Ranking, higher: bool) -> str:
    """Describe how many pairs are used and listed; `higher` tells whether there are higher orders.

    If none is listed, say why.
    """
    if not ranking.total and ranking.siblings:
        return f"All {ranking.siblings:,} used pairs join levels of one attribute, which no row has together."
    if not ranking.total:
        return "The model uses no pair: its regularizer has set all of them to zero."
    said = f"{ranking.total:,} used pairs" if ranking.total != 1 else "1 used pair"
    if ranking.total > ranking.i.size:
        said += f"; the {ranking.i.size} of largest weight are listed"
    if ranking.siblings:
        said += f". {ranking.siblings:,} more join levels of one attribute, of which no row has two"
    said += ". Each sentence tells what the pair adds to what both do alone"
    if higher:
        said += "; products of three and more features have terms of their own"
    return f"{said}."


@dataclass(frozen=True, eq=False)
class GroupStrengths:
    """Strengths of interactions between attributes.

    Attributes
    ----------
    names : tuple of str
        The attributes.
    norm : (g, g) float64 ndarray
        √Σ w_ij² over the levels i of the one and j of the other, symmetric, 0 on the diagonal.
    used : (g, g) int ndarray
        How many of these pairs of levels are used.
    """

    names: tuple[str, ...]
    norm: np.ndarray
    used: np.ndarray

    def strongest(self, top: int, hits: Sequence[np.ndarray] = ()) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs g < h of attributes with the largest norms, of those with a used pair."""
        let = np.triu(self.used > 0, 1)
        for hit in hits:
            let &= hit[:, None] | hit
        g, h = np.nonzero(let)
        order = np.lexsort((h, g, -self.norm[g, h]))[:top]
        return g[order], h[order]

    def table(self, g: np.ndarray, h: np.ndarray) -> pd.DataFrame:
        """Return pairs as a table: ``attribute_i``, ``attribute_j``, ``strength``, ``level_pairs``."""
        names = np.asarray(self.names, dtype=object)
        return pd.DataFrame(
            {
                "attribute_i": names[g],
                "attribute_j": names[h],
                "strength": self.norm[g, h],
                "level_pairs": self.used[g, h],
            }
        )


def group_strengths(
    pairs: PairWeights, attributes: Attributes, between: Callable[[], None] = nothing
) -> GroupStrengths:
    """Compute strengths of interactions between attributes: Frobenius norms of the blocks of W.

    `between` is as in `PairWeights.upper`.

    Raises
    ------
    ValueError
        If there are more than `MOST_GROUPS` attributes.
    """
    names = attributes.groups
    if len(names) > MOST_GROUPS:
        raise ValueError(
            f"There are {len(names):,} attributes, and strengths are taken for up to {MOST_GROUPS:,}. The "
            "table of pairs ranks those of any number of features."
        )
    norm, used = pairs.by_group(attributes.codes, len(names), between)
    # Columns of one attribute are never both non-zero.
    np.fill_diagonal(norm, 0.0)
    np.fill_diagonal(used, 0)
    return GroupStrengths(names, norm, used)


def strongest_features(
    pairs: PairWeights, most: int, between: Callable[[], None] = nothing
) -> tuple[np.ndarray, int]:
    """Return the features with the largest Σ |w| over used pairs, ascending, and the number of used ones."""
    strength, count = np.zeros(pairs.rows.size), np.zeros(pairs.rows.size, dtype=int)
    for at, to, weight, used in pairs.upper(between):
        size = np.where(used, np.abs(weight), 0.0)
        for side, axis in ((at, 1), (to, 0)):
            strength[side] += size.sum(axis=axis)
            count[side] += used.sum(axis=axis)
    places = np.flatnonzero(count)
    kept = places[np.argsort(-strength[places], kind="stable")[:most]]
    return pairs.rows[np.sort(kept)], places.size


def typical_sizes(pairs: PairWeights, attributes: Attributes, g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return the root mean square over the rows of the terms of pairs of attributes; NaN where unknown.

    That of two attributes is Σ w_ij x_i x_j over the columns i of the one and j of the other.
    """
    positions = {group: attributes.positions(group) for group in map(int, np.unique([g, h]))}
    sizes = np.full(g.size, np.nan)
    for at, (first, second) in enumerate(zip(map(int, g), map(int, h), strict=True)):
        left, right = positions[first], positions[second]
        if left is not None and right is not None:
            weight, _ = pairs.among(attributes.members[first], attributes.members[second])
            sizes[at] = np.sqrt(np.mean(np.square(weight[left[0], right[0]] * left[1] * right[1])))
    return sizes


def block_of(
    pairs: PairWeights, attributes: Attributes, g: int, h: int, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the block of W between two attributes, limited to the columns with the largest weights.

    Parameters
    ----------
    pairs, attributes
        Of a run.
    g, h : int
        The places of the attributes.
    most : int
        At most so many columns of each.

    Returns
    -------
    rows, columns : int ndarrays
        The features, ascending.
    weight : ndarray
        Their weights.
    used : bool ndarray
        Which pairs are used.
    """
    rows, columns = attributes.members[g], attributes.members[h]
    weight, used = pairs.among(rows, columns)
    size = np.abs(weight)
    at = np.sort(np.argsort(-size.max(axis=1, initial=0.0), kind="stable")[:most])
    to = np.sort(np.argsort(-size.max(axis=0, initial=0.0), kind="stable")[:most])
    return rows[at], columns[to], weight[np.ix_(at, to)], used[np.ix_(at, to)]


# Number of entries of columns per block.
_BLOCK = 4_000_000
# Column-wise copies of X, cached for later pairs.
_by_columns: WeakKeyDictionary[Dataset, Any] = WeakKeyDictionary()


def rows_with_both(dataset: Dataset, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Count the rows of the data in which both features of each pair are non-zero."""
    counts = np.empty(i.size, dtype=int)
    for part, first, second in _column_blocks(dataset, i, j):
        if sp.issparse(first):
            counts[part] = np.asarray((first != 0).multiply(second != 0).sum(axis=0)).ravel()
        else:
            counts[part] = np.count_nonzero((first != 0) & (second != 0), axis=0)
    return counts


def mean_squares(dataset: Dataset, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return the mean of (x_i x_j)² over the rows of the data for each pair."""
    means = np.empty(i.size)
    for part, first, second in _column_blocks(dataset, i, j):
        if sp.issparse(first):
            means[part] = np.asarray(first.multiply(second).power(2).mean(axis=0)).ravel()
        else:
            means[part] = np.square(first * second).mean(axis=0)
    return means


def _column_blocks(dataset: Dataset, i: np.ndarray, j: np.ndarray) -> Iterator[tuple[slice, Any, Any]]:
    X: Any = dataset.X
    if sp.issparse(X):
        if dataset not in _by_columns:
            _by_columns[dataset] = sp.csc_array(X)
        X = _by_columns[dataset]
    step = max(1, _BLOCK // max(1, X.shape[0]))
    for begin in range(0, i.size, step):
        part = slice(begin, begin + step)
        yield part, X[:, i[part]], X[:, j[part]]


def named_pairs(i: np.ndarray, j: np.ndarray, weight: np.ndarray, dataset: Dataset) -> pd.DataFrame:
    """Return pairs with the names of their features; columns as in `pair_table`."""
    names = np.asarray(dataset.feature_names, dtype=object)
    return pd.DataFrame(
        {
            "feature_i": names[i],
            "feature_j": names[j],
            "weight": weight,
            "rows_with_both": rows_with_both(dataset, i, j),
        }
    )


def pair_table(model: Model, parameters: Parameters, dataset: Dataset, top: int) -> pd.DataFrame:
    """Return the pairs of the largest weights.

    Parameters
    ----------
    model : Model
        With its own parameters.
    parameters : Parameters
        What was fitted.
    dataset : Dataset
        Names the features.
    top : int
        At most so many pairs.

    Returns
    -------
    DataFrame
        Columns ``feature_i``, ``feature_j``, ``weight`` and ``rows_with_both``, sorted by falling |weight|;
        used pairs alone. Of several outputs each has so many, one after the other, and the column ``output``
        comes first.

    Raises
    ------
    ValueError
        If the model has no pairs.
    """
    parts = []
    for c in range(model.n_outputs_of(parameters)):
        ranking = pairs_of(*model.of_output(parameters, c)).ranked(top)
        parts.append(named_pairs(ranking.i, ranking.j, ranking.weight, dataset))
        if dataset.outputs:
            parts[-1].insert(0, "output", dataset.outputs[c])
    return pd.concat(parts, ignore_index=True)


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
    ranking = pairs.ranked(top, attributes.codes if attributes.grouped else None)
    table = table_of_pairs(ranking.i, ranking.j, ranking.weight, wording.dataset, wording)
    names = {
        "sentence": "in words",
        "effect": _heading(wording),
        "rows_with_both": "rows with both",
        "spread": "typical size",
        "feature_i": "feature",
        "feature_j": "with feature",
    }
    return {
        "words": ranking_words(ranking, higher=len(orders_of(model)) > 1),
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
