"""AppTest of Streamlit, as the tests of pages want it."""

from __future__ import annotations

from functools import cache, wraps
from typing import Any

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest


def scan_packages_once() -> None:
    """Let all AppTests of this process share one search for components in the installed packages.

    Every AppTest makes it anew, which takes longer than a page takes to draw itself.
    """
    manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


def fail_on_exceptions() -> None:
    """Let every run of every AppTest of this process fail where the page raised an exception."""
    run = AppTest._run

    @wraps(run)
    def checked(self: AppTest, *args: Any, **options: Any) -> AppTest:
        app = run(self, *args, **options)
        assert not app.exception, app.exception
        return app

    AppTest._run = checked  # type: ignore[method-assign]
