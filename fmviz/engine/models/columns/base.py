"""Kernels K(p_s, x) of columns of P, and their views as functions of one entry or row of P."""

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
    """K(p_s, x_n) along one entry p_js, for all rows x_n of X, from which `entry_sweep` is compiled.

    The functions are jitable. P has shape (k, d), and `state` is the result of the function of that name.
    With x = x_nj, every K here depends on p_js by way of x·p_js. It is linear in it, so that
    ∂K/∂p_js = x·cofactor, or a power of the values in `kept`, which are linear.

    Attributes
    ----------
    name : str
        Names the compiled kernel.
    state : callable
        ``state(design, P, sums=None)``: the work arrays of a sweep, for `P` as it is now. `sums` is XP, shape
        (N, k), where the caller has it. State that is kept between sweeps accumulates rounding errors and has
        to be recomputed from time to time.
    open : callable
        ``open(P, s, state)``: begin column s; where the view is `rebuilt`, `absorb` then adds its entries.
    column : callable
        ``column(P, s, state)``: the arrays of column s, `kept` in the functions below.
    absorb : callable
        ``absorb(kept, n, x, p)``: add the entry p of a feature with the value x at row n to the column.
    scale : callable
        ``scale(s, state)``: the largest |cofactor| + |its share of the entry itself| of an open column, the
        scale of rounding errors in slopes; 0 where nothing is ever subtracted.
    partner : callable
        ``partner(kept, j)``: a number, `own`, that the functions below need besides p_js; 0 for most.
    cofactor : callable or None
        ``cofactor(kept, n, x, p, own)``: ∂K/∂(x·p) at row n. None where `degree` is not 1.
    advance : callable or None
        ``advance(kept, n, x, p, q, own)``: move the entry from p to q; return the change of K at row n.
        None where `degree` is not 1.
    close : callable
        ``close(s, state, live)``: finish column s, of which `live` entries are not 0.
    needs : int
        How many other entries of the column must not be 0 for an entry to have a slope.
    degree : int
        The degree of K in the entry. Above 1, K at row n is ``kept[n]`` to this power.
    rebuilt : bool
        Whether the state of a column is recomputed from its entries when it is opened, rather than kept.
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
    """The kernels K(p_s, x_n) of k columns along one row p_j, from which `row_sweep` is compiled.

    The functions are jitable; K is linear in the row, with ∂K(p_s, x_n)/∂p_js = x_nj·cofactor_s. P has shape
    (d, k), `state` is the result of the function of that name, `p` is the present row, `step` its change,
    and `scaled` the change times the columns' coefficients.

    Attributes
    ----------
    name : str
        Names the compiled kernel.
    state : callable
        ``state(design, P, sums=None)``: the work arrays, for `P` as it is now, which are kept between
        sweeps. `sums` is XP, shape (N, at most k), where the caller has it.
    scale : callable
        ``scale(state, live_only)``: the largest |cofactor| + |its share of the row itself| so far, the
        scale of rounding errors in slopes; 0 where nothing is ever subtracted.
    gather : callable
        ``gather(state, at, x, first, second, p, g, h)``: add Σ_i first_i·cofactor_s to g_s and
        Σ_i second_i·cofactor_s² to h_s, over the rows ``at[i]`` of X, where the feature is ``x[i]``.
    rise : callable
        ``rise(state, n, x, p, scaled, along)``: Σ_s scaled_s·cofactor_s at row n; `along` is ⟨p, scaled⟩.
    advance : callable
        ``advance(state, n, x, p, step, scaled, along)``: move the row; return the same sum before the move.
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
        Which columns.
    entries : EntryColumnView
        The view along entries.
    rows : RowColumnsView or None
        The view along rows, None where the model is not linear in them.
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
        """K along an entry of a column."""

    @property
    def rows(self) -> RowColumnsView | None:
        """The kernels of all columns along a row of P, None where they are not linear in it."""
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
        """Expand K of augmented data in kernels of the data themselves ([B] Section 8).

        With n additional features that are always 1 and their factors γ, `dummies` of shape (n, k), K of
        degree m is Σ_t weight_t K_t(p_s, x), K_t the same kernel of degree t. The weights, shape (k,), are
        returned by degree, K_0 = 1 included.
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
    """A kernel with one function for sums of its slopes and of their squares."""

    def gradient(self, design: Design, P: np.ndarray, slope: np.ndarray) -> np.ndarray:
        return self._slopes(design, P, slope, once)

    def squares(self, design: Design, P: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return self._slopes(design, P, weight, twice)

    @abstractmethod
    def _slopes(self, design: Design, P: np.ndarray, weight: np.ndarray, power: Any) -> np.ndarray:
        """Return Σ_n weight[n, s] power(∂K(p_s, x_n)/∂p_js)."""
