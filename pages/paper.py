"""The paper desk."""

from fmviz.ui.paper.page import render

render()
