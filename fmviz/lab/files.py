"""Paths of runs and uploads, and reading of files and pipes up to a size limit."""

from __future__ import annotations

import math
import os
import stat
import sys
from pathlib import Path

import platformdirs

from fmviz.engine.memory import available_bytes, in_words

STANDARD_INPUT = "-"
_CHUNK = 1 << 20


def read_input(path: str | Path, most: float = math.inf, advice: str = "") -> bytes:
    """Return the bytes of a regular file or a pipe.

    Parameters
    ----------
    path : path-like
        The file, or ``-`` for standard input.
    most : float
        The maximum size; it is also limited to half of the free memory.
    advice : str
        Advice at the end of the message on larger files.

    Raises
    ------
    ValueError
        If the path is a device, the file is too large, or it cannot be read.
    """
    standard = str(path) in (STANDARD_INPUT, "/dev/stdin")
    name = "Standard input" if standard else repr(str(path))
    try:
        target = sys.stdin.fileno() if standard else expanded(path)
        # Checked before opening, which has effects on some devices.
        status = os.stat(target)
        if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
            raise ValueError(
                f"{name} is a device or a terminal. Give a file or a pipe, or - for piped standard input."
            )
        limit = min(most, room := available_bytes() / 2)
        data = bytearray()
        with open(target, "rb", buffering=0, closefd=not standard) as stream:
            while len(data) <= limit and (part := stream.read(_CHUNK)):
                data += part
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror or error}.") from None
    if len(data) > limit:
        size = f"{in_words(status.st_size)}, " if status.st_size > limit else ""
        memory = "half of the free memory, " if limit == room else ""
        raise ValueError(f"{name} has {size}more than {memory}{in_words(limit)}. {advice}".rstrip())
    return bytes(data)


def expanded(path: str | Path) -> Path:
    """Return a path with its ``~`` replaced; raises ValueError if that home directory is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(
            f"{str(path)!r} cannot be used: the home directory of its ~ is unknown. Give the full path."
        ) from None


def default_path() -> Path:
    """Return the path of the run store: ``FMVIZ_STORE``, or a file in the user's data directory."""
    if named := os.environ.get("FMVIZ_STORE"):
        return expanded(named)
    if "HOME" not in os.environ:
        from fmviz.engine._jit import home

        home()
    return Path(platformdirs.user_data_dir("fmviz", appauthor=False)) / "runs.sqlite"


def data_folder() -> Path:
    """Return the folder of uploads, ``runs-data`` next to ``runs.sqlite``; it may not exist."""
    store = default_path()
    return store.with_name(f"{store.stem}-data")
