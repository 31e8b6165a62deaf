"""Many fits, declared at once."""

from fmviz.ui.sweeps.page import render

render()
