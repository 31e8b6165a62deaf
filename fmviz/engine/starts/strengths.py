r"""Default strengths from the data: fractions of the strengths at which all parameters vanish.

With the Lipschitz constant μ of ℓ', G as in `zero_threshold` and τ = |G_ij| / (μ/N Σ_n c_n x_ni² x_nj²), the
weight of the pair of largest |G_ij| in a model of this pair only,

    λ_w = μ/(2n) · Σ_j (1/N) Σ_n c_n x_nj²
    λ_p = 0.02 · (−λ_min(G)/2)
    λ   = 0.15 · (λ_max for a single pair and no λ_p)
    σ   = 0.02 · √τ

λ_w is the strength of ridge regression if ⟨w, x⟩ and the noise are of equal size: it shrinks the weights of
many features on few rows, and barely those of few features on many rows. n is the number of distinct rows;
repeating or weighting rows therefore has no effect. The λ in parentheses is max|G_ij|/4 for TI and CS,
max|G_ij| for Ω_TI, Ω_CS and Ω_*, −λ_min(G)/2 for ℓ2² and TI by rows, and 2·max|G_ij|·√τ for ℓ1, ℓ2,1 and
others that are homogeneous of degree 1.

If X is multiplied by a and, for a regression loss, y by b, then λ_w is multiplied by a², λ_p and λ by a²b
(for ℓ1: a·b^{3/2}) and σ by √b/a. Then w is multiplied by b/a, P by √b/a, and the predictions by b: fits are
invariant to units.

For models convex in a symmetric W of pairs, ‖½G‖_op is the λ_tr at which the trace norm alone makes W = 0,
and max|G_ij|/2 the λ at which ‖W‖₁ alone does: λ_tr and λ are 0.15 of these. G includes its diagonal if f
depends on that of W.

The fractions were chosen on diabetes, breast cancer, abalone, a9a, nycflights, MovieLens 100K and planted
pairs.

Models with products of more than two features, or of repeated ones, have no λ_max. Strengths are relative to
the column that explains most: with the derivative s of the risk in the predictions at the linear fit and the
kernel K of order m, a unit vector v of large T = |Σ_n s_n K(v, x_n)|. With h = μ/N Σ_n c_n K(v, x_n)², the
column P = √[m]{τ}·v, τ = T/h, decreases the risk by about T²/(2h), and

    λ_p = T²/h / ‖P‖²  (or ‖P‖^m, if norms have that power),        λ = T²/h / Ω(P)

are the strengths at which the penalty equals this gain. λ_p uses a dense v, found by power iterations; λ and
the scale of a random start use a v with m entries; of several orders, the one that explains most is used. For
pairs of a factorization machine, these are the references above.

If X is multiplied by a and, for a regression loss, y by b, then P of order m must be multiplied by b^{1/m}/a,
and is: for models of a single order, fits are equivalent. For several orders this holds only for X with ℓ2²,
since no λ suits two orders in all units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..blas import one_thread
from ..design import Design
from ..linalg.lowrank import PairGradient
from ..models.columns.anova import Anova
from ..models.columns.base import ColumnKernel
from ..penalties.blockwise import parts_of
from ..problem import Problem
from ..schedule import STRENGTHS
from .zero_threshold import gradient_at, linear_fit

# The number of starts of power iterations, and of their steps: first dense, then with as many entries as a
# product has features.
_STARTS = 8
_DENSE_STEPS, _SPARSE_STEPS = 20, 10

# The smallest relevant relative increase of |T(v)|, to make the iterations independent of rounding.
_RISE = 1e-8


def product_references(problem: Problem) -> tuple[float, float, float]:
    """Return λ_p and λ as defined in the module, and the scale of P; zeros without products."""
    linear = linear_fit(problem, rough=True)
    # Not the predictions of the model, since all subsets have a constant at P = 0.
    slope = problem.slope(problem.design.dot(linear.w) + linear.intercept)
    best, reference = 0.0, (0.0, 0.0, 0.0)
    for own, (_, penalty) in zip(problem.model.kernels, parts_of(problem.penalty), strict=True):
        # Pairs, for all subsets.
        kernel = Anova(2) if own.degree is None else own
        dense, sparse = _directions(problem, kernel, slope)
        gain, P = _column(problem, kernel, slope, sparse)
        wide_gain, wide = _column(problem, kernel, slope, dense)
        if gain > best:
            best = gain
            norm = float(np.linalg.norm(wide)) ** problem.model.shrinkage_power
            reference = wide_gain / norm, gain / penalty.value(P), float(np.abs(P).max())
    return reference


def _directions(problem: Problem, kernel: ColumnKernel, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return unit columns at which |Σ_n s_n K(v, x_n)| is large: dense ones, and ones with m entries."""
    U = np.random.default_rng(0).normal(size=(problem.design.n_features, _STARTS))
    dense = _ascend(problem, kernel, slope, U, _DENSE_STEPS, len(U))
    return dense, _ascend(problem, kernel, slope, dense, _SPARSE_STEPS, int(kernel.degree or 2))


