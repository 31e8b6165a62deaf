"""What a fitted model says about pairs of features and of attributes, searchable and in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fmviz.engine.interactions.pairs import PairWeights, Ranking, nothing
from fmviz.lab.datasets import Dataset
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.pair_table import mean_squares, named_pairs
from fmviz.lab.interpretation.wording import Wording

__all__ = [
    "MOST_GROUPS",
    "GroupStrengths",
    "Search",
    "block_of",
    "group_strengths",
    "ranking_words",
    "table_of_pairs",
    "typical_sizes",
]

MOST_GROUPS = 1_500
"""So many attributes have their strengths taken by pairs."""


@dataclass(frozen=True)
class Search:
    """Which pairs are asked for.

    Attributes
    ----------
    words : str
        Parts of the names of features or attributes, separated by semicolons, in quotation marks whole names;
        a pair has each of them in one at least of its two features.
    """

    words: str = ""

    def hits(self, names: Sequence[str], groups: Sequence[str] | None = None) -> list[np.ndarray]:
        """Return for every word which of the names have it.

        Parameters
        ----------
        names : sequence of str
            Of features, or of attributes.
        groups : sequence of str, optional
            The attribute of each, which counts as part of its name.
        """
        own = [name.lower() for name in names]
        group = own if groups is None else [name.lower() for name in groups]
        found = []
        for word in (part.strip().lower() for part in self.words.split(";")):
            if len(word) > 2 and word[0] == word[-1] == '"':
                found.append(np.array([word[1:-1] in pair for pair in zip(own, group, strict=True)]))
            elif word:
                found.append(np.array([word in n or word in g for n, g in zip(own, group, strict=True)]))
        return found

    @staticmethod
    def exactly(name: str) -> str:
        """Return the words that find a whole name, which are none where it holds a mark of its own."""
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


def ranking_words(found: Ranking, higher: bool) -> str:
    """Return how many pairs there are and which are listed; with `higher` orders beside them.

    Of none that is listed, why there are none.
    """
    if not found.total and found.siblings:
        return f"All {found.siblings:,} used pairs join levels of one attribute, which no row has together."
    if not found.total:
        return "The model uses no pair: its regularizer has set all of them to zero."
    said = f"{found.total:,} used pairs" if found.total != 1 else "1 used pair"
    if found.total > found.i.size:
        said += f"; the {found.i.size} of largest weight are listed"
    if found.siblings:
        said += f". {found.siblings:,} more join levels of one attribute, of which no row has two"
    said += ". Each sentence tells what the pair adds to what both do alone"
    if higher:
        said += "; products of three and more features have terms of their own"
    return f"{said}."


@dataclass(frozen=True, eq=False)
class GroupStrengths:
    """How strongly attributes interact.

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
    """Return how strongly attributes interact, by the Frobenius norms of the blocks of W.

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
    """Return the features of largest Σ |w| over their used pairs, ascending, and how many are in any."""
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
    """Return the root mean square over the rows of what pairs of attributes add to f; NaN where unknown.

    That of two attributes is Σ w_ij x_i x_j over the columns i of the one and j of the other.
    """
    held = {group: attributes.positions(group) for group in map(int, np.unique([g, h]))}
    sizes = np.full(g.size, np.nan)
    for at, (one, two) in enumerate(zip(map(int, g), map(int, h), strict=True)):
        left, right = held[one], held[two]
        if left is not None and right is not None:
            weight, _ = pairs.among(attributes.members[one], attributes.members[two])
            terms = weight[left[0], right[0]] * left[1] * right[1]
            sizes[at] = np.sqrt(np.mean(np.square(terms)))
    return sizes


def block_of(
    pairs: PairWeights, attributes: Attributes, g: int, h: int, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the block of W between two attributes, of their columns of largest weight.

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
