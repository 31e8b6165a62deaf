"""Panels of matrices with frames for a slider, and their binary encoding for the browser.

Bytes rather than JSON: base64 is a third larger, and a long string would be parsed on every rerun. The layout
is ``b"FMV1"``, the length of the header as little-endian uint32, the header padded with spaces to a multiple
of four, and the sections referenced by the header, each aligned to four bytes.
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
"""The code of a cell without an interaction, such as the diagonal of PPᵀ."""

MAX_GRAM_FEATURES = 1024
"""Maximum number of factor rows for a Gram matrix in the browser; pool larger ones into codes."""

Show = Literal["both", "gram"]
MAGIC = b"FMV1"


@dataclass(frozen=True)
class FactorFrame:
    """A factor matrix Q, from which the browser computes QQᵀ.

    A cell of QQᵀ is an exact zero if and only if its two rows share no column in which both are non-zero.

    Parameters
    ----------
    values : array_like, shape (d, k)
        The factor, sent as float32; zeros and non-zeros are preserved.
    key : str
        The value of the driving slider for this frame.
    caption : str
        A line below the panel.
    notice : str
        Text across the picture; by default a note if it is empty.
    """

    values: ArrayLike
    key: str = ""
    caption: str = ""
    notice: str = ""


@dataclass(frozen=True)
class CodesFrame:
    """A matrix of int8 codes, for matrices too large to send unencoded.

    Parameters
    ----------
    codes : array_like of int8, shape (rows, columns)
        0 is an exact zero, ±1 to ±127 mean ±(code/127)²·scale, `NOT_AN_INTERACTION` is drawn in grey.
    scale : float
        The magnitude of code 127.
    key, caption : str
        See `FactorFrame`.

    See Also
    --------
    encode_codes : computes codes; non-zeros stay non-zero.
    """

    codes: ArrayLike
    scale: float
    key: str = ""
    caption: str = ""


@dataclass(frozen=True)
class ClassesFrame:
    """A matrix of classes, such as true and false positives; `Panel.classes` defines them.

    Parameters
    ----------
    codes : array_like of int8, shape (rows, columns)
        The number of the class, or `NOT_AN_INTERACTION`. A drawn cell that covers several has the colour of
        the highest number: put the most important class last.
    counts : sequence of int
        The count of each class in the legend.
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
        The name in legend and tooltip.
    light, dark : str
        Hex colours for both themes.
    """

    label: str
    light: str
    dark: str


@dataclass(frozen=True)
class Mark:
    """A permanently outlined cell.

    Parameters
    ----------
    row, col : int
        The position in QQᵀ or a matrix of codes; -1 for all rows or columns.
    panel : int
        The index of the panel with the factor that explains the cell.
    """

    row: int = -1
    col: int = -1
    panel: int = 0


Frame = FactorFrame | CodesFrame | ClassesFrame


@dataclass(frozen=True)
class Panel:
    """A titled picture with frames.

    Parameters
    ----------
    title : str
        The heading.
    frames : sequence of FactorFrame, of CodesFrame or of ClassesFrame
        Frames of one kind. A single frame is independent of the slider.
    color : str, optional
        A hex colour for the chip beside the heading, such as `palette.regularizer_color("ti")`.
    row_labels, col_labels : sequence of str, optional
        For codes, labels of rows and columns, such as "features 0–99".
    factor_label, gram_label : str
        Labels of the two pictures of a factor. For codes, a non-default `gram_label` replaces "tiles".
    classes : sequence of CellClass
        The classes of the codes of a ClassesFrame.
    notes : (str, str)
        Sentences on its factor, after the explanation of a zero cell that is clicked, and of another.
    blocks : sequence of (str, int, int)
        Outlined blocks on the diagonal: name, first feature, number of features.
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
    """A clicked cell.

    Attributes
    ----------
    panel : int
        The index of the panel.
    frame : str
        The key of the displayed frame.
    picture : {"factor", "gram"}
        "factor" for an entry of the factor, "gram" for one of QQᵀ or a matrix of codes.
    row, col : int
        The position; of the largest entry if a drawn cell covers several.
    """

    panel: Count
    frame: str
    picture: str
    row: Count
    col: Count


