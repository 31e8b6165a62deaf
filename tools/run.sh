#!/bin/sh
# Serve the dashboard. Address and port come from .streamlit/config.toml; arguments go to `fmviz serve`.
set -eu
cd "$(dirname "$0")/.."
. tools/common.sh

export FMVIZ_PORT_FORM='make run PORT='
exec .venv/bin/python -m fmviz serve "$@"
