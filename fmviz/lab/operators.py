"""What the proximal operators do to one matrix P, over a grid of strengths: the study of [A] Figs. 1 and 2.

[A] is atarashi2021, sections 3.1 and 8.1: P of size 200 × 30 from N(0, 1), λ = 2⁻⁷ … 2⁷.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fmviz.engine.counting import used_features, used_interactions
from fmviz.engine.errors import one_of, whole_number
from fmviz.engine.operators import certificate
from fmviz.engine.regularizers import REGULARIZERS, Regularizer
from fmviz.engine.regularizers.base import unit_rows

EXPONENTS = tuple(range(-7, 8))
"""λ = 2^e for these e, as in [A] 3.1."""

MAX_FEATURES, MAX_RANK, MAX_ENTRY = 400, 60, 1e15
"""What fits one picture; products of two larger entries do not fit the browser's numbers."""

_NEVER = 2.0**40  # what survives this strength, relative to P, survives any


# ------------------------------------------------------------------------------------------- the matrix P


@dataclass(frozen=True)
class Distribution:
    """A way to draw P.

    Attributes
    ----------
    label, help : str
        In words.
    code : str
        The Python expression in ``rng``, ``d`` and ``k`` that draws it, for the reader.
    draw : callable
        ``draw(rng, d, k) -> P``, the same in this module.
    """

    label: str
    help: str
    code: str
    draw: Callable[[np.random.Generator, int, int], np.ndarray]


def _two_blocks(rng: np.random.Generator, d: int, k: int) -> np.ndarray:
    strong = (np.arange(d)[:, None] * 2 < d) == (np.arange(k) * 2 < k)
    return rng.standard_normal((d, k)) * np.where(strong, 1.0, 0.1)


DISTRIBUTIONS: dict[str, Distribution] = {
    "normal": Distribution(
        "Normal N(0, 1)",
        "Independent standard normal entries, as in the paper.",
        "rng.standard_normal((d, k))",
        lambda rng, d, k: rng.standard_normal((d, k)),
    ),
    "uniform": Distribution(
        "Uniform on [−1, 1]",
        "No entry stands out: the largest are nearly equal.",
        "rng.uniform(-1, 1, (d, k))",
        lambda rng, d, k: rng.uniform(-1, 1, (d, k)),
    ),
    "laplace": Distribution(
        "Laplace",
        "Heavy tails: a few entries stand out.",
        "rng.laplace(0, 1, (d, k))",
        lambda rng, d, k: rng.laplace(0, 1, (d, k)),
    ),
    "sparse": Distribution(
        "Sparse: a tenth is non-zero",
        "Nine entries in ten are exactly zero from the start.",
        "rng.standard_normal((d, k)) * (rng.random((d, k)) < 0.1)",
        lambda rng, d, k: rng.standard_normal((d, k)) * (rng.random((d, k)) < 0.1),
    ),
    "blocks": Distribution(
        "Two blocks",
        "Two groups of features, each strong in its own half of the columns; the rest is ten times weaker.",
        "rng.standard_normal((d, k)) * np.where(\n"
        "    (np.arange(d)[:, None] * 2 < d) == (np.arange(k) * 2 < k), 1.0, 0.1)",
        _two_blocks,
    ),
    "rows": Distribution(
        "Fading rows",
        "Each feature is a little weaker than the one before: the last is a hundred times weaker.",
        "rng.standard_normal((d, k)) * np.logspace(0, -2, d)[:, None]",
        lambda rng, d, k: rng.standard_normal((d, k)) * np.logspace(0, -2, d)[:, None],
    ),
}


def sample(d: int, k: int, distribution: str = "normal", seed: int = 0) -> np.ndarray:
    """Draw P.

    Parameters
    ----------
    d, k : int
        Features and rank.
    distribution : str
        A key of `DISTRIBUTIONS`.
    seed : int
        Seeds ``numpy.random.default_rng``.

    Returns
    -------
    (d, k) ndarray

    Raises
    ------
    ValueError
        If a size or the distribution is not allowed.
    """
    d = whole_number("d", d, 1, MAX_FEATURES)
    k = whole_number("k", k, 1, MAX_RANK)
    chosen = DISTRIBUTIONS[one_of("distribution", distribution, DISTRIBUTIONS)]
    return chosen.draw(np.random.default_rng(seed), d, k)


