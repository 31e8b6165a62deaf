"""The page Papers."""

from fmviz.ui.paper import render

render()
