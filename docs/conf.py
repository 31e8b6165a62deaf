"""How Sphinx builds these pages: `make docs` at the top."""

from __future__ import annotations

import fmviz

project = "fmviz"
copyright = "the fmviz developers"
version = release = fmviz.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"fmviz {version}"

# What an estimator has from scikit-learn is described there.
numpydoc_show_inherited_class_members = False
numpydoc_class_members_toctree = False
autosummary_generate = True
autodoc_typehints = "none"
