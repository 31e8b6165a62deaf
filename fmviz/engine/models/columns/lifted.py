"""Views of the factors of lifted models ([B] D.2 and D.3)."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from ..._jit import jitable
from ...design import Design
from ...memory import aligned_copy
from .base import EntryColumnView, State, largest_of, no_partner


@jitable
def _open(P, s, state):
    A, xi = state
    xi[:] = 1.0
    for t in range(A.shape[0]):
        if t != s // A.shape[1]:
            a = A[t, s % A.shape[1]]
            for n in range(xi.size):
                xi[n] *= a[n]


@jitable
def _column(P, s, state):
    return state[0][s // state[0].shape[1], s % state[0].shape[1]], state[1]


@jitable
def _absorb(kept, n, x, p):
    kept[0][n] += x * p


@jitable
def _scale(s, state):
    return 0.0


@jitable
def _cofactor(kept, n, x, p, own):
    return kept[1][n]


@jitable
def _advance(kept, n, x, p, q, own):
    move = x * (q - p)
    kept[0][n] += move
    return move * kept[1][n]


@jitable
def _close(s, state, live):
    if live == 0:
        # Not what rounding has left of it, which other factors would answer to.
        state[0][s // state[0].shape[1], s % state[0].shape[1]] = 0.0


@jitable
def _column_of_pairs(P, s, state):
    a, xi = _column(P, s, state)
    return a, xi, P[(s + state[0].shape[1]) % P.shape[0]]


@jitable
def _scale_of_pairs(s, state):
    return 0.5 * largest_of(state[1])


@jitable
def _partner(kept, j):
    return kept[2][j]


@jitable
def _cofactor_of_pairs(kept, n, x, p, own):
    return 0.5 * (kept[1][n] - own * x)


@jitable
def _advance_in_pairs(kept, n, x, p, q, own):
    move = x * (q - p)
    kept[0][n] += move
    return 0.5 * move * (kept[1][n] - own * x)


@functools.cache
def lifted_entries(degree: int, distinct: bool) -> EntryColumnView:
    """Return Π_t ⟨u_s^t, x⟩, or with `distinct` ½(⟨u_s, x⟩⟨v_s, x⟩ − Σ_j u_js v_js x_j²), along an entry.

    P = [U¹ … U^m]ᵀ has shape (m·rank, d), and every row of it is a column of the sweep. A row's state is
    XP, kept from sweep to sweep, and for the column in hand ξ = Π_{t' ≠ t} ⟨u_s^{t'}, x⟩, which its own steps
    leave alone: the cofactor is ξ, or ½(ξ − v_js x_j). One compiled kernel serves all degrees m.
    """

    def state(design: Design, P: np.ndarray, sums: np.ndarray | None = None) -> State:
        A = aligned_copy((design.dot(P.T) if sums is None else sums).T)
        return A.reshape(degree, -1, design.n_samples), aligned_copy(np.empty(design.n_samples))

    view = EntryColumnView(
        "lifted", state, _open, _column, _absorb, _scale, no_partner, _cofactor, _advance, _close
    )
    if not distinct:
        return view
    return replace(
        view,
        name="lifted_pairs",
        column=_column_of_pairs,
        scale=_scale_of_pairs,
        partner=_partner,
        cofactor=_cofactor_of_pairs,
        advance=_advance_in_pairs,
    )
