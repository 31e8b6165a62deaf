r"""Upper bounds of max_h ‖g_h‖_p over the unit ball: what a duality gap rests on.

Selection finds lower bounds. From above, with q(h) = Σ_c (hᵀΓ_c h)²:

- p = ∞: the largest |eigenvalue| of the Γ_c, exactly up to 2,000 features. Up to 6,000 the inertia of
  ±Γ_c − t, by an LDLᵀ decomposition, proves that none is beyond t. Further on it is the bound of Kuczyński
  and Woźniakowski (1992) for Lanczos iterations from a random start, which fails with a probability of at
  most 10⁻⁶ and is called probabilistic: the residual of an eigenvector shows that an eigenvalue is near, not
  that it is the largest.
- p = 2: q is a quartic form. `fmviz.engine.shared_basis.quartic` bounds it by a sum of squares up to 40
  features, by a part of that up to 60, and beyond by the norms of matrices of size m and d.
- p = 1: over all signs s, the largest |eigenvalue| of Σ_c s_c Γ_c, exactly up to 11 outputs; else √m times
the
  bound for p = 2, which is loose.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal, ldl

from ..design import Design
from ..linalg.lowrank import PairGradient
from .gradients import BasisGradient
from .quartic import one_parameter_bound, sum_of_squares_bound

_DENSE, _INERTIA = 2_000, 6_000
_MARGIN = 1e-6
FAILURE = 1e-6
"""The probability with which a probabilistic bound fails."""
_LANCZOS_STEPS = 150
MOST_SIGNS = 11
"""Outputs whose signs are all tried."""
_SIGN_WORK = 3e8
_SOS, _ONE_PARAMETER = 40, 60


class Bound(NamedTuple):
    """An upper bound.

    Attributes
    ----------
    value : float
        It.
    kind : {"exact", "inertia", "probabilistic", "sum_of_squares", "one_parameter", "norms", "loose"}
        What it rests on.
    """

    value: float
    kind: str


def largest_norm(gradient: BasisGradient, p: float, thorough: bool = True, enough: float = 0.0) -> Bound:
    """Return an upper bound of max_h ‖g_h‖_p.

    Parameters
    ----------
    gradient : BasisGradient
        Γ_1, …, Γ_m.
    p : float
        1, 2 or ∞.
    thorough : bool
        Whether to take time for a tight bound.
    enough : float
        A bound that need not be improved on: the search for one ends there.
    """
    if gradient.m == 1 or p == np.inf:
        return _largest_eigenvalue(gradient)
    if p == 2.0:
        return _euclidean(gradient, thorough, enough)
    work = 2.0 ** (gradient.m - 1) * gradient.d**3
    if gradient.m <= MOST_SIGNS and gradient.small and work <= (_SIGN_WORK if thorough else 0.1 * _SIGN_WORK):
        return Bound(_over_signs(gradient), "exact")
    root = float(np.sqrt(gradient.m))
    euclidean = _euclidean(gradient, thorough, enough / root)
    return Bound(root * euclidean.value, "loose")


def _largest_eigenvalue(gradient: BasisGradient) -> Bound:
    if gradient.d <= _DENSE:
        matrices = gradient.matrices if gradient.small else map(gradient.matrix, range(gradient.m))
        return Bound(max(float(np.abs(np.linalg.eigvalsh(G)[[0, -1]]).max()) for G in matrices), "exact")
    if gradient.d <= _INERTIA:
        return Bound(max(_by_inertia(gradient.matrix(c)) for c in range(gradient.m)), "inertia")
    rng = np.random.default_rng(0)
    share = FAILURE / (2 * gradient.m)
    return Bound(
        max(
            _probable_norm(gradient.design, gradient.slopes[:, c], gradient.diagonal, share, rng)
            for c in range(gradient.m)
        ),
        "probabilistic",
    )


def _by_inertia(G: np.ndarray) -> float:
    """Return a t, about 1e-6 above the largest |eigenvalue|, of which the inertia of G ± t proves that."""
    # Power iterations find it, from below.
    v = np.random.default_rng(0).normal(size=len(G))
    size = 0.0
    for _ in range(100):
        v = G @ (G @ v)
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return 0.0
        v /= size
    t = float(np.sqrt(size)) * (1.0 + _MARGIN)
    while not (_positive(t, G) and _positive(t, -G)):
        t *= 1.0 + 10.0 * _MARGIN
    return t


def _positive(t: float, G: np.ndarray) -> bool:
    """Return whether t·I − G is positive definite, by the blocks of its LDLᵀ decomposition."""
    D = ldl(t * np.eye(len(G)) - G)[1]
    values = eigh_tridiagonal(np.diagonal(D), np.diagonal(D, 1), eigvals_only=True)
    return bool(values[0] > 0.0)


def _probable_norm(
    design: Design, slopes: np.ndarray, diagonal: bool, failure: float, rng: np.random.Generator
) -> float:
    """Return an upper bound of the largest |eigenvalue| that fails with this probability at most, each end.

    After k steps from a start that is uniform on the sphere the largest Ritz value is short of the largest
    eigenvalue by more than ε times the spectrum's width with probability at most 1.648 √d exp(−√ε (2k − 1)).
    """
    d, operator = design.n_features, PairGradient(design, slopes, diagonal)
    steps = min(_LANCZOS_STEPS, d - 1)
    v = rng.normal(size=d)
    basis = np.empty((steps, d))
    basis[0] = v / np.linalg.norm(v)
    along, beside = np.zeros(steps), np.zeros(steps)
    for k in range(steps):
        image = operator.dot(basis[k])
        along[k] = float(basis[k] @ image)
        # Against all vectors before, twice: the theorem is about exact arithmetic.
        for _ in range(2):
            image -= basis[: k + 1].T @ (basis[: k + 1] @ image)
        beside[k] = float(np.linalg.norm(image))
        if k + 1 == steps or beside[k] <= 1e-13 * max(float(np.abs(along).max()), 1e-300):
            steps = k + 1
            break
        basis[k + 1] = image / beside[k]
    ritz = eigh_tridiagonal(along[:steps], beside[: steps - 1], eigvals_only=True)
    epsilon = (np.log(1.648 * np.sqrt(d) / failure) / (2 * steps - 1)) ** 2
    if epsilon >= 0.4:
        rows = np.asarray(abs(design.matrix).sum(axis=1)).ravel()
        return float((abs(design.matrix).T @ (np.abs(slopes) * rows)).max())
    # Both ends are short by ε of the true width at most, which so is at most the found one over 1 − 2ε.
    slack = epsilon * (ritz[-1] - ritz[0]) / (1.0 - 2.0 * epsilon)
    return float(max(abs(ritz[0]), abs(ritz[-1])) + slack)


def _over_signs(gradient: BasisGradient) -> float:
    signs = np.array([(1.0, *rest) for rest in product((-1.0, 1.0), repeat=gradient.m - 1)])
    found = 0.0
    for begin in range(0, len(signs), 256):
        sums = np.tensordot(signs[begin : begin + 256], gradient.matrices, axes=1)
        found = max(found, float(np.abs(np.linalg.eigvalsh(sums)[:, [0, -1]]).max()))
    return found


def _euclidean(gradient: BasisGradient, thorough: bool, enough: float) -> Bound:
    norms = _by_norms(gradient)
    if not gradient.small or gradient.d > _ONE_PARAMETER or norms == 0.0:
        return Bound(norms, "norms")
    if gradient.d <= _SOS and thorough:
        return Bound(min(norms, sum_of_squares_bound(gradient.matrices, enough)), "sum_of_squares")
    return Bound(min(norms, one_parameter_bound(gradient.matrices)), "one_parameter")


def _by_norms(gradient: BasisGradient) -> float:
    """Return the least of three bounds of max_h ‖g_h‖₂ that matrices of size m and d give.

    The largest singular value of the unfolding (Γ_1, …, Γ_m); the root of the norm of ΣΓ_c², as
    (hᵀΓ_c h)² ≤ ‖Γ_c h‖²; and the root of the sum of the squared norms of the Γ_c.
    """
    if not gradient.small and gradient.d > _DENSE:
        each = [_largest_eigenvalue_of(gradient, c) for c in range(gradient.m)]
        return float(np.linalg.norm(each))
    matrices = gradient.matrices if gradient.small else [gradient.matrix(c) for c in range(gradient.m)]
    inner = np.array([[float((A * B).sum()) for B in matrices] for A in matrices])
    squares = sum(G @ G for G in matrices)
    each = [float(np.abs(np.linalg.eigvalsh(G)[[0, -1]]).max()) for G in matrices]
    return float(
        min(
            np.sqrt(np.linalg.eigvalsh(inner)[-1]),
            np.sqrt(np.linalg.eigvalsh(squares)[-1]),
            np.linalg.norm(each),
        )
    )


def _largest_eigenvalue_of(gradient: BasisGradient, c: int) -> float:
    one = BasisGradient(gradient.design, gradient.slopes[:, c : c + 1], gradient.diagonal)
    return _largest_eigenvalue(one).value
