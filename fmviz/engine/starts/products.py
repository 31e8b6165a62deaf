r"""Strengths that follow the data for models of products of more than two features, or of repeated ones.

For such a model no λ is the first to empty P. What strengths are measured by is the one column that explains
most: with s the derivative of the risk in the predictions at the linear fit and K the kernel of order m, a
unit vector v of large T = |Σ_n s_n K(v, x_n)|. With h = μ/N Σ_n c_n K(v, x_n)² the column P = √[m]{τ}·v,
τ = T/h, lowers the risk by about T²/(2h), and

    λ_p = T²/h / ‖P‖²  (or ‖P‖^m, where norms stand to that power),        λ = T²/h / Ω(P)

are the strengths at which the penalty takes it all. λ_p is that of a dense v, found by power iterations, λ
and the size of a random start those of a v of m entries; of several orders the one counts that explains most.
For pairs of a factorization machine they are the references of `strengths`.

Where X is multiplied by a and y, for a loss of regression, by b, P of order m has to get b^{1/m}/a and does:
for models of one order fits are the same, in other units. For several orders that holds of X under ℓ2² alone,
as no λ suits two of them in all units.
"""

from __future__ import annotations

import numpy as np

from ..models import Model, get_model
from ..models.columns.anova import Anova
from ..models.columns.base import ColumnKernel
from ..penalties import Penalty
from ..penalties.blockwise import parts_of
from ..problem import Problem
from .zero_threshold import linear_fit

# Vectors that power iterations begin with, and their steps: dense ones, and then of as many entries as a
# product has features.
_STARTS = 8
_DENSE_STEPS, _SPARSE_STEPS = 20, 10

# The relative rise of |T(v)| that counts as one: rounding must not choose the way.
_RISE = 1e-8


def product_references(problem: Problem) -> tuple[float, float, float]:
    """Return λ_p and λ of the module's text, and the size of the entries of P; zeros without any product."""
    linear = linear_fit(problem, rough=True)
    # Not the model's own predictions: all subsets have a constant at P = 0.
    slope = problem.slope(problem.design.dot(linear.w) + linear.intercept)
    best, found = 0.0, (0.0, 0.0, 0.0)
    for kernel, penalty in _kernels(problem.model, problem.penalty):
        dense, sparse = _directions(problem, kernel, slope)
        gain, P = _column(problem, kernel, slope, sparse)
        wide_gain, wide = _column(problem, kernel, slope, dense)
        if gain > best:
            best = gain
            norm = float(np.linalg.norm(wide)) ** problem.model.shrinkage_power
            found = wide_gain / norm, gain / penalty.value(P), float(np.abs(P).max())
    return found


def _kernels(model: Model, penalty: Penalty) -> list[tuple[ColumnKernel, Penalty]]:
    """Return the kernels of the model's columns, of order 2 in place of all orders, and their penalties."""
    if model.lifted:
        model = get_model("expansion", {**model.settings, "coefficients": "ones"})
    kernels = model.kernels()  # type: ignore[attr-defined]
    forms = [part for _, part in parts_of(penalty)]
    return [
        (kernel if kernel.degree is not None else Anova(2), form)
        for kernel, form in zip(kernels, forms, strict=True)
    ]


def _directions(problem: Problem, kernel: ColumnKernel, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return unit columns at which |Σ_n s_n K(v, x_n)| is large: dense ones, and of m entries."""
    U = np.random.default_rng(0).normal(size=(problem.design.n_features, _STARTS))
    dense = _ascend(problem, kernel, slope, U, _DENSE_STEPS, len(U))
    return dense, _ascend(problem, kernel, slope, dense, _SPARSE_STEPS, int(kernel.degree or 2))


def _ascend(
    problem: Problem, kernel: ColumnKernel, slope: np.ndarray, U: np.ndarray, steps: int, entries: int
) -> np.ndarray:
    """Return unit columns of so many entries after power iterations in which |T(v)| never falls.

    T(v) = Σ_n s_n K(v, x_n). Above order 2 the plain step v ← ∇T/‖∇T‖ may go round in circles, and what it
    is stopped at hangs on the last digit. Where |T| would fall, the column stays and more of it is added to
    its next step: far enough along v, |T| rises (Kolda and Mayo, SIAM J. Matrix Anal. Appl. 32, 2011).
    """
    degree = kernel.degree or 2
    outer = np.repeat(slope[:, None], U.shape[1], axis=1)
    shift = np.zeros(U.shape[1])
    best, step = np.full(U.shape[1], -1.0), _unit(U, entries)
    U = rise = step
    for _ in range(steps + 1):
        G = kernel.gradient(problem.design, step, outer)
        # K(v, x) is homogeneous in v: T needs no pass of its own.
        T = np.einsum("js,js->s", step, G) / degree
        better = np.abs(T) > best * (1.0 + _RISE)
        best = np.where(better, np.abs(T), best)
        U = np.where(better, step, U)
        rise = np.where(better, _unit(np.where(T < 0.0, -G, G), len(G)), rise)
        shift = np.where(better, 0.5 * shift, 2.0 * shift + 0.5)
        step = _unit(rise + shift * U, entries)
    return U


def _unit(U: np.ndarray, entries: int) -> np.ndarray:
    """Return the columns cut to their largest entries, of norm 1; columns of zeros stay."""
    if entries < len(U):
        kept = np.zeros(U.shape, dtype=bool)
        np.put_along_axis(kept, np.argsort(-np.abs(U), axis=0, kind="stable")[:entries], True, axis=0)
        U = np.where(kept, U, 0.0)
    sizes = np.linalg.norm(U, axis=0)
    return U / np.where(sizes > 0.0, sizes, 1.0)


def _column(
    problem: Problem, kernel: ColumnKernel, slope: np.ndarray, units: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return T²/h and P, shape (d, 1), of the unit column of largest T."""
    values = kernel.values(problem.design, units)
    forces = np.abs(slope @ values)
    s = int(forces.argmax())
    bend = problem.mu * problem.mean(np.square(values[:, s]))
    if not (forces[s] > 0.0 and bend > 0.0):
        return 0.0, units[:, [s]]
    size = (forces[s] / bend) ** (1.0 / (kernel.degree or 2))
    return float(forces[s] ** 2 / bend), size * units[:, [s]]
