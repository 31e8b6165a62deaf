# Shared by the scripts in this folder, which source it: `. tools/common.sh`.
# shellcheck shell=sh

# Without bytecode every process would compile anew all that it imports.
unset PYTHONDONTWRITEBYTECODE

# Python and pip of .venv are to see this checkout and .venv alone, whatever those of the user are set to. PIP_USER also
# overrules a pip.conf, whose mirrors and proxies apply.
unset PYTHONPATH PYTHONHOME PYTHONSAFEPATH PIP_TARGET PIP_PREFIX PIP_ROOT
export PIP_USER=0

say() { printf '%s\n' "fmviz: $*" >&2; }

die() {
    say "$@"
    exit 1
}

# The names of Debian's packages, as root: directly, or through sudo. Non-zero where neither is possible.
apt_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    if [ "$(id -u)" -eq 0 ]; then
        as_root=''
    elif command -v sudo >/dev/null 2>&1; then
        # Without a terminal sudo must not wait for a password.
        if [ -t 0 ]; then as_root='sudo'; else as_root='sudo -n'; fi
    else
        return 1
    fi
    say "installing $* with ${as_root:+sudo }apt-get"
    # A list that cannot be refreshed may still do. What goes wrong is on the standard error.
    # Unquoted on purpose: empty, or a command and its option.
    # shellcheck disable=SC2086
    {
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null || true
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            -o DPkg::Lock::Timeout=300 "$@" >/dev/null
    }
}
