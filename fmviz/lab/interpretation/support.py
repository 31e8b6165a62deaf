"""The learned support compared with the true one, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

__all__ = ["CLASSES", "Support", "compare_supports", "describe_support", "first_between"]

CLASSES = ("true negative", "true positive", "false negative", "false positive")
"""What the codes of a `Support` stand for."""


@dataclass(frozen=True, eq=False)
class Support:
    """Every pair, classified.

    Attributes
    ----------
    codes : (d, d) int8 ndarray
        The place in `CLASSES`.
    counts : tuple of int
        How many pairs i < j there are of each.
    """

    codes: np.ndarray
    counts: tuple[int, ...]

    @property
    def f1(self) -> float:
        """F1 of the learned support; 1 where both are empty."""
        _, hit, missed, wrong = self.counts
        return 1.0 if hit + missed + wrong == 0 else 2 * hit / (2 * hit + missed + wrong)

    @property
    def exact(self) -> bool:
        """Whether the learned support is the true one; its mean over runs is the PSSR."""
        return self.counts[2] == 0 and self.counts[3] == 0


def compare_supports(truth: np.ndarray, learned: np.ndarray, held: tuple[int, ...] = ()) -> Support:
    """Classify all pairs.

    Parameters
    ----------
    truth, learned : (d, d) array_like
        Symmetric; non-zero where the pair interacts. The diagonal is no pair.
    held : tuple of int
        Features whose pairs do not count.

    Returns
    -------
    Support
    """
    true, found = np.asarray(truth) != 0, np.asarray(learned) != 0
    codes = np.select([true & found, true & ~found, found], [1, 2, 3], 0).astype(np.int8)
    free = np.ones(codes.shape[0], dtype=bool)
    free[list(held)] = False
    upper = codes[free][:, free][np.triu_indices(int(free.sum()), 1)]
    return Support(codes, tuple(int(n) for n in np.bincount(upper, minlength=4)))


def first_between(truth: np.ndarray) -> tuple[int, int] | None:
    """Return the first two features, (i, j) with i < j, that interact in truth, but not with each other.

    Parameters
    ----------
    truth : (d, d) array_like
        Symmetric; non-zero where the pair interacts.
    """
    true = np.asarray(truth) != 0
    matters = true.any(axis=0)
    apart = np.argwhere(np.triu(np.outer(matters, matters) & ~true, 1))
    return (int(apart[0, 0]), int(apart[0, 1])) if len(apart) else None


def describe_support(used: np.ndarray, truth: np.ndarray | None = None) -> str:
    """Say which pairs a model uses, and where the truth is known, how they lie to it.

    Parameters
    ----------
    used : (d, d) array_like
        Symmetric; non-zero where the pair is used. The diagonal is no pair.
    truth : (d, d) array_like, optional
        Likewise, the pairs that interact.

    Returns
    -------
    str
        One sentence, with pairs that are used in vain told apart: between two groups of features that the
        truth connects, or with a feature that interacts with none.
    """
    found = np.asarray(used) != 0
    d = found.shape[0]
    upper = np.triu(np.ones((d, d), dtype=bool), 1)
    n, total, features = int((found & upper).sum()), d * (d - 1) // 2, int(found.any(axis=0).sum())
    if n == 0:
        return "No pair is left."
    complete = n == features * (features - 1) // 2
    if n == total:
        says = f"All {total:,} pairs"
    elif complete and features > 2:
        says = f"{features:,} features and all their {n:,} pairs"
    else:
        says = f"{n:,} of {total:,} pairs"
    if truth is None:
        return f"{says}." if complete else f"{says}, of {features:,} features."
    true = np.asarray(truth) != 0
    np.fill_diagonal(true, False)
    n_true, hit = int((true & upper).sum()), int((found & true & upper).sum())
    if hit == n == n_true:
        return f"Exactly the {n:,} true pairs."
    part = "all" if hit == n_true else f"{hit:,} of the"
    hits = f"{part} {n_true:,} true ones"
    if hit == n:
        return f"{says}: {hits}, and no other."
    matters = true.any(axis=0)
    _, group = connected_components(true, directed=False)
    wrong = found & ~true & upper
    between = int((wrong & np.outer(matters, matters) & (group[:, None] != group)).sum())
    noise = int((wrong & ~np.outer(matters, matters)).sum())
    rest = int(wrong.sum()) - between - noise
    others = [
        f"{count:,} {where}"
        for count, where in (
            (rest, "false ones within the groups"),
            (between, "between the groups"),
            (noise, "with noise"),
        )
        if count
    ]
    return f"{says}: {', '.join([hits, *others[:-1]])} and {others[-1]}."
