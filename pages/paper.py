"""The page Papers."""

from fmviz.ui.paper.page import render

render()
