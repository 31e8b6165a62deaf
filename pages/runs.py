"""The history of runs."""

from fmviz.ui.runs import render

render()
