r"""Standardize the columns of X to make fits independent of their units and offsets.

A column is centred by its weighted mean c_j and divided by its weighted standard deviation s_j:
(x_j − c_j)/s_j. In a function with products of features, centring changes the lower-order products, the
linear weights and the bias:

    b + Σ_j w_j (x_j − c_j)/s_j + Σ_{i<j} W_ij (x_i − c_i)(x_j − c_j)/(s_i s_j)

is the factorization machine with the pair weights W_ij/(s_i s_j), the linear weights
w_j/s_j − Σ_{i≠j} W_ij c_i/(s_i s_j) and the bias b − Σ_j w_j c_j/s_j + Σ_{i<j} W_ij c_i c_j/(s_i s_j). If
a model lacks such terms, its columns are divided but not centred.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp

from fmviz.engine.design import DENSE, Design
from fmviz.engine.parts import Parts
from fmviz.engine.problem import Problem

# A column with a smaller standard deviation, relative to its largest value, is a constant with rounding
# errors; a smaller share of rows without a stored value counts as none.
_CONSTANT = 1e-12
# Fits round columns to multiples of this fraction of a standard deviation.
_STEP = 2.0**-30


@dataclass(frozen=True, eq=False)
class Scale:
    """Offsets and divisors of the columns of X.

    Attributes
    ----------
    center, scale : (d,) ndarray
        The offsets c and divisors s; zeros and ones leave X unchanged.
    moments : pair of (d,) ndarray or None
        The means and standard deviations of the training columns, if any.
    """

    center: np.ndarray
    scale: np.ndarray
    moments: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(cls, X: Any, standardize: Any, centered: bool = True, weights: np.ndarray | None = None) -> Scale:
        """Return the scale of the columns of X under a setting of `standardize`.

        Parameters
        ----------
        X : (N, d) ndarray or CSC array
            Finite numbers.
        standardize : {"auto", True, False}
            The setting; "auto" leaves a sparse X unchanged.
        centered : bool
            Whether columns of a dense X are centred. Those of a sparse X never are.
        weights : (N,) ndarray, optional
            Weights of the rows.

        Raises
        ------
        ValueError
            If the setting is unknown.
        """
        return cls._of_moments(*moments(X, weights), sp.issparse(X), standardize, centered)

    @classmethod
    def _of_moments(
        cls, mean: np.ndarray, deviation: np.ndarray, sparse: bool, standardize: Any, centered: bool
    ) -> Scale:
        if standardize not in ("auto", True, False):
            raise ValueError(f"standardize = {standardize!r} must be 'auto', True or False.")
        divided = bool(standardize) and not (sparse and standardize == "auto")
        center = np.where(divided and centered and not sparse, mean, 0.0)
        return cls(center, np.where(divided & (deviation > 0.0), deviation, 1.0), (mean, deviation))

    @classmethod
    def of_problem(cls, problem: Problem, standardize: Any, dummies: int = 0) -> Scale:
        """Return the scale of the features of a problem, without dummy features, which come last."""
        # In models of a single higher order, only dummy features give lower-order products.
        lower = min(problem.model.orders, default=2) == 2 or dummies > 0
        centered = problem.fit_linear and problem.fit_intercept and lower
        if not problem.design.in_memory:
            sparse = problem.design.storage is not DENSE
            return cls._of_moments(*_moments_of_blocks(problem), sparse, standardize, centered)
        X = problem.design.matrix[:, : problem.design.n_features - dummies]
        return cls.of(X, standardize, centered, problem.sample_weight)

    def spread(self, places: np.ndarray, d: int) -> Scale:
        """Return the scale of d columns: this one at given indices, and columns of 0 elsewhere."""
        given = (self.center, self.scale, *(self.moments or ()))
        wide = [np.zeros(d), np.ones(d), np.zeros(d), np.zeros(d)][: len(given)]
        for array, values in zip(wide, given, strict=True):
            array[places] = values
        return Scale(wide[0], wide[1], (wide[2], wide[3]) if self.moments else None)

    def apply(self, X: Any, rounded: bool = False) -> Any:
        """Return X with scaled columns, dense if they are centred; X itself if nothing changes.

        Parameters
        ----------
        X : (N, d) ndarray or sparse array
            Some rows.
        rounded : bool
            Whether to round to multiples of 2⁻³⁰, as fits do: a change of units changes scaled columns by
            rounding errors, which a solver may amplify, and rounding almost always removes these. Its effect
            on predictions is negligible.

        Raises
        ------
        ValueError
            If X has the wrong number of columns.
        """
        if X.shape[1] != self.scale.size or self.center.shape != self.scale.shape:
            raise ValueError(
                f"X has {X.shape[1]:,} features, but center_ and scale_ have {self.center.size:,} and "
                f"{self.scale.size:,}. Pass the same columns, or start over with warm_start=False."
            )
        if not self.center.any() and (self.scale == 1.0).all():
            return X
        if isinstance(X, Parts):
            return X.transformed(repeat(partial(self.apply, rounded=rounded)))
        scaled: Any
        if sp.issparse(X) and not self.center.any():
            scaled = sp.csc_array(X @ sp.diags_array(1.0 / self.scale))
        else:
            dense = X.toarray() if sp.issparse(X) else X
            scaled = np.array(dense, dtype=np.float32 if dense.dtype == np.float32 else np.float64)
            scaled -= self.center
            scaled /= self.scale
        if rounded:
            values = scaled.data if sp.issparse(scaled) else scaled
            values /= _STEP
            np.rint(values, out=values)
            values *= _STEP
        return scaled

    def apply_to(self, problem: Problem, dummies: int = 0) -> Problem:
        """Return a problem with scaled features; dummy features are unchanged."""
        wide = Scale(np.pad(self.center, (0, dummies)), np.pad(self.scale, (0, dummies), constant_values=1.0))
        design = problem.design
        before = design.matrix if design.in_memory else design
        if (X := wide.apply(before, rounded=True)) is before:
            return problem
        return replace(problem, design=X if isinstance(X, Design) else Design(X, design.dtype))

    def in_units(self, P: np.ndarray, w: np.ndarray, bias: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Convert P, w and b from scaled columns to the equivalent factorization machine of the unscaled X.

        There may be leading axes before those of P, shape (d, k), of w, shape (d,), and of b.
        """
        P, w = P / self.scale[:, None], w / self.scale
        sums = np.einsum("j,...jk->...k", self.center, P)
        crossed = np.einsum("...jk,...k->...j", P, sums) - self.center * np.square(P).sum(axis=-1)
        return P, w - crossed, bias + (0.5 * crossed - w) @ self.center


