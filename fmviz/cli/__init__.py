"""The commands of ``python -m fmviz``, one module each with `HELP`, `add`, `run`; options that are gone."""

from __future__ import annotations

COMMANDS: tuple[str, ...] = ("serve", "fit", "predict", "sweep", "runs", "paper", "warmup", "doctor")
"""The names of the commands and of their modules, which import their dependencies when they run."""
GONE = {
    ("runs", "undelete"): "A deletion is final: `fmviz runs export` first keeps a copy.",
    ("runs", "--deleted"): "A deletion is final: `fmviz runs export` first keeps a copy.",
    ("sweep", "--yes"): "It starts at once; --dry-run says first what it costs, and Ctrl-C loses nothing.",
    ("warmup", "--all"): "Kernels of other models and solvers are compiled when they are first needed.",
    ("doctor", "--json"): "Read the lines of `fmviz doctor`; its exit code is 1 where something is wrong.",
}
"""Removed actions and options, with a sentence on the replacement."""
