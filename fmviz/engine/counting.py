"""Count used features and used interactions exactly from the support of P.

A pair i < j is *used* where the rows p_i and p_j share a column in which both are non-zero: the structure
alone decides, no tolerance and no product that may underflow or cancel. Rows are grouped by their support
pattern, so no d × d table is built at any d.
"""

from __future__ import annotations

from math import comb

import numpy as np

from ._jit import jitable, named, python_version


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
    return int(count_meeting(*support_patterns(P)))


def used_mask(P: np.ndarray) -> np.ndarray:
    """Return the (d, d) boolean matrix of used pairs, with a False diagonal; for small d only."""
    mask = (P != 0).astype(np.float32)
    used = (mask @ mask.T) > 0
    np.fill_diagonal(used, False)
    return used


@jitable
def ones(word):
    """Return the number of bits that are set in a word."""
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
def count_common(patterns, counts, holders, degree):
    """Count the sets of `degree` rows whose patterns have a bit in common to all.

    Patterns are taken in order, each up to as often as it occurs; a branch ends where no bit remains. The
    last row of a set is not enumerated: ``holders[s]`` has bit r set where row r, counted
    along the patterns, holds bit s, so that the rows with any of the remaining bits are a union of these.
    """
    u, words = patterns.shape
    spans = holders.shape[1]
    bit = np.uint64(1)
    starts = np.zeros(u + 1, dtype=np.int64)
    for i in range(u):
        starts[i + 1] = starts[i] + counts[i]
    columns = np.empty(holders.shape[0], dtype=np.int64)
    masks = np.empty((degree + 1, words), dtype=np.uint64)
    masks[0] = ~np.uint64(0)
    index = np.zeros(degree + 1, dtype=np.int64)
    taken = np.zeros(degree + 1, dtype=np.int64)
    remaining = np.zeros(degree + 1, dtype=np.int64)
    choices = np.ones(degree + 1, dtype=np.int64)
    ways = np.ones(degree + 1, dtype=np.int64)
    remaining[0] = degree
    total = 0
    level = 0
    while level >= 0:
        i = index[level]
        if i >= u:
            level -= 1
        elif remaining[level] == 1:
            width = 0
            for s in range(columns.size):
                if masks[level, s // 64] >> np.uint64(s % 64) & bit != 0:
                    columns[width] = s
                    width += 1
            rows = 0
            for span in range(starts[i] // 64, spans):
                union = np.uint64(0)
                for c in range(width):
                    union |= holders[columns[c], span]
                if span == starts[i] // 64:
                    union = union >> np.uint64(starts[i] % 64)
                rows += ones(union)
            total += ways[level] * rows
            level -= 1
        else:
            taken[level] += 1
            r = taken[level]
            meets = r > 1
            if r == 1:
                choices[level] = 1
                for word in range(words):
                    masks[level + 1, word] = masks[level, word] & patterns[i, word]
                    meets = meets or masks[level + 1, word] != 0
            if not meets or r > counts[i] or r > remaining[level]:
                index[level] += 1
                taken[level] = 0
            else:
                # The binomial coefficient of counts[i] over r, from that over r − 1.
                choices[level] = choices[level] * (counts[i] - r + 1) // r
                if r == remaining[level]:
                    total += ways[level] * choices[level]
                else:
                    index[level + 1] = i + 1
                    taken[level + 1] = 0
                    remaining[level + 1] = remaining[level] - r
                    ways[level + 1] = ways[level] * choices[level]
                    level += 1
    return total


def rows_by_column(patterns: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return for every bit of the patterns the rows that hold it, a bit each, shape (64·words, spans)."""
    u, words = patterns.shape
    bits = np.unpackbits(patterns.view(np.uint8).reshape(u, 8 * words), axis=1, bitorder="little")
    rows = np.repeat(bits, counts, axis=0)
    packed = np.zeros((64 * words, 8 * -(-rows.shape[0] // 64)), dtype=np.uint8)
    packed[:, : -(-rows.shape[0] // 8)] = np.packbits(rows.T, axis=1, bitorder="little")
    return packed.view(np.uint64)


def used_subsets(P: np.ndarray, degree: int | None) -> dict[int, int]:
    """Count the sets of features that share a column in which all are non-zero.

    Parameters
    ----------
    P : (d, k) ndarray
        The factors.
    degree : int or None
        The size of the sets. None counts pairs and triples: every larger set that shares a column
        contains these.

    Returns
    -------
    dict of int to int
        The exact count for every size.
    """
    patterns, counts = support_patterns(P)
    if degree is None:
        return used_subsets(P, 2) | used_subsets(P, 3)
    if degree == 2:
        return {2: int(count_meeting(patterns, counts))}
    n = int(counts.sum())
    if n < degree:
        return {degree: 0}
    if comb(n, degree) < 2**62:
        return {degree: int(count_common(patterns, counts, rows_by_column(patterns, counts), degree))}
    # Too many for machine integers: Python's have no limit.
    bits = [sum(int(word) << (64 * i) for i, word in enumerate(row)) for row in patterns]
    return {degree: _count_in_python(bits, [int(c) for c in counts], 0, degree, -1)}


def _count_in_python(bits: list[int], counts: list[int], start: int, remaining: int, mask: int) -> int:
    total = 0
    for i in range(start, len(bits)):
        common = mask & bits[i]
        if common:
            for r in range(1, min(counts[i], remaining) + 1):
                ways = 1 if r == remaining else _count_in_python(bits, counts, i + 1, remaining - r, common)
                total += comb(counts[i], r) * ways
    return total


@named()
def count_matched(patterns, counts, ways):
    """Count the sets of m rows that can be assigned to the m factors of one column.

    `patterns` has shape (groups, m, words): ``patterns[i, t]`` has bit s set where the rows of group i are
    non-zero in column s of factor t; ``counts[i]`` rows are in the group, and `ways`, of length m + 1, is
    work space. ``masks[q, S]`` has bit s set where the q rows taken so far can be assigned to the factors in
    the set S of column s. A branch ends where no bit remains.
    """
    u, degree, words = patterns.shape
    masks = np.zeros((degree + 1, 1 << degree, words), dtype=np.uint64)
    masks[0, 0] = ~np.uint64(0)
    group = np.zeros(degree, dtype=np.int64)
    repeats = np.zeros(degree, dtype=np.int64)
    index = np.zeros(degree + 1, dtype=np.int64)
    ways[0] = 1
    total = 0
    level = 0
    while level >= 0:
        i = index[level]
        if i >= u:
            level -= 1
        else:
            index[level] += 1
            r = 1
            if level > 0 and group[level - 1] == i:
                r = int(repeats[level - 1]) + 1
            meets = False
            if r <= counts[i]:
                masks[level + 1] = 0
                for S in range(1 << degree):
                    for t in range(degree):
                        if S & (1 << t) == 0:
                            for word in range(words):
                                common = masks[level, S, word] & patterns[i, t, word]
                                if common != 0:
                                    masks[level + 1, S | (1 << t), word] |= common
                                    meets = True
            if meets:
                # The binomial coefficient of counts[i] over r, from that over r − 1.
                choices = ways[level] * (counts[i] - r + 1) // r
                if level + 1 == degree:
                    total += choices
                else:
                    group[level] = i
                    repeats[level] = r
                    ways[level + 1] = choices
                    index[level + 1] = i
                    level += 1
    return total


def features_in_products(factors: np.ndarray, distinct: bool) -> np.ndarray:
    """Return the features that occur in a product of non-zero entries, one from every factor of a column.

    Parameters
    ----------
    factors : (m, d, rank) ndarray
        U¹, …, U^m.
    distinct : bool
        Whether the entries must be of different rows; for m = 2 only.

    Returns
    -------
    (d,) bool ndarray
    """
    support = factors != 0
    counts = support.sum(axis=1, keepdims=True)
    if distinct:
        used = support & (counts[::-1] > support[::-1])
    else:
        used = support & (counts > 0).all(axis=0, keepdims=True)
    return np.asarray(used.any(axis=(0, 2)))


def used_matchings(factors: np.ndarray) -> int:
    """Count the sets of m distinct rows with a non-zero entry in every factor of some column.

    Parameters
    ----------
    factors : (m, d, rank) ndarray
        U¹, …, U^m.

    Returns
    -------
    int
        The number of sets {j_1, …, j_m} for which there are an s and an order of the set such that
        u^t_{j_t s} ≠ 0 for t = 1, …, m: exact, by structure.
    """
    degree, d, _ = factors.shape
    mask = factors != 0
    mask = mask & mask.any(axis=1).all(axis=0)
    # Columns that are zero in some factor are dropped: their bits would only split groups of rows.
    mask = mask[:, :, mask.any(axis=(0, 1))]
    rank = mask.shape[2]
    if rank == 0:
        return 0
    words = -(-rank // 64)
    octets = np.zeros((d, degree, 8 * words), dtype=np.uint8)
    octets[:, :, : -(-rank // 8)] = np.packbits(mask.transpose(1, 0, 2), axis=2)
    packed = octets.reshape(d, -1).view(np.uint64)
    patterns, counts = np.unique(packed[packed.any(axis=1)], axis=0, return_counts=True)
    patterns = np.ascontiguousarray(patterns).reshape(-1, degree, words)
    if degree * comb(int(counts.sum()), degree) < 2**62:
        ways = np.empty(degree + 1, dtype=np.int64)
        return int(count_matched(patterns, counts.astype(np.int64), ways))
    # Too many for machine integers: Python's have no limit.
    return python_version(count_matched)(patterns, [int(c) for c in counts], [0] * (degree + 1))
