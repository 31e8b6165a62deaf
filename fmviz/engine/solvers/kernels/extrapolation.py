"""The arithmetic of Anderson extrapolation: iterates that are noted, and the point that they lead to."""

from __future__ import annotations

import numpy as np

from ..._jit import named

# Keeps the small linear system regular where steps are nearly parallel, as they are when it pays.
_RIDGE = 1e-12


@named()
def note(iterates, count, outcomes, places, w, bias, live):
    """Write iterates behind the `count` before them, if they have the same zeros; return how many there are.

    An iterate is a row of `outcomes`, P as its solver keeps it, of which the entries at `places` are taken,
    then w and the bias. `live` says which entries of P were not 0 in the last one, and is kept up to date:
    where one became 0 or left it the iterates so far are forgotten, and so they are where there is no room.
    """
    for P in outcomes:
        if not 0 <= count < iterates.shape[0]:
            count = 0
        for i in range(P.size):
            now = P[i] != 0.0
            if live[i] != now:
                live[i] = now
                count = 0
        iterate = iterates[count]
        for i in range(places.size):
            iterate[i] = P[places[i]]
        for j in range(w.size):
            iterate[places.size + j] = w[j]
        iterate[places.size + w.size] = bias
        count += 1
    return count


@named()
def combine(iterates, sizes, first, found):
    """Write the affine combination of the iterates whose steps nearly cancel; return whether there is one.

    There is none where nothing moved, or not all is finite. Steps are measured times `sizes`, and where there
    are any, those of the `first` numbers and of the rest each as a share of the norm of the last iterate.
    """
    depth, size = iterates.shape[0] - 1, iterates.shape[1]
    last = iterates[depth]
    weights = np.ones(size)
    if sizes.size:
        for begin, end in ((0, first), (first, size)):
            total = 0.0
            for i in range(begin, end):
                total += sizes[i] * sizes[i] * last[i] * last[i]
            share = 1.0 / total if total > 0.0 else 1.0
            for i in range(begin, end):
                weights[i] = sizes[i] * sizes[i] * share
    steps = np.empty((depth, size))
    for a in range(depth):
        for i in range(size):
            steps[a, i] = iterates[a + 1, i] - iterates[a, i]
    gram = np.empty((depth, depth))
    largest = 0.0
    for a in range(depth):
        for b in range(a + 1):
            one, two = steps[a], steps[b]
            total = 0.0
            for i in range(size):
                total += weights[i] * one[i] * two[i]
            if not np.isfinite(total):
                return False
            gram[a, b] = total
        largest = max(largest, gram[a, a])
    if not largest > 0.0:
        return False
    # Solved with the factors L D Lᵀ, which take the place of the lower triangle.
    shares = np.ones(depth)
    for a in range(depth):
        for b in range(a + 1):
            total = gram[a, b] / largest
            if a == b:
                total += _RIDGE
            for c in range(b):
                total -= gram[a, c] * gram[b, c] * gram[c, c]
            gram[a, b] = total if a == b else total / gram[b, b]
        for b in range(a):
            shares[a] -= gram[a, b] * shares[b]
    whole = 0.0
    for a in range(depth - 1, -1, -1):
        shares[a] /= gram[a, a]
        for b in range(a + 1, depth):
            shares[a] -= gram[b, a] * shares[b]
        whole += shares[a]
    if not (np.isfinite(whole) and whole != 0.0):
        return False
    # Seen from the last one, what is the same in all of them stays exactly.
    for i in range(size):
        found[i] = last[i]
    before = 0.0
    for a in range(1, depth):
        before += shares[a - 1] / whole
        for i in range(size):
            found[i] -= before * steps[a, i]
    return True
