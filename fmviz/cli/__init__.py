"""The commands of ``python -m fmviz``, one module each, with `HELP`, `add` and `run`."""

from __future__ import annotations

COMMANDS: tuple[str, ...] = ("serve", "fit", "predict", "sweep", "runs", "paper", "warmup", "doctor")
"""The names of the commands and their modules, which import their dependencies lazily."""
