"""Run programs that fmviz writes, in this process."""

from __future__ import annotations

import contextlib
import io


def printed(code: str) -> list[str]:
    """Return the lines that a program prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "program", "exec"), {})
    return output.getvalue().splitlines()
