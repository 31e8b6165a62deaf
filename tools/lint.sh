#!/bin/sh
# ruff's rules, ruff's format, mypy, names and sizes: the first that finds something ends with its exit code.
set -eu
cd "$(dirname "$0")/.."
. tools/common.sh

say "ruff check"
.venv/bin/python -m ruff check .
say "ruff format --check"
.venv/bin/python -m ruff format --check .
say "mypy"
.venv/bin/python -m mypy
say "names"
.venv/bin/python tools/names.py
say "size"
.venv/bin/python tools/size.py