def _moments_of_blocks(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return `moments` for rows that are not in memory."""
    each = zip(*problem.mapper(_moments_of_block, problem.row_blocks), strict=True)
    shares, means, deviations = map(np.array, each)
    mean = shares @ means
    deviation = np.sqrt(shares @ (np.square(deviations) + np.square(means - mean)))
    return mean, np.where(deviation > _CONSTANT * problem.design.largest, deviation, 0.0)


def _moments_of_block(block: Problem) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the share of a block in the weights, and its moments."""
    total = block.unit_weights.sum()
    X = block.loaded().design.matrix
    return total / block.n_rows, *moments(X, block.sample_weight if total else None)


def moments(X: Any, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean and standard deviation of every column; exactly 0 for constant columns.

    Sums use numpy instead of BLAS, whose results depend on the number of threads.
    """
    n, d = X.shape
    share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    if sp.issparse(X):
        X = sp.csc_array(X)
        column, each = np.repeat(np.arange(d), np.diff(X.indptr)), share[X.indices]
        mean = np.bincount(column, each * X.data, d)
        stored = np.bincount(column, each * np.square(X.data - mean[column]), d)
        empty = 1.0 - np.bincount(column, each, d)
        variance = stored + np.where(empty > _CONSTANT, empty, 0.0) * np.square(mean)
    else:
        # Column by column, to avoid a second matrix.
        mean = np.array([np.average(column, weights=share) for column in X.T])
        each = zip(X.T, mean, strict=True)
        variance = np.array([np.average(np.square(column - m), weights=share) for column, m in each])
    largest = abs(X).max(axis=0)
    largest = largest.toarray().ravel() if sp.issparse(largest) else largest
    deviation = np.sqrt(variance)
    return mean, np.where(deviation > _CONSTANT * largest, deviation, 0.0)
