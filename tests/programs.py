"""Run programs in this process, and watch others."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def printed(code: str) -> list[str]:
    """Return the lines that a program prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "program", "exec"), {})
    return output.getvalue().splitlines()


def alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended may wait for its parent to ask after it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def run_afresh(*arguments: Any, folder: Path | None = None, **environment: Any) -> str:
    """Run Python on this checkout in a process of its own, in a folder; return what it prints."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | {name: str(text) for name, text in environment.items()},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait until something holds; fail if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
