"""The entry page of the dashboard: `streamlit run app.py`."""

from streamlit import App

from fmviz.ui.channel import routes
from fmviz.ui.serving import guarded, in_sessions
from fmviz.ui.start import render

app = App(__file__, middleware=guarded(), routes=routes())
in_sessions(render)
