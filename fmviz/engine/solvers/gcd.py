"""Greedy coordinate descent for the convex factorization machine (Blondel, Fujino and Ueda 2015)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..design import Design
from ..errors import WhyNot
from ..linalg.lowrank import (
    PairGradient,
    eigenform,
    features_of_pairs,
    orthonormal,
)
from ..memory import in_words
from ..models.base import Model
from ..models.convex import ConvexFM
from ..parameters import Parameters
from ..penalties.trace_norm import TraceNorm
from ..problem import Formulation
from ..settings import ParamSpec
from ._signed import SignedFactors
from ._sweeping import relative_change
from .base import Solver
from .quadratic_pgd import IncrementalPGD

# The most iterations of a refit: where it is all, and where the local search does the rest.
_INNER_ALONE, _INNER = 200, 20
# Newton steps follow an epoch that changed no more than this.
_NEAR = 1e-2
_ROUNDING = 1e-15
# Accuracy of the eigenvectors: a new column is refitted at once.
_LANCZOS = 1e-4


class _Subspace(Model):
    """f of W = Q S Qᵀ as a function of the small symmetric S, under the trace norm of S.

    With `diagonal_only` S stays diagonal, and its trace norm is the ℓ1 norm of the columns' weights.
    """

    factorised: ClassVar[bool] = False
    convex: ClassVar[bool] = True

    def __init__(self, design: Design, Q: np.ndarray, whole: bool, diagonal_only: bool) -> None:
        self._Q, self._A, self._whole, self._only = Q, design.dot(Q), whole, diagonal_only
        self._squares = None if whole else design.power(2)

    def predict(self, design: Design, parameters: Parameters) -> np.ndarray:
        S, Q, A = parameters.weights, self._Q, self._A
        f = np.einsum("nm,nm->n", A @ S, A)
        if self._squares is not None:
            f = 0.5 * (f - np.asarray(self._squares @ np.einsum("jm,jm->j", Q @ S, Q)))
        f += parameters.intercept
        return f + design.dot(parameters.w) if parameters.w.any() else f

    def gradient(
        self, design: Design, parameters: Parameters, slope: np.ndarray, sums: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        G = self._A.T @ (slope[:, None] * self._A)
        if self._squares is not None:
            G = 0.5 * (G - self._Q.T @ (np.asarray(self._squares.T @ slope)[:, None] * self._Q))
        G = np.diag(np.diagonal(G)) if self._only else 0.5 * (G + G.T)
        return G, design.transpose_dot(slope), float(slope.sum())

    def penalised(self, parameters: Parameters) -> np.ndarray:
        return parameters.weights

    def shrinkage(self, parameters: Parameters) -> float:
        return TraceNorm().value(parameters.weights)


class GCD(Solver):
    r"""Eigenvectors of the gradient become columns of P, one or a few an epoch, and all weights are refitted.

    W = P diag(λ) Pᵀ is a combination of the coordinates p pᵀ, ‖p‖ = 1, of which there are infinitely many;
    the one along which the objective falls most steeply is the eigenvector of the gradient with the largest
    |eigenvalue|, and none is left to add just where that is at most λ_tr, the optimum. An epoch

    1. finds the `bases` leading eigenvectors by Lanczos iterations, and takes those beyond λ_tr;
    2. refits the weights of all columns, w and the bias, by accelerated proximal gradient descent: λ alone
       under λ_tr‖λ‖₁ (refit "diagonal"), or the whole symmetric matrix between the columns under its trace
       norm ("matrix"); weights of 0 are exact, and end their columns;
    3. writes the result in its eigenvectors, which does not raise the trace norm.

    Refit "factors" puts L-BFGS iterations before these steps, on the columns √|λ_s| p_s themselves with
    their signs fixed, under λ_tr Σ‖·‖², which is ‖W‖_tr at the least ([B] Theorem 2), and Newton steps near
    the end: the local search of Laue (2012), which turns all columns at once. The greedy step finds the rank
    and the signs for it, and proves the optimum.

    Without a limit all three converge to the optimum, "diagonal" slowly. Where `rank` is smaller than the
    rank of the optimum, the columns of least weight make room as long as the objective falls; then the end
    is no optimum, and the duality gap says by how much at most. The objective never rises.
    """

    name: ClassVar[str] = "gcd"
    label: ClassVar[str] = "Greedy coordinate descent"
    source: ClassVar[str] = "Blondel, Fujino and Ueda 2015; Laue 2012"
    about: ClassVar[str] = (
        "Adds the leading eigenvectors of the gradient as columns of P, and refits their weights under the "
        "trace norm. It reaches the optimum over all W of the given rank or less, and its duality gap proves "
        "it."
    )
    params: ClassVar[tuple[ParamSpec, ...]] = (
        ParamSpec(
            "refit",
            "choice",
            "factors",
            choices=("factors", "matrix", "diagonal"),
            help="What moves after a new column: all columns, the matrix between them, or their weights.",
        ),
        ParamSpec("bases", "int", 5, 1, 100, help="The most new columns of an epoch."),
    )

    memory: ClassVar[tuple[str, ...]] = ("_rng", "_moved", "_now", "_objective")
    # For the refits by `IncrementalPGD`.
    needs_mu: ClassVar[bool] = True

    def _why_not_model(self, model: Model) -> WhyNot | None:
        """See `Solver._why_not_model`."""
        if isinstance(model, ConvexFM):
            return None
        return WhyNot(
            "convex_fm_only",
            f"{self.label} adds eigenvectors of the gradient to W = P diag(λ) Pᵀ, which are steepest "
            f"directions under the trace norm of W and no other penalty; the {model.label[0].lower()}"
            f'{model.label[1:]} has another one. Choose the model "convex_fm", or another solver.',
        )

    def _why_not(self, problem: Formulation) -> WhyNot | None:
        """See `Solver.why_not`; what model and penalty must be is asked before."""
        return None

    def cost_note(self, problem: Formulation, d: int, rank: int) -> str | None:
        """See `Solver.cost_note`."""
        return (
            f"An epoch of {self.label.lower()} is long: tens of Lanczos iterations of O(nnz), up to "
            f"{SignedFactors.most_iterations} of L-BFGS of O(nnz·k) and {_INNER} refits of O(N·k²) for the "
            f"k ≤ {rank:,} columns found so far. W itself, {in_words(8.0 * d * d)} for {d:,} features, is "
            f"never formed; P and its copies take up to {in_words(8.0 * problem.model.copies * d * rank)}."
        )

    def start(self, parameters: Parameters, rng: np.random.Generator) -> None:
        """See `Solver.start`."""
        self._rng = rng
        self._moved = np.inf
        self._live = features_of_pairs(self.problem.design, self._diagonal)
        self._now = self._eigen(
            parameters.P, parameters.multipliers, parameters.w.copy(), float(parameters.intercept)
        )
        self._objective = self.problem.objective(self._now)

    @property
    def _diagonal(self) -> bool:
        model: Any = self.problem.model
        return bool(model.diagonal)

    def _eigen(self, P: np.ndarray, weights: np.ndarray, w: np.ndarray, bias: float) -> Parameters:
        Q, values = eigenform(P, weights)
        rank = self.problem.rank
        return Parameters(Q[:, :rank], w, bias, coefficients=values[:rank])

    def _take(self, new: Parameters) -> bool:
        """Move to `new` unless the objective would rise by more than rounding; return whether it moved."""
        objective = self.problem.objective(new)
        if not objective <= self._objective + _ROUNDING * abs(self._objective):
            return False
        self._now, self._objective = new, objective
        return True

    def epoch(self) -> float:
        """See `Solver.epoch`."""
        before, factors = self._now, self.settings["refit"] == "factors"
        if factors or not before.multipliers.size:
            self._take(self._local_search(before))
        V = self._steepest()
        free = self.problem.rank - self._now.multipliers.size
        new = self._refitted(V)
        if V.shape[1] > free and factors:
            # Columns were cut off: the others make up for them.
            new = self._local_search(new)
        if not self._take(new) and V.shape[1] > free:
            self._take(self._refitted(V[:, :free]))
        self._moved = self._change(before)
        return self._moved

    def at_rank(self) -> bool:
        """See `Solver.at_rank`: W has a rank of at most d."""
        return self._now.multipliers.size == self.problem.rank < self.problem.design.n_features

    def _steepest(self) -> np.ndarray:
        """Return the leading eigenvectors beyond λ_tr, shape (d, at most `bases`)."""
        problem = self.problem
        design = problem.design
        f = problem.predict(self._now)
        values, vectors = PairGradient(design, problem.slope(f), self._diagonal).leading(
            self.settings["bases"], self._live, self._rng.normal(size=design.n_features), _LANCZOS
        )
        return vectors[:, np.abs(values) > problem.lambda_p * (1.0 + 1e-12)]

    def _refitted(self, V: np.ndarray) -> Parameters:
        """Return the present point with the columns V, shape (d, m), added and the weights refitted."""
        problem, here, refit = self.problem, self._now, self.settings["refit"]
        P = here.P
        only = refit == "diagonal"
        if not only and V.shape[1]:
            V = _beside(P, V)
        Q = np.hstack([P, V])
        if Q.shape[1] == 0:
            return here
        small = replace(problem, model=_Subspace(problem.design, Q, self._diagonal, only), lambda_sparse=0.0)
        method = IncrementalPGD().within(small)
        S = np.diag(np.concatenate([here.multipliers, np.zeros(V.shape[1])]))
        method.start(Parameters.of_weights(S, here.w, here.intercept), self._rng)
        for _ in range(_INNER if refit == "factors" else _INNER_ALONE):
            if method.epoch() <= 1e-9:
                break
        found = method.parameters()
        values, vectors = np.linalg.eigh(found.weights)
        return self._eigen(Q @ vectors, values, found.w, found.intercept)

    def _local_search(self, here: Parameters) -> Parameters:
        """Return the end of a search on √|λ_s| p_s, w and the bias from `here`."""
        search = SignedFactors(self.problem, here)
        search.descend()
        if self._moved < _NEAR:
            search.polish()
        end = search.parameters()
        return self._eigen(end.P, end.multipliers, end.w, end.intercept)

    def _change(self, before: Parameters) -> float:
        now = self._now
        apart = eigenform(
            np.hstack([now.P, before.P]), np.concatenate([now.multipliers, -before.multipliers])
        )[1]
        linear = max(float(np.abs(now.w - before.w).max()), abs(now.intercept - before.intercept))
        return relative_change(
            (float(np.abs(apart).max(initial=0.0)), now.multipliers),
            (linear, now.w, np.asarray(now.intercept)),
        )

    def parameters(self) -> Parameters:
        """Return copies, with columns of zeros up to `rank`, largest |λ_s| first."""
        now = self._now
        missing = self.problem.rank - now.multipliers.size
        return Parameters(
            np.pad(now.P, ((0, 0), (0, missing))),
            now.w.copy(),
            now.intercept,
            coefficients=np.pad(now.multipliers, (0, missing)),
        )


def _beside(P: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of what the columns of V add to those of P, which are orthonormal."""
    for _ in range(2):
        V = V - P @ (P.T @ V)
    Q, R = orthonormal(V)
    return Q[:, np.abs(np.diagonal(R)) > 1e-7]
