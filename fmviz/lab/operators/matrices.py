"""Draw or parse the matrix P that proximal operators are applied to."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass

import numpy as np

from fmviz.engine.errors import one_of, whole_number

MAX_FEATURES, MAX_RANK, MAX_ENTRY = 400, 60, 1e15
"""What fits one picture; products of two larger entries do not fit the browser's numbers."""


@dataclass(frozen=True)
class Distribution:
    """A way to draw P.

    Attributes
    ----------
    label, help : str
        In words.
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
        "No entry stands out: the largest are nearly equal.",
        "rng.uniform(-1, 1, (d, k))",
    ),
    "laplace": Distribution(
        "Laplace",
        "Heavy tails: a few entries stand out.",
        "rng.laplace(0, 1, (d, k))",
    ),
    "sparse": Distribution(
        "Sparse: a tenth is non-zero",
        "Nine entries in ten are exactly zero from the start.",
        "rng.standard_normal((d, k)) * (rng.random((d, k)) < 0.1)",
    ),
    "blocks": Distribution(
        "Two blocks",
        "Two groups of features, each strong in its own half of the columns; the rest is ten times weaker.",
        "rng.standard_normal((d, k)) * np.where(\n"
        "    (np.arange(d)[:, None] * 2 < d) == (np.arange(k) * 2 < k), 1.0, 0.1)",
    ),
    "rows": Distribution(
        "Fading rows",
        "Each feature is a little weaker than the one before: the last is a hundred times weaker.",
        "rng.standard_normal((d, k)) * np.logspace(0, -2, d)[:, None]",
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
    code = DISTRIBUTIONS[one_of("distribution", distribution, DISTRIBUTIONS)].code
    return np.asarray(eval(code, {"np": np, "rng": np.random.default_rng(seed), "d": d, "k": k}))


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
