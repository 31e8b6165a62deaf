"""How Sphinx builds these pages: `make docs` at the top."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fmviz
from fmviz.lab.experiment import suggested
from fmviz.lab.search.arena import STRENGTH
from fmviz.lab.search.arena import arena as from_starts
from fmviz.ui import arena

project = "fmviz"
copyright = "the fmviz developers"
version = release = fmviz.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
]
exclude_patterns = ["_build"]
# Links to files that are no pages of these.
suppress_warnings = ["myst.xref_missing"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"fmviz {version}"

# What an estimator has from scikit-learn is described there.
numpydoc_show_inherited_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape the bars of absolute values and the line of p_:,s, which mean something in reStructuredText."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[at] = re.sub(r"(?<!\\)(\||_(?=:,))", r"\\\1", line)


def save_pages(app: Any) -> None:
    """Save the pages that the documents show: the arena of the start page, and a training run."""
    folder = Path(app.outdir) / "saved"
    folder.mkdir(parents=True, exist_ok=True)
    starts = from_starts()
    text = arena.page_along(starts.plan, SimpleNamespace(items=[*starts.fits()]), STRENGTH, starts)
    (folder / "arena.html").write_text(text, encoding="utf-8")
    fmviz.save(suggested("planted_interactions"), folder / "run.html")


def setup(app: Any) -> None:
    """Escape docstrings before numpydoc reads them, and save the pages that are shown."""
    app.connect("autodoc-process-docstring", escape_bars, priority=100)
    app.connect("builder-inited", save_pages)
