"""The history of runs."""

from fmviz.ui.views.runs import render

render()
