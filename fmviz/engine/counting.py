"""Used features and used interactions, counted exactly from the support of P.

A pair i < j is *used* where the rows p_i and p_j share a column in which both are non-zero: the structure
alone decides, no tolerance and no product that may underflow or cancel. Rows are grouped by their support
pattern, so no d × d table is built at any d.
"""

from __future__ import annotations

import numpy as np

from ._jit import named


def used_features(P: np.ndarray) -> int:
    """Return the number of non-zero rows of P, shape (d, k)."""
    return int(np.count_nonzero(P.any(axis=1)))


def support_patterns(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct non-empty supports of the rows of P and how often each occurs.

    Parameters
    ----------
    P : (d, k) ndarray
        The factors.

    Returns
    -------
    patterns : (u, words) uint64 ndarray
        Bit s of a pattern is set where column s is in the support.
    counts : (u,) int64 ndarray
        The number of rows with that support.
    """
    mask = P != 0
    mask = mask[mask.any(axis=1)]
    words = -(-P.shape[1] // 64)
    octets = np.zeros((mask.shape[0], 8 * words), dtype=np.uint8)
    octets[:, : -(-P.shape[1] // 8)] = np.packbits(mask, axis=1)
    packed = octets.view(np.uint64)
    if words == 1:
        single, counts = np.unique(packed[:, 0], return_counts=True)
        return single.reshape(-1, 1), counts.astype(np.int64)
    patterns, counts = np.unique(packed, axis=0, return_counts=True)
    return np.ascontiguousarray(patterns), counts.astype(np.int64)


@named()
def count_meeting(patterns, counts):
    """Count the pairs of rows whose patterns have a bit in common."""
    total = 0
    for u in range(patterns.shape[0]):
        total += counts[u] * (counts[u] - 1) // 2
        meeting = 0
        for v in range(u + 1, patterns.shape[0]):
            common = patterns[u, 0] & patterns[v, 0]
            for word in range(1, patterns.shape[1]):
                common |= patterns[u, word] & patterns[v, word]
            if common != 0:
                meeting += counts[v]
        total += counts[u] * meeting
    return total


def used_interactions(P: np.ndarray) -> int:
    """Return the number of pairs i < j that P, shape (d, k), uses."""
    patterns, counts = support_patterns(P)
    return int(count_meeting(patterns, counts))


def used_mask(P: np.ndarray) -> np.ndarray:
    """Return the (d, d) boolean matrix of used pairs, with a False diagonal; for small d only."""
    mask = (P != 0).astype(np.float32)
    used = (mask @ mask.T) > 0
    np.fill_diagonal(used, False)
    return used
