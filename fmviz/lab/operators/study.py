"""Proximal operators of a matrix P, random or parsed, over a grid of strengths ([A] Figs. 1 and 2).

[A] is atarashi2021, sections 3.1 and 8.1: P of size 200 × 30 from N(0, 1), λ = 2⁻⁷ … 2⁷.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fmviz.engine.counting import used_features, used_interactions
from fmviz.engine.penalties import PENALTIES, Penalty
from fmviz.engine.penalties.base import unit_rows
from fmviz.operators import certificate

MAX_FEATURES, MAX_RANK, MAX_ENTRY = 400, 60, 1e15
"""Limits of a picture; products of larger entries overflow in the browser."""


@dataclass(frozen=True)
class Distribution:
    """A distribution of P.

    Attributes
    ----------
    label, help : str
        The label and its explanation.
    code : str
        The Python expression in ``rng``, ``d`` and ``k`` that draws it.
    """

    label: str
    help: str
    code: str


DISTRIBUTIONS: dict[str, Distribution] = {
    "normal": Distribution(
        "Normal N(0, 1)",
        "Independent standard normal entries, as in the paper.",
        "rng.standard_normal((d, k))",
    ),
    "uniform": Distribution(
        "Uniform on [−1, 1]",
        "No outstanding entries: the largest are nearly equal.",
        "rng.uniform(-1, 1, (d, k))",
    ),
    "laplace": Distribution(
        "Laplace",
        "Heavy tails: a few outstanding entries.",
        "rng.laplace(0, 1, (d, k))",
    ),
    "sparse": Distribution(
        "Sparse: a tenth is non-zero",
        "Nine in ten entries are exactly zero from the start.",
        "rng.standard_normal((d, k)) * (rng.random((d, k)) < 0.1)",
    ),
    "blocks": Distribution(
        "Two blocks",
        "Two groups of features, strong in different halves of the columns; other entries are ten times "
        "weaker.",
        "rng.standard_normal((d, k)) * np.where(\n"
        "    (np.arange(d)[:, None] * 2 < d) == (np.arange(k) * 2 < k), 1.0, 0.1)",
    ),
    "rows": Distribution(
        "Fading rows",
        "Each feature is slightly weaker than the one before, the last a hundred times weaker than the "
        "first.",
        "rng.standard_normal((d, k)) * np.logspace(0, -2, d)[:, None]",
    ),
}


def sample(d: int, k: int, distribution: str = "normal", seed: int = 0) -> np.ndarray:
    """Draw P, shape (d, k), by a key of `DISTRIBUTIONS`, with a seed of ``numpy.random.default_rng``."""
    names = {"np": np, "rng": np.random.default_rng(seed), "d": d, "k": k}
    return np.asarray(eval(DISTRIBUTIONS[distribution].code, names))


def parse_matrix(text: str) -> np.ndarray:
    """Parse a matrix: one row per line, entries separated by commas, semicolons, tabs or spaces.

    Brackets are ignored, which allows pasting Python output; a single line may separate rows by semicolons or
    brackets.

    Raises
    ------
    ValueError
        If the text is not a matrix of finite numbers within the size limits; the message contains the
        position.
    """
    text = re.sub(r"\b(?:np\.)?array\(|[()]", " ", text.replace("−", "-"))
    text = re.sub(r"\]\s*,?", "\n", text).replace("[", " ").strip()
    lines = [line.strip(", \t") for line in (text if "\n" in text else text.replace(";", "\n")).splitlines()]
    rows = [re.split(r"\s*[,;\t]\s*|\s+", line) for line in lines if line]
    if not rows:
        raise ValueError("No matrix yet: paste one row per line, for instance 1.5, −0.2, 0.")
    P = np.empty((len(rows), len(rows[0])))
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"Row {i + 1} has {len(row)} entries but row 1 has {len(rows[0])}; "
                "give every row the same number."
            )
        for j, cell in enumerate(row):
            try:
                P[i, j] = float(cell)
            except ValueError:
                raise ValueError(f"Row {i + 1}, column {j + 1}: {cell[:40]!r} is not a number.") from None
    if len(P) > MAX_FEATURES or P.shape[1] > MAX_RANK:
        raise ValueError(
            f"The matrix is {len(P)} × {P.shape[1]}; the limit of this page is {MAX_FEATURES} rows and "
            f"{MAX_RANK} columns. Paste a part of it."
        )
    if not (np.abs(P) <= MAX_ENTRY).all():
        raise ValueError(f"Entries must be finite and at most {MAX_ENTRY:g}. Scale the matrix down.")
    return P


# ------------------------------------------------------------------------------------- a range of strengths


EXPONENTS = tuple(range(-7, 8))
"""The exponents e of λ = 2^e, as in [A] 3.1."""


@dataclass(frozen=True)
class Variant:
    """A regularizer with fixed parameters.

    Attributes
    ----------
    id : str
        The name, with non-default choices: ``"ti_rows"``.
    penalty : Penalty
        The regularizer with its parameters.
    label : str
        The label.
    """

    id: str
    penalty: Penalty
    label: str = ""


def with_degree(variant: Variant, degree: int) -> Variant:
    """Return the variant with another degree, if it has one."""
    if "degree" not in variant.penalty.settings:
        return variant
    label = variant.label.replace("order m", f"order {degree}")
    return replace(variant, penalty=replace(variant.penalty, degree=degree), label=label)  # type: ignore[call-arg]


def _variants() -> dict[str, Variant]:
    variants: dict[str, Variant] = {}
    exact = {name: penalty for name, penalty in PENALTIES.items() if penalty.exact_prox}
    for name, penalty in exact.items():
        variants[name] = Variant(name, penalty, penalty.label)
        for spec in penalty.params:
            for choice in spec.choices if spec.kind == "choice" else ():
                if choice != spec.default:
                    variants[f"{name}_{choice}"] = Variant(
                        f"{name}_{choice}",
                        replace(penalty, **{spec.name: choice}),
                        f"{penalty.label}, by {choice}",
                    )
    return variants


VARIANTS: dict[str, Variant] = _variants()
"""All regularizers with an exact operator, including variants by choices of their parameters."""


@dataclass(frozen=True)
class Study:
    """The results of an operator on P over the grid.

    Attributes
    ----------
    variant : Variant
        The operator.
    exponents : tuple of int
        The grid, λ = 2^e.
    Q : (m, d, k) ndarray
        The results, read-only.
    interactions, features, entries : (m,) ndarray of int
        The used interactions, used features and non-zero entries of each.
    certificates : (m,) ndarray
        See `fmviz.certificate`.
    """

    variant: Variant
    exponents: tuple[int, ...]
    Q: np.ndarray
    interactions: np.ndarray
    features: np.ndarray
    entries: np.ndarray
    certificates: np.ndarray

    def at(self, exponent: int) -> int:
        """Return the position of a λ on the grid."""
        return self.exponents.index(exponent)


def study(P: np.ndarray, variant: Variant, exponents: Sequence[int] = EXPONENTS) -> Study:
    """Evaluate an operator at λ = 2^e for every e."""
    P = np.ascontiguousarray(P, dtype=np.float64)
    Q = np.stack([variant.penalty.prox(P, 2.0**e) for e in exponents])
    Q.flags.writeable = False
    return Study(
        variant,
        tuple(exponents),
        Q,
        np.array([used_interactions(q) for q in Q]),
        np.array([used_features(q) for q in Q]),
        np.array([np.count_nonzero(q) for q in Q]),
        np.array([certificate(variant.penalty, P, q, 2.0**e) for e, q in zip(exponents, Q, strict=True)]),
    )


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

    A given P is written out in full, or read from the download of the page if it has over 600 entries.
    """
    if P is None:
        body = (
            f"d, k = {d}, {k}\nrng = np.random.default_rng({seed})\nP = {DISTRIBUTIONS[distribution].code}\n"
        )
    elif P.size > 600:
        body = 'P = np.load("operators.npz")["P"]\n'
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
        "for regularizer in [",
        *(f"    fmviz.penalties.{variant.penalty!r}," for variant in variants),
        "]:",
        "    Q = fmviz.prox(regularizer, P, strength)",
        "    print(regularizer, used_interactions(Q), used_features(Q),",
        "          fmviz.certificate(regularizer, P, Q, strength))",
    ]
    return "\n".join(lines) + "\n"


def worked_table(P: np.ndarray, Q: np.ndarray, variant: Variant, column: int, most: int = 6) -> pd.DataFrame:
    """Return the shrinkage of some entries of a column, or of the norms of some rows.

    Parameters
    ----------
    P, Q : (d, k) ndarray
        The point and the result.
    variant : Variant
        The operator.
    column : int
        The column, from 0, for operators on entries.
    most : int
        Maximum number of rows, around the last non-zero one.

    Returns
    -------
    DataFrame
        The index ``j``, the size ``before``, the reduction ``loses`` and the size ``after``, in descending
        order.
    """
    by_norm = variant.penalty.row_wise
    before, after = (unit_rows(M)[0].ravel() if by_norm else np.abs(M[:, column]) for M in (P, Q))
    table = pd.DataFrame({"j": np.arange(len(P)), "before": before, "loses": before - after, "after": after})
    start = int(np.clip(np.count_nonzero(after) - most // 2, 0, max(len(P) - most, 0)))
    return table.sort_values("before", ascending=False, kind="stable", ignore_index=True)[
        start : start + most
    ]
