r"""Quadratic regression with a separate weight for every pair ([A] Eq. 3, 22, 58).

f(x) = b + ⟨w, x⟩ + Σ_{i<j} w_ij x_i x_j with a symmetric W, shape (d, d). The objective is convex:

    (1/N) Σ_n c_n ℓ(f(x_n), y_n) + λ_w‖w‖² + λ_tr‖W‖_tr + λ‖W‖₁,

with ‖W‖_tr the sum of |eigenvalues| and ‖W‖₁ the sum of |w_ij| over *all* d² entries. In `Problem`, λ_tr is
``lambda_p`` and λ is ``lambda_sparse``, with the regularizer "l1". λ_tr = 0 is the QR with ℓ1 of Eq. 22–23;
both penalties together give the sparse and low-rank QR (SLQR) of Eq. 58.

Two choices are necessary because the paper's f uses only the strict upper triangle:

- *Both triangles count.* [A] 8.2.4 compares all methods by ‖W‖₁ of the symmetric W, since for W = PPᵀ it is
  2Ω_*(P) + ‖P‖²_F; ‖PPᵀ‖_tr is ‖P‖²_F. SLQR with (λ_tr, λ) is therefore the convex relaxation of the FM with
  λ_p = λ_tr and λ(2Ω_* + ‖P‖²), and never above the TI-sparse FM with the same strengths. Pair weights are
  shrunk by 2λ: in Theorem 5, which counts each pair once, QR with λ is the Ω_TI-sparse FM with twice that
  strength.
- *The diagonal is a free variable penalized by both norms.* f does not depend on it, but the trace norm does:
  a W of low rank needs its diagonal, as PPᵀ has one, and fixing it at zero would give even a single factor
  p pᵀ full rank. Without a trace norm its optimum is 0. It never counts as an interaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from ..design import Design
from ..errors import WhyNot
from ..linalg.lowrank import pair_gradient
from ..linalg.spectral import prox_trace_l1, spectral_norm, trace_norm
from ..memory import available_bytes, in_words
from ..parameters import Parameters
from ..penalties import Penalty
from ..penalties.l1 import L1
from .base import Model, ObjectiveNotation

# The peak number of matrices of the size of W during a run.
_COPIES = 16
# Budgets of a certificate: eigendecompositions times d³, about 20 s and 1 s on a core.
_THOROUGH, _QUICK = 5e10, 2.5e9
# The number of entries of a block of XW.
_BLOCK = 4_000_000


@dataclass(frozen=True)
class QuadraticRegression(Model):
    """f(x) = b + ⟨w, x⟩ + Σ_{i<j} w_ij x_i x_j with a symmetric W; see the module."""

    name: ClassVar[str] = "qr"
    label: ClassVar[str] = "Quadratic regression (QR, SLQR)"
    formula: ClassVar[str] = r"f(x) = b + \langle w, x\rangle + \sum_{i<j} w_{ij}\,x_i x_j"
    notation: ClassVar[ObjectiveNotation] = ObjectiveNotation(
        matrix="W",
        weights="W",
        lambda_p=r"\lambda_{\mathrm{tr}}",
        lambda_sparse=r"\lambda",
        shrinkage=r"\|W\|_{\mathrm{tr}}",
        penalty=r"\|W\|_1",
        shrinkage_term="λ_tr ‖W‖_tr",
        penalty_term="λ ‖W‖₁",
    )
    factorised: ClassVar[bool] = False
    convex: ClassVar[bool] = True
    certificate: ClassVar[str] = "gap"
    # Gradient methods need many short iterations to reach a small duality gap.
    suited: ClassVar[Mapping[str, Any]] = {"max_epochs": 2_000, "tol": 1e-6}
    no_threshold: ClassVar[WhyNot | None] = WhyNot(
        "convex",
        "It is convex in W: W = 0 is the global minimum if the gradient in W at the linear fit is a sum S + "
        "T with ‖S‖_op ≤ λ_p and max|t_ij| ≤ λ; for λ_p = 0, if λ is at least the largest entry of this "
        "gradient.",
    )

    def why_not(self, penalty: Penalty) -> WhyNot | None:
        if not isinstance(penalty, L1):
            return WhyNot(
                "no_factors",
                f"{penalty.label} is a function of factors P, which quadratic regression does not have: "
                'its penalties are ℓ₁ on the entries of W (regularizer "l1", strength lambda_sparse) and the '
                "trace norm of W (strength lambda_p).",
            )
        return None

    def why_no_solver(self, solver: Any) -> WhyNot | None:
        if not solver.factorised:
            return None
        return WhyNot(
            "no_factors",
            f"{solver.label} updates factors P, but the {self.label[0].lower()}{self.label[1:]} has no "
            "factors: each pair has a separate weight in W, and the trace norm of W is not a sum over "
            "entries or rows that could be minimized one at a time. Use exact_pgd or incremental_pgd, which "
            "update all of W.",
        )

    def penalty_words(self, penalty: Penalty) -> tuple[str, str]:
        return r"\|W\|_1 = \sum_{i,j} |w_{ij}|", "individual interactions"

    def cost_note(self, d: int) -> str:
        return (
            f"Quadratic regression has a weight for each of the {d * (d - 1) // 2:,} pairs of its {d:,} "
            f"features: W takes {in_words(8.0 * d * d)}, a run {in_words(self._bytes(d))}; every iteration "
            f"costs O(nnz·d) for the data and, with a trace norm, O(d³) for an eigendecomposition "
            f"(d³ = {float(d) ** 3:.1e})."
        )

    def check_size(self, d: int, rank: int) -> None:
        free = available_bytes()
        if self._bytes(d) > free:
            raise ValueError(
                f"Quadratic regression of {d:,} features needs {_COPIES} matrices of {d:,} × {d:,}, "
                f"{in_words(self._bytes(d))}, but only {in_words(free)} are free. Choose fewer features, "
                "or a factorization machine, whose parameters grow with d instead of d²."
            )

    @staticmethod
    def _bytes(d: int) -> float:
        return 8.0 * _COPIES * d * d

    def shapes(self, d: int, rank: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes; the rank is ignored."""
        return {"P": (d, 0), "w": (d,), "intercept": (), "W": (d, d)}

    def start(self, d: int, rank: int, init_scale: float, rng: np.random.Generator) -> Parameters:
        """Return zeros: the objective is convex, and 0 is not stationary as in a factorization machine."""
        return Parameters.of_weights(np.zeros((d, d)))

    def predict(self, design: Design, parameters: Parameters) -> np.ndarray:
        """Return f for every row of the design, shape (N,)."""
        f = self.linear_part(design, parameters)
        if parameters.weights.any():
            f += pair_sums(design, parameters.weights)
        return f

    def gradient(
        self, design: Design, parameters: Parameters, slope: np.ndarray, sums: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the gradient of Σ_n slope_n f(x_n) in the symmetric W, shape (d, d), in w, and in the bias.

        With the inner product Σ_ij of symmetric matrices, each triangle has half of a pair's derivative, and
        the diagonal is 0.
        """
        return (
            pair_gradient(design, slope, diagonal=False),
            design.transpose_dot(slope),
            float(slope.sum()),
        )

    def penalised(self, parameters: Parameters) -> np.ndarray:
        """Return W."""
        return parameters.weights

    def shrinkage(self, parameters: Parameters) -> float:
        """Return ‖W‖_tr."""
        return trace_norm(parameters.weights)

    def gauge(
        self,
        design: Design,
        penalty: Penalty,
        parameters: Parameters,
        alpha: np.ndarray,
        strengths: tuple[float, float],
        thorough: bool,
    ) -> float:
        """Return the bound; with both strengths, from a split of the gradient into two parts.

        The search for a split has a limited budget of eigendecompositions; the bound is looser for many
        features.
        """
        trace, entries = strengths
        W, G = parameters.weights, pair_gradient(design, alpha, diagonal=False)
        if trace == 0.0:
            return float(np.abs(G).max()) / entries
        if entries == 0.0:
            return spectral_norm(G) / trace
        # Any split gives a bound; the operator of the sum at W gives a good one. At the optimum its solution
        # is W itself: W − ηG = W + S + T. η balances W, which shows the structure, against G.
        best = min(float(np.abs(G).max()) / entries, spectral_norm(G) / trace)
        if best <= 1.0:
            return best
        eta = (float(np.abs(W).max()) or 1.0) / float(np.abs(G).max())
        S = None
        spare = int((_THOROUGH if thorough else _QUICK) / W.shape[0] ** 3)
        for most in (50, 50, 100, 200, 600) if thorough else (30,):
            most = min(most, spare)
            if most == 0:
                break
            split = prox_trace_l1(W - eta * G, eta * trace, eta * entries, S, rtol=1e-13, most=most)
            S = split.S
            spare -= split.rounds
            part = S / eta
            remainder = -G - part
            before, clipped = best, np.clip(remainder, -entries, entries)
            best = min(
                best,
                max(spectral_norm(part) / trace, float(np.abs(remainder).max()) / entries),
                spectral_norm(G + clipped) / trace,
            )
            # Far from the optimum, no split is much better than the first good one.
            if best <= 1.0 or split.rounds < most or (most > 50 and before - best < 0.2 * (before - 1.0)):
                break
        return best

    def used_features(self, parameters: Parameters) -> int:
        """Return the number of features in pairs with non-zero weight."""
        used = parameters.weights != 0
        np.fill_diagonal(used, False)
        return int(np.count_nonzero(used.any(axis=1)))

    def used_interactions(self, parameters: Parameters) -> int:
        """Return the number of non-zero entries of the strict upper triangle of W, without a tolerance."""
        return int(np.count_nonzero(np.triu(parameters.weights, 1)))


def pair_sums(design: Design, W: np.ndarray) -> np.ndarray:
    """Return Σ_{i<j} w_ij x_ni x_nj for every row n and symmetric W: ½(xᵀWx − Σ_j w_jj x_j²)."""
    X = design.matrix
    total = -np.asarray(design.power(2) @ np.diagonal(W))
    width = max(1, _BLOCK // design.n_samples)
    for begin in range(0, design.n_features, width):
        block = X[:, begin : begin + width]
        right = np.asarray(X @ W[:, begin : begin + width])
        if sp.issparse(block):
            total += np.asarray(block.multiply(right).sum(axis=1)).ravel()
        else:
            total += np.einsum("nj,nj->n", block, right)
    return 0.5 * total
