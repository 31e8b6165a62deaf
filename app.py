"""The entry page of the dashboard: `streamlit run app.py`."""

from fmviz.ui.views.start import render

render()
