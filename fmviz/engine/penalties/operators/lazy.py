"""Storage of P for steps that visit only the features of a sample, for penalties with a known shrinkage.

A step multiplies every entry by `keep` and shrinks it by `cut`. While the loss does not affect an entry, its
size is a(κ − T) with constant κ, where a = Π keep and T = Σ cut/a over the steps so far, since
keep·a(κ − T) − cut = a'(κ − T') with a' = keep·a and T' = T + cut/a'. When T reaches κ, the entry stays 0.
With cut = 0 this is the lazy update of [A] Eq. 112–113.

For ℓ₂,₁, CS and Ω_CS, the same holds for row norms (the operator of CS is that of ‖·‖₁² on them, [A]
Theorem 8): ‖p_j‖ = a(κ_j − T), and the direction of p_j is constant while no sample contains j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from ..._jit import jitable
from .thresholds import norm, soft

# Scales below this are multiplied in before they underflow.
SMALL = 1e-100


@dataclass(frozen=True)
class Lazy:
    """The penalty-specific parts of lazy steps: storage and shrinkage of P.

    Attributes
    ----------
    name : str
        Names the compiled kernel.
    begin : callable
        ``begin(P, longest)``: replace P by its keys, in place; return the state of the other functions:
        `scales`, an array that begins with rows of a and T, and the tuples `heaps` and `norms`. They are
        separate because unpacking a tuple would count references to its arrays for every sample.
    present : callable
        ``present(P, scales, norms, j, R, i)``: write the current row j of P to row i of R, possibly in place.
    step : callable
        ``step(P, scales, heaps, norms, R, js, count, keep, cut, grow, period)``: replace the rows js by R,
        multiply the others by `keep`, and apply the operator of strength `cut`, times `grow`, to all of P.
    """

    name: str
    begin: Callable[..., Any]
    present: Callable[..., None]
    step: Callable[..., None]


@jitable
def begin_shared(K, longest):
    """Return the common a and T, and the number of steps since their reset to 1 and 0."""
    return np.array([[1.0], [0.0], [0.0]]), (), ()


@jitable
def present_shared(K, scales, norms, j, R, i):
    a, T = scales[0, 0], scales[1, 0]
    for s in range(R.shape[1]):
        R[i, s] = a * soft(K[j, s], T)


@jitable
def step_shared(K, scales, heaps, norms, R, js, count, keep, cut, grow, period):
    scales[0, 0] *= keep
    scales[2, 0] += 1.0
    if abs(scales[0, 0]) < SMALL or scales[2, 0] >= period:
        for j in range(K.shape[0]):
            present_shared(K, scales, norms, j, K, j)
        scales[0, 0], scales[1, 0], scales[2, 0] = 1.0, 0.0, 0.0
    a, T = scales[0, 0], scales[1, 0]
    for i in range(count):
        # Loaded here: in the inner loop it would prevent vectorization.
        j = js[i]
        for s in range(R.shape[1]):
            key = R[i, s] / a
            K[j, s] = key + T if key > 0.0 else (key - T if key < 0.0 else 0.0)
    scales[1, 0] = T + cut / a


ENTRIES = Lazy("entries", begin_shared, present_shared, step_shared)
"""Lazy storage for entries that all shrink equally, as with ℓ₁ and ℓ₂²; keys are sign(p)·κ."""


def of_norms(name: str, entries: Lazy) -> Lazy:
    """Return the lazy storage for rows whose norms shrink like single `entries`.

    A row is stored as of its last update, with its norm ν at that time: its current value is P_j·‖p_j‖/ν_j.
    """
    begin_keys, step_keys = entries.begin, entries.step

    @jitable
    def begin(P, longest):
        nu = np.empty(P.shape[0])
        for j in range(nu.size):
            nu[j] = norm(P[j])
        kappa = nu.copy().reshape(-1, 1)
        scales, heaps, _ = begin_keys(kappa, longest)
        return scales, heaps, (nu, kappa, np.empty((longest, 1)))

    @jitable
    def present(P, scales, norms, j, R, i):
        a, T, nu, kappa = scales[0, 0], scales[1, 0], norms[0][j], norms[1][j, 0]
        scale = a * (kappa - T) / nu if kappa > T else 0.0
        for s in range(R.shape[1]):
            R[i, s] = scale * P[j, s]

    @jitable
    def step(P, scales, heaps, norms, R, js, count, keep, cut, grow, period):
        for i in range(count):
            j = js[i]
            total = 0.0
            for s in range(R.shape[1]):
                P[j, s] = R[i, s]
                total += R[i, s] * R[i, s]
            norms[0][j] = norms[2][i, 0] = sqrt(total)
        step_keys(norms[1], scales, heaps, (), norms[2], js, count, keep, cut, grow, period)

    return Lazy(name, begin, present, step)


ROWS = of_norms("rows", ENTRIES)
"""Lazy storage for rows whose norms all shrink equally, as with ℓ₂,₁."""