def parse_matrix(text: str) -> np.ndarray:
    """Read a matrix from text: a line a row, entries apart by commas, semicolons, tabs or blanks.

    Brackets are ignored, so that what Python prints can be pasted; a single line may separate its rows by
    semicolons or by brackets.

    Raises
    ------
    ValueError
        With a sentence that names the place, if the text is not a matrix of finite numbers of a size that
        the page draws.
    """
    lines = _lines(text)
    if not lines:
        raise ValueError("There is no matrix yet: paste one row a line, for instance 1.5, −0.2, 0.")
    rows: list[list[float]] = []
    for number, line in enumerate(lines, start=1):
        cells = _cells(line)
        if len(rows) and len(cells) != len(rows[0]):
            raise ValueError(
                f"Row {number} has {len(cells)} entries but row 1 has {len(rows[0])}; "
                "give every row the same number."
            )
        rows.append([_number(cell, number, at) for at, cell in enumerate(cells, start=1)])
    P = np.array(rows, dtype=np.float64)
    d, k = P.shape
    if d > MAX_FEATURES or k > MAX_RANK:
        raise ValueError(
            f"The matrix is {d} × {k}; this page draws at most {MAX_FEATURES} rows and {MAX_RANK} columns. "
            "Paste a part of it."
        )
    return P


def _lines(text: str) -> list[str]:
    text = text.replace("−", "-")
    bracketed = "]" in text
    text = re.sub(r"\b(?:np\.)?array\(|[()]", " ", text)
    text = re.sub(r"\]\s*,?", "\n", text).replace("[", " ")
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line.strip(", ")] if bracketed else [x for x in lines if x]
    if len(lines) == 1 and ";" in lines[0]:
        lines = [part.strip() for part in lines[0].split(";") if part.strip()]
    return lines


def _cells(line: str) -> list[str]:
    for separator in ("\t", ";", ","):
        if separator in line:
            cells = [cell.strip() for cell in line.split(separator)]
            return cells[:-1] if len(cells) > 1 and cells[-1] == "" else cells
    return line.split()


def _number(cell: str, row: int, column: int) -> float:
    place = f"Row {row}, column {column}"
    if cell == "":
        raise ValueError(f"{place} is empty; write 0 where an entry is zero.")
    try:
        value = float(cell)
    except ValueError:
        hint = " Leave headings out." if row == 1 else ""
        raise ValueError(f"{place} holds {cell[:40]!r}, which is not a number.{hint}") from None
    if not math.isfinite(value):
        raise ValueError(f"{place} holds {cell}; only finite numbers can be shrunk.")
    if abs(value) > MAX_ENTRY:
        raise ValueError(
            f"{place} holds {value:g}; this page draws entries up to {MAX_ENTRY:g}. Scale the matrix down."
        )
    return value


def digest(P: np.ndarray) -> str:
    """Return a short name of the exact contents of P, for a cache."""
    return hashlib.blake2b(P.tobytes() + str(P.shape).encode(), digest_size=12).hexdigest()


# ------------------------------------------------------------------------------------------- the operators


@dataclass(frozen=True)
class Variant:
    """A regularizer with its own parameters fixed.

    Attributes
    ----------
    id : str
        The name, with the value of a choice that is not the default: ``"ti_rows"``.
    name : str
        The regularizer.
    params : mapping
        Its parameters.
    label : str
        In words.
    """

    id: str
    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def regularizer(self) -> Regularizer:
        """Return the registered regularizer."""
        return REGULARIZERS[self.name]

    def prox(self, P: np.ndarray, strength: float) -> np.ndarray:
        """Return the operator's result for a checked P."""
        return self.regularizer.prox(P, strength, **self.params)


