#!/bin/sh
# Serve the dashboard. Address and port come from .streamlit/config.toml; arguments go to `streamlit run`.
set -eu
cd "$(dirname "$0")/.."
exec .venv/bin/python -m streamlit run app.py "$@"
