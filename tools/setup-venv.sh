#!/bin/sh
# Create .venv and install the pinned requirements: `setup-venv.sh [dev|docs]`.
# A stamp inside .venv names what was installed, so a second call costs milliseconds.
set -eu
cd "$(dirname "$0")/.."
. tools/common.sh

kind=${1:-run}
case $kind in
    run) set -- requirements.txt ;;
    dev) set -- requirements.txt requirements/dev.txt ;;
    docs) set -- requirements.txt requirements/docs.txt ;;
    *) die "setup-venv.sh takes nothing, 'dev' or 'docs', not '$kind'." ;;
esac

# The releases that every pinned package publishes a wheel for.
supported='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))'
release='import sys; print("%d.%d" % sys.version_info[:2])'

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        "$PYTHON" -c "$supported" 2>/dev/null || die "PYTHON=$PYTHON is not a Python 3.11, 3.12, 3.13 or 3.14: \
name one that is, or leave PYTHON out."
        printf '%s\n' "$PYTHON"
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c "$supported" 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    if found=$(python3 --version 2>/dev/null); then
        die "fmviz needs Python 3.11, 3.12, 3.13 or 3.14, and python3 is $found: install one of them \
(on Debian 12+ and Ubuntu 24.04+: apt-get install python3), or name one: make run PYTHON=/path/to/python3.12"
    fi
    die "python3 is missing: install Python 3.11 or newer (on Debian 12+ and Ubuntu 24.04+: apt-get install python3)."
}

venv_works() { [ -x .venv/bin/python ] && .venv/bin/python -c "$supported" 2>/dev/null; }
pip_works() { .venv/bin/python -m pip --version >/dev/null 2>&1; }

# Four ways to a virtual environment with pip, the least demanding first.
create_venv() {
    python=$(find_python) || exit 1
    version=$("$python" -c "$release")
    say "creating .venv with Python $version"
    rm -rf .venv

    if "$python" -c 'import ensurepip, venv' 2>/dev/null && "$python" -m venv .venv >/dev/null 2>&1 && pip_works; then
        return
    fi
    rm -rf .venv
    problem=''
    if "$python" -m venv --without-pip .venv >/dev/null 2>&1; then
        if "$python" -m pip --version >/dev/null 2>&1 &&
            "$python" -m pip --python .venv/bin/python install --quiet --disable-pip-version-check pip \
                >/dev/null 2>&1 && pip_works; then
            return
        fi
        say "this Python comes without ensurepip: fetching pip"
        if problem=$(.venv/bin/python tools/bootstrap_pip.py 2>&1) && pip_works; then return; fi
    fi
    rm -rf .venv
    if apt_install "python$version-venv" && "$python" -m venv .venv >/dev/null 2>&1 && pip_works; then
        return
    fi
    rm -rf .venv
    [ -z "$problem" ] || printf '%s\n' "$problem" >&2
    die "no virtual environment could be made: Python's venv and ensurepip modules are missing, and neither the \
package index nor apt-get could supply them. Install them (on Debian and Ubuntu, as root: apt-get install \
python$version-venv) and run make again."
}

fingerprint() {
    .venv/bin/python --version
    cat "$@" | cksum
}

venv_works || create_venv

# An interpreter named on the command line must not be ignored because there is a .venv already.
if [ -n "${PYTHON:-}" ]; then
    asked=$(find_python) || exit 1
    [ "$("$asked" -c "$release")" = "$(.venv/bin/python -c "$release")" ] || create_venv
fi

stamp=.venv/$kind.stamp
wanted=$(fingerprint "$@")
[ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || exit 0

pip_works || create_venv
rm -f "$stamp"
if [ "$kind" = run ]; then
    say "installing the pinned requirements (the first time: a minute or two)"
else
    say "installing the pinned requirements and the tools for '$kind' (the first time: a few minutes)"
fi
requirements=''
for file in "$@"; do requirements="$requirements -r $file"; done
# To compile the whole of every package takes as long as to install them; Python compiles what is imported.
# The file names hold no spaces; wheels only, since building numba or scipy from source would fail much later.
# shellcheck disable=SC2086
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-compile --only-binary=:all: \
    $requirements ||
    die "the requirements could not be installed; pip's own message is above. The usual causes are no way to the \
package index (set PIP_INDEX_URL or HTTPS_PROXY if there is a mirror or a proxy), a full disk, or a processor or \
system without wheels of these packages."
printf '%s\n' "$wanted" >"$stamp"
# What is installed for development includes what is needed to run.
[ "$kind" = run ] || fingerprint requirements.txt >.venv/run.stamp
