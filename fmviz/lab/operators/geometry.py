"""Unit balls and proximal operators on sections of P with two entries.

In a section two entries of a small P are coordinates and all others are 0. The operators keep zero entries
zero; results therefore lie in the same section.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmviz.engine.penalties import PENALTIES
from fmviz.operators import certificate, prox

NAMES = tuple(
    name
    for name, penalty in PENALTIES.items()
    if penalty.convex and penalty.exact_prox and not penalty.smooth
)
"""The regularizers with convex balls with corners or edges, and with exact operators."""


@dataclass(frozen=True)
class Section:
    """A plane of small matrices P.

    Attributes
    ----------
    label : str
        The label.
    shape : (int, int)
        Shape of P, features × columns.
    cells : tuple of (int, int)
        Row and column of each coordinate.
    matrix : str
        P in LaTeX.
    formulas : dict of str to str
        Ω on the section, in LaTeX, if simpler than the general formula.
    words : str
        Description of the section.
    """

    label: str
    shape: tuple[int, int]
    cells: tuple[tuple[int, int], ...]
    matrix: str
    formulas: dict[str, str]
    words: str

    def formula(self, name: str) -> str:
        """Return the LaTeX of Ω on the section."""
        return self.formulas.get(name) or PENALTIES[name].words()[0]

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the coordinates, such as p₂₁."""
        return tuple("p" + "₁₂"[i] + "₁₂"[j] for i, j in self.cells)

    def embed(self, point: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the matrix P of a point."""
        P = np.zeros(self.shape)
        for cell, value in zip(self.cells, point, strict=True):
            P[cell] = value
        return P


_SUM = "|a|+|b|"
PLANES: dict[str, Section] = {
    "column": Section(
        "A column",
        (2, 1),
        ((0, 0), (1, 0)),
        r"P=\begin{pmatrix}a\\b\end{pmatrix}",
        {"l1": _SUM, "l21": _SUM, "ti": rf"({_SUM})^2", "cs": rf"({_SUM})^2"},
        "Two features in **one column** of P. Every row has one entry: ℓ₂,₁ equals ℓ₁, and CS equals TI. The "
        "balls are alike, the operators differ: ℓ₁ shrinks every entry by λ; TI shrinks more if the column "
        "is large, and zeroes an entry that is small **relative to the other**.",
    ),
    "row": Section(
        "A row",
        (1, 2),
        ((0, 0), (0, 1)),
        r"P=\begin{pmatrix}a&b\end{pmatrix}",
        {"l1": _SUM, "l21": r"\sqrt{a^2+b^2}", "ti": "a^2+b^2", "cs": "a^2+b^2"},
        "**One feature** in two columns. ℓ₂,₁ depends only on the norm of the row and preserves its "
        "direction. A single feature has no interaction: TI and CS reduce to ridge, and nothing becomes "
        "zero.",
    ),
    "diagonal": Section(
        "A diagonal",
        (2, 2),
        ((0, 0), (1, 1)),
        r"P=\begin{pmatrix}a&0\\0&b\end{pmatrix}",
        {"l1": _SUM, "l21": _SUM, "ti": "a^2+b^2", "cs": rf"({_SUM})^2"},
        "Two features that **share no column** and do not interact. TI has nothing to zero and only shrinks; "
        "CS selects features, and zeroes a row that is small relative to the other.",
    ),
}


def values(section: Section, name: str, points: np.ndarray) -> np.ndarray:
    """Return Ω at points of shape (n, 2)."""
    return np.array([PENALTIES[name].value(section.embed(point)) for point in points])


def circle(n: int = 181) -> np.ndarray:
    """Return directions in the plane, shape (n, 2), including the axes if n − 1 is a multiple of 4."""
    angle = np.linspace(0.0, 2.0 * np.pi, n)
    return np.round(np.column_stack([np.cos(angle), np.sin(angle)]), 15)


def boundary(section: Section, name: str, directions: np.ndarray, level: float = 1.0) -> np.ndarray:
    """Return the points with Ω = `level` in the given directions.

    Parameters
    ----------
    section, name
        The section and the regularizer.
    directions : (n, 2) ndarray
        Non-zero directions.
    level : float
        A positive level.

    Returns
    -------
    (n, 2) ndarray
    """
    once, twice = values(section, name, directions), values(section, name, 2.0 * directions)
    # Along a ray most regularizers have the form αt + βt².
    alpha, beta = np.maximum(2.0 * once - 0.5 * twice, 0.0), np.maximum(0.5 * twice - once, 0.0)
    scale = 2.0 * level / (alpha + np.sqrt(alpha**2 + 4.0 * beta * level))
    if not np.allclose(values(section, name, directions * scale[:, None]), level, rtol=1e-9):
        # A power: Ω(2p)/Ω(p) is 2 to its degree.
        scale = (level / once) ** (1.0 / np.log2(twice / once))
    return directions * scale[:, None]


def prox_of(section: Section, name: str, points: np.ndarray, strength: float) -> np.ndarray:
    """Return prox of λΩ at points of shape (n, 2), with Ω as in `fmviz.prox`."""
    moved = (PENALTIES[name].prox(section.embed(point), strength) for point in points)
    return np.array([[Q[cell] for cell in section.cells] for Q in moved]).reshape(-1, 2)


def flow(
    section: Section, name: str, strength: float, reach: float = 2.0, n: int = 13, steps: int = 6
) -> np.ndarray:
    """Return the paths of a grid of points to their prox.

    Returns
    -------
    (n², steps + 1, 2) ndarray
        The prox of every point of the grid [−reach, reach]² for λ from 0 to `strength`.
    """
    line = np.linspace(-reach, reach, n)
    points = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    grid = np.linspace(0.0, strength, steps + 1)
    return np.stack([points, *(prox_of(section, name, points, s) for s in grid[1:])], axis=1)


def zero_codes(points: np.ndarray) -> np.ndarray:
    """Return a code of the coordinates that are exactly 0 for points (n, 2): the sum of their 2^i."""
    return ((points == 0) * 2 ** np.arange(points.shape[1])).sum(axis=1)


def zeros_in_words(moved: Mapping[str, np.ndarray], strength: float) -> str:
    """Return a sentence on the coordinates set to exactly 0 by each regularizer.

    Parameters
    ----------
    moved : mapping of str to (2,) ndarray
        The prox of one point, by regularizer.
    strength : float
        λ.
    """
    codes = dict(zip(moved, zero_codes(np.array(list(moved.values()))), strict=True))
    parts = [
        # The last comma followed by a space, unlike that in ℓ₂,₁.
        f"**{what}** under " + " and ".join(", ".join(names).rsplit(", ", 1))
        for code, what in enumerate(("neither entry", "a", "b", "both"))
        if (names := [PENALTIES[name].label for name in moved if codes[name] == code])
    ]
    return f"Exactly zero at λ = {strength:g}: {', '.join(reversed(parts))}."


@dataclass(frozen=True)
class ColumnProx:
    """The operator of TI on a column of P ([A] Theorem 7).

    Attributes
    ----------
    before, after : (d,) ndarray
        The entries and their prox.
    threshold : float
        2λS with S the sum of |q|, subtracted from every entry; smaller entries become 0.
    kept : int
        θ, the number of non-zero entries.
    certificate : float
        See `fmviz.certificate`.
    """

    before: np.ndarray
    after: np.ndarray
    threshold: float
    kept: int
    certificate: float

    def latex(self, strength: float) -> str:
        """Return the formula of the threshold with the numbers of the entries, in LaTeX."""
        largest = np.sort(np.abs(self.before))[::-1][: self.kept]
        terms = "+".join(f"{x:.3g}" for x in largest) or "0"
        share = 2.0 * strength / (1.0 + 2.0 * strength * self.kept)
        return (
            r"\begin{aligned}\tau &= 2\lambda S_\theta = "
            r"\frac{2\lambda}{1+2\lambda\theta}\sum_{j\ \text{kept}}|p_j| \\ &= "
            rf"\frac{{2\cdot {strength:.3g}}}{{1+2\cdot {strength:.3g}\cdot {self.kept}}}({terms}) = "
            rf"{share * largest.sum():.4g}\end{{aligned}}"
        )


def column_story(entries: Sequence[float], strength: float) -> ColumnProx:
    """Apply the operator of TI to one column."""
    before = np.asarray(entries, dtype=float)
    after = np.asarray(prox("ti", before, strength))
    return ColumnProx(
        before,
        after,
        2.0 * strength * float(np.abs(after).sum()),
        int(np.count_nonzero(after)),
        certificate("ti", before, after, strength),
    )


def geometry_program(section: Section, names: Sequence[str], point: Sequence[float], strength: float) -> str:
    """Return a program that prints the results of the operators at a point with certificates."""
    return (
        "import fmviz\n\n"
        f"P = {section.embed(point).tolist()!r}\n"
        f"for name in {list(names)!r}:\n"
        f"    Q = fmviz.prox(name, P, {strength!r})\n"
        f"    print(name, Q.tolist(), fmviz.certificate(name, P, Q, {strength!r}))\n"
    )
