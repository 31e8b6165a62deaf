"""The paper desk."""

from fmviz.ui.views.paper import render

render()
