"""CS, the Cauchy–Schwarz regularizer: the squared ℓ2,1 norm of P."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import WhyNot
from ._coupled import norm_penalty
from .base import MatrixView, Penalty, prox_of_norms, unit_rows
from .operators.coupled import COUPLED_ROWS
from .operators.matrix import shrink_squared_norms
from .operators.squared_norm import ALGORITHMS, prox_squared_l1
from .powers import PowerCS
from .ti import sum_of_others


@dataclass(frozen=True)
class CS(Penalty):
    """Ω(P) = (Σ_j ‖p_j‖₂)²."""

    name = "cs"
    label = "CS"
    formula = r"\|P\|_{2,1}^2 = \Big(\sum_{j} \|p_j\|_2\Big)^2"
    prox_formula = (
        r"q_j = \dfrac{c_j^*}{\|p_j\|_2}\,p_j,\quad "
        r"c^* = \operatorname{prox}_{\lambda\|\cdot\|_1^2}(\|p_1\|_2,\dots,\|p_d\|_2)"
    )
    selects = "features: rows of P whose norm is large relative to the others"
    stands_for = "for *Cauchy–Schwarz*: the square of ℓ₂,₁"
    mechanism = (
        "CS removes whole rows of P, like ℓ₂,₁, with a threshold that grows with all other rows. The "
        "remaining features share all columns and therefore interact with each other."
    )
    source = "atarashi2021, Eq. 33 and 35, Theorem 8"
    algorithms = tuple(ALGORITHMS)
    row_wise = True
    in_weights = "entries"
    power = 2
    beyond_pairs = "omega_cs"
    row = norm_penalty(quad=1.0, coupled=2.0)
    matrix = MatrixView(name, shrink_squared_norms, lazy=COUPLED_ROWS)

    def of_order(self, order: int | None) -> Penalty | WhyNot:
        """Return the power of order m ([A] Eq. 51)."""
        if order is None:
            return WhyNot(
                "open_problem",
                "CS for all subsets would be the sum of ‖P‖₂,₁^m over all m, whose operator is an open "
                "problem (atarashi2021, Section 6.2). Choose Ω_CS, linear in every row's norm, or ℓ₂,₁.",
            )
        return self if order == 2 else PowerCS(order)

    def value(self, P: np.ndarray) -> float:
        """Return the square of the sum of row norms."""
        return float(unit_rows(P)[0].sum() ** 2)

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Apply [A] Theorem 8: the operator of λ‖·‖₁² on the row norms."""
        return prox_of_norms(P, strength, lambda norms: prox_squared_l1(norms, strength, algorithm))

    def thresholds(self, P: np.ndarray) -> np.ndarray:
        """Return 2·Σ_{i≠j} ‖p_i‖, shape (d, 1)."""
        return 2.0 * sum_of_others(unit_rows(P)[0], 0)
