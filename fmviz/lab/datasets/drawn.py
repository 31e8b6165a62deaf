"""Data drawn on the spot in the shape of sets that are large, or that may not be passed on."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def text_like(n: int, terms: int, per_row: int, rng: np.random.Generator) -> tuple[sp.csr_array, np.ndarray]:
    """Return rows of unit length over Zipf-distributed terms, and a target of pairs of frequent ones.

    Parameters
    ----------
    n, terms, per_row : int
        Rows, columns, and words of a row, repetitions included.
    rng : numpy Generator
        Where everything is drawn from.

    Returns
    -------
    X : (n, terms) csr_array
        (1 + log count)·log(n / rows with the term), scaled to length 1.
    y : (n,) ndarray
        The target, of mean 0.
    """
    law = 1.0 / np.arange(1, terms + 1)
    counts = sp.csr_array(
        (
            np.ones(n * per_row),
            rng.choice(terms, n * per_row, p=law / law.sum()),
            np.arange(n + 1) * per_row,
        ),
        shape=(n, terms),
    )
    counts.sum_duplicates()
    rarity = np.log(n / np.maximum(1, np.bincount(counts.indices, minlength=terms)))
    counts.data = (1.0 + np.log(counts.data)) * rarity[counts.indices]
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1))).ravel()
    X = sp.csr_array(sp.diags_array(1.0 / norms) @ counts)
    frequent = X[:, 5:25].toarray()
    y = 100.0 * (frequent[:, ::2] * frequent[:, 1::2]).sum(axis=1)
    return X, y - y.mean() + 0.1 * rng.normal(size=n)


def rated_items(
    n: int, users: int, items: int, rank: int, rng: np.random.Generator
) -> tuple[sp.csr_array, np.ndarray]:
    """Return user and item indicators, and ratings from 1 to 5 that depend on both and on their product.

    Parameters
    ----------
    n, users, items : int
        Ratings, users and items; items are drawn by a long-tailed law, and no pair twice.
    rank : int
        Of the matrix of interactions.
    rng : numpy Generator
        Where everything is drawn from.

    Returns
    -------
    X : (N, users + items) csr_array
        Two ones a row. N is n, less what was drawn twice.
    y : (N,) ndarray
        3.5 + a_user + b_item + ⟨u, v⟩ + noise, rounded, within 1 to 5; the four parts have standard
        deviations 0.4, 0.4, 0.6 and 0.5.
    """
    user = rng.integers(0, users, n)
    item = np.minimum((items * rng.random(n) ** 2).astype(np.int64), items - 1)
    user, item = np.divmod(rng.permutation(np.unique(user * items + item)), items)
    n = user.size
    X = sp.csr_array(
        (np.ones(2 * n), np.column_stack([user, users + item]).ravel(), np.arange(n + 1) * 2),
        shape=(n, users + items),
    )
    U, V = rng.normal(size=(users, rank)), rng.normal(size=(items, rank))
    score = 3.5 + 0.4 * rng.normal(size=users)[user] + 0.4 * rng.normal(size=items)[item]
    score += 0.6 / np.sqrt(rank) * (U[user] * V[item]).sum(axis=1) + 0.5 * rng.normal(size=n)
    return X, np.clip(np.rint(score), 1.0, 5.0)
