"""AppTest of Streamlit, as the tests of pages want it."""

from __future__ import annotations

from functools import cache

from streamlit.components.v2 import manifest_scanner


def scan_packages_once() -> None:
    """Let all AppTests of this process share one search for components in the installed packages.

    Every AppTest makes it anew, which takes longer than a page takes to draw itself.
    """
    manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
