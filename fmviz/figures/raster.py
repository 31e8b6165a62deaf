"""A matrix as a PNG, a pixel a cell, in the colours of `fmviz.figures.palette`."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from fmviz.figures.palette import matrix_colors

__all__ = ["matrix_png"]

_LEVELS = 127
_SKIP = -128


def matrix_png(values: np.ndarray, *, dark: bool = False, grey_diagonal: bool = False) -> bytes:
    """Return a picture of a matrix as the bytes of a PNG file.

    Parameters
    ----------
    values : (n, m) ndarray
        Colours go with the square root of the magnitude. An exact zero has a colour of its own, and the
        smallest non-zero is visibly tinted.
    dark : bool
        Whether it is for the dark theme.
    grey_diagonal : bool
        Whether the diagonal is drawn in grey, as no interaction.

    Returns
    -------
    bytes
        m × n pixels; enlarge it without smoothing.
    """
    size = np.abs(values)
    top = float(size.max(initial=0.0)) or 1.0
    codes = np.sign(values) * np.where(size > 0, np.maximum(1, np.round(_LEVELS * np.sqrt(size / top))), 0)
    if grey_diagonal:
        np.fill_diagonal(codes, _SKIP)
    pixels = (codes - _SKIP).astype(np.uint8)
    rows = np.hstack([np.zeros((len(pixels), 1), np.uint8), pixels])  # each row begins with its filter: none
    head = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", _colors(dark)), (b"IDAT", zlib.compress(rows.tobytes(), 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in (*parts, (b"IEND", b"")))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _colors(dark: bool) -> bytes:
    """Return the colours of the codes from −128 to 127, three bytes each."""
    chosen = matrix_colors(dark)
    place = np.arange(_LEVELS) / (_LEVELS - 1)

    def arm(stops: tuple[str, ...]) -> np.ndarray:
        known = np.linspace(0, 1, len(stops))
        return np.column_stack(
            [np.interp(place, known, channel) for channel in np.array([*map(_rgb, stops)]).T]
        )

    middle = np.array([_rgb(chosen.zero)])
    skip = np.array([_rgb(chosen.diagonal)])
    table = np.vstack([skip, arm(chosen.negative)[::-1], middle, arm(chosen.positive)])
    return table.round().astype(np.uint8).tobytes()


def _rgb(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color.lstrip("#")))
