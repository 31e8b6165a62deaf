#!/bin/sh
# Print the path of a Chromium that starts; with --install, install one where there is none.
# The order: FMVIZ_CHROMIUM, the system's, Debian's package, the build that Playwright publishes.
set -eu
cd "$(dirname "$0")/.."
. tools/common.sh

# Ubuntu's chromium-browser can be a script that only says "install the snap": ask for a version, not for a file.
starts() { "$1" --version 2>/dev/null </dev/null | grep -Eq '[0-9]+\.[0-9]+'; }

system_chromium() {
    for name in chromium chromium-browser google-chrome google-chrome-stable \
        '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome' \
        /Applications/Chromium.app/Contents/MacOS/Chromium; do
        path=$(command -v "$name" 2>/dev/null) || continue
        if starts "$path"; then
            printf '%s\n' "$path"
            return
        fi
    done
    return 1
}

playwright_chromium() {
    path=$(.venv/bin/python -c 'from playwright.sync_api import sync_playwright as start
with start() as p: print(p.chromium.executable_path)' 2>/dev/null) || return 1
    starts "$path" && printf '%s\n' "$path"
}

if [ -n "${FMVIZ_CHROMIUM:-}" ]; then
    if path=$(command -v "$FMVIZ_CHROMIUM" 2>/dev/null) && starts "$path"; then
        printf '%s\n' "$path"
        exit
    fi
    die "FMVIZ_CHROMIUM=$FMVIZ_CHROMIUM is not a Chromium that starts: correct it, or leave it out."
fi

system_chromium && exit
playwright_chromium && exit

if [ "${1:-}" = --install ]; then
    apt_install chromium || say "apt-get could not install the package chromium"
    system_chromium && exit
    say "fetching the Chromium that Playwright publishes"
    if .venv/bin/python -m playwright install --no-shell chromium >&2 </dev/null; then
        playwright_chromium && exit
        # It is there and lacks the system's libraries, which take root once more.
        .venv/bin/python -m playwright install-deps chromium >/dev/null </dev/null ||
            say "Playwright could not install the libraries that its Chromium needs"
        playwright_chromium && exit
    else
        say "Playwright could not fetch its Chromium"
    fi
fi

die "no Chromium was found, and the browser tests need one. Install it (on Debian, as root: apt-get install chromium; \
on Ubuntu: snap install chromium, or Google's package google-chrome-stable), or name one: \
make test FMVIZ_CHROMIUM=/path/to/chromium"
