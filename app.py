"""The entry page of the dashboard: `streamlit run app.py`."""

from streamlit import App

from fmviz.ui.serving import around, in_sessions
from fmviz.ui.start import render

app = App(__file__, **around())
in_sessions(render)
