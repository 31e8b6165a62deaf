"""Helpers of the commands: standard streams, text tables, progress lines and common arguments."""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import threading
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from fmviz.typography import cell

if TYPE_CHECKING:
    from fmviz.lab.store import RunStore
    from fmviz.tables.source import Reading, Source

_WIDEST = 48


def open_streams() -> None:
    """Open closed standard streams, and escape characters that stdout cannot encode."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # In this order each stream gets its own descriptor; otherwise the next file opened would get it.
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - open until the end
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def settle(stream: TextIO) -> None:
    """Discard unwritable output, which Python would report at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def to_stderr(text: object, end: str = "\n") -> None:
    """Print to stderr, ignoring write errors."""
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except OSError:
        settle(sys.stderr)


def print_json(value: Any) -> None:
    """Print a value as JSON, escaped to ASCII if stdout is not Unicode."""
    from fmviz.lab.values import plain

    takes_all = (sys.stdout.encoding or "").lower().startswith("utf")
    print(json.dumps(plain(value), indent=1, ensure_ascii=not takes_all))


Arguments: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Keywords of `argparse` by argument, by the title of their group; those without a title have none."""

STORE: Mapping[str, Mapping[str, Any]] = {
    "--store": {
        "type": Path,
        "metavar": "FILE",
        # Without a default, which would override the option before the command.
        "default": argparse.SUPPRESS,
        "help": "the run store (default: FMVIZ_STORE, or the one in your data folder)",
    }
}
"""The option of the run store, which may also precede the command."""
READING: Mapping[str, Mapping[str, Any]] = {
    "--read": {
        "action": "append",
        "default": [],
        "metavar": "NAME=VALUE",
        "help": "override a detected format option, such as delimiter=semicolon, encoding=cp1252, header=no "
        "or decimal=comma; repeatable",
    },
    "--no-limits": {
        "action": "store_true",
        "help": "read all rows of files of any size",
    },
}
"""The options of reading a file, see `read_source`."""


def declare(arguments: Arguments, parser: argparse.ArgumentParser) -> None:
    """Add arguments to a parser."""
    for title, group in arguments.items():
        place = parser.add_argument_group(title) if title else parser
        for name, about in group.items():
            place.add_argument(name, **about)


def store_path(arguments: argparse.Namespace) -> Path:
    """Return the path of the run store."""
    from fmviz.lab.files import default_path, expanded

    given = getattr(arguments, "store", None)
    return default_path() if given is None else expanded(given)


def open_store(arguments: argparse.Namespace) -> RunStore:
    """Open the run store; raises StoreError."""
    from fmviz.lab.store import RunStore

    return RunStore(store_path(arguments))


def reading_of(given: Sequence[str]) -> Reading:
    """Return the options ``NAME=VALUE`` of reading a file; raises ValueError if one is not known."""
    from fmviz.tables.source import CHOICES, Reading

    asked: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or name not in (*CHOICES, "skip", "missing"):
            raise ValueError(
                f"--read {text!r} is not known; use {', '.join(CHOICES)}, missing or skip with a value."
            )
        asked[name] = int(value) if name == "skip" and value.isdecimal() else value
    return Reading(**asked)


def read_source(
    path: str, given: Sequence[str], no_limits: bool, rows: float | None = None
) -> tuple[Source, str]:
    """Read a user's file, at most a number of rows, and return it with its name; 0 rows mean as many as fit.

    Raises ValueError with an explanation; without a number of rows, also if not all rows are read.
    """
    from fmviz.lab.files import STANDARD_INPUT, expanded, read_input
    from fmviz.lab.untrusted import read_confined
    from fmviz.tables.files import read
    from fmviz.tables.limits import COMMAND, LOCAL, SAMPLE_CELLS, SMALLER

    within = replace(LOCAL if no_limits else COMMAND, samples=rows is not None)
    if rows:
        within = replace(within, rows=rows, cells=math.inf, unfolded=LOCAL.unfolded)
    elif within.samples and not no_limits:
        within = replace(within, cells=SAMPLE_CELLS)
    data = read_input(path, within.file, SMALLER + within.otherwise)
    file = expanded(path)
    name = "Standard input" if path == STANDARD_INPUT else file.name if file.is_file() else path
    return (read if no_limits else read_confined)(data, reading_of(given), name, within), name


class Progress:
    """Progress line on stderr, overwritten on a terminal and printed at intervals otherwise.

    As a context manager, it prints at intervals.

    Parameters
    ----------
    seconds : float, optional
        The interval between lines without a terminal. The last line is repeated if there is no other.
    """

    def __init__(self, seconds: float = 10.0) -> None:
        # Overwritten by blanks: not every console of Windows knows escape sequences.
        self._live, self._width = sys.stderr.isatty(), shutil.get_terminal_size().columns - 1
        self._seconds, self._line, self._end = seconds, "", threading.Event()

    def __enter__(self) -> Progress:
        if not self._live:
            threading.Thread(target=self._print, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self.clear()

    def _print(self) -> None:
        begin = time.monotonic()
        while not self._end.wait(self._seconds):
            to_stderr(f"{time.monotonic() - begin:.0f} s: {self._line}")

    def tell(self, line: str) -> None:
        """Replace the previous line."""
        self._line = line
        if self._live:
            to_stderr(f"\r{line[: self._width].ljust(self._width)}", end="")

    def clear(self) -> None:
        """Erase the line."""
        if self._live:
            to_stderr(f"\r{' ' * self._width}\r", end="")


def bar(done: int, total: int, width: int = 24) -> str:
    """Return a text progress bar with the count."""
    full = round(width * done / max(1, total))
    return f"[{'#' * full}{'.' * (width - full)}] {done:,}/{total:,}"


def text_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format rows as aligned columns, with numbers right-aligned."""
    from fmviz.tables.cells import shortened

    names = list(dict.fromkeys(name for row in rows for name in row))
    right = {name: all(isinstance(row.get(name), int | float | None) for row in rows) for name in names}
    lines = [
        {name: name for name in names},
        *({n: shortened(" ".join(cell(row.get(n)).split()), _WIDEST) for n in names} for row in rows),
    ]
    widths = {name: max(_width(line[name]) for line in lines) for name in names}

    def padded(line: Mapping[str, str], name: str) -> str:
        gap = " " * (widths[name] - _width(line[name]))
        return gap + line[name] if right[name] else line[name] + gap

    return "\n".join("  ".join(padded(line, name) for name in names).rstrip() for line in lines)


def _width(text: str) -> int:
    """Return the display width of a text: combining marks have none, wide East Asian characters two."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
