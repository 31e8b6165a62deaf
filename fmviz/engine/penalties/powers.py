"""m-th powers of norms: TI and CS for interactions of order m, and their proximal operators.

The proximal operator of λ‖·‖₁^m on vectors, for any order m ≥ 2 ([A] Theorem 10), is q_j =
sign(p_j)·max(|p_j| − τ, 0) with τ = mλS^(m−1) and S = ‖q‖₁. For every set G of entries that contains the live
ones, with sum A, the root S of S + mλ|G|S^(m−1) = A gives a lower bound of τ: repeatedly dropping the entries
below it ends at the live set.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, frexp, ldexp, log, log1p, sqrt

import numpy as np

from .._jit import jitable, named
from ..settings import setting
from .base import MatrixView, Penalty, entry_residual, prox_of_norms, row_residual, unit_rows
from .operators.matrix import of_columns, of_norms, of_rows

LOG_2 = log(2.0)


@jitable
def mass_of(total, count, log_strength, degree):
    """Return the S ≥ 0 with S + m·λ·count·S^(m−1) = total ([A] Eq. 47), to relative precision.

    The strength is given as ln λ, since λ·S^(m−2) is within the range of doubles even if λ is not. For m = 2
    and 3 the root has a closed form. For other m, Newton's method in ln S is more accurate than the formulas
    for m = 4 and 5: the equation is increasing and convex in ln S with slopes in [1, m − 1], and from a start
    at which each of the two terms is at most the total, the iterates decrease monotonically to the root.
    """
    log_weight = log_strength + log(float(degree) * count)
    log_total = log(total)
    # ln of the ratio of the second term to the first if S were the total.
    log_ratio = log_weight + (degree - 2) * log_total
    if degree == 2 and log_ratio < 700.0:
        return total / (1.0 + exp(log_ratio))
    if degree == 3 and log_ratio < 700.0:
        return 2.0 * total / (1.0 + sqrt(1.0 + 4.0 * exp(log_ratio)))
    # S = total·e^u keeps the precision of u for any total.
    u = min(0.0, -log_ratio / (degree - 1))
    step = 1.0
    trials = 0
    while abs(step) > 1e-15 * max(1.0, abs(u)) and trials < 60:
        second = log_ratio + (degree - 1) * u
        larger = max(u, second)
        gap = log1p(exp(min(u, second) - larger))
        # The second term's share of the sum is the weight of its slope.
        share = exp(second - larger - gap)
        step = (larger + gap) / (1.0 + (degree - 2) * share)
        u -= step
        trials += 1
    return total * exp(u)


@jitable
def prox_power_vector(p, strength, degree, work, out):
    """Write argmin_q ½‖q − p‖² + strength·‖q‖₁^degree into out.

    With v = max q and the deficits δ_j = max|p| − |p_j|, q_j equals both |p_j| − τ and v − δ_j, where
    v = (S + Σδ)/n over the n live entries. The first is accurate for small entries, the second if q is small
    compared to the entry. The largest entry therefore never vanishes, even for large λ.
    """
    largest = 0.0
    for i in range(p.size):
        largest = max(largest, abs(p[i]))
    if strength == 0.0 or largest == 0.0:
        # Not out[:] = p, for which numba would compile the message of a shape error for two seconds.
        for i in range(p.size):
            out[i] = p[i]
    else:
        # Scaling by a power of two is exact and prevents overflow and underflow of sums.
        exponent = frexp(largest)[1]
        peak = ldexp(largest, -exponent)
        log_strength = log(strength) + (degree - 2) * exponent * LOG_2
        count = p.size
        for i in range(count):
            work[i] = peak - ldexp(abs(p[i]), -exponent)
        top = np.inf
        settled = False
        while not settled:
            before = count
            count = 0
            deficit = 0.0
            for i in range(before):
                if work[i] < top:
                    work[count] = work[i]
                    deficit += work[i]
                    count += 1
            # The first pass has no threshold and drops nothing.
            settled = count == before and top < np.inf
            mass = mass_of(count * peak - deficit, count, log_strength, degree)
            top = (mass + deficit) / count
        threshold = peak - top
        for i in range(p.size):
            size = ldexp(abs(p[i]), -exponent)
            q = size - threshold if size < top else top - (peak - size)
            q = ldexp(q, exponent)
            out[i] = 0.0 if q <= 0.0 else (q if p[i] > 0.0 else -q)


@named(exact=True)
def prox_power_rows(M, strength, degree, out):
    """Apply the operator to every row of M, shape (m, d)."""
    work = np.empty(M.shape[1])
    for i in range(M.shape[0]):
        prox_power_vector(M[i], strength, degree, work, out[i])


def prox_power_l1(M: np.ndarray, strength: float, degree: int) -> np.ndarray:
    """Apply prox of strength·‖·‖₁^degree to every row of M.

    Parameters
    ----------
    M : (m, d) ndarray
        The vectors.
    strength : float
        λ ≥ 0, multiplied by the step size if there is one.
    degree : int
        m ≥ 2.

    Returns
    -------
    (m, d) ndarray
    """
    M = np.ascontiguousarray(M)
    out = np.empty_like(M)
    prox_power_rows(M, float(strength), int(degree), out)
    return out


def power_slope(mass: np.ndarray, strength: float, degree: int) -> np.ndarray:
    """Return strength·m·S^(m−1), the slope of strength·S^m, even if S^(m−1) overflows."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.exp(np.log(strength * degree) + (degree - 1) * np.log(mass)))


