"""The lessons."""

from fmviz.ui.views.lessons import render

render()
