"""The program and the reproduction capsule under a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from fmviz.lab.runs.capsule import INSTALL, Capsule
from fmviz.lab.runs.provenance import versions as present_versions
from fmviz.ui import widgets

if TYPE_CHECKING:
    from fmviz.report import Outcome


def link() -> str:
    """Return the address of this page in its present state."""
    address = (st.context.url or "").partition("?")[0]
    query = urlencode(st.query_params.to_dict())
    return f"{address}?{query}" if query else address


def capsule(
    result: str,
    script: str,
    *,
    seed: int | None = None,
    data: Mapping[str, str] | None = None,
    versions: Mapping[str, str] | None = None,
) -> Capsule:
    """Return the capsule of a result on this page; `versions` where another process has made it."""
    return Capsule(
        result, INSTALL + script, link(), seed, dict(data or {}), dict(versions or present_versions())
    )


def draw(key: str, found: Capsule, note: str = "") -> None:
    """Draw the program of a result, and its capsule to copy as text or JSON.

    Parameters
    ----------
    key : str
        Unique on the page.
    found : Capsule
        From `capsule`.
    note : str
        What the program prints.
    """
    widgets.python_block(found.script, note)
    with (
        st.expander("Reproduction capsule", icon=":material/inventory_2:"),
        st.container(key=f"{key}_capsule"),
    ):
        st.caption("Link, seed, hash of the data, versions and program: all that it takes to get this again.")
        text, as_json = st.tabs(["Text", "JSON"])
        text.code(found.to_text(), language=None, wrap_lines=True)
        as_json.code(found.to_json(), language="json", wrap_lines=True)
        widgets.download("Capsule (JSON)", found.to_json, f"capsule-{key}.json", key=f"{key}_capsule_json")


def report(key: str, make: Callable[[], Outcome], file_name: str) -> None:
    """Draw the download of the whole result as one page of HTML."""

    def page() -> str:
        from fmviz.report import html

        return html(make())

    widgets.download(
        "Report (HTML)",
        page,
        file_name,
        key=key,
        help="The whole result as one page that needs nothing else: objective, certificate, interactions, "
        "curves, settings, capsule. It opens without a network, and prints.",
    )