@functools.cache
def _shrink_powers(make: Callable[..., Callable[..., None]], degree: int) -> Callable[..., None]:
    """Return the function that applies the operator of this degree to the columns, rows or norms of P."""

    @jitable
    def prox(p, strength, work, out):
        prox_power_vector(p, strength, degree, work, out)

    return make(prox)


@dataclass(frozen=True)
class _Power(Penalty):
    """Base class: the sum of the m-th powers of `sums`."""

    degree: int = setting(
        3, low=2, high=10, symbol="m", help="The power, which is the order of the interactions."
    )

    @property
    def power(self) -> int:
        return self.degree

    def sums(self, P: np.ndarray) -> np.ndarray:
        """Return the ℓ1 norms along `axis_of_sums`, or the ℓ1 norm of the row norms, keeping that axis."""
        return np.abs(P).sum(axis=self.axis_of_sums, keepdims=True)

    def value(self, P: np.ndarray) -> float:
        """Return the sum of the powers."""
        return float((self.sums(P) ** self.degree).sum())

    def residual(self, G: np.ndarray, Q: np.ndarray, strength: float) -> np.ndarray:
        """Return G minus its projection onto strength·∂Ω(Q), ∂‖q‖₁^m = m‖q‖₁^(m−1)·∂‖q‖₁ ([A] Eq. 72, 73)."""
        residual = row_residual if self.row_wise else entry_residual
        return residual(G, Q, power_slope(self.sums(Q), strength, self.degree))

    def subgradient(self, P: np.ndarray) -> np.ndarray:
        """Return m‖p‖₁^(m−1)·sign(p), or m‖P‖₂,₁^(m−1)·p_j/‖p_j‖."""
        along = unit_rows(P)[1] if self.row_wise else np.sign(P)
        return power_slope(self.sums(P), 1.0, self.degree) * along


@dataclass(frozen=True)
class PowerTI(_Power):
    """Ω(P) = Σ_s (Σ_j |p_js|)^m, or with axis="rows" Σ_j (Σ_s |p_js|)^m."""

    axis: str = setting(
        "columns",
        choices=("columns", "rows"),
        help="Whether to use the norms of the columns (the definition) or of the rows.",
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
    why_no_entry = (
        "The m-th power of a column's ℓ₁ norm is a polynomial of degree m in |p_js|, for which the step has "
        "no closed form if m > 2. Use APGD, whose operator has one, or PCD with Ω_TI, which is linear in "
        "|p_js|."
    )
    why_no_row = (
        "The m-th power of a column's ℓ₁ norm does not separate into a norm of the row and a remainder. Use "
        "APGD."
    )

    def words(self) -> tuple[str, str, str]:
        formula, operator, selects = self.formula, self.prox_formula, self.selects
        degree = self.degree
        if self.axis == "rows":
            formula = formula.replace("_{s}", "_{j}").replace("p_{:,s}", "p_j")
            operator = operator.replace(r"\theta,s", r"\theta,j").replace("q_{:,s}", "q_j")
            selects = selects.replace("column", "row")
        formula = formula.replace("^m", f"^{{{degree}}}")
        operator = operator.replace("m S", f"{degree} S").replace("^{m-1}", f"^{{{degree - 1}}}")
        return formula, operator, selects.replace("order m", f"order {degree}")

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Apply [A] Eq. 46 to every column, or to every row."""
        if self.axis == "rows":
            return prox_power_l1(P, strength, self.degree)
        return np.ascontiguousarray(prox_power_l1(P.T, strength, self.degree).T)

    @property
    def matrix(self) -> MatrixView:
        shrink = _shrink_powers(of_columns if self.axis == "columns" else of_rows, self.degree)
        return MatrixView(f"ti_power_{self.degree}_{self.axis}", shrink)


@dataclass(frozen=True)
class PowerCS(_Power):
    """Ω(P) = (Σ_j ‖p_j‖₂)^m."""

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
    why_no_entry = (
        "CS couples the entries of a row by their norm, which is not differentiable at 0: steps on single "
        "entries can get stuck at points that no single entry improves. Use APGD, which updates all of P."
    )
    why_no_row = (
        "The m-th power of the ℓ₂,₁ norm is a polynomial of degree m in a row's norm, for which the step has "
        "no closed form if m > 2. Use APGD, whose operator has one, or PBCD with Ω_CS, which is linear in "
        "‖p_j‖."
    )

    def words(self) -> tuple[str, str, str]:
        power = f"^{{{self.degree}}}"
        return self.formula.replace("^m", power), self.prox_formula.replace("^m", power), self.selects

    def sums(self, P: np.ndarray) -> np.ndarray:
        return unit_rows(P)[0].sum(keepdims=True)

    def prox(self, P: np.ndarray, strength: float, algorithm: str | None = None) -> np.ndarray:
        """Apply [A] Theorem 11: the operator of λ‖·‖₁^m on the row norms."""
        return prox_of_norms(P, strength, lambda norms: prox_power_l1(norms, strength, self.degree))

    @property
    def matrix(self) -> MatrixView:
        return MatrixView(f"cs_power_{self.degree}", _shrink_powers(of_norms, self.degree))