def encode_factor(values: ArrayLike, what: str = "values") -> NDArray[np.float32]:
    """Return a factor as float32 with exactly the zeros of `values`.

    Non-zeros that underflow become the smallest float32 of the same sign; those that overflow, the largest.

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
    """Return a matrix as int8 codes on a square-root scale, and the magnitude of code 127.

    Parameters
    ----------
    values : array_like, shape (rows, columns)
        The matrix.
    grey_diagonal : bool
        Whether to mark the diagonal as no interaction and exclude it from the scale.

    Returns
    -------
    codes : ndarray of int8, shape (rows, columns)
        Zero exactly where `values` is zero.
    scale : float
        The largest magnitude of `values`, or 1 if all are 0.
    """
    matrix = np.asarray(values, dtype=np.float64)
    if not np.isfinite(matrix).all():
        raise ValueError("values has an entry that is not finite; only finite numbers can be drawn.")
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
                f"panel {title!r} has missing or repeated frame keys; each frame needs a distinct key, the "
                "text on the slider."
            )
        first, expected = driven[0]
        if keys != expected:
            raise ValueError(
                f"panels {first!r} and {title!r} have different frame keys; panels with a common slider "
                "need the same keys in the same order."
            )


class _Encoder:
    """Collects the arrays of panels and their common properties."""

    def __init__(self, gram_scale: float | None) -> None:
        self.gram_scale = gram_scale
        # Offset of each array; equal arrays are stored once.
        self.sections: dict[bytes, int] = {}
        self.size = 0
        self.factor_top = self.gram_top = 0.0
        self.grey = False

    def add(self, array: np.ndarray[Any, Any]) -> int:
        """Store an array; return its offset."""
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
                        f"{where}: {array.shape[0]} features exceed the limit of {MAX_GRAM_FEATURES} for "
                        "interactions in the browser; pool them into tiles and send a CodesFrame."
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
    """Encode replacement frames for some panels of a view, by index.

    Returns
    -------
    (dict, bytes)
        The entries "panels" and "scales" of a header, and the bytes referenced by them.
    """
    encoder = _Encoder(gram_scale)
    drawn = [{"place": place, **encoder.panel(panel)} for place, panel in panels.items()]
    return {"panels": drawn, "scales": encoder.scales}, b"".join(encoder.sections)


def _strings(labels: Sequence[str] | None) -> list[str] | None:
    return None if labels is None else [str(label) for label in labels]


def encode_view(  # noqa: PLR0913 (the options of a view)
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
    player_label: str = "Look back at earlier epochs",
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

    Equal arguments give equal bytes, which Streamlit does not send again on a rerun.

    Parameters
    ----------
    panels : sequence of Panel
        Panels, drawn side by side with common colour scales for factors and for interactions over all frames.
    driver_key : str, optional
        The key of the `st.select_slider` or `st.slider` for the frame, followed while it is dragged. Without
        it each panel shows its last frame.
    show : {"both", "gram"}
        Whether a factor is drawn beside its Gram matrix.
    feature_names : sequence of str, optional
        Names of the factor rows, for the tooltip.
    gram_scale : float, optional
        The end of the colour scale of interactions; by default the largest magnitude over all panels and
        frames.
    signed : bool
        Whether values have signs; otherwise, as for norms, the ramp has one arm in another colour.
    columns : int, optional
        Maximum number of panels per row.
    min_width : int
        Minimum width of a panel in CSS pixels; panels wrap to further rows.
    max_height : float
        Maximum height of a picture in CSS pixels; below 1, as a share of the window height.
    player : bool or "rests"
        Whether the view has its own slider and Play button instead of a driver. The player plays once when
        first shown, or rests at the last frame.
    player_label : str
        The label of the player's slider.
    start : int, optional
        The frame at which the player rests, instead of the last.
    clickable : bool or "explained"
        Whether cells can be clicked. A click on a cell of QQᵀ, drawn without its factor, explains its weight;
        with True it also reruns the script, in which `matrix_view` returns the cell.
    ask : str
        Text in place of an explanation until a cell is clicked.
    mark : Mark, optional
        A cell that is outlined while the pointer is elsewhere, and explained as if clicked.
    zoom : bool
        Whether dragging a box, a double click, or the keys + and − zoom in all pictures of the same shape.
    named : bool
        Whether rows and columns have names if cells are large enough.
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
        If driven panels lack common distinct keys, or if a factor is not finite or has more than
        `MAX_GRAM_FEATURES` rows.
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
