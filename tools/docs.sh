#!/bin/sh
# Build the user guide and the API reference into docs/_build/html; a warning is an error.
set -eu
cd "$(dirname "$0")/.."
. tools/common.sh

.venv/bin/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
say "docs/_build/html/index.html"