def _variants() -> dict[str, Variant]:
    found: dict[str, Variant] = {}
    for name, regularizer in REGULARIZERS.items():
        if not regularizer.exact_prox:
            continue
        found[name] = Variant(name, name, regularizer.check({}), regularizer.label)
        for spec in regularizer.params:
            for choice in spec.choices if spec.kind == "choice" else ():
                if choice != spec.default:
                    label = f"{regularizer.label}, by {choice}"
                    given = regularizer.check({spec.name: choice})
                    found[f"{name}_{choice}"] = Variant(f"{name}_{choice}", name, given, label)
    return found


VARIANTS: dict[str, Variant] = _variants()
"""Every regularizer with an exact operator, and one more for every further choice its parameters offer."""


@dataclass(frozen=True)
class Study:
    """One operator on one P, over the grid.

    Attributes
    ----------
    variant : Variant
        Which operator.
    exponents : tuple of int
        The grid, λ = 2^e.
    Q : (m, d, k) ndarray
        The results, read-only.
    interactions, features, entries : (m,) ndarray of int
        The used interactions, used features and non-zero entries of each.
    certificates : (m,) ndarray
        See `fmviz.certificate`.
    zero_from : float or None
        The smallest λ at which everything is zero; None if that never happens.
    survivors : (d, k) bool ndarray
        The entries that are left at a strength beyond all measure.
    """

    variant: Variant
    exponents: tuple[int, ...]
    Q: np.ndarray
    interactions: np.ndarray
    features: np.ndarray
    entries: np.ndarray
    certificates: np.ndarray
    zero_from: float | None
    survivors: np.ndarray

    def at(self, exponent: int) -> int:
        """Return the position of a λ on the grid."""
        return self.exponents.index(exponent)


def study(P: np.ndarray, variant: Variant, exponents: Sequence[int] = EXPONENTS) -> Study:
    """Evaluate an operator at λ = 2^e for every e."""
    P = np.ascontiguousarray(P, dtype=np.float64)
    Q = np.stack([variant.prox(P, 2.0**e) for e in exponents])
    Q.flags.writeable = False
    zero_from, survivors = extinction(P, variant)
    return Study(
        variant,
        tuple(exponents),
        Q,
        np.array([used_interactions(q) for q in Q]),
        np.array([used_features(q) for q in Q]),
        np.array([np.count_nonzero(q) for q in Q]),
        np.array(
            [
                certificate(variant.name, P, q, 2.0**e, **variant.params)
                for e, q in zip(exponents, Q, strict=True)
            ]
        ),
        zero_from,
        survivors,
    )


def extinction(P: np.ndarray, variant: Variant) -> tuple[float | None, np.ndarray]:
    """Return the smallest λ whose result is all zero, and which entries survive any λ, shape (d, k).

    The first is None if there is no such λ. Found by bisection, to the last bit, with the operator itself.
    """
    if not P.any():
        return 0.0, P != 0
    size = float(np.abs(P).max())
    survivors = variant.prox(P / size, _NEVER) != 0
    if survivors.any():
        return None, survivors
    low, high = 0.0, size
    while variant.prox(P, high).any():
        low, high = high, 2.0 * high
    middle = 0.5 * (low + high)
    while low < middle < high:
        if variant.prox(P, middle).any():
            low = middle
        else:
            high = middle
        middle = 0.5 * (low + high)
    return high, survivors


def pairs(d: int) -> int:
    """Return the number of pairs of d features."""
    return d * (d - 1) // 2


def counts_table(studies: Sequence[Study]) -> dict[str, list[Any]]:
    """Return what was counted as columns of equal length, a row for each operator and λ."""
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "regularizer",
            "params",
            "log2_lambda",
            "lambda",
            "used_interactions",
            "used_features",
            "nonzero_entries",
            "certificate",
        )
    }
    for one in studies:
        for at, e in enumerate(one.exponents):
            row = (
                one.variant.name,
                " ".join(f"{name}={value}" for name, value in one.variant.params.items()),
                e,
                2.0**e,
                int(one.interactions[at]),
                int(one.features[at]),
                int(one.entries[at]),
                float(one.certificates[at]),
            )
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return columns


# --------------------------------------------------------------------------------------------- in words


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
    return (
        f"Never all zero (θ ≥ 1): {count} {entries} any λ{_whose(P, left, one.variant.regularizer.row_wise)}."
    )


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
    text = variant.regularizer.selects
    return text.replace("column", "row") if variant.id == "ti_rows" else text


