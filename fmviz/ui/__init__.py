"""The Streamlit pages; nothing else in fmviz imports streamlit."""
