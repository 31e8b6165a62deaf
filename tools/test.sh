#!/bin/sh
# The checks behind `make test`, in a prepared .venv. The first failing step ends them with its exit code; nothing may
# be printed after the last pytest, whose summary is the last line.
set -eu
cd "$(dirname "$0")/.."
. tools/common.sh
bin=.venv/bin

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

sh tools/lint.sh
sh tools/warmup.sh

# A second BLAS thread of one worker would spin on the core of the other.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

# As many tests at a time as there are cores; those that drive a browser take turns (tests/conftest.py).
parallel="-n auto --maxprocesses 4 --dist loadgroup"

# The contracts once more in another mode of numba; whoever has none yet is told so.
contracts() {
    say "$1"
    shift
    code=0
    "$@" || code=$?
    case $code in
        0) ;;
        5) say "no contract test was collected" ;;
        *) exit "$code" ;;
    esac
}

if [ -n "$(find tests/contracts -name 'test_*.py' 2>/dev/null)" ]; then
    contracts "contracts as plain Python (NUMBA_DISABLE_JIT=1)" \
        env NUMBA_DISABLE_JIT=1 "$bin/python" -m pytest $parallel tests/contracts -m "not needs_jit and not browser" -q
    contracts "contracts with every index checked (NUMBA_BOUNDSCHECK=1)" \
        env NUMBA_BOUNDSCHECK=1 FMVIZ_CACHE_DIR="$PWD/.cache/boundscheck" \
        "$bin/python" -m pytest $parallel tests/contracts -m "not browser" -q
else
    say "tests/contracts holds no tests yet"
fi

say "the whole suite"
exec "$bin/python" -m pytest $parallel "$@"
