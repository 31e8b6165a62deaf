"""Read files and pipes up to a size limit, and refuse devices."""

from __future__ import annotations

import math
import os
import stat
import sys
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO

from fmviz.engine.memory import available_bytes, in_words

STANDARD_INPUT = "-"
_CHUNK = 1 << 20
# After so many seconds without a byte, a pipe says that it is waited for.
_PATIENCE = 1.0


def read_input(path: str | Path, most: float = math.inf, advice: str = "") -> bytes:
    """Return the bytes of a regular file or a pipe.

    Parameters
    ----------
    path : path-like
        The file, or ``-`` for the standard input. A pipe into which nothing is written is waited for, and
        stderr says so.
    most : float
        The maximum size; it is also limited to half of the free memory.
    advice : str
        The advice at the end of the message on larger files.

    Raises
    ------
    ValueError
        If it is a device, is too large, or cannot be read.
    """
    standard = str(path) in (STANDARD_INPUT, "/dev/stdin")
    name = "Standard input" if standard else repr(str(path))
    try:
        target = sys.stdin.fileno() if standard else Path(path).expanduser()
        # Checked before opening, which has effects on some devices.
        status = os.stat(target)
        if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
            raise ValueError(
                f"{name} is a device or a terminal, and these are not read. Give a file or a pipe, or - for "
                "what is piped in."
            )
        limit = min(most, room := available_bytes() / 2)
        data = _read(target, limit, "" if stat.S_ISREG(status.st_mode) else name)
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror or error}.") from None
    if len(data) > limit:
        size = f"{in_words(status.st_size)}, " if status.st_size > limit else ""
        memory = "half of the free memory, " if limit == room else ""
        raise ValueError(f"{name} has {size}more than {memory}{in_words(limit)}. {advice}".rstrip())
    return data


def _read(target: int | Path, most: float, pipe: str) -> bytes:
    """Return what is there, and of what has more than `most` bytes a part with more; `pipe` names a pipe."""
    parts: list[bytes] = []
    size = 0
    with open(target, "rb", buffering=0, closefd=not isinstance(target, int), opener=_open) as stream:
        if pipe and os.name != "nt":  # Windows waits for its own kinds of pipes alone.
            _wait(stream, pipe)
        while size <= most and (part := stream.read(_CHUNK)):
            parts.append(part)
            size += len(part)
    return b"".join(parts)


def _open(path: str, flags: int) -> int:
    """Open a file; a pipe without waiting for a writer, about which nothing could be said then."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _wait(stream: IO[bytes], name: str) -> None:
    """Wait until a pipe has something, or its writer has closed it."""
    if not wait([stream.fileno()], _PATIENCE):
        with suppress(OSError):
            said = f"{name} is a pipe, and nothing has been written to it yet: waiting. Ctrl-C ends this."
            print(said, file=sys.stderr, flush=True)
        wait([stream.fileno()])
    os.set_blocking(stream.fileno(), True)
