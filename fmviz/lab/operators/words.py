"""What an operator does to a given P, in sentences computed from the numbers."""

from __future__ import annotations

import math

import numpy as np

from fmviz.engine.counting import used_interactions
from fmviz.engine.penalties.base import unit_rows

from .study import EXPONENTS, Study, Variant


def strength_in_words(value: float) -> str:
    """Return a strength, and where it lies if that is off the grid."""
    top, bottom = 2.0 ** EXPONENTS[-1], 2.0 ** EXPONENTS[0]
    text = f"{value:.4g}"
    if value > top:
        return f"{text} (beyond the slider, which ends at {top:g})"
    if value < bottom:
        return f"{text} (below the slider, which starts at {bottom:g})"
    return text


def what_is_special(P: np.ndarray, one: Study) -> list[str]:
    """Return sentences about an operator on this P, each computed from the data."""
    if not P.any():
        return ["P is all zero, and so is every result."]
    said = [_end(P, one)]
    d = P.shape[0]
    start = used_interactions(P)
    if start:
        share = one.interactions / start
        between = int(((share >= 0.01) & (share <= 0.99)).sum())
        everything, nothing = int((share > 0.99).sum()), int((share < 0.01).sum())
        if everything == len(share):
            said.append("Drops no interactions anywhere on the slider.")
        else:
            said.append(
                f"Sparse (1 to 99 % of the interactions) at {between} of {len(share)} strengths; "
                f"all or nearly all at {everything}, none or nearly none at {nothing}."
            )
    first, last = int(one.features[0]), int(one.features[-1])
    said.append(
        f"Used features: {first} of {d} at every strength."
        if (one.features == first).all()
        else f"Used features: from {first} to {last} of {d}."
    )
    return said


def _end(P: np.ndarray, one: Study) -> str:
    if one.zero_from is not None:
        size, norm = float(np.abs(P).max()), float(unit_rows(P)[0].max())
        why = ""
        if math.isclose(one.zero_from, size, rel_tol=1e-9):
            why = ", the largest |p|"
        elif math.isclose(one.zero_from, norm, rel_tol=1e-9):
            why = ", the largest row norm"
        return f"All zero from λ = {strength_in_words(one.zero_from)}{why}."
    left = one.survivors
    if np.array_equal(left, P != 0):
        return "Never all zero: it shrinks, and drops nothing."
    count = int(left.sum())
    entries = "entry survives" if count == 1 else "entries survive"
    return f"Never all zero (θ ≥ 1): {count} {entries} any λ{_whose(P, left, one.variant.penalty.row_wise)}."


def _whose(P: np.ndarray, left: np.ndarray, row_wise: bool) -> str:
    rows = np.flatnonzero(left.any(axis=1))
    if row_wise and rows.size == 1 and np.array_equal(left[rows[0]], P[rows[0]] != 0):
        return f", the strongest row, j = {rows[0]}"
    for axis, name in ((0, "column"), (1, "row")):
        if (left.sum(axis=axis) == P.any(axis=axis)).all():
            return f", the largest of each {name}"
    return ""


def selects(variant: Variant) -> str:
    """Return what an operator makes sparse, in words."""
    return variant.penalty.words()[2]


def formulas(variant: Variant) -> tuple[str, str]:
    """Return the LaTeX of Ω(P) and of its operator."""
    omega, operator, _ = variant.penalty.words()
    return omega, operator


def paper_claim(by_columns: Study, by_rows: Study) -> str:
    """Hold the sentence of [A] 8.1 on TI's used features against what both readings of TI do."""
    d = by_columns.Q.shape[1]
    kept = {"columns": bool((by_columns.features == d).all()), "rows": bool((by_rows.features == d).all())}
    measured = {
        "columns": f"squared norms of the **columns** (Eq. 30, the definition): {_course(by_columns)}",
        "rows": f"squared norms of the **rows**: {_course(by_rows)}",
    }
    holds = [name for name, yes in kept.items() if yes]
    verdict = {
        0: "On this P the sentence holds for neither reading.",
        1: f"So on this P the sentence holds for the reading by {(holds or [''])[0]} only.",
        2: "On this P the sentence holds for both readings.",
    }[len(holds)]
    return f"Measured here, {measured['columns']}; {measured['rows']}. {verdict}"


def _course(one: Study) -> str:
    first, last = int(one.features[0]), int(one.features[-1])
    if (one.features == first).all():
        return f"{first} at every λ"
    return f"from {first} at λ = 2⁻⁷ to {last} at λ = 2⁷"
