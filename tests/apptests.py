"""AppTest of Streamlit, as the tests of pages want it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest


def scan_packages_once() -> None:
    """Let all AppTests of this process share one search for components in the installed packages.

    Every AppTest makes it anew, which takes longer than a page takes to draw itself.
    """
    manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


def after_every_run(check: Callable[[AppTest], None]) -> Callable[..., AppTest]:
    """Return how an AppTest draws a page, and checks it then."""
    run = AppTest._run

    @wraps(run)
    def checked(self: AppTest, *args: Any, **options: Any) -> AppTest:
        app = run(self, *args, **options)
        check(app)
        return app

    return checked


def raises_nothing(app: AppTest) -> None:
    """Assert that the script of a page has raised no exception."""
    assert not app.exception, app.exception


def shows_no_error(app: AppTest) -> None:
    """Assert that a page shows no error."""
    assert not app.error, [error.value for error in app.error]
