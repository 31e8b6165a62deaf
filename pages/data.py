"""The page of one's own data."""

from fmviz.ui.views.data import render

render()
