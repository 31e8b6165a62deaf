"""How Sphinx builds these pages: `make docs` at the top."""

from __future__ import annotations

import re
from typing import Any

import fmviz

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
    """Escape the bars of absolute values, which reStructuredText takes for substitutions."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[at] = re.sub(r"(?<!\\)\|", r"\\|", line)


def setup(app: Any) -> None:
    """Escape docstrings before numpydoc reads them."""
    app.connect("autodoc-process-docstring", escape_bars, priority=100)
