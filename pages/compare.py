"""Runs side by side."""

from fmviz.ui.compare import render

render()