def _ascend(
    problem: Problem, kernel: ColumnKernel, slope: np.ndarray, U: np.ndarray, steps: int, entries: int
) -> np.ndarray:
    """Return unit columns with `entries` entries after power iterations in which |T(v)| never decreases.

    T(v) = Σ_n s_n K(v, x_n). Above order 2, the plain step v ← ∇T/‖∇T‖ may cycle, and its result then depends
    on rounding. If |T| would decrease, the column stays and its next step uses a larger shift: far enough
    along v, |T| increases (Kolda and Mayo, SIAM J. Matrix Anal. Appl. 32, 2011).
    """
    degree = kernel.degree or 2
    outer = np.repeat(slope[:, None], U.shape[1], axis=1)
    shift = np.zeros(U.shape[1])
    best, step = np.full(U.shape[1], -1.0), _unit(U, entries)
    U = rise = step
    for _ in range(steps + 1):
        G = kernel.gradient(problem.design, step, outer)
        # K(v, x) is homogeneous in v; T needs no separate pass.
        T = np.einsum("js,js->s", step, G) / degree
        better = np.abs(T) > best * (1.0 + _RISE)
        best = np.where(better, np.abs(T), best)
        U = np.where(better, step, U)
        rise = np.where(better, _unit(np.where(T < 0.0, -G, G), len(G)), rise)
        shift = np.where(better, 0.5 * shift, 2.0 * shift + 0.5)
        step = _unit(rise + shift * U, entries)
    return U


def _unit(U: np.ndarray, entries: int) -> np.ndarray:
    """Return the columns truncated to their largest entries and normalized; zero columns are unchanged."""
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


LINEAR_SHARE = 0.5
SHRINKAGE_SHARE = 0.02
SPARSE_SHARE = 0.15
START_SHARE = 0.02
N_STRENGTHS = 25
SMALLEST_SHARE = 1e-3
"""The number of strengths λ on a path, and the smallest as a fraction of `References.lambda_sparse`."""
# The fraction for products of more features, for which P = 0 is a local minimum: a random start can grow.
_PRODUCT_SPARSE_SHARE = 0.02
_PRODUCT_START_SHARE = 0.1
# The start for a loss without curvature, or data without any pair.
_START = 0.01
_LANCZOS_TOL = 1e-3


