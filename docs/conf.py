"""How Sphinx builds these pages: `make docs` at the top."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import fmviz
from fmviz.__main__ import main
from fmviz.lab.experiment import suggested
from fmviz.lab.search.arena import STRENGTH
from fmviz.lab.search.arena import arena as from_starts
from fmviz.lab.search.equal_sparsity import REGULARIZERS, SEEDS, TARGET, comparison_base, shipped
from fmviz.ui import arena
from fmviz.ui.compare import equal_sparsity_page

project = "fmviz"
copyright = "the fmviz developers. Licence: BSD 3-Clause"
version = release = fmviz.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence"]
# Links to files of the source code, which are text here.
suppress_warnings = ["myst.xref_missing"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"fmviz {version}"
html_theme_options = {"top_of_page_buttons": []}
html_favicon = "../fmviz/ui/icon.png"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]

# What an estimator has from scikit-learn is described there.
numpydoc_show_inherited_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"

TABLE = Path(__file__).parent.parent / "sample_data" / "bike.csv"


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Escape the bars of absolute values and the line of p_:,s, which mean something in reStructuredText."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[at] = re.sub(r"(?<!\\)(\||_(?=:,))", r"\\\1", line)


def save_pages(app: Any) -> None:
    """Save the pages that the documents show: the start page's models, a run, a table, a comparison."""
    folder = Path(app.outdir) / "saved"
    folder.mkdir(parents=True, exist_ok=True)
    starts = from_starts()
    along = arena.page_along(starts.plan, SimpleNamespace(items=[*starts.fits()]), STRENGTH, starts)
    (folder / "arena.html").write_text(along, encoding="utf-8")
    base = comparison_base(suggested("planted_interactions").dataset.name, 0)
    fits = shipped(base, REGULARIZERS, TARGET, SEEDS)
    comparison = equal_sparsity_page(base, REGULARIZERS, TARGET, fits)
    (folder / "comparison.html").write_text(comparison, encoding="utf-8")
    fmviz.save(replace(suggested("planted_interactions"), validation=0.1), folder / "run.html")
    with TemporaryDirectory() as output:
        options = ("--target", "cnt", "--group", "dteday", "--words", "hr", "--output", output)
        with redirect_stdout(StringIO()):
            main(["fit", str(TABLE), *options])
        (Path(output) / "report.html").rename(folder / "table.html")


def setup(app: Any) -> None:
    """Escape docstrings before numpydoc reads them, and save the pages that are shown."""
    app.connect("autodoc-process-docstring", escape_bars, priority=100)
    app.connect("builder-inited", save_pages)
