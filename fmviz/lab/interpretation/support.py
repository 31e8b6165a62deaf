"""The learned support compared with the true one, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["CLASSES", "Support", "compare_supports"]

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
