"""The entry page of the dashboard: `streamlit run app.py`."""

from fmviz.ui.start.page import render

render()
