"""Panels of matrices, with a frame for each stop of a slider, and their encoding as bytes for the browser.

Bytes rather than JSON, because base64 is a third larger and a long string has to be parsed on every rerun.
The layout is ``b"FMV1"``, the header's length as little-endian uint32, the header padded with spaces to a
multiple of four, then the sections that the header points to, each starting at a multiple of four.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmviz.checked import Count
from fmviz.figures import palette

NOT_AN_INTERACTION = -128
"""The code of a cell that holds no interaction, such as the diagonal of PPᵀ."""

MAX_GRAM_FEATURES = 1024
"""Above this many rows a factor's Gram matrix is not formed in the browser: pool it into codes first."""

Show = Literal["both", "gram"]
MAGIC = b"FMV1"


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
        0 is an exact zero, ±1 to ±127 stand for ±(code/127)²·scale, `NOT_AN_INTERACTION` is drawn in grey.
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
    row, col : int
        Its place in QQᵀ and in ready matrices; -1 for all rows, or all columns.
    panel : int
        The number of the panel whose factor explains the cell, from 0.
    """

    row: int = -1
    col: int = -1
    panel: int = 0


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
    notes : (str, str)
        Sentences on its factor, after the explanation of a zero cell that is clicked, and of another.
    blocks : sequence of (str, int, int)
        Blocks on the diagonal to be outlined: a name, the first feature, how many there are.
    """

    title: str
    frames: Sequence[Frame]
    color: str | None = None
    row_labels: Sequence[str] | None = None
    col_labels: Sequence[str] | None = None
    factor_label: str = "Q"
    gram_label: str = "QQᵀ"
    classes: Sequence[CellClass] = ()
    notes: tuple[str, str] = ("", "")
    blocks: Sequence[tuple[str, int, int]] = ()


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

    panel: Count
    frame: str
    picture: str
    row: Count
    col: Count


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
    """Return a matrix as int8 codes, which go with the square root, and the magnitude of code 127.

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
    level = np.clip(np.rint(np.sqrt(np.minimum(magnitude / scale, 1.0)) * 127), 1, 127)
    codes = np.where(matrix == 0, 0, np.copysign(level, matrix)).astype(np.int8)
    if grey_diagonal:
        np.fill_diagonal(codes, NOT_AN_INTERACTION)
    return codes, scale


def largest_interaction(factor: NDArray[np.floating[Any]]) -> float:
    """Return the largest magnitude off the diagonal of QQᵀ, zero if there is none."""
    wide = factor.astype(np.float64)
    gram = np.abs(wide @ wide.T)
    np.fill_diagonal(gram, 0.0)
    return float(gram.max(initial=0.0))


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


class _Encoder:
    """Collects the numbers of panels, and what they have in common."""

    def __init__(self, gram_scale: float | None) -> None:
        self.gram_scale = gram_scale
        # Where each array begins; equal ones are stored once.
        self.sections: dict[bytes, int] = {}
        self.size = 0
        self.factor_top = self.gram_top = 0.0
        self.grey = False

    def add(self, array: np.ndarray[Any, Any]) -> int:
        """Store an array, and return where it begins."""
        raw = array.tobytes()
        raw += b"\0" * (-len(raw) % 4)
        if raw not in self.sections:
            self.sections[raw] = self.size
            self.size += len(raw)
        return self.sections[raw]

    def panel(self, panel: Panel) -> dict[str, Any]:
        """Return the kind, the shape and the frames of a panel."""
        frames = []
        for number, frame in enumerate(panel.frames):
            where = f"panel {panel.title!r}, frame {number}"
            entry: dict[str, Any] = {"key": str(frame.key), "caption": str(frame.caption)}
            if isinstance(frame, FactorFrame):
                entry["notice"] = frame.notice
                array: np.ndarray[Any, Any] = encode_factor(frame.values, f"{where}: values")
                if array.shape[0] > MAX_GRAM_FEATURES:
                    raise ValueError(
                        f"{where}: {array.shape[0]} features are more than the {MAX_GRAM_FEATURES} whose "
                        "interactions the browser draws; pool them into tiles and send a CodesFrame."
                    )
                self.grey = True
                self.factor_top = max(self.factor_top, float(np.abs(array).max(initial=0.0)))
                if self.gram_scale is None:
                    self.gram_top = max(self.gram_top, largest_interaction(array))
            else:
                array = np.ascontiguousarray(frame.codes, dtype=np.int8)
                skipped = array == NOT_AN_INTERACTION
                self.grey = self.grey or bool(skipped.any())
                if isinstance(frame, ClassesFrame):
                    entry["counts"] = [int(count) for count in frame.counts]
                else:
                    entry["scale"] = float(frame.scale)
                    used = np.abs(array[~skipped].astype(np.int16)).max(initial=0)
                    self.gram_top = max(self.gram_top, entry["scale"] * (float(used) / 127) ** 2)
            entry["at"] = self.add(array)
            frames.append(entry)
        factor = isinstance(panel.frames[0], FactorFrame)
        return {
            "kind": "factor" if factor else "classes" if panel.classes else "codes",
            "rows": array.shape[0],
            "cols": array.shape[1],
            "frames": frames,
        }

    @property
    def scales(self) -> dict[str, float]:
        """The magnitudes at the ends of the colour scales."""
        gram = self.gram_top if self.gram_scale is None else self.gram_scale
        return {"factor": self.factor_top, "gram": gram}


def encode_frames(panels: Mapping[int, Panel], *, gram_scale: float | None) -> tuple[dict[str, Any], bytes]:
    """Encode the frames of some panels, by their places, to replace those of a view that is drawn.

    Returns
    -------
    (dict, bytes)
        The entries "panels" and "scales" of a header, and the numbers that they point to.
    """
    encoder = _Encoder(gram_scale)
    drawn = [{"place": place, **encoder.panel(panel)} for place, panel in panels.items()]
    return {"panels": drawn, "scales": encoder.scales}, b"".join(encoder.sections)


def _strings(labels: Sequence[str] | None) -> list[str] | None:
    return None if labels is None else [str(label) for label in labels]


def encode_view(
    panels: Sequence[Panel],
    *,
    driver_key: str | None = None,
    show: Show = "both",
    feature_names: Sequence[str] | None = None,
    gram_scale: float | None = None,
    signed: bool = True,
    columns: int | None = None,
    min_width: int = 230,
    max_height: float = 420,
    player: bool | Literal["rests"] = False,
    player_label: str = "Look back: the matrix at an earlier epoch",
    start: int | None = None,
    clickable: bool | Literal["explained"] = False,
    ask: str = "",
    mark: Mark | None = None,
    zoom: bool = False,
    named: bool = False,
    empty: str = "Nothing to show yet.",
    more: Mapping[str, Any] | None = None,
) -> bytes:
    """Encode panels as the payload of `matrix_view`; cache it if the panels are slow to build.

    Equal arguments give equal bytes, so Streamlit does not send them again on a rerun.

    Parameters
    ----------
    panels : sequence of Panel
        Drawn side by side on one colour scale for factors and one for interactions, over all frames.
    driver_key : str, optional
        The key of the `st.select_slider` or `st.slider` that chooses the frame, followed while it is dragged.
        Without it each panel shows its last frame.
    show : {"both", "gram"}
        Whether a factor is drawn beside the matrix that is made of it.
    feature_names : sequence of str, optional
        The names of the rows of the factors, for the tooltip.
    gram_scale : float, optional
        The magnitude at the ends of the colour scale of interactions; by default the largest one of all
        panels and frames.
    signed : bool
        Whether the values have signs; else, as for norms, the ramp has one arm, of another colour.
    columns : int, optional
        At most this many panels in a row.
    min_width : int
        The least width of a panel in CSS pixels; where they do not fit side by side, they take more rows.
    max_height : float
        The largest height of a picture in CSS pixels; below 1, as a share of the window's.
    player : bool or "rests"
        Whether the view has a slider and a Play button of its own for the frames, in place of a driver. It
        plays by itself once when it is first shown, or waits at the last frame.
    player_label : str
        What the slider is for.
    start : int, optional
        The frame that the player waits at, in place of the last.
    clickable : bool or "explained"
        Whether cells can be clicked. A click on one of a factor's QQᵀ, drawn alone, explains its weight; with
        True it makes the script run again as well, with `matrix_view` returning the cell.
    ask : str
        What stands in place of an explanation until a cell is clicked.
    mark : Mark, optional
        A cell that is outlined while no other one is pointed at, and explained as if it had been clicked.
    zoom : bool
        Whether a box that is drawn by dragging, a double click, or the keys + and − zoom in, in all pictures
        of one shape alike.
    named : bool
        Whether names stand beside rows and columns, where cells are large enough.
    empty : str
        The sentence shown when there are no panels.
    more : mapping, optional
        Further entries of the header, for components that draw more than matrices.

    Returns
    -------
    bytes
        The payload.

    Raises
    ------
    ValueError
        If a driven panel lacks distinct keys shared with the others, if a factor is not finite or has more
        than `MAX_GRAM_FEATURES` rows.
    """
    if player or driver_key is not None:
        check_keys(panels)
    encoder = _Encoder(gram_scale)
    drawn = [
        {
            "title": str(panel.title),
            "color": panel.color,
            "classes": [asdict(kind) for kind in panel.classes],
            # Rows of factors are features.
            "rowLabels": None if isinstance(panel.frames[0], FactorFrame) else _strings(panel.row_labels),
            "colLabels": None if isinstance(panel.frames[0], FactorFrame) else _strings(panel.col_labels),
            "factorLabel": panel.factor_label,
            "gramLabel": panel.gram_label,
            "notes": panel.notes,
            "blocks": panel.blocks,
            **encoder.panel(panel),
        }
        for panel in panels
    ]
    header: dict[str, Any] = {
        "driver": driver_key,
        "show": show,
        "names": _strings(feature_names),
        "scales": encoder.scales,
        "signed": signed,
        "skipped": "diagonal, not an interaction" if encoder.grey else "",
        "player": player,
        "playerLabel": player_label,
        "start": start,
        "columns": columns,
        "minWidth": int(min_width),
        "clickable": clickable,
        "ask": ask,
        "mark": None if mark is None else asdict(mark),
        "zoom": bool(zoom),
        "named": bool(named),
        "maxHeight": max_height,
        "empty": empty,
        "palette": {
            "light": asdict(palette.LIGHT),
            "dark": asdict(palette.DARK),
        },
        "panels": drawn,
        **(more or {}),
    }
    body = b"".join(encoder.sections)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False)
    header["digest"] = hashlib.blake2b(text.encode() + body, digest_size=8).hexdigest()
    packed = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    packed += b" " * (-len(packed) % 4)
    return MAGIC + struct.pack("<I", len(packed)) + packed + body
