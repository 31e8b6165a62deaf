"""Kernels K(p_s, x) of columns of P, and their views as functions of an entry or row of P."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._exponential import from_bits, size_bits
from ..._jit import jitable
from ...design import Design

State = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class EntryColumnView:
    """View of K(p_s, x_n) along an entry p_js, for all rows x_n of X, from which `entry_sweep` is compiled.

    The functions are jitable. P has shape (k, d), and `state` is the result of the function of that name.
    With x = x_nj, every K depends on p_js through x·p_js: either linearly, ∂K/∂p_js = x·cofactor, or as a
    power of the values in `kept`, which are linear.

    Attributes
    ----------
    name : str
        Names the compiled kernel.
    state : callable
        ``state(design, P, sums=None)``: the work arrays of a sweep for the current `P`. `sums` is XP, shape
        (N, k), if available. State kept between sweeps accumulates rounding errors and must be recomputed
        periodically.
    open : callable
        ``open(P, s, state)``: begin column s; if the view is `rebuilt`, `absorb` then adds its entries.
    column : callable
        ``column(P, s, state)``: the arrays of column s, called `kept` below.
    absorb : callable
        ``absorb(kept, n, x, p)``: add the entry p of a feature with value x in row n to the column.
    scale : callable
        ``scale(s, state)``: the largest |cofactor| + |contribution of the entry itself| of an open column,
        the scale of rounding errors in slopes; 0 if nothing is ever subtracted.
    partner : callable
        ``partner(kept, j)``: a number, `own`, that the functions below need in addition to p_js; usually 0.
    cofactor : callable or None
        ``cofactor(kept, n, x, p, own)``: ∂K/∂(x·p) at row n. None if `degree` is not 1.
    advance : callable or None
        ``advance(kept, n, x, p, q, own)``: change the entry from p to q; return the change of K at row n.
        None if `degree` is not 1.
    close : callable
        ``close(s, state, live)``: finish column s, which has `live` non-zero entries.
    needs : int
        The number of other non-zero entries in the column required for a non-zero slope.
    degree : int
        The degree of K in the entry. Above 1, K at row n is ``kept[n]`` to this power.
    rebuilt : bool
        Whether the state of a column is recomputed from its entries when opened, instead of kept.
    """

    name: str
    state: Callable[..., State] = field(compare=False)
    open: Callable[..., None]
    column: Callable[..., Any]
    absorb: Callable[..., None]
    scale: Callable[..., float]
    partner: Callable[..., float]
    cofactor: Callable[..., float] | None
    advance: Callable[..., float] | None
    close: Callable[..., None]
    needs: int = 0
    degree: int = 1
    rebuilt: bool = False


@dataclass(frozen=True)
class RowColumnsView:
    """View of the kernels K(p_s, x_n) of k columns along a row p_j, from which `row_sweep` is compiled.

    The functions are jitable; K is linear in the row, with ∂K(p_s, x_n)/∂p_js = x_nj·cofactor_s. P has shape
    (d, k), `state` is the result of the function of that name, `p` is the current row, `step` its change,
    and `scaled` the change times the coefficients of the columns.

    Attributes
    ----------
    name : str
        Names the compiled kernel.
    state : callable
        ``state(design, P, sums=None)``: the work arrays for the current `P`, kept between sweeps. `sums` is
        XP, shape (N, at most k), if available.
    scale : callable
        ``scale(state, live_only)``: the largest |cofactor| + |contribution of the row itself| so far, the
        scale of rounding errors in slopes; 0 if nothing is ever subtracted.
    gather : callable
        ``gather(state, at, x, first, second, p, g, h)``: add Σ_i first_i·cofactor_s to g_s and
        Σ_i second_i·cofactor_s² to h_s, over the rows ``at[i]`` of X, in which the feature is ``x[i]``.
    rise : callable
        ``rise(state, n, x, p, scaled, along)``: Σ_s scaled_s·cofactor_s at row n; `along` is ⟨p, scaled⟩.
    advance : callable
        ``advance(state, n, x, p, step, scaled, along)``: change the row; return this sum before the change.
    """

    name: str
    state: Callable[..., State] = field(compare=False)
    scale: Callable[..., float]
    gather: Callable[..., None]
    rise: Callable[..., float]
    advance: Callable[..., float]


@dataclass(frozen=True)
class ColumnViews:
    """A block of columns of P and its views for sweeps.

    Attributes
    ----------
    columns : slice
        The columns of the block.
    entries : EntryColumnView
        The view along entries.
    rows : RowColumnsView or None
        The view along rows, None if the model is not linear in them.
    """

    columns: slice
    entries: EntryColumnView
    rows: RowColumnsView | None


class ColumnKernel(ABC):
    """K(p_s, x_n) for all rows x_n of a design and all columns p_s of P at once.

    Attributes
    ----------
    degree : int or None
        The order of its interactions; None for all subsets.
    multilinear : bool
        Whether it is linear in every single p_j.
    """

    degree: int | None
    multilinear: bool = True

    @property
    @abstractmethod
    def entries(self) -> EntryColumnView:
        """The view of K along an entry of a column."""

    @property
    def rows(self) -> RowColumnsView | None:
        """The view of all columns along a row of P, None if the kernel is not linear in it."""
        return None

    @abstractmethod
    def values(self, design: Design, P: np.ndarray) -> np.ndarray:
        """Return K(p_s, x_n), shape (N, k), for P of shape (d, k)."""

    @abstractmethod
    def gradient(self, design: Design, P: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return Σ_n slope[n, s] ∂K(p_s, x_n)/∂p_js, shape (d, k), for a slope of shape (N, k)."""

    @abstractmethod
    def squares(self, design: Design, P: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return Σ_n weight[n, s] (∂K(p_s, x_n)/∂p_js)², shape (d, k), for weights of shape (N, k)."""

    def split(self, dummies: np.ndarray) -> dict[int, np.ndarray]:
        """Expand K of augmented data in kernels of the original data ([B] Section 8).

        With n additional constant features of 1 and their factors γ, `dummies` of shape (n, k), K of degree m
        is Σ_t weight_t K_t(p_s, x), where K_t is the same kernel of degree t. The weights, shape (k,), are
        returned by degree, including K_0 = 1.
        """
        raise NotImplementedError


@jitable
def once(x):
    """Return x."""
    return x


@jitable
def twice(x):
    """Return x²."""
    return x * x


@jitable
def largest_of(a):
    """Return max |a_n|."""
    size = 0
    for n in range(a.size):
        size = max(size, size_bits(a[n]))
    return from_bits(size)


class MultilinearKernel(ColumnKernel):
    """Kernel with a common function for the sums of its slopes and of their squares."""

    def gradient(self, design: Design, P: np.ndarray, slope: np.ndarray) -> np.ndarray:
        return self._slopes(design, P, slope, once)

    def squares(self, design: Design, P: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return self._slopes(design, P, weight, twice)

    @abstractmethod
    def _slopes(self, design: Design, P: np.ndarray, weight: np.ndarray, power: Any) -> np.ndarray:
        """Return Σ_n weight[n, s] power(∂K(p_s, x_n)/∂p_js)."""