def formulas(variant: Variant) -> tuple[str, str]:
    """Return the LaTeX of Ω(P) and of its operator."""
    if variant.id == "ti_rows":
        return (
            r"\|P\|_{1,2}^2 = \sum_{j} \|p_j\|_1^2",
            r"q_{js} = \operatorname{sign}(p_{js})\,\max(|p_{js}|-2\lambda S_{\theta,j},\,0)"
            r",\quad S_{\theta,j} = \|q_j\|_1",
        )
    return variant.regularizer.formula, variant.regularizer.prox_formula


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
    regularizer = variant.regularizer
    if regularizer.row_wise:
        before, after = unit_rows(P)[0].ravel(), unit_rows(Q)[0].ravel()
        threshold = strength * np.broadcast_to(
            regularizer.thresholds(Q, **variant.params).ravel(), after.shape
        )
        # The rest of the sum and the own term: with quad, both together are the threshold of Theorem 8.
        tau = threshold + 2.0 * strength * regularizer.quad * after
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
        else:
            latex = rf"\tau_j = \lambda\,t_j(Q),\quad \lambda = {lam}"
        heads = ("j", r"\lVert p_j\rVert_2", r"\tau", r"\lVert q_j\rVert_2")
        rows = _around_threshold(before, tau, after, first)
        return Worked(latex, live, P.shape[0], "rows", heads, rows)
    p, q = P[:, column], Q[:, column]
    threshold = strength * np.broadcast_to(regularizer.thresholds(Q, **variant.params), Q.shape)
    squares = 2.0 * strength * regularizer.quad
    live, s = int(np.count_nonzero(q)), column
    heads = ("j", f"p_{{j,{s}}}", r"\tau", f"q_{{j,{s}}}")
    by_rows = variant.params.get("axis") == "rows"
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
    elif not threshold.any():
        latex = rf"q_{{js}} = \frac{{p_{{js}}}}{{1 + 2\cdot{lam}}} = {_latex(1 / (1 + squares))}\,p_{{js}}"
        tau = np.zeros_like(q)
    else:
        latex = (
            rf"\tau_{{j,{s}}} = \lambda\big(\|q_{{:,{s}}}\|_1 - |q_{{j,{s}}}|\big),\quad \lambda = {lam},"
            rf"\quad \|q_{{:,{s}}}\|_1 = {_latex(float(np.abs(q).sum()))}"
        )
    rows = _around_threshold(p, tau, q, first)
    return Worked(latex, live, P.shape[0], f"entries of column {s}", heads, rows)


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


def python_source(
    variants: Sequence[Variant],
    exponent: int,
    *,
    d: int = 200,
    k: int = 30,
    distribution: str = "normal",
    seed: int = 0,
    P: np.ndarray | None = None,
) -> str:
    """Return a program that prints the counts at one λ.

    A given P is written out in full, or read from the download ``P.csv`` if it has over 600 entries.
    """
    if P is None:
        body = (
            f"d, k = {d}, {k}\nrng = np.random.default_rng({seed})\nP = {DISTRIBUTIONS[distribution].code}\n"
        )
    elif P.size > 600:
        body = 'P = np.loadtxt("P.csv", delimiter=",", ndmin=2)\n'
    else:
        rows = ",\n".join("    [" + ", ".join(repr(x) for x in row) + "]" for row in P.tolist())
        body = f"P = np.array([\n{rows},\n])\n"
    lines = [
        "import numpy as np",
        "",
        "import fmviz",
        "from fmviz.engine.counting import used_features, used_interactions",
        "",
        body + f"strength = 2.0**{exponent}",
        "for name, params in [",
        *(f'    ("{v.name}", {dict(v.params)!r}),' for v in variants),
        "]:",
        "    Q = fmviz.prox(name, P, strength, **params)",
        "    print(name, params, used_interactions(Q), used_features(Q),",
        "          fmviz.certificate(name, P, Q, strength, **params))",
    ]
    return "\n".join(lines) + "\n"
