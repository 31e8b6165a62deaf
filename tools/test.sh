#!/bin/sh
# The checks behind `make test` (fast) and `make test-all` (all), in a prepared .venv:
#     sh tools/test.sh fast|all [arguments of pytest]
# The first failing step ends them with its exit code; nothing may be printed after the last pytest, whose summary is
# the last line.
set -eu
cd "$(dirname "$0")/.."
. tools/common.sh
bin=.venv/bin

tier=${1:-}
case $tier in
    fast | all) shift ;;
    *) die "the first argument says what to run: fast or all" ;;
esac

# Playwright brings a program of its own, which a bare Debian or Ubuntu lacks one library for.
driver_starts() { "$bin/python" -m playwright --version >/dev/null 2>&1; }
if ! driver_starts; then
    apt_install libatomic1 || say "apt-get could not install the package libatomic1"
    driver_starts || die "Playwright, which the browser tests need, does not start; $bin/python -m playwright --version \
shows why. On Debian and Ubuntu the usual cause is a missing library: apt-get install libatomic1, as root."
fi

FMVIZ_CHROMIUM=$(sh tools/find-chromium.sh --install)
export FMVIZ_CHROMIUM
say "the browser tests use $FMVIZ_CHROMIUM"

# Kernels are compiled on one core while the other one reads the sources.
sh tools/warmup.sh &
warmup=$!
sh tools/lint.sh || {
    code=$?
    wait "$warmup" || true
    exit "$code"
}
wait "$warmup"

# A second BLAS thread of one worker would spin on the core of the other.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

# As many tests at a time as there are cores; those that drive a browser take turns (tests/conftest.py).
parallel="-n auto --maxprocesses 4 --dist loadgroup"

if [ "$tier" = fast ]; then
    say "the tests that are not slow"
    exec "$bin/python" -m pytest $parallel -m "not slow" "$@"
fi

say "contracts as plain Python (NUMBA_DISABLE_JIT=1)"
NUMBA_DISABLE_JIT=1 "$bin/python" -m pytest $parallel tests/contracts -m "not needs_jit and not browser" -q
say "contracts with every index checked (NUMBA_BOUNDSCHECK=1)"
NUMBA_BOUNDSCHECK=1 FMVIZ_CACHE_DIR="$PWD/.cache/boundscheck" \
    "$bin/python" -m pytest $parallel tests/contracts -m "not browser" -q
say "the whole suite"
exec "$bin/python" -m pytest $parallel "$@"
