"""Stability selection: the frequency of each pair in fits of a path, over starts and halves of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.errors import whole_number
from fmviz.engine.fit import Budget, never
from fmviz.engine.problem import Problem
from fmviz.engine.starts.strengths import References
from fmviz.metrics import used_pairs

from .path import FALL, iterate_path, onwards, problem_of

STARTS, HALVES = 2, 5


def iterate_selection(
    problem: Problem,
    lambdas: Sequence[float],
    *,
    starts: int = STARTS,
    halves: int = HALVES,
    random_state: Any = None,
    should_stop: Callable[[], bool] = never,
    **path: Any,
) -> Iterator[np.ndarray]:
    """Yield the masks of used pairs along a path, (L, d, d) bool by ascending λ, for every half and start.

    `path` are keywords of `iterate_path`; fits are warm-started along λ.
    """
    rng = np.random.default_rng(random_state)
    path = {"start": "informed", "orders": (onwards(problem),)} | path
    n = problem.design.n_samples
    for _ in range(halves):
        part = problem.of_rows(np.sort(rng.choice(n, n // 2, replace=False)))
        for _ in range(starts):
            points = [*iterate_path(part, lambdas, random_state=rng, should_stop=should_stop, **path)]
            if should_stop():
                return
            points.sort(key=lambda point: point.lambda_sparse)
            yield np.array([used_pairs(part.model.union(each.snapshot.parameters)) for each in points])


def frequency_table(
    used: Sequence[np.ndarray], lambdas: Sequence[float], names: Sequence[Any]
) -> pd.DataFrame:
    """Return the table of `selection_frequencies` for the masks from `iterate_selection`."""
    share = np.mean(used, axis=0)
    i, j = np.nonzero(np.triu(share.any(axis=0), 1))
    table = pd.DataFrame(share[:, i, j].T, pd.MultiIndex.from_arrays([i, j]), sorted(lambdas))
    table.attrs.update(names=[*map(str, names)], paths=len(used))
    return table


def selection_frequencies(  # noqa: PLR0913 (keywords as those of the estimators)
    X: Any,
    y: Any,
    lambdas: Sequence[float] | None = None,
    *,
    starts: int = STARTS,
    halves: int = HALVES,
    max_iter: int = 1_000,
    tol: float = 1e-4,
    random_state: Any = None,
    standardize: bool | str = "auto",
    **problem: Any,
) -> pd.DataFrame:
    """Return the frequency of each pair in fits of a path, over random halves of the rows and starts.

    Parameters
    ----------
    X, y, lambdas, max_iter, tol, standardize, **problem
        As for `fmviz.regularization_path`; columns are scaled by all rows.
    starts : int, default=2
        The number of random starts on each half.
    halves : int, default=5
        The number of random halves of the rows, drawn without replacement.
    random_state : int or Generator, optional
        Draws the halves and the starts.

    Returns
    -------
    DataFrame
        The share of the ``starts × halves`` paths that use a pair: a row for each pair (i, j), i < j, of
        features used by any fit, and a column for each λ, ascending. `fmviz.plot.selection` draws it.

    Raises
    ------
    ValueError
        If an argument is out of range, or arguments are incompatible.

    Examples
    --------
    All paths use the 18 planted pairs at λ = 0.1:

    >>> import fmviz
    >>> X, y, W = fmviz.datasets.make_sparse_interactions(200, d_true=12, b=3, d_noise=8, random_state=0)
    >>> table = fmviz.selection_frequencies(X, y, [0.1, 0.2], halves=2, lambda_p=0.1, random_state=0)
    >>> int((table[0.1] == 1).sum())
    18
    """
    described, _ = problem_of(X, y, standardize, problem)
    known = References(described)
    lambdas = known.grid() if lambdas is None else lambdas
    used = iterate_selection(
        described,
        lambdas,
        starts=whole_number("starts", starts, 1),
        halves=whole_number("halves", halves, 1),
        random_state=random_state,
        init_scale=known.init_scale,
        budget=Budget(whole_number("max_iter", max_iter, 1), tol=tol, fall=FALL),
    )
    return frequency_table([*used], lambdas, getattr(X, "columns", range(described.design.n_features)))
