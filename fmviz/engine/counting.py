"""Count used features and used interactions exactly from the support of the parameters.

A set of features is *used* if its rows can be assigned to the factors of a column with all entries non-zero.
This depends only on the structure, without tolerance, underflow or cancellation. Rows are grouped by support
pattern, which avoids d × d tables.
"""

from __future__ import annotations

from math import comb

import numpy as np

from ._jit import jitable, named, python_version


def used_features(P: np.ndarray) -> int:
    """Return the number of non-zero rows of P, shape (d, k)."""
    return int(np.count_nonzero(P.any(axis=1)))


def used_mask(P: np.ndarray) -> np.ndarray:
    """Return the (d, d) boolean matrix of used pairs, with a False diagonal; for small d only."""
    mask = (P != 0).astype(np.float32)
    used = (mask @ mask.T) > 0
    np.fill_diagonal(used, False)
    return used


def features_in_products(factors: np.ndarray, distinct: bool) -> np.ndarray:
    """Return the features in products of non-zero entries, one from every factor of a column.

    Parameters
    ----------
    factors : (m, d, k) ndarray
        U¹, …, U^m.
    distinct : bool
        Whether the entries must come from different rows; for m = 2 only.

    Returns
    -------
    (d,) bool ndarray
    """
    support = factors != 0
    counts = support.sum(axis=1, keepdims=True)
    others = counts[::-1] > support[::-1] if distinct else (counts > 0).all(axis=0, keepdims=True)
    return np.asarray((support & others).any(axis=(0, 2)))


def used_interactions(P: np.ndarray) -> int:
    """Return the number of pairs i < j that P, shape (d, k), uses."""
    return used_sets(P[None], 2)


def used_sets(factors: np.ndarray, order: int) -> int:
    """Count the sets of distinct rows that can be assigned to the factors of a column without zero entries.

    Parameters
    ----------
    factors : (f, d, k) ndarray
        U¹, …, U^m with f = `order`, or with f = 1 a matrix used for every factor.
    order : int
        m ≥ 2, the size of the sets.

    Returns
    -------
    int
        The number of sets {j_1, …, j_m} for which there are an s and an order of the set with
        u^t_{j_t s} ≠ 0 for t = 1, …, m; exact, by structure.
    """
    mask = factors != 0
    # Columns that are zero in any factor would only split groups of rows.
    mask = mask[:, :, mask.any(axis=1).all(axis=0)]
    mask = mask[:, mask.any(axis=(0, 2))]
    if mask.shape[1] < order:
        return 0
    rows = _packed(mask.transpose(1, 0, 2))
    by = np.lexsort(rows.reshape(len(rows), -1).T)
    rows = rows[by]
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]).any(axis=(1, 2)), True])
    holders = _packed(mask[:, by].transpose(0, 2, 1))
    holders = holders.reshape(-1, holders.shape[2])
    ways = np.ones(order + 1, dtype=np.int64)
    if order * comb(len(rows), order) < 2**62:
        return int(count_sets(rows[starts[:-1]], starts, holders, ways))
    # Too many for machine integers; Python's are unlimited.
    return python_version(count_sets)(rows[starts[:-1]], starts.tolist(), holders, ways.tolist())


def _packed(mask: np.ndarray) -> np.ndarray:
    """Pack the last axis of a mask into 64-bit words: bit s of word i is entry 64·i + s."""
    octets = np.packbits(mask, axis=-1, bitorder="little")
    padding = [(0, 0), (0, 0), (0, -octets.shape[-1] % 8)]
    return np.ascontiguousarray(np.pad(octets, padding)).view(np.uint64)


@jitable
def ones(word):
    """Return the number of set bits in a word."""
    for shift, mask in (
        (np.uint64(1), np.uint64(0x5555555555555555)),
        (np.uint64(2), np.uint64(0x3333333333333333)),
        (np.uint64(4), np.uint64(0x0F0F0F0F0F0F0F0F)),
        (np.uint64(8), np.uint64(0x00FF00FF00FF00FF)),
        (np.uint64(16), np.uint64(0x0000FFFF0000FFFF)),
        (np.uint64(32), np.uint64(0x00000000FFFFFFFF)),
    ):
        word = (word & mask) + ((word >> shift) & mask)
    return np.int64(word)


@named()
def count_sets(patterns, starts, holders, ways):  # noqa: C901 (a compiled loop)
    """Count the sets of m rows that can be assigned to the m factors of a column.

    `patterns` has shape (groups, f, words): ``patterns[i, t]`` has bit s set if the rows of group i, from
    ``starts[i]`` to ``starts[i + 1]``, are non-zero in column s of factor t; f = 1 if all factors are equal.
    `ways`, of length m + 1 with ``ways[0]`` = 1, is work space. ``masks[q, S]`` has bit s set if the q rows
    chosen so far can be assigned to the factors in the set S of column s; a branch ends when no bit remains.
    The last row of a set is not enumerated: ``holders[t·k + s]`` has bit r set if row r, counted along the
    groups, is non-zero in column s of factor t; the rows that complete a set are a union of these.
    """
    u, factors, words = patterns.shape
    rank, spans = holders.shape[0] // factors, holders.shape[1]
    degree = len(ways) - 1
    states = 1 if factors == 1 else 1 << factors
    masks = np.zeros((degree, states, words), dtype=np.uint64)
    masks[0, 0] = ~np.uint64(0)
    columns = np.empty(holders.shape[0], dtype=np.int64)
    group = np.zeros(degree, dtype=np.int64)
    repeats = np.zeros(degree, dtype=np.int64)
    index = np.zeros(degree, dtype=np.int64)
    total = 0
    level = 0
    while level >= 0:
        i = index[level]
        if i >= u:
            level -= 1
            continue
        index[level] += 1
        r = 1
        if level > 0 and group[level - 1] == i:
            r = int(repeats[level - 1]) + 1
        # The binomial coefficient of group size and r, from that of r − 1; 0 for larger r.
        choices = ways[level] * (starts[i + 1] - starts[i] - r + 1) // r
        if level == degree - 1:
            # Matching rows of this group and of all later groups.
            width = 0
            meets = False
            for t in range(factors):
                S = (states - 1) & ~(1 << t)
                for word in range(words):
                    meets = meets or masks[level, S, word] & patterns[i, t, word] != 0
                for s in range(rank):
                    if masks[level, S, s // 64] >> np.uint64(s % 64) & np.uint64(1) != 0:
                        columns[width] = t * rank + s
                        width += 1
            rows = 0
            for span in range(starts[i + 1] // 64, spans):
                union = np.uint64(0)
                for c in range(width):
                    union |= holders[columns[c], span]
                if span == starts[i + 1] // 64:
                    union = union >> np.uint64(starts[i + 1] % 64)
                rows += ones(union)
            total += ways[level] * int(rows)
            if meets:
                total += choices
            level -= 1
            continue
        if choices <= 0:
            continue
        meets = False
        masks[level + 1] = 0
        for S in range(states):
            for t in range(factors):
                if S & (1 << t) == 0:
                    for word in range(words):
                        common = masks[level, S, word] & patterns[i, t, word]
                        masks[level + 1, (S | (1 << t)) % states, word] |= common
                        meets = meets or common != 0
        if meets:
            group[level] = i
            repeats[level] = r
            ways[level + 1] = choices
            index[level + 1] = i
            level += 1
    return total
