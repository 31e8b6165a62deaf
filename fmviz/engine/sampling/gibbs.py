r"""Gibbs sampling of factorization machines from the conditional distributions of all parameters.

The model is y = f(x) + ε with ε ~ N(0, 1/α), or for two classes P(y = 1) = Φ(f(x)) with latent
y* = f(x) + ε, ε ~ N(0, 1), whose sign is y (Albert and Chib 1993). The priors are p_js ~ N(μ_s, 1/λ_s), with
a mean and a precision for every column of P and each group of features, likewise w_j ~ N(μ_w, 1/λ_w), and
hyperpriors α, λ ~ Gamma(½, ½) and μ | λ ~ N(0, 1/λ) (Freudenthaler, Schmidt-Thieme and Rendle 2011). The
hyperparameters are also sampled; nothing is tuned. X and y are standardized: y to mean 0 and variance 1, X to
a mean square of 1 over its features.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from .._jit import cached_factory
from ..design import Design, Storage, line
from ..parameters import Parameters


@cached_factory()
def linear_draws(storage: Storage):
    """Return the kernel that draws w, entry by entry.

    ``(data, indices, indptr, e, w, moments, precision, groups, centers, spreads, noise)`` replaces w_j by a
    draw from its conditional distribution and updates e = f − y in place. The prior of w_j is normal with the
    mean and precision of its group, `centers` and `spreads`, shape (G,); the errors have the precision
    `precision`; `moments` are the Σ_n x_nj², and `noise` standard normal numbers, shape (d,).
    """
    row, value = storage.row, storage.value

    def draw(data, indices, indptr, e, w, moments, precision, groups, centers, spreads, noise):
        for j in range(w.size):
            g = groups[j]
            column, rows, count = line(data, indices, indptr, j)
            total = 0.0
            for i in range(count):
                total += value(column, i) * e[row(rows, i)]
            total_precision = precision * moments[j] + spreads[g]
            mean = (precision * (moments[j] * w[j] - total) + spreads[g] * centers[g]) / total_precision
            new = mean + noise[j] / np.sqrt(total_precision)
            step = new - w[j]
            for i in range(count):
                e[row(rows, i)] += step * value(column, i)
            w[j] = new

    return draw


@cached_factory()
def factor_draws(storage: Storage):
    """Return the kernel that draws P, column by column and entry by entry.

    ``(data, indices, indptr, e, P, sums, precision, groups, centers, spreads, noise)`` replaces the entries
    of P, shape (k, d), by draws from their conditional distributions and updates e = f − y and `sums`, XP as
    (k, N), in place. `centers` and `spreads` have shape (k, G), `noise` shape (k, d); otherwise like
    `linear_draws`.
    """
    row, value = storage.row, storage.value

    def draw(data, indices, indptr, e, P, sums, precision, groups, centers, spreads, noise):
        k, d = P.shape
        for s in range(k):
            own = sums[s]
            for j in range(d):
                column, rows, count = line(data, indices, indptr, j)
                old = P[s, j]
                total = 0.0
                moment = 0.0
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    h = x * (own[n] - x * old)
                    total += h * e[n]
                    moment += h * h
                g = groups[j]
                total_precision = precision * moment + spreads[s, g]
                mean = (precision * (moment * old - total) + spreads[s, g] * centers[s, g]) / total_precision
                new = mean + noise[s, j] / np.sqrt(total_precision)
                step = new - old
                for i in range(count):
                    n = row(rows, i)
                    x = value(column, i)
                    e[n] += step * x * (own[n] - x * old)
                    own[n] += step * x
                P[s, j] = new

    return draw


@dataclass(frozen=True, eq=False)
class Draw:
    """A posterior sample.

    Attributes
    ----------
    parameters : Parameters
        P, w and the bias, in the units of X and y.
    f : (N,) ndarray
        The predictions for the training rows.
    noise : float
        The standard deviation 1/√α of the errors; 1 for two classes.
    """

    parameters: Parameters
    f: np.ndarray
    noise: float


class GibbsSampler:
    """Markov chain of posterior samples.

    Parameters
    ----------
    design : Design
        The features X, shape (N, d).
    y : (N,) ndarray
        Real numbers, or -1 and +1.
    rank : int
        The number of columns of P.
    binary : bool
        Whether y has two classes.
    fit_linear, fit_intercept : bool
        Whether to include w and a bias.
    groups : (d,) int ndarray
        The group of each feature, numbered from 0 without gaps; groups share means and precisions.
    rng : numpy Generator
        The source of all draws.
    """

    # The standard deviation of the random start, in the units of X and y.
    start_size = 0.1
    # Incremental predictions slowly lose precision and are recomputed after this number of epochs.
    refresh_every = 20

    def __init__(
        self,
        design: Design,
        y: np.ndarray,
        rank: int,
        binary: bool,
        fit_linear: bool,
        fit_intercept: bool,
        groups: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self._design, self._binary, self._rng = design, binary, rng
        self._fit_linear, self._fit_intercept = fit_linear, fit_intercept
        self._moments = design.transpose_dot(np.ones(design.n_samples), 2)
        self._unit_x = float(np.sqrt(self._moments.sum() / design.n_samples)) or 1.0
        self._mean, self._unit_y = (0.0, 1.0) if binary else _units(y, fit_intercept)
        self._y = (y - self._mean) / (self._unit_y or 1.0)
        self._groups = groups.astype(np.int64)
        self._members = np.bincount(self._groups).astype(np.float64)
        self._w = np.zeros(design.n_features)
        self._P = rng.normal(0.0, self.start_size / self._unit_x, (rank, design.n_features))
        self._bias, self._alpha = 0.0, 1.0

    def draws(self) -> Generator[Draw, None, None]:
        """Yield an endless sequence of samples, each after a sweep over all parameters."""
        epoch = 0
        while True:
            if epoch % self.refresh_every == 0:
                f, sums = self._forward()
            epoch += 1
            target = self._latent(f) if self._binary else self._y
            e = f - target
            if not self._binary:
                self._alpha = self._rng.gamma(0.5 * (1.0 + e.size), 2.0 / (1.0 + float(e @ e)))
            if self._fit_intercept:
                total_precision = self._alpha * e.size + 1.0
                mean = self._alpha * (e.size * self._bias - float(e.sum())) / total_precision
                bias = mean + self._rng.normal() / np.sqrt(total_precision)
                e += bias - self._bias
                self._bias = bias
            if self._fit_linear:
                centers, spreads = self._hyper(self._w[None])
                linear_draws(self._design.storage)(
                    *self._design.columns,
                    e,
                    self._w,
                    self._moments,
                    self._alpha,
                    self._groups,
                    centers[0],
                    spreads[0],
                    self._rng.normal(size=self._w.size),
                )
            if self._P.size:
                centers, spreads = self._hyper(self._P)
                noise = self._rng.normal(size=self._P.shape)
                factor_draws(self._design.storage)(
                    *self._design.columns,
                    *(e, self._P, sums, self._alpha, self._groups, centers, spreads, noise),
                )
            f = e + target
            yield Draw(self._parameters(), self._mean + self._unit_y * f, self._unit_y / np.sqrt(self._alpha))

    def _forward(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictions and XP, shape (k, N), in the units of the sampler."""
        sums = np.ascontiguousarray(self._design.dot(np.ascontiguousarray(self._P.T)).T)
        squares = np.asarray(self._design.power(2) @ np.square(self._P).sum(axis=0))
        f = self._bias + self._design.dot(self._w) + 0.5 * (np.square(sums).sum(axis=0) - squares)
        return f, sums

    def _latent(self, f: np.ndarray) -> np.ndarray:
        """Return draws of y* given its signs."""
        margin = self._y * f
        depth = np.log(self._rng.random(f.size)) + log_ndtr(margin)
        return np.asarray(self._y * (margin - ndtri_exp(depth)))

    def _hyper(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return draws of the means and precisions of rows, shape (m, d), by group: (m, G) each."""
        scaled = rows * self._unit_x
        count = self._members
        sums = np.stack([np.bincount(self._groups, row, count.size) for row in scaled])
        squares = np.stack([np.bincount(self._groups, row, count.size) for row in np.square(scaled)])
        # The mean is integrated out: the minimum of Σ(p − μ)² + μ² is Σp² − (Σp)²/(n + 1).
        scatter = np.maximum(squares - np.square(sums) / (count + 1.0), 0.0)
        spreads = self._rng.gamma(0.5 * (1.0 + count), 2.0 / (1.0 + scatter))
        centers = sums / (count + 1.0) + self._rng.normal(size=sums.shape) / np.sqrt(spreads * (count + 1.0))
        return centers / self._unit_x, spreads * self._unit_x**2

    def _parameters(self) -> Parameters:
        root = np.sqrt(self._unit_y)
        return Parameters(
            np.ascontiguousarray(root * self._P.T),
            self._unit_y * self._w,
            self._mean + self._unit_y * self._bias,
        )


def _units(y: np.ndarray, centered: bool) -> tuple[float, float]:
    """Return offset and scale of y: its mean and root mean square; exactly y and 0 for a constant."""
    mean = float(y[0] + np.mean(y - y[0])) if centered else 0.0
    largest = float(np.abs(y - mean).max())
    return mean, largest * float(np.sqrt(np.mean(np.square((y - mean) / (largest or 1.0)))))
