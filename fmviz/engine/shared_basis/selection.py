"""Selection of new basis vectors by maximizing ‖g_h‖_p over the unit ball ([C] Eq. 4)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import scipy.sparse as sp
from scipy.special import huber

from ..design import Design
from .gradients import BasisGradient, dual_vectors, unit

# The maximum numbers of refinement steps and of eigen-steps, and the relative gains that end them.
_STEPS, _GAIN = 100, 1e-9
_EIGEN_STEPS, _EIGEN_GAIN = 30, 1e-6
_HUBER = 1e-3
# The maximum number of outputs whose signs are enumerated.
MOST_SIGNS = 16
# Directions count as equal if |cos| is above this.
_ALIKE = 0.97
# The maximum number of features for which all starts are followed; for more, only the best few.
_CHEAP = 32
_ROWS = 2_000


def eigen_steps(
    gradient: BasisGradient, H: np.ndarray, p: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return local maxima of ‖g_h‖_p near the columns of H, shape (d, s), and the next best directions.

    ‖g_h‖_p is the maximum of ⟨a, g_h⟩ over the dual ball. Steps alternate between the best a for h and the
    best h for a, the dominant eigenvector of Σ_c a_c Γ_c; no step decreases the value.

    Returns
    -------
    (d, s) ndarray, (d, s) ndarray
        The maxima, and the second eigenvectors there.
    """
    H, second, value = H.copy(), H.copy(), gradient.norms(H, p)
    # The columns that still increase.
    at = np.arange(H.shape[1])
    for _ in range(_EIGEN_STEPS):
        if not at.size:
            break
        vectors = gradient.leading(dual_vectors(gradient.values(H[:, at]), p), 2, rng)
        new, second[:, at] = vectors[:, :, 0].T, vectors[:, :, -1].T
        reached = gradient.norms(new, p)
        better = reached > value[at] * (1.0 + _EIGEN_GAIN)
        at = at[better]
        H[:, at], value[at] = new[:, better], reached[better]
    return H, second


def refined(gradient: BasisGradient, H: np.ndarray, p: float) -> np.ndarray:
    """Refine the columns of H by conditional gradient steps on ‖g_h‖ ([C] Eq. 6).

    The step size follows the Armijo rule, starting from 1. For p = 1, a Huber function with a threshold of
    1/1000 of the largest initial |g_hc| replaces the absolute value; the paper's threshold is 1, regardless
    of the scale of the data.
    """
    return np.column_stack([_refined(gradient, h, p) for h in H.T])


def _refined(gradient: BasisGradient, h: np.ndarray, p: float) -> np.ndarray:
    width = _HUBER * float(np.abs(gradient.values(h[:, None])).max())
    if p == np.inf or not width:
        return h

    def criterion(h: np.ndarray) -> tuple[float, np.ndarray]:
        g = gradient.values(h[:, None])[0]
        if p == 2.0:
            return float(g @ g), 2.0 * g
        return float(huber(width, g).sum()) / width, np.clip(g / width, -1.0, 1.0)

    value, weight = criterion(h)
    for _ in range(_STEPS):
        slope = 2.0 * gradient.images(h[:, None], weight[None, :])[:, 0]
        direction = unit(slope) - h
        before, promised = value, float(slope @ direction)
        for eta in 0.5 ** np.arange(27):
            reached, there = criterion(h + eta * direction)
            if reached >= before + 1e-4 * eta * promised:
                h, value, weight = h + eta * direction, reached, there
                break
        if value <= before * (1.0 + _GAIN):
            break
    return unit(h)


