"""The formula of an operator, with the present numbers in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    lam = _latex(strength)
    penalty = variant.penalty
    if penalty.row_wise:
        before, after = unit_rows(P)[0].ravel(), unit_rows(Q)[0].ravel()
        threshold = np.broadcast_to(_thresholds(Q, after.sum(), variant, strength).ravel(), after.shape)
        # The rest of the sum and the own term: with quad, both together are the threshold of Theorem 8.
        tau = threshold + 2.0 * strength * penalty.quad * after
        live = int(np.count_nonzero(after))
        if variant.name == "l21":
            latex = rf"\tau = \lambda = {lam}"
        elif variant.name == "cs":
            total = float(after.sum())
            latex = (
                rf"\tau = 2\lambda S_\theta = 2\cdot{lam}\cdot{_latex(total)}"
                rf" = {_latex(2 * strength * total)},"
                rf"\quad S_\theta = \textstyle\sum_j\|q_j\|_2,\quad \theta = {live}"
            )
        elif variant.name == "cs_power":
            latex = _power(r"\tau", r"S_\theta", r"\textstyle\sum_j\|q_j\|_2", variant, strength, after.sum())
            latex += rf",\quad \theta = {live}"
        else:
            latex = _general(r"\tau_j", r"t_j", r"\|q_j\|_2", variant, threshold / strength, lam)
        heads = ("j", r"\lVert p_j\rVert_2", r"\tau", r"\lVert q_j\rVert_2")
        rows = _around_threshold(before, tau, after, first)
        return Worked(latex, live, P.shape[0], "rows", heads, rows)
    p, q = P[:, column], Q[:, column]
    by_rows = variant.params.get("axis") == "rows"
    sums = np.abs(Q).sum(axis=1 if by_rows else 0, keepdims=True)
    threshold = np.broadcast_to(_thresholds(Q, sums, variant, strength), Q.shape)
    squares = 2.0 * strength * penalty.quad
    live, s = int(np.count_nonzero(q)), column
    heads = ("j", f"p_{{j,{s}}}", r"\tau", f"q_{{j,{s}}}")
    tau = threshold[:, column] + squares * np.abs(q)
    if variant.name == "l1":
        latex = rf"\tau = \lambda = {lam}"
    elif variant.name == "ti" and not by_rows:
        total = float(np.abs(q).sum())
        latex = (
            rf"\tau_{{{s}}} = 2\lambda S_{{\theta,{s}}} = 2\cdot{lam}\cdot{_latex(total)}"
            rf" = {_latex(2 * strength * total)},\quad S_{{\theta,{s}}} = \|q_{{:,{s}}}\|_1,"
            rf"\quad \theta_{{{s}}} = {live}"
        )
    elif variant.name == "ti":
        latex = rf"\tau_j = 2\lambda\|q_j\|_1,\quad 2\lambda = {_latex(2 * strength)}"
    elif variant.name == "ti_power" and not by_rows:
        name, norm = rf"S_{{\theta,{s}}}", rf"\|q_{{:,{s}}}\|_1"
        latex = _power(rf"\tau_{{{s}}}", name, norm, variant, strength, float(np.abs(q).sum()))
        latex += rf",\quad \theta_{{{s}}} = {live}"
    elif variant.name == "ti_power":
        m = variant.params["degree"]
        latex = rf"\tau_j = {m}\lambda\|q_j\|_1^{{{m - 1}}},\quad {m}\lambda = {_latex(m * strength)}"
    elif not threshold.any():
        latex = rf"q_{{js}} = \frac{{p_{{js}}}}{{1 + 2\cdot{lam}}} = {_latex(1 / (1 + squares))}\,p_{{js}}"
        tau = np.zeros_like(q)
    elif variant.name == "omega_ti":
        latex = (
            rf"\tau_{{j,{s}}} = \lambda\big(\|q_{{:,{s}}}\|_1 - |q_{{j,{s}}}|\big),\quad \lambda = {lam},"
            rf"\quad \|q_{{:,{s}}}\|_1 = {_latex(float(np.abs(q).sum()))}"
        )
    else:
        names = rf"\tau_{{j,{s}}}", rf"t_{{j,{s}}}", rf"|q_{{j,{s}}}|"
        latex = _general(*names, variant, threshold[:, column] / strength, lam)
    rows = _around_threshold(p, tau, q, first)
    return Worked(latex, live, P.shape[0], f"entries of column {s}", heads, rows)


def _thresholds(Q: np.ndarray, sums: np.ndarray | float, variant: Variant, strength: float) -> np.ndarray:
    """Return what |q| (or a row's norm) was lowered by, but for its own square: for powers λmS^(m−1)."""
    if "degree" in variant.params:
        m = variant.params["degree"]
        return strength * m * np.asarray(sums) ** (m - 1)
    return strength * variant.penalty.thresholds(Q)


def _general(tau: str, weight: str, size: str, variant: Variant, weights: np.ndarray, strength: str) -> str:
    """Return τ = λ t(Q) + 2λ c|q|, with c the share of the square and t the weight of |q|."""
    square = variant.penalty.quad
    own = rf" + 2\lambda\cdot{_latex(square)}\,{size}" if square else ""
    same = weights.size > 0 and bool(np.allclose(weights, weights[0], rtol=1e-12))
    value = _latex(float(weights[0])) + r"\," if same and weights[0] != 1.0 else ""
    first = rf"{value}\lambda" if same else rf"\lambda\,{weight}(Q)"
    return rf"{tau} = {first}{own},\quad \lambda = {strength}"


def _power(tau: str, total: str, norm: str, variant: Variant, strength: float, value: float) -> str:
    """Return τ = λ m S^(m−1) with its numbers."""
    m = variant.params["degree"]
    numbers = rf"{m}\cdot{_latex(strength)}\cdot{_latex(value)}^{{{m - 1}}}"
    result = _latex(strength * m * value ** (m - 1))
    return rf"{tau} = {m}\lambda {total}^{{{m - 1}}} = {numbers} = {result},\quad {total} = {norm}"


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
