"""The training page."""

from fmviz.ui.train.page import render

render()
