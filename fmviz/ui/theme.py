"""Colours of the reader's theme, for CSS."""

from __future__ import annotations

import streamlit as st


def theme_color(name: str, otherwise: str) -> str:
    """Return a colour of the present theme by its name in Streamlit's configuration."""
    kind = st.context.theme.type or "light"
    return str(st.get_option(f"theme.{kind}.{name}") or st.get_option(f"theme.{name}") or otherwise)


def background_color() -> str:
    """Return the page's background colour on either theme, for what must cover what scrolls beneath it."""
    light, dark = (st.get_option(f"theme.{kind}.backgroundColor") or "Canvas" for kind in ("light", "dark"))
    return f"light-dark({light}, {dark})"
