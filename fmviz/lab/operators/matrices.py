"""Draw or parse the matrix P that proximal operators are applied to."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

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
    """Draw P, shape (d, k), by a key of `DISTRIBUTIONS`, with a seed of ``numpy.random.default_rng``."""
    names = {"np": np, "rng": np.random.default_rng(seed), "d": d, "k": k}
    return np.asarray(eval(DISTRIBUTIONS[distribution].code, names))


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
    text = re.sub(r"\b(?:np\.)?array\(|[()]", " ", text.replace("−", "-"))
    text = re.sub(r"\]\s*,?", "\n", text).replace("[", " ").strip()
    lines = [line.strip(", \t") for line in (text if "\n" in text else text.replace(";", "\n")).splitlines()]
    rows = [re.split(r"\s*[,;\t]\s*|\s+", line) for line in lines if line]
    if not rows:
        raise ValueError("There is no matrix yet: paste one row a line, for instance 1.5, −0.2, 0.")
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
                place = f"Row {i + 1}, column {j + 1}"
                raise ValueError(f"{place} holds {cell[:40]!r}, which is not a number.") from None
    if len(P) > MAX_FEATURES or P.shape[1] > MAX_RANK:
        raise ValueError(
            f"The matrix is {len(P)} × {P.shape[1]}; this page draws at most {MAX_FEATURES} rows and "
            f"{MAX_RANK} columns. Paste a part of it."
        )
    if not (np.abs(P) <= MAX_ENTRY).all():
        raise ValueError(f"This page draws finite entries up to {MAX_ENTRY:g}. Scale the matrix down.")
    return P
