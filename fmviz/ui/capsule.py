"""What stands under every result: the program and the capsule that give the same numbers again."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st

from fmviz.lab.capsule import Capsule
from fmviz.ui import widgets


def link() -> str:
    """Return the address of this page in its present state."""
    address = (st.context.url or "").partition("?")[0]
    query = urlencode(st.query_params.to_dict())
    return f"{address}?{query}" if query else address


def draw(
    key: str,
    result: str,
    script: str,
    *,
    note: str = "",
    seed: int | None = None,
    data: Mapping[str, str] | None = None,
    versions: Mapping[str, str] | None = None,
) -> None:
    """Draw the program of a result, and its capsule to copy as text or JSON.

    Parameters
    ----------
    key : str
        Unique on the page.
    result : str
        What the result is, in words.
    script : str
        A program that prints the same numbers.
    note : str
        What it prints.
    seed, data, versions
        As in `fmviz.lab.capsule.Capsule`; `versions` where the result was not made by this process.
    """
    made: dict[str, Mapping[str, str]] = {} if versions is None else {"versions": versions}
    found = Capsule(result, script, link(), seed, dict(data or {}), **made)  # type: ignore[arg-type]
    widgets.python_block(script, note=note)
    with (
        st.expander("Reproduction capsule", icon=":material/inventory_2:"),
        st.container(key=f"{key}_capsule"),
    ):
        st.caption("Link, seed, hash of the data, versions and program: all that it takes to get this again.")
        text, as_json = st.tabs(["Text", "JSON"])
        text.code(found.to_text(), language=None, wrap_lines=True)
        as_json.code(found.to_json(), language="json", wrap_lines=True)
        with st.container(horizontal=True):
            widgets.download(
                "Capsule (JSON)", found.to_json, f"capsule-{key}.json", key=f"{key}_capsule_json"
            )
