r"""Escape from saddle points at which columns of P are 0.

A zero column has zero slope regardless of the others, and no step on single entries changes it. If Ω is
homogeneous of degree 2, however, such a point is often a saddle. With the gradient G of the risk in the pair
weights, with zero diagonal, replacing 0 by a column v changes the objective by

    ½ vᵀGv + λ_p‖v‖² + λ Ω(v) + O(‖v‖⁴),

and the first three terms are a·τ for v = √τ u. If a < 0 for some u, the objective decreases along it. If Ω is
a sum over columns, like TI, this holds for any values of the other columns; if Ω couples them, like CS, only
at P = 0.
"""

from __future__ import annotations

import numpy as np

from ..linalg.descent_direction import descent_direction, pair_starts
from ..linalg.lowrank import PairGradient
from ..problem import Problem
from ..settings import ParamSpec

ESCAPE = ParamSpec(
    "revive",
    "bool",
    False,
    help="If a column of P is 0 after the sweeps have converged, search for a sparse descent direction and "
    "move the column along it. Sweeps alone never leave 0. For TI, Ω_TI and ℓ₂², and for CS and Ω_CS if "
    "all of P is 0; with ℓ₁, a zero column is a minimum. Off: the paper's sweeps.",
)

# Sweeps have converged when they change no parameter by more than this fraction of the largest.
SETTLED = 0.1
# After a failed search, the next one waits until changes are smaller by this factor.
_LATER = 10.0
# The interval of steps at which directions are tested, and the maximum number of steps.
_STEPS, _MOST_STEPS = 10, 30
# The number of steps over which the penalty grows to its full strength: it would reduce a random start, which
# is not sparse, to a few arbitrary entries.
_GROWTH = 5
# Coupled columns leave P = 0 along one direction, with relative differences of this size.
_SPREAD = 0.1
# For more features, the ascents from pairs, on a d × d matrix, take seconds.
_MOST_FEATURES = 500
# The smallest decrease that counts, as a fraction of the risk.
_WORTH = 1e-8


class SaddleEscape:
    r"""The search for a direction, by the power method with a proximal step.

    From a random unit vector, it iterates u ← prox((L u − G u)/(L + 2λ_p)), ‖u‖ ← 1, with the operator of
    λ/(L + 2λ_p)·Ω: descent on ½ uᵀGu + λ_p‖u‖² + λ Ω(u) along the sphere, as in sparse principal component
    analysis (Journée, Nesterov, Richtárik and Sepulchre 2010). Each step multiplies by X and its transpose; G
    is not formed.

    Parameters
    ----------
    problem : Problem
        The problem of a second-order machine.
    rng : numpy Generator
        Draws the starts of searches.
    thorough : bool
        Whether to also start from the pairs of largest gradient if a search at P = 0 has failed: just below
        λ_max, random vectors rarely lead to the few directions that leave P = 0.
    """

    memory = ("_rng", "_quiet")

    def __init__(self, problem: Problem, rng: np.random.Generator, thorough: bool = False) -> None:
        self._problem, self._rng, self._thorough = problem, rng, thorough
        self._quiet = SETTLED

    def due(self, change: float) -> bool:
        """Return whether to search after an epoch with this relative change of the parameters."""
        return change < self._quiet

    def leave(self, P: np.ndarray, f: np.ndarray, change: float) -> np.ndarray | None:
        """Return a P, shape (d, k), with a lower objective, or None if none was found.

        Parameters
        ----------
        P : (d, k) ndarray
            The current factors.
        f : (N,) ndarray
            Its predictions.
        change : float
            As for `due`.
        """
        dead = np.flatnonzero(~P.any(axis=0))
        alone = self._problem.penalty.saddles == "columns"
        if not dead.size or not (alone or dead.size == P.shape[1]):
            return None
        column = self._search(f)
        if column is None and self._thorough and dead.size == P.shape[1]:
            column = self._from_pairs(f)
        self._quiet = change / _LATER if column is None else SETTLED
        if column is None:
            return None
        moved = P.copy()
        if not alone:
            moved[:] = _SPREAD * column[:, None] * self._rng.normal(size=P.shape)
        moved[:, dead[0]] = column
        return moved

    def _search(self, f: np.ndarray) -> np.ndarray | None:
        problem = self._problem
        slope = problem.slope(f)
        gradient = PairGradient(problem.design, slope, diagonal=False)
        u = self._rng.normal(size=problem.design.n_features)
        u /= np.linalg.norm(u)
        steep = 0.0
        for step in range(1, _MOST_STEPS + 1):
            # Half of this is the gradient with respect to a symmetric W.
            force = 2.0 * gradient.dot(u)
            steep = max(steep, float(np.linalg.norm(force)))
            if not 0.0 < steep < np.inf:
                return None
            denominator = steep + 2.0 * problem.lambda_p
            strength = problem.lambda_sparse * min(step / _GROWTH, 1.0)
            moved = (steep * u - force) / denominator
            u = problem.penalty.prox(moved[:, None], strength / denominator)[:, 0]
            size = float(np.linalg.norm(u))
            if size == 0.0:
                return None
            u = u / size
            if step % _STEPS == 0 and (column := self._scaled(u, f, slope)) is not None:
                return column
        return None

    def _from_pairs(self, f: np.ndarray) -> np.ndarray | None:
        problem = self._problem
        kind, slope = problem.penalty.in_weights, problem.slope(f)
        if kind in (None, "trace") or problem.design.n_features > _MOST_FEATURES:
            return None
        A = -PairGradient(problem.design, slope, diagonal=False).matrix
        directions = (descent_direction(A, problem.lambda_p, kind == "pairs", v) for v in pair_starts(A))
        ratio, v = max(directions, key=lambda pair: pair[0], default=(0.0, f))
        return self._scaled(v / np.linalg.norm(v), f, slope) if ratio > problem.lambda_sparse else None

    def _scaled(self, u: np.ndarray, f: np.ndarray, slope: np.ndarray) -> np.ndarray | None:
        """Return √τ·u for the best τ, or None if the objective does not decrease.

        The column √τ·u adds τ·g to f. Since ℓ' has the Lipschitz constant μ, the risk increases by at most
        τ⟨slope, g⟩ + τ²·μ/(2N) Σ c g², with equality for the squared loss.
        """
        problem = self._problem
        g = 0.5 * (np.square(problem.design.dot(u)) - np.asarray(problem.design.power(2) @ np.square(u)))
        fall = float(slope @ g) + problem.lambda_p * float(u @ u)
        fall += problem.lambda_sparse * problem.penalty.value(u[:, None])
        bend = 0.5 * problem.mu * problem.mean(np.square(g))
        if not (fall < 0.0 < bend and fall**2 / (4.0 * bend) > _WORTH * problem.empirical_risk(f)):
            return None
        return np.asarray(np.sqrt(-fall / (2.0 * bend)) * u)
