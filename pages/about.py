"""What fmviz is, and whether it works here."""

from fmviz.ui.views.about import render

render()
