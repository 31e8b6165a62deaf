"""The lessons."""

from fmviz.ui.lessons.page import render

render()
