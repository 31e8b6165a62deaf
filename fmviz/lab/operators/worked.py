"""The formula of an operator, with the present numbers in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fmviz.engine.penalties import Penalty
from fmviz.engine.penalties.base import unit_rows

from .study import Variant


@dataclass(frozen=True)
class Worked:
    """An operator with its numbers filled in, for one column (or over the rows).

    Attributes
    ----------
    latex : str
        The formula with numbers.
    live, total : int
        How many of how many are left.
    unit : str
        What is counted.
    heads : tuple of str
        The heads of the table, in LaTeX.
    rows : tuple of tuple of float
        The index j, then numbers; from the strongest to the weakest, around the last that stays.
    """

    latex: str
    live: int
    total: int
    unit: str
    heads: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]


def worked_example(
    P: np.ndarray, Q: np.ndarray, variant: Variant, strength: float, column: int = 0, first: int = 6
) -> Worked:
    """Fill in an operator's numbers.

    Parameters
    ----------
    P, Q : (d, k) ndarray
        The point and the result.
    variant : Variant
        The operator.
    strength : float
        λ.
    column : int
        Which column, from 0, where the operator acts on entries.
    first : int
        At most so many rows of the table.
    """
    penalty, lam = variant.penalty, _latex(strength)
    if penalty.row_wise:
        before, after = unit_rows(P)[0].ravel(), unit_rows(Q)[0].ravel()
        sums, unit = after.sum(), "rows"
        heads = ("j", r"\lVert p_j\rVert_2", r"\tau", r"\lVert q_j\rVert_2")
        tau, own = r"\tau", (r"\tau_j", r"t_j", r"\|q_j\|_2")
        total, norm, theta = r"S_\theta", r"\textstyle\sum_j\|q_j\|_2", r"\theta"
    else:
        s = column
        before, after = P[:, s], Q[:, s]
        sums, unit = np.abs(Q).sum(axis=penalty.axis_of_sums, keepdims=True), f"entries of column {s}"
        heads = ("j", f"p_{{j,{s}}}", r"\tau", f"q_{{j,{s}}}")
        tau, own = rf"\tau_{{{s}}}", (rf"\tau_{{j,{s}}}", rf"t_{{j,{s}}}", rf"|q_{{j,{s}}}|")
        total, norm, theta = rf"S_{{\theta,{s}}}", rf"\|q_{{:,{s}}}\|_1", rf"\theta_{{{s}}}"
    threshold = _thresholds(Q, sums, penalty, strength)
    threshold = threshold.ravel() if penalty.row_wise else np.broadcast_to(threshold, Q.shape)[:, column]
    threshold = np.broadcast_to(threshold, after.shape)
    live = int(np.count_nonzero(after))
    if penalty.power and (penalty.row_wise or penalty.axis_of_sums == 0):
        value = float(np.abs(after).sum())
        latex = f"{_power(tau, total, norm, penalty.power, strength, value)},\\quad {theta} = {live}"
    elif penalty.power:
        m = penalty.power
        latex = rf"\tau_j = {m}\lambda\|q_j\|_1{_raised(m)},\quad {m}\lambda = {_latex(m * strength)}"
    elif not threshold.any():
        share = 1 / (1 + 2.0 * strength * penalty.quad)
        latex = rf"q_{{js}} = \frac{{p_{{js}}}}{{1 + 2\cdot{lam}}} = {_latex(share)}\,p_{{js}}"
    elif penalty.pairwise and not penalty.row_wise:
        latex = (
            rf"{own[0]} = \lambda\big({norm} - {own[2]}\big),\quad \lambda = {lam},"
            rf"\quad {norm} = {_latex(float(np.abs(after).sum()))}"
        )
    else:
        latex = _general(*own, penalty, threshold / strength, lam)
    # The rest of the sum and the own term: with quad, both together are the threshold of Theorem 8.
    squares = 0.0 if penalty.power or not threshold.any() else 2.0 * strength * penalty.quad
    rows = _around_threshold(before, threshold + squares * np.abs(after), after, first)
    return Worked(latex, live, P.shape[0], unit, heads, rows)


def _thresholds(Q: np.ndarray, sums: Any, penalty: Penalty, strength: float) -> np.ndarray:
    """Return what |q| (or a row's norm) was lowered by, but for its own square: for powers λmS^(m−1)."""
    if penalty.power:
        return strength * penalty.power * np.asarray(sums) ** (penalty.power - 1)
    return strength * penalty.thresholds(Q)


def _general(tau: str, weight: str, size: str, penalty: Penalty, weights: np.ndarray, strength: str) -> str:
    """Return τ = λ t(Q) + 2λ c|q|, with c the share of the square and t the weight of |q|."""
    same = weights.size > 0 and bool(np.allclose(weights, weights[0], rtol=1e-12))
    if same and weights[0] == 1.0 and not penalty.quad:
        return rf"\tau = \lambda = {strength}"
    own = rf" + 2\lambda\cdot{_latex(penalty.quad)}\,{size}" if penalty.quad else ""
    value = _latex(float(weights[0])) + r"\," if same and weights[0] != 1.0 else ""
    first = rf"{value}\lambda" if same else rf"\lambda\,{weight}(Q)"
    return rf"{tau} = {first}{own},\quad \lambda = {strength}"


def _power(tau: str, total: str, norm: str, m: int, strength: float, value: float) -> str:
    """Return τ = λ m S^(m−1) with its numbers."""
    numbers = rf"{m}\cdot{_latex(strength)}\cdot{_latex(value)}{_raised(m)}"
    result = _latex(strength * m * value ** (m - 1))
    return rf"{tau} = {m}\lambda {total}{_raised(m)} = {numbers} = {result},\quad {total} = {norm}"


def _raised(m: int) -> str:
    return f"^{{{m - 1}}}" if m > 2 else ""


def _around_threshold(
    before: np.ndarray, tau: np.ndarray, after: np.ndarray, first: int
) -> tuple[tuple[float, ...], ...]:
    order = np.argsort(tau - np.abs(before), kind="stable")
    start = int(np.clip(np.count_nonzero(after) - first // 2, 0, max(before.size - first, 0)))
    shown = order[start : start + first]
    return tuple((int(j), float(before[j]), float(tau[j]), float(after[j])) for j in shown)


def _latex(value: float) -> str:
    text = f"{value:.4g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}"
    return text
