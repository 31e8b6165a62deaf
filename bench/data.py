"""Benchmark data sets, with strengths at which P stays non-zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.datasets import list_datasets, load, make_sparse_interactions
from fmviz.engine.losses import get_loss
from fmviz.engine.problem import Problem
from papers.blondel2016 import text_like

from .timing import RANK


@dataclass(frozen=True, eq=False)
class Data:
    """A data set with its strengths and start.

    `lambda_sparse` has an entry for each regularizer whose strength differs from the entry "".
    """

    name: str
    X: Any
    y: np.ndarray
    lambda_p: float
    lambda_sparse: dict[str, float]
    init_scale: float

    def problem(self, regularizer: str, loss: str = "squared", **more: Any) -> Problem:
        """Return the problem without linear term and bias; a binary loss gets the sign of y, a count |y|."""
        strengths = {
            "lambda_p": self.lambda_p,
            "lambda_sparse": self.lambda_sparse.get(regularizer, self.lambda_sparse[""]),
        }
        return Problem.build(
            self.X,
            (
                np.where(self.y >= 0.0, 1.0, -1.0)
                if get_loss(loss).task == "binary"
                else np.abs(self.y)
                if get_loss(loss).log_link
                else self.y
            ),
            loss=loss,
            penalty=regularizer,
            rank=RANK,
            **(strengths | {"fit_linear": False, "fit_intercept": False} | more),
        )


def one_hot(n: int, users: int, items: int, rng: np.random.Generator) -> tuple[sp.csr_array, np.ndarray]:
    """Return user and item indicators, with long-tailed item frequencies, and ratings that depend on both."""
    user = rng.integers(0, users, n)
    item = np.minimum((items * rng.random(n) ** 2).astype(int), items - 1)
    columns = np.column_stack([user, users + item]).reshape(-1)
    X = sp.csr_array((np.ones(2 * n), columns, np.arange(n + 1) * 2), shape=(n, users + items))
    U, V = rng.normal(size=(users, 4)), rng.normal(size=(items, 4))
    return X, (U[user] * V[item]).sum(axis=1) / 2.0 + 0.5 * rng.normal(size=n)


def planted(n: int, d_true: int, b: int, d_noise: int) -> Data:
    """Return a dense set with planted groups of interacting features."""
    X, y, _ = make_sparse_interactions(n, d_true, b, d_noise, random_state=0)
    return Data(f"dense {n:,} × {d_true + d_noise:,}", X, y, 0.01, {"": 0.001}, 0.01)


def ml100k_like(n: int = 100_000, users: int = 943, items: int = 1_682) -> Data:
    """Return one-hot users and items in the shape of MovieLens 100K."""
    X, y = one_hot(n, users, items, np.random.default_rng(0))
    return Data(f"one-hot {n:,} × {users + items:,}", X, y, 1e-5, {"": 1e-9, "l1": 1e-6, "l21": 1e-6}, 0.1)


def text(n: int = 20_000, terms: int = 10_000, per_row: int = 60) -> Data:
    """Return sparse data with real values, like term weights of short texts."""
    X, y = text_like(n, terms, per_row, np.random.default_rng(0))
    return Data(f"text-like {n:,} × {terms:,}", X, y, 1e-7, {"": 1e-11, "l1": 1e-8, "l21": 1e-8}, 0.1)


@cache
def _shape(name: str) -> Data:
    return SHAPES[name]()


SHAPES: dict[str, Callable[[], Data]] = {
    "dense 200 × 100": lambda: planted(200, 80, 8, 20),
    "dense 20,000 × 100": lambda: planted(20_000, 80, 8, 20),
    "dense 2,500 × 1,000": lambda: planted(2_500, 1_000, 10, 0),
    "dense 2,500 × 4,000": lambda: planted(2_500, 4_000, 40, 0),
    "one-hot 100,000 × 2,625": ml100k_like,
    "text-like 20,000 × 10,000": text,
}
QUICK = ("dense 200 × 100", "one-hot 100,000 × 2,625")


def shapes(quick: bool) -> list[Data]:
    """Return the data sets of the epoch tables, few of them for a quick run."""
    return [_shape(name) for name in (QUICK if quick else SHAPES)]


def movielens() -> Data | None:
    """Return MovieLens 100K, centred; None without FMVIZ_DATA.

    The strengths are below those of atarashi2021 (C.2), at which all of P becomes 0: TI ends with 6 % of P
    non-zero, CS with 70 %, and a run converges within a few hundred epochs.
    """
    if "movielens_100k" not in list_datasets(available_only=True):
        return None
    movies = load("movielens_100k")
    X = sp.csr_array(movies.X)
    return Data("MovieLens 100K", X, movies.y - movies.y.mean(), 2e-5, {"": 2e-7, "cs": 7e-8}, 0.1)
