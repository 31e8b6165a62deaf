"""Colours of matrices, regularizers and methods, for Plotly figures and the browser component.

A matrix has three distinct kinds of colour: a diverging ramp for non-zero values, a colour outside the ramp
for exact zeros, and a neutral grey for the diagonal, which has no interactions. Both arms of the ramp start
visibly tinted, to distinguish the smallest non-zero value from zero. Blue and orange remain distinguishable
under the common colour vision deficiencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

import numpy as np


@dataclass(frozen=True)
class MatrixColors:
    """The colours of a matrix on one theme.

    Attributes
    ----------
    negative, positive : tuple of str
        Hex colours of each arm of the ramp, from the smallest magnitude to the largest.
    magnitude : tuple of str
        The colours of values without a sign, such as norms.
    zero : str
        The colour of an exact zero.
    diagonal : str
        The colour of cells that are not interactions.
    """

    negative: tuple[str, ...]
    positive: tuple[str, ...]
    magnitude: tuple[str, ...]
    zero: str
    diagonal: str


LIGHT = MatrixColors(
    negative=("#aecdea", "#78aede", "#3f88c5", "#1c61a6", "#0a3668"),
    positive=("#fbc58f", "#f49d4e", "#db6f22", "#b0460b", "#6f2504"),
    magnitude=("#b9d8c2", "#83bd9d", "#4a9c7d", "#20755f", "#08443a"),
    zero="#f2f3f5",
    diagonal="#a4a9b1",
)
DARK = MatrixColors(
    negative=("#2b5f8f", "#3d7fbb", "#5fa3df", "#90c8f5", "#cfe8ff"),
    positive=("#84501c", "#b56f24", "#df9040", "#f7b976", "#ffe3c2"),
    magnitude=("#2a6152", "#368873", "#55ae93", "#8dd1b6", "#d3f5e2"),
    zero="#1c212b",
    diagonal="#565d69",
)

REGULARIZER_COLORS: dict[str, str] = {
    "l2": "#95968b",
    "l1": "#ae3518",
    "l21": "#b09100",
    "ti": "#748dff",
    "cs": "#07aa57",
    "omega_ti": "#295e9b",
    "omega_cs": "#874a6c",
    "ti_power": "#8822ff",
}
"""A colour per regularizer, readable on both themes.

Chosen in the hues of Okabe and Ito by a search for pairwise CIE76 differences above 20, for normal vision and
for complete protanopia, deuteranopia and tritanopia.
"""

SPARE_COLORS: tuple[str, ...] = ("#0d9488", "#c026d3", "#a16207")
"""Colours of regularizers without an entry above."""

SERIES: tuple[str, ...] = tuple(
    REGULARIZER_COLORS[name] for name in ("ti", "l1", "cs", "l21", "omega_cs", "omega_ti", "ti_power", "l2")
)
"""Colours of lines for methods, as above."""

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon", "pentagon")
"""Markers, those of `SERIES` first."""

SIGNALS: dict[bool | None, str] = {True: "#07aa5766", False: "#ae351866", None: "rgba(0,0,0,0)"}
"""Backgrounds of cells for claims that hold, do not hold, or are not settled."""

NEUTRAL = "#7d8590"
"""The colour of elements without a regularizer, on both themes."""


def regularizer_color(name: str) -> str:
    """Return the colour of a regularizer, or a spare one chosen by its name."""
    return REGULARIZER_COLORS.get(name) or SPARE_COLORS[crc32(name.encode()) % len(SPARE_COLORS)]


def symbol_of(color: str) -> str:
    """Return the marker of the method that has this colour, the same in all charts."""
    return dict(zip(SERIES, SYMBOLS, strict=False)).get(color, SYMBOLS[-1])


def diverging_colorscale(dark: bool = False) -> list[tuple[float, str]]:
    """Return the ramp as a plotly colour scale over [-max, max].

    Both arms meet at one half without blending; an exact zero drawn with this scale would look like the
    smallest positive value. Omit zeros (as NaN) and use `MatrixColors.zero` as the background.
    """
    colors = DARK if dark else LIGHT
    low, high = np.linspace(0.0, 0.5, len(colors.negative)), np.linspace(0.5, 1.0, len(colors.positive))
    stops = zip((*low, *high), (*colors.negative[::-1], *colors.positive), strict=True)
    return [(float(place), color) for place, color in stops]
