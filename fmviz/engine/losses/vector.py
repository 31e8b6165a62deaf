"""Vector-valued losses ℓ(f, y), for models with several outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._jit import cached_factory
from ..errors import WhyNot
from ..target import Kind
from .base import Loss

# Tolerance for rows of a dual point outside the domain of a conjugate.
_SLACK = 1e-9


@dataclass(frozen=True)
class RowLoss:
    """The jitable function of a vector-valued loss.

    Attributes
    ----------
    name : str
        Names the compiled kernel.
    row : callable
        ``row(f, y, g) -> value`` for one row: f, shape (m,), and its integer class y; the gradient in f is
        written to g.
    """

    name: str
    row: Callable[..., float]


@cached_factory()
def _rows(loss):
    row = loss.row

    def rows(F, Y, value, gradient):
        for n in range(F.shape[0]):
            value[n] = row(F[n], Y[n], gradient[n])

    return rows


@cached_factory()
def _entries(scalar):
    value_of, derivative_of = scalar.value, scalar.derivative

    def entries(F, Y, theta, value, gradient):
        for n in range(F.shape[0]):
            total = 0.0
            for c in range(F.shape[1]):
                total += value_of(F[n, c], Y[n, c], theta)
                gradient[n, c] = derivative_of(F[n, c], Y[n, c], theta)
            value[n] = total

    return entries


@dataclass(frozen=True)
class VectorLoss(Loss, ABC):
    """Convex loss of m predictions per row, with infimum 0.

    Attributes
    ----------
    kinds : tuple of str
        The supported kinds of `fmviz.engine.target.Target`.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ("class",)
    task: ClassVar[Any] = "class"
    rows: ClassVar[RowLoss]

    def value_and_gradient(self, F: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the losses of a block of rows and their gradients in the predictions.

        Parameters
        ----------
        F : (B, m) ndarray
            Predictions.
        Y : (B,) or (B, m) ndarray
            The target values of these rows.

        Returns
        -------
        value : (B,) ndarray
        gradient : (B, m) ndarray
        """
        F = np.ascontiguousarray(F)
        value, gradient = np.empty(F.shape[0]), np.empty(F.shape)
        kernel: Any = _rows(type(self).rows)
        kernel(F, Y.astype(np.int64), value, gradient)
        return value, gradient

    def value(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the loss of every row, shape (B,)."""
        return self.value_and_gradient(f, y)[0]

    def derivative(self, f: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the gradient in the predictions, shape (B, m)."""
        return self.value_and_gradient(f, y)[1]

    @abstractmethod
    def curvature(self, F: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return an upper bound on the largest eigenvalue of the Hessian in f of every row, shape (B,)."""

    def why_no_gap(self) -> WhyNot | None:
        """Return None: vector-valued losses have a conjugate, unless a subclass overrides this."""
        return None


@dataclass(frozen=True)
class SoftMaximum(VectorLoss):
    """Logarithm of a sum of exponentials of f, with the gradient p − e_y for probabilities p."""

    # The largest possible eigenvalue of diag(p) − ppᵀ.
    lipschitz = 0.5

    def curvature(self, F: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Return 2·max_c p_c(1 − p_c) of every row, a bound on diag(p) − ppᵀ (Gershgorin)."""
        size = np.abs(self.derivative(F, Y))
        return 2.0 * (size * (1.0 - size)).max(axis=1)


def simplex_conjugate(a: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the conjugate of log Σ_c exp(f_c − f_y): Σ p log p of p = a + e_y in the simplex, else ∞."""
    p = a.copy()
    p[np.arange(len(p)), y.astype(np.int64)] += 1.0
    inside = (p.min(axis=1) >= -_SLACK) & (np.abs(p.sum(axis=1) - 1.0) <= _SLACK)
    p = np.maximum(p, 0.0)
    entropy = (p * np.log(np.where(p > 0.0, p, 1.0))).sum(axis=1)
    return np.where(inside, entropy, np.inf)


@dataclass(frozen=True)
class Separate(VectorLoss):
    """Σ_c ℓ(f_c, y_c): the same loss summed over the outputs.

    The squared loss suits several real targets, the logistic loss several labels per row.

    Parameters
    ----------
    loss : Loss
        The loss ℓ.
    """

    loss: Loss

    name: ClassVar[str] = "separate"
    label: ClassVar[str] = "Sum over outputs"
    formula: ClassVar[str] = r"\sum_c \ell(f_c, y_c)"
    kinds: ClassVar[tuple[Kind, ...]] = ("real", "binary", "several")

    def targets(self, Y: np.ndarray, m: int) -> np.ndarray:
        """Return the target of each of m outputs, shape (B, m)."""
        return np.ascontiguousarray(Y.reshape(-1, m))

    def value_and_gradient(self, F: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        F, Y = np.ascontiguousarray(F), self.targets(Y, F.shape[1])
        value, gradient = np.empty(F.shape[0]), np.empty(F.shape)
        kernel: Any = _entries(self.loss.scalar)
        kernel(F, Y, self.loss.theta, value, gradient)
        return value, gradient

    def curvature(self, F: np.ndarray, Y: np.ndarray) -> np.ndarray:
        targets = self.targets(Y, F.shape[1]).ravel()
        return self.loss.second(F.ravel(), targets).reshape(F.shape).max(axis=1)

    def mu(self) -> float | None:
        """Return μ of ℓ."""
        return self.loss.mu()

    @property
    def log_link(self) -> bool:  # type: ignore[override]
        """As for ℓ."""
        return self.loss.log_link

    def why_not_target(self, y: np.ndarray) -> str | None:
        return self.loss.why_not_target(y)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray | None:
        conjugate = self.loss.conjugate(a.ravel(), self.targets(y, a.shape[1]).ravel())
        return None if conjugate is None else conjugate.reshape(a.shape).sum(axis=1)

    def probability(self, f: np.ndarray) -> np.ndarray | None:
        """Return the probability of every label independently, shape (B, m); None if undefined."""
        p = self.loss.probability(f.ravel())
        return None if p is None else p.reshape(f.shape)

    def why_no_gap(self) -> WhyNot | None:
        return self.loss.why_no_gap()


@dataclass(frozen=True)
class AtMost(Separate):
    """Σ_c ℓ(f_c, ±1) for C ordered classes: output c of C − 1 predicts whether y is at most c (McRank)."""

    name: ClassVar[str] = "at_most"
    label: ClassVar[str] = "Sum over levels"
    formula: ClassVar[str] = r"\sum_c \ell(f_c, \pm 1),\quad +1 \text{ if } y \le c"
    kinds: ClassVar[tuple[Kind, ...]] = ("ordinal",)

    def targets(self, Y: np.ndarray, m: int) -> np.ndarray:
        return np.where(Y[:, None] <= np.arange(m), 1.0, -1.0)
