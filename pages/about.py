"""What fmviz is, and whether it works here."""

from fmviz.ui.about import render

render()
