"""The history of runs."""

from fmviz.ui.runs.page import render

render()
