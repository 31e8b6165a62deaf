"""Powers of norms: what TI and CS become for interactions of order m."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._jit import jitable
from ..settings import setting
from .base import MatrixView, Penalty, entry_residual, row_residual, unit_rows
from .operators.matrix import row_norms, set_norms
from .operators.power_norm import power_slope, prox_power_l1, prox_power_vector

_DEGREE: dict[str, Any] = {
    "low": 2,
    "high": 10,
    "symbol": "m",
    "help": "The power, which is the order of the interactions.",
}


@functools.cache
def shrink_power_columns(degree: int) -> Callable[..., None]:
    """Return the function that applies [A] Eq. 46 to every column of P, given as the rows of M."""

    @jitable
    def shrink(M, strength, theta, work):
        for s in range(M.shape[0]):
            prox_power_vector(M[s], strength, degree, work[0, : M.shape[1]], M[s])

    return shrink


@functools.cache
def shrink_power_rows(degree: int) -> Callable[..., None]:
    """Return the function that applies [A] Eq. 46 to every row of P, a column of M."""

    @jitable
    def shrink(M, strength, theta, work):
        k = M.shape[0]
        p = work[2, :k]
        for j in range(M.shape[1]):
            for s in range(k):
                p[s] = M[s, j]
            prox_power_vector(p, strength, degree, work[0, :k], p)
            for s in range(k):
                M[s, j] = p[s]

    return shrink


@functools.cache
def shrink_power_norms(degree: int) -> Callable[..., None]:
    """Return the function that applies [A] Theorem 11 to P, given as the columns of M."""

    @jitable
    def shrink(M, strength, theta, work):
        d = M.shape[1]
        norms = work[2, :d]
        row_norms(M, norms)
        if strength > 0.0:
            prox_power_vector(norms, strength, degree, work[0, :d], work[1, :d])
            set_norms(M, norms, work[1, :d])

    return shrink


@dataclass(frozen=True)
class PowerTI(Penalty):
    """Ω(P) = Σ_s (Σ_j |p_js|)^m, or with axis="rows" Σ_j (Σ_s |p_js|)^m."""

    degree: int = setting(3, **_DEGREE)
    axis: str = setting(
        "columns",
        choices=("columns", "rows"),
        help="Raise the norms of the columns (the definition) or of the rows.",
    )

    name = "ti_power"
    label = "TI, order m"
    formula = r"\sum_{s} \|p_{:,s}\|_1^m"
    prox_formula = (
        r"q_{js} = \operatorname{sign}(p_{js})\,\max(|p_{js}|-\lambda m S_{\theta,s}^{m-1},\,0)"
        r",\quad S_{\theta,s} = \|q_{:,s}\|_1"
    )
    selects = "interactions of order m: in each column, entries that are large relative to the others"
    source = "atarashi2021, Eq. 45 and Theorem 10"
    separable = False
    why_no_entry = (
        "The m-th power of a column's ℓ₁ norm is a polynomial of degree m in |p_js|, whose step has no "
        "closed form for m > 2. Use APGD, whose operator has one, or Ω_TI, linear in |p_js|, with PCD."
    )
    why_no_row = (
        "The m-th power of a column's ℓ₁ norm does not split into a norm of the row and the rest. Use APGD."
    )

    def words(self) -> tuple[str, str, str]:
        """See `Penalty.words`."""
        formula, operator, selects = self.formula, self.prox_formula, self.selects
        degree = self.degree
        if self.axis == "rows":
            formula = formula.replace("_{s}", "_{j}").replace("p_{:,s}", "p_j")
            operator = operator.replace(r"\theta,s", r"\theta,j").replace("q_{:,s}", "q_j")
            selects = selects.replace("column", "row")
        formula = formula.replace("^m", f"^{{{degree}}}")
        operator = operator.replace("m S", f"{degree} S").replace("^{m-1}", f"^{{{degree - 1}}}")
        return formula, operator, selects.replace("order m", f"order {degree}")

    @property
    def axis_of_sums(self) -> int:
        """See `Penalty`."""
        return 0 if self.axis == "columns" else 1

    @property
    def power(self) -> int:
        """See `Penalty`."""
        return self.degree

    def value(self, P: np.ndarray) -> float:
        """Return the sum of the powers of the ℓ1 norms along `axis`."""
        return float((np.abs(P).sum(axis=self.axis_of_sums) ** self.degree).sum())

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Apply [A] Eq. 46 to every column, or to every row."""
        if self.axis == "rows":
            return prox_power_l1(P, strength, self.degree)
        return np.ascontiguousarray(prox_power_l1(P.T, strength, self.degree).T)

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its projection on strength·∂Ω(Q), with ∂‖q‖₁^m = m‖q‖₁^(m−1)·∂‖q‖₁ ([A] Eq. 72)."""
        sums = np.abs(Q).sum(axis=self.axis_of_sums, keepdims=True)
        return entry_residual(G, Q, power_slope(sums, strength, self.degree))

    def subgradient(self, P: np.ndarray) -> np.ndarray:
        """Return m‖p‖₁^(m−1)·sign(p)."""
        sums = np.abs(P).sum(axis=self.axis_of_sums, keepdims=True)
        return power_slope(sums, 1.0, self.degree) * np.sign(P)

    @property
    def matrix(self) -> MatrixView:
        """See `Penalty.matrix`."""
        shrink = shrink_power_columns if self.axis == "columns" else shrink_power_rows
        return MatrixView(f"ti_power_{self.degree}_{self.axis}", shrink(self.degree))


@dataclass(frozen=True)
class PowerCS(Penalty):
    """Ω(P) = (Σ_j ‖p_j‖₂)^m."""

    degree: int = setting(3, **_DEGREE)

    name = "cs_power"
    label = "CS, order m"
    formula = r"\|P\|_{2,1}^m = \Big(\sum_{j} \|p_j\|_2\Big)^m"
    prox_formula = (
        r"q_j = \dfrac{c_j^*}{\|p_j\|_2}\,p_j,\quad "
        r"c^* = \operatorname{prox}_{\lambda\|\cdot\|_1^m}(\|p_1\|_2,\dots,\|p_d\|_2)"
    )
    selects = "features: rows of P whose norm is large relative to the others"
    source = "atarashi2021, Eq. 51 and Theorem 11"
    row_wise = True
    separable = False
    why_no_entry = (
        "CS binds the entries of a row by their norm, which has no slope at 0: steps on single entries can "
        "get stuck where no entry alone improves. Use APGD, which moves all of P."
    )
    why_no_row = (
        "The m-th power of the ℓ₂,₁ norm is a polynomial of degree m in a row's norm, whose step has no "
        "closed form for m > 2. Use APGD, whose operator has one, or Ω_CS, linear in ‖p_j‖, with PBCD."
    )

    def words(self) -> tuple[str, str, str]:
        """See `Penalty.words`."""
        power = f"^{{{self.degree}}}"
        return self.formula.replace("^m", power), self.prox_formula.replace("^m", power), self.selects

    @property
    def power(self) -> int:
        """See `Penalty`."""
        return self.degree

    def value(self, P: np.ndarray) -> float:
        """Return the power of the sum of row norms."""
        return float(unit_rows(P)[0].sum() ** self.degree)

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Apply [A] Theorem 11: the operator of λ‖·‖₁^m on the row norms."""
        norms, unit = unit_rows(P)
        if strength == 0.0:
            return P.copy()
        return prox_power_l1(norms.T, strength, self.degree).T * unit

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its projection on strength·m‖Q‖₂,₁^(m−1)·∂‖Q‖₂,₁ ([A] Eq. 73)."""
        return row_residual(G, Q, power_slope(unit_rows(Q)[0].sum(keepdims=True), strength, self.degree))

    def subgradient(self, P: np.ndarray) -> np.ndarray:
        """Return m‖P‖₂,₁^(m−1)·p_j/‖p_j‖."""
        norms, unit = unit_rows(P)
        return power_slope(norms.sum(keepdims=True), 1.0, self.degree) * unit

    @property
    def matrix(self) -> MatrixView:
        """See `Penalty.matrix`."""
        return MatrixView(f"cs_power_{self.degree}", shrink_power_norms(self.degree))