class References:
    """The reference strengths of the defaults, computed on access.

    Parameters
    ----------
    problem : Problem
        Its λ_w is used in the linear fits. For several machines, the largest strengths are used.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @cached_property
    def _gradients(self) -> list[PairGradient]:
        machines = self._problem.machines
        return [gradient_at(machine, linear_fit(machine, rough=True)) for machine in machines]

    @cached_property
    def _pairs(self) -> list[tuple[float, int, int]]:
        return [gradient.largest_pair() for gradient in self._gradients]

    @cached_property
    def _sizes(self) -> list[float]:
        """The scale √τ of every machine."""
        problem, sizes = self._problem, []
        for largest, i, j in self._pairs:
            pair = problem.design.dense([i, j]) if largest > 0.0 else np.ones((1, 2))
            bend = problem.mu * (problem.mean(np.prod(np.square(pair), axis=1)) if largest > 0.0 else 1.0)
            sizes.append(float(np.sqrt(largest / bend)))
        return sizes

    @cached_property
    def lambda_w(self) -> float:
        """μ/n times the sum of the mean squares of the features, where n is the number of distinct rows."""
        return linear_reference(self._problem)

    @cached_property
    def lambda_p(self) -> float:
        """−λ_min(G)/2, the smallest λ_p at which no P improves on the linear fit, for any λ."""
        each = zip(self._gradients, self._pairs, strict=True)
        return max(gradient.lowest(_LANCZOS_TOL) if pair[0] > 0.0 else 0.0 for gradient, pair in each)

    @cached_property
    def lambda_sparse(self) -> float:
        """The λ of the table in the module."""
        kind = self._problem.penalty.in_weights
        if kind == "trace":
            return self.lambda_p
        shares = {"entries": repeat(0.25), "pairs": repeat(1.0), None: (2.0 * size for size in self._sizes)}
        return max(share * pair[0] for share, pair in zip(shares[kind], self._pairs, strict=False))

    @cached_property
    def size(self) -> float:
        """√τ, the scale of the entries of P."""
        return max(self._sizes)

    @property
    def init_scale(self) -> float:
        """The scale σ of a random start that suits the data."""
        return START_SHARE * self.size or _START

    def grid(self, count: int = N_STRENGTHS, smallest: float = SMALLEST_SHARE) -> list[float]:
        """Return geometrically spaced strengths λ from the largest down to a fraction of it."""
        top = self.lambda_sparse or 1.0
        return [float(value) for value in top * np.geomspace(1.0, smallest, count)]


@one_thread()
def linear_reference(problem: Problem) -> float:
    """Return μ/n times the sum of the mean squares of the features, n the number of distinct rows."""
    design = problem.design
    total = float(design.transpose_dot(problem.unit_weights, 2).sum()) / design.n_samples
    return problem.mu * total / _different_rows(design, problem.unit_weights > 0.0)


def _different_rows(design: Design, counted: np.ndarray) -> int:
    """Return the number of distinct rows with non-zero weight, by hashes in integer arithmetic."""
    X: Any = design.matrix
    keys = np.random.default_rng(0).integers(1, 2**63, size=design.n_features, dtype=np.uint64) | np.uint64(1)
    if sp.issparse(X):
        rows = sp.csr_array(X)
        terms = _mixed(rows.data) * keys[rows.indices]
        ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        sums = ends[rows.indptr[1:]] - ends[rows.indptr[:-1]]
    else:
        sums = np.zeros(design.n_samples, dtype=np.uint64)
        for j, key in enumerate(keys):
            sums += _mixed(X[:, j]) * key
    return max(1, np.unique(sums[counted]).size)


def _mixed(values: np.ndarray) -> np.ndarray:
    """Hash the bits of numbers, many of which end in zeros."""
    # Adding 0 turns −0, which sparse designs do not have, into 0.
    bits = (np.array(values, dtype=np.float64) + 0.0).view(np.uint64)
    bits ^= bits >> np.uint64(29)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(32)
    return bits


@one_thread()
def fill_strengths(problem: Problem, given: Mapping[str, Any]) -> tuple[Problem, Any]:
    """Replace strengths given as None by defaults; return the problem and the scale σ of a random start.

    Every machine has separate defaults; `given` may also have one value per machine.

    Parameters
    ----------
    problem : Problem
        A problem with any strengths.
    given : mapping
        ``lambda_w``, ``lambda_p``, ``lambda_sparse`` and ``init_scale``: numbers, or None for a fraction of
        the `references`.
    """
    if problem.n_machines is not None:
        filled = problem.by_machine(
            lambda machine, *own: fill_strengths(machine, dict(zip(given, own, strict=True))), *given.values()
        )
        strengths = {name: [getattr(machine, name) for machine, _ in filled] for name in STRENGTHS}
        return problem.at(**strengths), problem.joined([size for _, size in filled])
    known = {name: value for name, value in given.items() if value is not None}
    if "lambda_w" not in known:
        known["lambda_w"] = LINEAR_SHARE * linear_reference(problem)
    problem = problem.at(lambda_w=known["lambda_w"])
    if missing := given.keys() - known.keys():
        other = _of_pairs if problem.model.plain else _of_products
        defaults = (_of_weights if problem.model.convex else other)(problem)
        known |= {name: defaults[name]() for name in missing}
    size = known.pop("init_scale")
    return problem.at(**known), size


# The defaults of λ_p, λ and σ, which may be slow to compute.
_Defaults = dict[str, Callable[[], float]]


def _of_pairs(problem: Problem) -> _Defaults:
    """Return the defaults of a second-order factorization machine."""
    reference = References(problem)
    return {
        "lambda_p": lambda: SHRINKAGE_SHARE * reference.lambda_p,
        "lambda_sparse": lambda: SPARSE_SHARE * reference.lambda_sparse,
        "init_scale": lambda: reference.init_scale,
    }


def _of_weights(problem: Problem) -> _Defaults:
    """Return the defaults λ_tr and λ of a model convex in W, which starts at 0."""
    slope = problem.slope(problem.predict(linear_fit(problem, rough=True)))
    gradient = PairGradient(problem.design, slope, diagonal=problem.model.repeats)
    smooth = problem.penalty.smooth
    return {
        "lambda_p": lambda: SPARSE_SHARE * gradient.norm(_LANCZOS_TOL),
        "lambda_sparse": lambda: 0.0 if smooth else SPARSE_SHARE * 0.5 * gradient.largest_pair()[0],
        "init_scale": lambda: 0.0,
    }


def _of_products(problem: Problem) -> _Defaults:
    """Return the defaults of other product models."""
    lambda_p, lambda_sparse, size = product_references(problem)
    # The gradient in factors of order m scales with their power m − 1; all subsets grow with them.
    share = START_SHARE if problem.model.order is None else _PRODUCT_START_SHARE
    return {
        "lambda_p": lambda: SHRINKAGE_SHARE * lambda_p,
        "lambda_sparse": lambda: 0.0 if problem.penalty.smooth else _PRODUCT_SPARSE_SHARE * lambda_sparse,
        "init_scale": lambda: share * size or _START,
    }
