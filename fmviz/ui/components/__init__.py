"""Custom Streamlit components."""