def random_directions(d: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return unit vectors, shape (d, count)."""
    return unit(rng.normal(size=(d, count)))


def data_directions(design: Design, rng: np.random.Generator) -> np.ndarray:
    """Return at most 2,000 rows of X scaled to norm 1, shape (d, s); zero rows are unchanged."""
    n = design.n_samples
    X = design.take(np.arange(n) if n <= _ROWS else rng.choice(n, _ROWS, replace=False))
    return unit(sp.csr_array(X).toarray().T.astype(np.float64))


def every_sign(gradient: BasisGradient, rng: np.random.Generator) -> np.ndarray:
    """Return the dominant eigenvector for every choice of signs, shape (d, 2^(m−1)) ([C] Appendix C).

    Raises
    ------
    ValueError
        If there are more than 16 outputs.
    """
    if gradient.m > MOST_SIGNS:
        raise ValueError(
            f"The exact selection enumerates all signs of {gradient.m} outputs, 2^{gradient.m - 1:,} "
            f"eigenproblems; it supports at most {MOST_SIGNS} outputs. Choose selection='eigen'."
        )
    signs = np.array([(1.0, *others) for others in product((-1.0, 1.0), repeat=gradient.m - 1)])
    return np.hstack(
        [gradient.leading(signs[n : n + 256], 1, rng)[:, :, 0].T for n in range(0, len(signs), 256)]
    )


def _eigen(gradient: BasisGradient, p: float, count: int, rng: np.random.Generator) -> np.ndarray:
    starts = np.hstack([*gradient.leading(np.eye(gradient.m), 2, rng).transpose(2, 1, 0)])
    if p == np.inf:
        return starts
    if gradient.d <= _CHEAP:
        starts = np.hstack([starts, random_directions(gradient.d, gradient.m, rng)])
    else:
        starts = starts[:, np.argsort(-gradient.norms(starts, p), kind="stable")[: max(4, count)]]
    return np.hstack([starts, *eigen_steps(gradient, starts, p, rng)])


def _best_l1(gradient: BasisGradient, rng: np.random.Generator) -> np.ndarray:
    """Return the dominant eigenvector of every Γ_c, shape (d, m), the best first."""
    H = gradient.leading(np.eye(gradient.m), 1, rng)[:, :, 0].T
    return H[:, np.argsort(-gradient.norms(H, np.inf), kind="stable")]


METHODS: dict[str, Callable[[BasisGradient, float, int, np.random.Generator], np.ndarray]] = {
    "eigen": _eigen,
    "refine": lambda gradient, p, count, rng: refined(gradient, _best_l1(gradient, rng)[:, :count], p),
    "random_refine": lambda gradient, p, count, rng: refined(
        gradient, random_directions(gradient.d, count, rng), p
    ),
    "l1": lambda gradient, p, count, rng: _best_l1(gradient, rng)[:, :count],
    "random": lambda gradient, p, count, rng: random_directions(gradient.d, count, rng),
    "data": lambda gradient, p, count, rng: data_directions(gradient.design, rng),
    "exact": lambda gradient, p, count, rng: every_sign(gradient, rng),
}
"""Selection methods: eigen-steps, the methods of [C] Section 6.2, and its Appendix C."""


def select(
    gradient: BasisGradient, p: float, method: str, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return new basis vectors and their ‖g_h‖_p, largest first.

    Parameters
    ----------
    gradient : BasisGradient
        The gradient at the current predictions.
    p : float
        1, 2 or ∞.
    method : str
        A key of `METHODS`.
    count : int
        The maximum number of vectors, which differ in direction.
    rng : numpy Generator
        Draws random starts.

    Returns
    -------
    (d, c) ndarray, (c,) ndarray
        c ≤ count.
    """
    H = METHODS[method](gradient, p, count, rng)
    size = gradient.norms(H, p)
    order = np.argsort(-size, kind="stable")
    chosen: list[int] = []
    for r in order:
        if len(chosen) == count or not size[r] > 0.0:
            break
        if not chosen or float(np.abs(H[:, chosen].T @ H[:, r]).max()) < _ALIKE:
            chosen.append(int(r))
    return np.ascontiguousarray(H[:, chosen]), size[chosen]
