"""Encode a matrix view as bytes: a JSON header, then the raw numbers.

Bytes rather than JSON, because base64 is a third larger and a long string has to be parsed on every rerun.
The layout is ``b"FMV1"``, the header's length as little-endian uint32, the header padded with spaces to a
multiple of four, then the sections that the header points to, each starting at a multiple of four.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np

from fmviz.figures import palette
from fmviz.ui.components.matrix_view.model import (
    MAX_GRAM_FEATURES,
    NOT_AN_INTERACTION,
    ClassesFrame,
    FactorFrame,
    Mark,
    Panel,
    Show,
    check_keys,
    encode_factor,
    largest_interaction,
)

MAGIC = b"FMV1"


class ViewOptions(TypedDict, total=False):
    """The keyword arguments of `encode_view`."""

    driver_key: str | None
    show: Show
    feature_names: Sequence[str] | None
    gram_scale: float | None
    signed: bool
    columns: int | None
    min_width: int
    max_height: int
    player: bool | Literal["rests"]
    clickable: bool
    mark: Mark | None
    zoom: bool
    named: bool
    empty: str


class _Sections:
    """Collects arrays; equal arrays are stored once."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self.size = 0
        self._seen: dict[bytes, int] = {}

    def add(self, array: np.ndarray[Any, Any]) -> int:
        raw = array.tobytes()
        name = hashlib.blake2b(raw, digest_size=16).digest()
        if name not in self._seen:
            self._seen[name] = self.size
            pad = -len(raw) % 4
            self.blobs.append(raw + b"\0" * pad)
            self.size += len(raw) + pad
        return self._seen[name]


class _Encoder:
    """Collects the numbers of panels, and what they have in common."""

    def __init__(self, show: Show, gram_scale: float | None) -> None:
        self.show = show
        self.gram_scale = gram_scale
        self.sections = _Sections()
        self.factor_top = self.gram_top = 0.0
        self.grey = False

    def panel(self, panel: Panel) -> dict[str, Any]:
        """Return the kind, the shape and the frames of a panel."""
        frames = []
        for number, frame in enumerate(panel.frames):
            where = f"panel {panel.title!r}, frame {number}"
            entry: dict[str, Any] = {"key": str(frame.key), "caption": str(frame.caption)}
            if isinstance(frame, FactorFrame):
                entry["notice"] = frame.notice
                array: np.ndarray[Any, Any] = encode_factor(frame.values, f"{where}: values")
                if self.show != "factor" and array.shape[0] > MAX_GRAM_FEATURES:
                    raise ValueError(
                        f"{where}: {array.shape[0]} features are more than the {MAX_GRAM_FEATURES} whose "
                        "interactions the browser draws; pool them into tiles and send a CodesFrame, or "
                        "use show='factor'."
                    )
                self.grey = self.grey or self.show != "factor"
                self.factor_top = max(self.factor_top, float(np.abs(array).max(initial=0.0)))
                if self.show != "factor" and self.gram_scale is None:
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
                    self.gram_top = max(self.gram_top, entry["scale"] * float(used) / 127)
            entry["at"] = self.sections.add(array)
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


def encode_frames(
    panels: Mapping[int, Panel], *, show: Show, gram_scale: float | None
) -> tuple[dict[str, Any], bytes]:
    """Encode the frames of some panels, by their places, to replace those of a view that is drawn.

    Returns
    -------
    (dict, bytes)
        The entries "panels" and "scales" of a header, and the numbers that they point to.
    """
    encoder = _Encoder(show, gram_scale)
    drawn = [{"place": place, **encoder.panel(panel)} for place, panel in panels.items()]
    return {"panels": drawn, "scales": encoder.scales}, b"".join(encoder.sections.blobs)


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
    max_height: int = 420,
    player: bool | Literal["rests"] = False,
    clickable: bool = False,
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
    show : {"both", "gram", "factor"}
        Which pictures of a factor are drawn.
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
    max_height : int
        The largest height of a picture in CSS pixels.
    player : bool or "rests"
        Whether the view has a slider and a Play button of its own for the frames, in place of a driver. It
        plays by itself once when it is first shown, or waits at the last frame.
    clickable : bool
        Whether a click on a cell makes the script run again, with `matrix_view` returning the cell.
    mark : Mark, optional
        A cell that is outlined while no other one is pointed at; in all pictures that have it.
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
    encoder = _Encoder(show, gram_scale)
    drawn = [
        {
            "title": str(panel.title),
            "color": panel.color,
            "classes": [dataclasses.asdict(kind) for kind in panel.classes],
            # Rows of factors are features.
            "rowLabels": None if isinstance(panel.frames[0], FactorFrame) else _strings(panel.row_labels),
            "colLabels": None if isinstance(panel.frames[0], FactorFrame) else _strings(panel.col_labels),
            "factorLabel": panel.factor_label,
            "gramLabel": panel.gram_label,
            **encoder.panel(panel),
        }
        for panel in panels
    ]
    scales = encoder.scales
    header: dict[str, Any] = {
        "driver": driver_key,
        "show": show,
        "names": _strings(feature_names),
        "scales": scales,
        "signed": signed,
        "skipped": "diagonal, not an interaction" if encoder.grey else "",
        "player": player,
        "columns": columns,
        "minWidth": int(min_width),
        "clickable": bool(clickable),
        "mark": None if mark is None else dataclasses.asdict(mark),
        "zoom": bool(zoom),
        "named": bool(named),
        "maxHeight": int(max_height),
        "empty": empty,
        "palette": {
            "light": dataclasses.asdict(palette.LIGHT),
            "dark": dataclasses.asdict(palette.DARK),
        },
        "panels": drawn,
        **(more or {}),
    }
    body = b"".join(encoder.sections.blobs)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False)
    header["digest"] = hashlib.blake2b(text.encode() + body, digest_size=8).hexdigest()
    packed = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    packed += b" " * (-len(packed) % 4)
    return MAGIC + struct.pack("<I", len(packed)) + packed + body
