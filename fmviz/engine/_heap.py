"""A binary min-heap of (key, index) pairs in two arrays, for kernels."""

from __future__ import annotations

from ._jit import jitable


@jitable
def sift_down(keys, items, size, at):
    """Move the entry at position `at` down to its correct position."""
    key = keys[at]
    item = items[at]
    child = 2 * at + 1
    moving = child < size
    while moving:
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] < key:
            keys[at] = keys[child]
            items[at] = items[child]
            at = child
            child = 2 * at + 1
            moving = child < size
        else:
            moving = False
    keys[at] = key
    items[at] = item


@jitable
def heapify(keys, items, size):
    """Order the first `size` entries as a heap, in O(size)."""
    for back in range(size // 2):
        sift_down(keys, items, size, size // 2 - 1 - back)


@jitable
def push(keys, items, size, key, item):
    """Insert an entry and return the new size; O(1) on average for keys that increase over time, as here."""
    at = size
    parent = (at - 1) // 2
    while at > 0 and keys[parent] > key:
        keys[at] = keys[parent]
        items[at] = items[parent]
        at = parent
        parent = (at - 1) // 2
    keys[at] = key
    items[at] = item
    return size + 1


@jitable
def pop(keys, items, size):
    """Remove the smallest entry, which is the first, and return the new size."""
    size -= 1
    keys[0] = keys[size]
    items[0] = items[size]
    if size > 1:
        sift_down(keys, items, size, 0)
    return size


@jitable
def keep_largest(count, top, sizes, slots, weight, weights, members, index):
    """Keep a weight and its members if it is among the `top` largest; return the number kept.

    `sizes` and `slots`, (top,), are the heap; `weights`, (top,), and `members`, (top, m), receive the
    unordered result. `index` has at least m members.
    """
    slot = -1
    if count < top:
        slot = count
        count = push(sizes, slots, count, abs(weight), slot)
    elif abs(weight) > sizes[0]:
        slot = slots[0]
        sizes[0] = abs(weight)
        sift_down(sizes, slots, top, 0)
    if slot >= 0:
        weights[slot] = weight
        for t in range(members.shape[1]):
            members[slot, t] = index[t]
    return count
