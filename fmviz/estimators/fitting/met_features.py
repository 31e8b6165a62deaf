"""Features that no row has: left out of a fit of very many, and given parameters of 0 afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.engine.errors import whole_number
from fmviz.engine.memory import available_bytes, in_words
from fmviz.engine.models import Model
from fmviz.engine.snapshot import Snapshot

# With fewer features there is nothing to gain, with few of them left out not enough.
_MANY, _MOST = 100_000, 0.5


def met_part(X: Any, model: Model, rank: int, dummies: int) -> tuple[Any, np.ndarray | None]:
    """Return X without the features that no row has, and the places of the others.

    No prediction of the training rows depends on the parameters of a feature that no row has, and any
    penalty is least where these are 0.

    Parameters
    ----------
    X : (N, d) ndarray or sparse array
        Checked data.
    model : Model
    rank : int
    dummies : int
        The number of dummy features that the model has besides those of X.

    Returns
    -------
    X : (N, n) ndarray or sparse array
        The whole X where there is little to leave out.
    met : (n,) int ndarray or None
        None for the whole X.

    Raises
    ------
    ValueError
        If the parameters of all d features, which are to be given back, need more memory than is free.
    """
    d = X.shape[1]
    if not sp.issparse(X) or d < _MANY:
        return X, None
    met = np.flatnonzero(np.diff(X.indptr)) if X.format == "csc" else np.unique(X.indices)
    if met.size > _MOST * d:
        return X, None
    rank = whole_number("rank", rank, 0)
    needed = 8.0 * sum(np.prod(shape, dtype=float) for shape in model.shapes(d + dummies, rank).values())
    if needed > (free := available_bytes()):
        # Of models that hold a matrix of all pairs, this says more.
        model.check_size(d, rank)
        raise ValueError(
            f"rank = {rank:,} and {d:,} features need {in_words(needed)}, and {in_words(free)} are free. "
            "Choose a smaller rank, or leave out the features that no row has."
        )
    return X[:, met], met


def widened(end: Snapshot, model: Model, met: np.ndarray | None, d: int) -> Snapshot:
    """Return the end of a run with parameters of d features, given those of the features that were met.

    Parameters
    ----------
    end : Snapshot
        Its parameters are those of the features met, and of dummy features after them.
    model : Model
        Tells the axes of the arrays along which features lie.
    met : (n,) int ndarray or None
        The places of the features met among all d; None where all of them were.
    d : int
        The number of all features, without dummies.
    """
    if met is None:
        return end
    few, many = model.shapes(1, 1), model.shapes(2, 1)
    arrays = {}
    for name, array in end.parameters.items():
        # Of several machines there is an axis more, the first.
        extra = array.ndim - len(few[name])
        along = [extra + i for i, (a, b) in enumerate(zip(few[name], many[name], strict=True)) if a != b]
        dummies = array.shape[along[0]] - met.size if along else 0
        places = np.concatenate([met, np.arange(d, d + dummies)])
        wide = np.zeros([d + dummies if i in along else size for i, size in enumerate(array.shape)])
        wide[np.ix_(*(places if i in along else np.arange(n) for i, n in enumerate(array.shape)))] = array
        arrays[name] = wide
    return replace(end, parameters=end.parameters.replace(**arrays))
