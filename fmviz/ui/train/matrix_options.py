"""Which interactions of a model with several orders are shown: one order, or a slice of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.interactions.of_order import Interactions, interactions_of
from fmviz.engine.models import Model
from fmviz.engine.models.columns import Polynomial
from fmviz.engine.parameters import Parameters
from fmviz.lab.background.thinned import EXACT_FEATURES, N_TILES, ThinnedFactors
from fmviz.lab.datasets import Dataset
from fmviz.lab.runner import pairs_matrix, truth_of
from fmviz.ui.components.matrix_view import NOT_AN_INTERACTION, CodesFrame, encode_codes
from fmviz.ui.widgets import superscript

_AUTOMATIC_ROWS = 100


def order_name(order: int) -> str:
    """Return "pairs", "triples" or "sets of 4"."""
    return {2: "pairs", 3: "triples"}.get(order, f"sets of {order}")


@dataclass(frozen=True)
class Look:
    """An order of a columnar model; beyond 2 a slice, at m − 2 features.

    Attributes
    ----------
    model : Model
        With its own parameters.
    order : int
        m.
    at : tuple of int
        The features that are held; () for order 2.
    """

    model: Model
    order: int
    at: tuple[int, ...] = ()

    def interactions(self, found: Parameters | ThinnedFactors) -> Interactions:
        """Return what the picture shows: all of the order, or the slice."""
        every = interactions_of(self.model, found, self.order)
        return every.at(self.at) if self.at else every

    def label(self) -> str:
        """Return the formula of the matrix in plain characters."""
        if self.order > 2 and self.model.lifted:
            return f"𝒲{'ᵢₕₐₑₒₓᵤᵥ'[: len(self.at)]}ⱼₗ"
        if self.order > 2:
            held = "".join(f"p{x}ₛ" for x in "ᵢₕₐₑₒₓᵤᵥ"[: len(self.at)])
            coefficient = "λₛ " if self.model.weighted else ""
            return f"Σₛ {coefficient}{held} pⱼₛ pₗₛ"
        if self.model.by_order:
            mark = f"⁽{superscript(self.order)}⁾"
            return f"P{mark}P{mark}ᵀ"
        return self.model.notation.weights

    def picture(self, thinned: ThinnedFactors, key: str, caption: str) -> CodesFrame:
        """Return the matrix as codes; of many features, as tiles."""
        shown = self.interactions(thinned)
        if shown.n_features > EXACT_FEATURES:
            codes, scale = encode_codes(np.nan_to_num(shown.pairs().pooled(N_TILES)))
            return CodesFrame(codes, scale, key=key, caption=caption)
        codes, scale = encode_codes(np.nan_to_num(shown.matrix()), grey_diagonal=not shown.repeats)
        if not shown.repeats:
            held = list(self.at)
            codes[held] = codes[:, held] = NOT_AN_INTERACTION
        return CodesFrame(codes, scale, key=key, caption=caption)

    def truth(self, dataset: Dataset) -> tuple[np.ndarray | None, bool]:
        """Return the true weights beside the picture or None, and whether their size is to be compared."""
        if self.order == 2:
            if dataset.truth is not None:
                return dataset.truth, not factors_repeat(self.model)
            return pairs_matrix(dataset), False
        if self.order != 3 or dataset.true_triples is None:
            return None, False
        d = dataset.X.shape[1]
        structure = np.zeros((d, d))
        for triple in dataset.true_triples:
            if self.at[0] in triple:
                j, l = (x for x in triple if x != self.at[0])  # noqa: E741 - as in the formula
                structure[j, l] = structure[l, j] = 1.0
        return structure, False


def factors_repeat(model: Model) -> bool:
    """Return whether features may repeat in a product: the matrix is not that of the pairs' weights."""
    one: Any = model
    if one.lifted:
        return not one.distinct
    return bool(one.columnar) and any(isinstance(kernel, Polynomial) for kernel in one.kernels())


def completed(interactions: Interactions, chosen: Sequence[int]) -> tuple[int, ...]:
    """Return m − 2 features for a slice: those chosen, and as many of the strongest set that has them."""
    need = interactions.order - 2
    found = [j for j in chosen if j < interactions.n_features][:need]
    if len(found) < need:
        sets = interactions.within(most=_AUTOMATIC_ROWS).ranked(50)[0].tolist()
        best: list[int] = next((one for one in sets if set(found) <= set(one)), [])
        rest = [*best, *range(interactions.n_features)]
        found += [j for j in dict.fromkeys(rest) if j not in found][: need - len(found)]
    return tuple(found)


def true_sets(dataset: Dataset, order: int) -> set[tuple[int, ...]] | None:
    """Return the sets of so many features that truly interact, or None where they are not known."""
    if order == 3:
        return None if dataset.true_triples is None else set(dataset.true_triples)
    if order != 2:
        return None
    truth = truth_of(dataset)
    if truth is not None and truth.ndim == 3:
        # What is used in any of several outputs.
        truth = np.abs(truth).sum(axis=0)
    return None if truth is None else {(int(i), int(j)) for i, j in np.argwhere(np.triu(truth, 1))}


def rows_with_all(dataset: Dataset, sets: np.ndarray) -> np.ndarray:
    """Return in how many rows of the data all features of each set, shape (t, m), are non-zero."""
    counts = []
    for features in sets:
        columns = dataset.X[:, features]
        both = np.asarray((columns != 0).sum(axis=1)).ravel() == features.size
        counts.append(int(both.sum()))
    return np.array(counts, dtype=int)


def sets_table(interactions: Interactions, dataset: Dataset, top: int) -> pd.DataFrame:
    """Return the sets with the largest weights in words, as `interactions.pairs_table` does."""
    sets, weight = interactions.ranked(top)
    names = np.asarray(dataset.feature_names, dtype=object)
    heads = ["Feature", "with", *("and" + " " * extra for extra in range(interactions.order - 2))]
    table = pd.DataFrame({head: names[sets[:, at]] for at, head in enumerate(heads)})
    table["Weight"] = weight
    table["Rows with all"] = rows_with_all(dataset, sets)
    true = true_sets(dataset, interactions.order)
    if true is not None:
        table["In truth"] = [tuple(int(j) for j in one) in true for one in sets]
    return table
