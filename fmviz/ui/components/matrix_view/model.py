"""Dataclasses of a matrix view: panels of frames, one a slider stop, of factors, values or classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

NOT_AN_INTERACTION = -128
"""The code of a cell that holds no interaction, such as the diagonal of PPᵀ."""

MAX_GRAM_FEATURES = 1024
"""Above this many rows a factor's Gram matrix is not formed in the browser: pool it into codes first."""

Show = Literal["both", "gram", "factor"]


@dataclass(frozen=True)
class FactorFrame:
    """One factor matrix Q; the browser forms QQᵀ from it.

    A cell of QQᵀ is an exact zero if and only if its two rows share no column in which both are non-zero.

    Parameters
    ----------
    values : array_like, shape (d, k)
        The factor. It is sent as float32 with exact zeros kept and non-zeros kept non-zero.
    key : str
        What the driving slider displays when this frame is to be shown.
    caption : str
        One line under the panel.
    notice : str
        What is written across the picture; by default that it is empty where it is.
    """

    values: ArrayLike
    key: str = ""
    caption: str = ""
    notice: str = ""


@dataclass(frozen=True)
class CodesFrame:
    """A ready matrix of int8 codes, for a matrix too large to send as it is.

    Parameters
    ----------
    codes : array_like of int8, shape (rows, columns)
        0 is an exact zero, ±1 to ±127 are non-zero, `NOT_AN_INTERACTION` is drawn in neutral grey.
    scale : float
        The magnitude that code 127 stands for.
    key, caption : str
        As in `FactorFrame`.

    See Also
    --------
    encode_codes : makes the codes without ever turning a non-zero into a zero.
    """

    codes: ArrayLike
    scale: float
    key: str = ""
    caption: str = ""


@dataclass(frozen=True)
class ClassesFrame:
    """A matrix whose cells belong to classes, such as right and wrong; `Panel.classes` names them.

    Parameters
    ----------
    codes : array_like of int8, shape (rows, columns)
        The number of the class, or `NOT_AN_INTERACTION`. Where one drawn cell stands for several it has the
        colour of the highest number: what must not be overlooked comes last.
    counts : sequence of int
        What the legend says beside every class.
    key, caption : str
        As in `FactorFrame`.
    """

    codes: ArrayLike
    counts: Sequence[int]
    key: str = ""
    caption: str = ""


@dataclass(frozen=True)
class CellClass:
    """A class of cells.

    Parameters
    ----------
    label : str
        Its name in the legend and the tooltip.
    light, dark : str
        Its hex colours on both themes.
    """

    label: str
    light: str
    dark: str


@dataclass(frozen=True)
class Mark:
    """A cell that stays outlined.

    Parameters
    ----------
    picture : {"factor", "gram"}
        Whether it is an entry of the factors, or of QQᵀ and ready matrices.
    row, col : int
        Its place; -1 for all rows, or all columns.
    """

    picture: Literal["factor", "gram"]
    row: int = -1
    col: int = -1


Frame = FactorFrame | CodesFrame | ClassesFrame


@dataclass(frozen=True)
class Panel:
    """One titled picture with its frames.

    Parameters
    ----------
    title : str
        The heading.
    frames : sequence of FactorFrame, of CodesFrame or of ClassesFrame
        All of one kind. A panel with one frame keeps it whatever the slider says.
    color : str, optional
        A hex colour for the chip beside the heading, such as `palette.regularizer_color("ti")`.
    row_labels, col_labels : sequence of str, optional
        For codes: what a row and a column stand for, such as "features 0–99".
    factor_label, gram_label : str
        The names of the two pictures of a factor. A ready matrix with another `gram_label` than the default
        is called so, instead of tiles.
    classes : sequence of CellClass
        What the codes of a ClassesFrame stand for.
    """

    title: str
    frames: Sequence[Frame]
    color: str | None = None
    row_labels: Sequence[str] | None = None
    col_labels: Sequence[str] | None = None
    factor_label: str = "Q"
    gram_label: str = "QQᵀ"
    classes: Sequence[CellClass] = ()


