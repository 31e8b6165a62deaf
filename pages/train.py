"""The training page."""

from fmviz.ui.views.train import render

render()
