#!/bin/sh
# Build the user guide and the API reference into docs/_build/html; a warning is an error.
set -eu
cd "$(dirname "$0")/.."
. tools/common.sh

.venv/bin/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
# The site offers the package; an older wheel would be a second one.
rm -rf build docs/_build/html/*.whl
.venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir docs/_build/html .
rm -rf build fmviz.egg-info
say "docs/_build/html/index.html"
