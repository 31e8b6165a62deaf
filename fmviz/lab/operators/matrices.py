"""The matrix P for proximal operators, random or parsed from text."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

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
