"""The page of one's own data."""

from fmviz.ui.data.page import render

render()
