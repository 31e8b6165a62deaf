"""The Streamlit side: the only importer of streamlit inside fmviz."""