@dataclass(frozen=True)
class Cell:
    """A cell that was clicked.

    Attributes
    ----------
    panel : int
        The number of its panel, from 0.
    frame : str
        The key of the frame that was shown.
    picture : {"factor", "gram"}
        Whether it is an entry of the factor, or of QQᵀ or a ready matrix.
    row, col : int
        Its place. Where a drawn cell covers several, the largest of them.
    """

    panel: int
    frame: str
    picture: str
    row: int
    col: int


def encode_factor(values: ArrayLike, what: str = "values") -> NDArray[np.float32]:
    """Return a factor as float32 whose zeros are exactly the zeros of `values`.

    A non-zero that would underflow becomes the smallest float32 of its sign; one that would overflow becomes
    the largest.

    Raises
    ------
    ValueError
        If an entry is not finite.
    """
    matrix = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(matrix)
    if not finite.all():
        row, col = (int(x) for x in np.argwhere(~finite)[0])
        raise ValueError(
            f"{what}[{row}, {col}] = {matrix[row, col]} cannot be drawn; stop the run before it diverges."
        )
    top = float(np.finfo(np.float32).max)
    with np.errstate(under="ignore"):
        single = np.clip(matrix, -top, top).astype(np.float32)
    lost = (single == 0) & (matrix != 0)
    if lost.any():
        single[lost] = np.nextafter(np.float32(0), np.sign(matrix[lost]).astype(np.float32))
    return np.ascontiguousarray(single)


def encode_codes(values: ArrayLike, grey_diagonal: bool = False) -> tuple[NDArray[np.int8], float]:
    """Return a matrix as int8 codes and the magnitude of code 127.

    Parameters
    ----------
    values : array_like, shape (rows, columns)
        The matrix.
    grey_diagonal : bool
        Whether the diagonal is marked as not an interaction (and left out of the scale).

    Returns
    -------
    codes : ndarray of int8, shape (rows, columns)
        Zero exactly where `values` is zero.
    scale : float
        The largest magnitude of `values`, 1 where all are 0.
    """
    matrix = np.asarray(values, dtype=np.float64)
    if not np.isfinite(matrix).all():
        raise ValueError("values holds an entry that is not finite; only finite numbers can be drawn.")
    magnitude = np.abs(matrix)
    if grey_diagonal:
        np.fill_diagonal(magnitude, 0.0)
    scale = float(magnitude.max(initial=0.0)) or 1.0
    level = np.clip(np.rint(np.minimum(magnitude / scale, 1.0) * 127), 1, 127)
    codes = np.where(matrix == 0, 0, np.copysign(level, matrix)).astype(np.int8)
    if grey_diagonal:
        np.fill_diagonal(codes, NOT_AN_INTERACTION)
    return codes, scale


def largest_interaction(factor: NDArray[np.floating[Any]]) -> float:
    """Return the largest magnitude off the diagonal of QQᵀ, zero if there is none."""
    if factor.shape[0] < 2:
        return 0.0
    wide = factor.astype(np.float64)
    gram = np.abs(wide @ wide.T)
    np.fill_diagonal(gram, 0.0)
    return float(gram.max())


def check_keys(panels: Sequence[Panel]) -> None:
    """Raise ValueError if panels with several frames do not have the same distinct keys."""
    driven = [
        (panel.title, [frame.key for frame in panel.frames]) for panel in panels if len(panel.frames) > 1
    ]
    for title, keys in driven:
        if len(set(keys)) < len(keys) or "" in keys:
            raise ValueError(
                f"panel {title!r} has missing or repeated frame keys; each frame that a slider "
                "chooses needs its own key, the text that the slider displays."
            )
        first, expected = driven[0]
        if keys != expected:
            raise ValueError(
                f"panels {first!r} and {title!r} have different frame keys; one slider drives both, "
                "so give them the same keys in the same order."
            )
