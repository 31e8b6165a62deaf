"""Runs side by side."""

from fmviz.ui.views.compare import render

render()
