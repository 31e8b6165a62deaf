"""Install pip into a virtual environment on a machine whose Python has neither ensurepip nor pip.

Debian and Ubuntu omit both from their python3 package. A pip wheel runs directly from the archive; a single
download therefore suffices. Its name and SHA-256 are pinned here. Run the script with the interpreter of the
environment.
"""

import hashlib
import os
import re
import runpy
import sys
import tempfile
import urllib.parse
import urllib.request

WHEEL = "pip-26.3-py3-none-any.whl"
SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"
TIMEOUT_SECONDS = 30


def download() -> bytes:
    """Return the bytes of the wheel from the package index configured for pip."""
    index = os.environ.get("PIP_INDEX_URL") or "https://pypi.org/simple"
    page_url = index.rstrip("/") + "/pip/"
    with urllib.request.urlopen(page_url, timeout=TIMEOUT_SECONDS) as answer:
        page = answer.read().decode("utf-8", "replace")
    link = re.search(r'href="([^"#]*' + re.escape(WHEEL) + r')[#"]', page)
    if link is None:
        raise OSError(f"{page_url} does not list {WHEEL}")
    with urllib.request.urlopen(urllib.parse.urljoin(page_url, link[1]), timeout=TIMEOUT_SECONDS) as answer:
        wheel = answer.read()
    digest = hashlib.sha256(wheel).hexdigest()
    if digest != SHA256:
        raise OSError(f"{WHEEL} has the SHA-256 {digest} where {SHA256} was expected")
    return wheel


def main() -> None:
    """Install pip for the running interpreter; exit with a message on failure."""
    if sys.prefix == sys.base_prefix:
        sys.exit("bootstrap_pip.py installs into a virtual environment only: run it with .venv/bin/python")
    try:
        wheel = download()
    except (OSError, ValueError) as problem:
        sys.exit(f"Could not download pip: {problem}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, WHEEL)
        with open(path, "wb") as file:
            file.write(wheel)
        sys.path.insert(0, path)
        sys.argv = ["pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", path]
        runpy.run_module("pip", run_name="__main__")


if __name__ == "__main__":
    main()
