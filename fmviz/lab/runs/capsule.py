"""The reproduction capsule: what a result was computed from, and how to compute it again."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

__all__ = ["INSTALL", "Capsule"]

INSTALL = """\
# Needs fmviz, once: pip install .  in the folder of its source. Or, without that, save this program in that
# folder and run it by .venv/bin/python, which `make run` has set up there.
"""
"""How a program begins that somebody takes away."""


@dataclass(frozen=True)
class Capsule:
    """What is needed to get a result again.

    Parameters
    ----------
    result : str
        What the result is, in words.
    script : str
        A Python program that prints the same numbers.
    link : str
        The address of the page that shows it, with all its settings; empty outside of a page.
    seed : int or None
        What is drawn at random starts from it; None where nothing is drawn, or the script names the seeds.
    data : mapping of str to str
        Names of data and their hashes, see `fmviz.lab.runs.provenance.data_hash`.
    versions : mapping of str to str
        Of the programs that made it, see `fmviz.lab.runs.provenance.versions`.
    """

    result: str
    script: str
    link: str = ""
    seed: int | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the capsule as JSON."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    def to_text(self) -> str:
        """Return the capsule as text for a notebook or a letter."""
        seed = [] if self.seed is None else [("seed", str(self.seed))]
        told = [
            ("result", self.result),
            *([("link", self.link)] if self.link else []),
            *seed,
            *(("data", f"{name} {digest}") for name, digest in self.data.items()),
            ("versions", ", ".join(f"{name} {value}" for name, value in self.versions.items())),
        ]
        head = "\n".join(f"{name + ':':<10}{value}" for name, value in told)
        return f"{head}\nscript:\n\n{textwrap.indent(self.script.strip(), '    ')}\n"
