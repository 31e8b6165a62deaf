#!/bin/sh
# Recompile requirements.txt and requirements/*.txt: each package pinned, with the hashes of its files, for Python 3.11
# and newer on every system.
# Pins that still satisfy pyproject.toml stay as they are; pass --upgrade to take the newest of everything.
set -eu
cd "$(dirname "$0")/.."
. tools/common.sh

if command -v uv >/dev/null 2>&1; then
    uv=uv
else
    sh tools/setup-venv.sh
    .venv/bin/python -m pip install --quiet --disable-pip-version-check uv
    uv=.venv/bin/uv
fi

compile() {
    source_file=$1 pinned_file=$2
    shift 2
    "$uv" pip compile "$source_file" --output-file "$pinned_file" --universal --python-version 3.11 \
        --no-emit-index-url --no-emit-find-links --generate-hashes --annotation-style line --custom-compile-command "make lock" \
        --quiet "$@"
}
compile pyproject.toml requirements.txt "$@"
compile requirements/dev.in requirements/dev.txt "$@"
compile requirements/docs.in requirements/docs.txt "$@"
