#!/bin/sh
# A Dask scheduler and two workers on this machine, until Ctrl-C.
set -eu
cd "$(dirname "$0")/.."
. tools/common.sh

trap 'kill 0' INT TERM EXIT
.venv/bin/python -m dask scheduler --host 127.0.0.1 --port 8786 --no-dashboard &
.venv/bin/python -m dask worker tcp://127.0.0.1:8786 --nworkers 2 --nthreads 1 --no-dashboard
