"""Comparison of runs: the Pareto front, differences of W, and interactions that recur across seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fmviz.engine.interactions.of_order import orders_of, pairs_of
from fmviz.engine.interactions.pairs import GivenPairs
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.lab.background.thinned import EXACT_FEATURES, N_TILES

__all__ = [
    "LOWER_IS_BETTER",
    "MOST_FEATURES",
    "Weights",
    "difference",
    "pareto",
    "selected_counts",
    "stability",
]

LOWER_IS_BETTER = ("rmse", "loss", "estimation_error", "objective")
"""The ends of the names of metrics that are better the smaller they are; of all others larger is better."""

# W of more features is not formed: 4,000² numbers are 128 MB.
MOST_FEATURES = 4_000


@dataclass(frozen=True, eq=False)
class Weights:
    """The pair weights of a run.

    Attributes
    ----------
    W : (d, d) float64 ndarray
        Symmetric, its diagonal 0.
    used : (d, d) bool ndarray
        Which pairs are used: exactly, also where a weight cancels to 0.
    """

    W: np.ndarray
    used: np.ndarray

    @classmethod
    def of(cls, model: Model, parameters: Parameters) -> Weights:
        """Return the pair weights of the parameters of a model.

        Raises
        ------
        ValueError
            If the model has no pairs or several outputs, or there are more than `MOST_FEATURES` features.
        """
        if (m := model.n_outputs_of(parameters)) > 1:
            raise ValueError(
                f"These runs have {m:,} outputs with weights of their own each. Curves "
                "and tables compare them; the page Interactions reads one output at a time."
            )
        if parameters.W is None and 2 not in orders_of(model):
            raise ValueError(f"The {model.label.lower()} has no weights of pairs that could be compared.")
        pairs = pairs_of(*model.of_output(parameters, 0))
        d = pairs.n_features
        if d > MOST_FEATURES:
            raise ValueError(
                f"These runs have {d:,} features, and W is formed for up to {MOST_FEATURES:,}. Curves and "
                "tables have no such limit."
            )
        every = np.arange(d)
        return cls(*pairs.among(every, every))


def difference(one: Weights, other: Weights) -> np.ndarray:
    """Return W of one run minus that of another, as tiles where there are many features."""
    apart = one.W - other.W
    return apart if len(apart) <= EXACT_FEATURES else GivenPairs.of(apart).pooled(N_TILES)


def stability(found: Sequence[Weights], names: Sequence[str], top: int = 200) -> pd.DataFrame:
    """Return how often each pair is used among runs, the most stable pairs first.

    Parameters
    ----------
    found : sequence of Weights
        The pair weights of runs that differ in their seed.
    names : sequence of str
        The features.
    top : int
        At most so many rows.

    Returns
    -------
    DataFrame
        Columns Feature, with feature, Selected in (the share of the runs), Mean weight (over the runs that
        use the pair), Same sign (the share of those whose weight has the sign of the mean).
    """
    count = np.array([np.triu(w.used, 1) for w in found]).sum(axis=0)
    i, j = np.nonzero(count)
    values = np.array([w.W[i, j] for w in found]).reshape(len(found), i.size)
    times = count[i, j]
    mean = values.sum(axis=0) / np.maximum(times, 1)
    same = np.sum((np.sign(values) == np.sign(mean)) & (values != 0), axis=0) / np.maximum(times, 1)
    order = np.lexsort((-np.abs(mean), -times))[:top]
    labels = np.asarray(names, dtype=object)
    return pd.DataFrame(
        {
            "Feature": labels[i[order]],
            "with feature": labels[j[order]],
            "Selected in": times[order] / len(found),
            "Mean weight": mean[order],
            "Same sign": same[order],
        }
    )


def selected_counts(found: Sequence[Weights]) -> np.ndarray:
    """Return how many pairs are used in exactly 1, 2, …, all of the runs; shape (number of runs,)."""
    count = np.array([w.used for w in found]).sum(axis=0)
    return np.bincount(count[np.triu_indices_from(count, 1)], minlength=len(found) + 1)[1:]


def pareto(interactions: Sequence[float], metric: Sequence[float], lower: bool) -> np.ndarray:
    """Return which runs are on the Pareto front: no other has as few interactions and as good a metric.

    Parameters
    ----------
    interactions, metric : sequences of float
        One value a run; NaN is never on the front.
    lower : bool
        Whether a smaller metric is better.

    Returns
    -------
    bool ndarray
    """
    x = np.asarray(interactions, dtype=float)
    y = np.asarray(metric, dtype=float) * (1.0 if lower else -1.0)
    known = np.isfinite(x) & np.isfinite(y)
    at_most = (x[:, None] <= x) & (y[:, None] <= y)
    better = at_most & ((x[:, None] < x) | (y[:, None] < y)) & known[:, None]
    return known & ~better.any(axis=0)
