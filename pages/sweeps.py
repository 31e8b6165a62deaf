"""Many fits, declared at once."""

from fmviz.ui.views.sweeps import render

render()
