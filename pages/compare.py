"""Runs side by side."""

from fmviz.ui.compare.page import render

render()
