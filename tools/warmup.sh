#!/bin/sh
# Compile the kernels into their cache, unless that was done for exactly these sources, settings and processor.
set -eu
cd "$(dirname "$0")/.."
. tools/common.sh

fingerprint() {
    find fmviz/engine -name '*.py' -exec cksum {} + | LC_ALL=C sort
    cksum fmviz/cli/warmup.py requirements.txt
    .venv/bin/python --version
    env | grep -E '^(NUMBA_|FMVIZ_CACHE_DIR=|XDG_CACHE_HOME=|HOME=)' | LC_ALL=C sort
    grep -m 1 -E '^(flags|Features)' /proc/cpuinfo 2>/dev/null || uname -m
    pwd
}

# The stamp's first line is the fingerprint, its second the cache directory, which somebody may have emptied.
stamp=.venv/warmup.stamp
wanted=$(fingerprint | cksum)
if [ "${1:-}" != --force ] && [ -f "$stamp" ] && [ "$(sed -n 1p "$stamp")" = "$wanted" ] &&
    [ -d "$(sed -n 2p "$stamp")" ]; then
    exit 0
fi

rm -f "$stamp"
say "compiling the kernels (only after a change; up to a minute or two)"
.venv/bin/python -m fmviz warmup ||
    die "the kernels could not be compiled: the message above says why. FMVIZ_CACHE_DIR=/some/writable/folder \
moves their cache."
directory=$(.venv/bin/python -c 'from fmviz.engine._jit import cache_directory; print(cache_directory())' 2>/dev/null)
printf '%s\n%s\n' "$wanted" "$directory" >"$stamp"
