"""Linear algebra: symmetric matrices of low rank, spectral penalties, descent directions at P = 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray], right: np.ndarray, tol: float, most: int
) -> np.ndarray:
    """Return x with ‖product(x) − right‖ ≤ tol·‖right‖, or the last x before a direction without curvature.

    The product is with a symmetric matrix; x and the right-hand side have any shape.
    """
    x, residual, direction = np.zeros_like(right), right, right
    square = first = float(np.vdot(right, right))
    for _ in range(most):
        if square <= tol**2 * first:
            break
        image = product(direction)
        bend = float(np.vdot(direction, image))
        if bend <= 0.0:
            break
        x = x + square / bend * direction
        residual = residual - square / bend * image
        before, square = square, float(np.vdot(residual, residual))
        direction = residual + square / before * direction
    return x
