"""The homogeneous polynomial kernel, H^m(p, x) = ⟨p, x⟩^m ([B] Section 3)."""

from __future__ import annotations

import functools
from math import comb

import numpy as np

from ..._jit import jitable, nothing, zero
from ...design import Design
from ...memory import aligned_copy
from .base import (
    ColumnKernel,
    EntryColumnView,
    State,
)


def _state(design: Design, P: np.ndarray, sums: np.ndarray | None = None) -> State:
    return (aligned_copy((design.dot(P.T) if sums is None else sums).T),)


@jitable
def _column(P, s, state):
    return state[0][s]


@jitable
def _absorb(kept, n, x, p):
    kept[n] += x * p


@functools.cache
def polynomial_entries(degree: int) -> EntryColumnView:
    """Return the view of ⟨p_s, x⟩^m, m ≥ 2, along an entry: a polynomial of degree m.

    The state of a row is ⟨p_s, x⟩, kept between sweeps.
    """
    return EntryColumnView(
        f"polynomial({degree})",
        _state,
        nothing,
        _column,
        _absorb,
        zero,
        zero,
        None,
        None,
        nothing,
        degree=degree,
    )


class Polynomial(ColumnKernel):
    """The homogeneous polynomial ⟨p, x⟩^m ([B] Section 3).

    Parameters
    ----------
    degree : int
        m ≥ 1.
    """

    def __init__(self, degree: int) -> None:
        self.degree: int = degree
        self.multilinear = degree == 1

    @property
    def entries(self) -> EntryColumnView:
        return polynomial_entries(self.degree)

    def values(self, design: Design, P: np.ndarray) -> np.ndarray:
        return np.asarray(design.dot(P) ** self.degree)

    def gradient(self, design: Design, P: np.ndarray, slope: np.ndarray) -> np.ndarray:
        return design.transpose_dot(slope * self._outer(design, P))

    def squares(self, design: Design, P: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return design.transpose_dot(weight * self._outer(design, P) ** 2, 2)

    def split(self, dummies: np.ndarray) -> dict[int, np.ndarray]:
        """Expand (γ + ⟨p, x⟩)^m by the binomial theorem."""
        gamma = dummies.sum(axis=0)
        return {t: comb(self.degree, t) * gamma ** (self.degree - t) for t in range(self.degree + 1)}

    def _outer(self, design: Design, P: np.ndarray) -> np.ndarray:
        return np.asarray(self.degree * design.dot(P) ** (self.degree - 1))
