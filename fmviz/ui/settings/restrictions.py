"""The teacher's menu: what a link to this page hides and locks."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from fmviz.ui import widgets
from fmviz.ui.settings.state import RESTRICTIONS, Settings


def full_link(query: dict[str, str]) -> str:
    """Return the address of this page with a query string, as it is written into a message."""
    here = urlsplit(st.context.url or "")
    return urlunsplit((here.scheme, here.netloc, here.path, urlencode(query, safe=","), ""))


def menu(settings: Settings) -> None:
    """Draw the popover in which a teacher makes a link for a class.

    Drawn last: it offers what the page has drawn.
    """
    restricted = len({*settings["hide"], *settings["lock"]})
    words = settings.seen
    for name in (*settings["hide"], *settings["lock"]):
        words.setdefault(name, "")
    with st.popover("Teach", icon=":material/co_present:", key=f"{settings.page}_teach", width="stretch"):
        st.markdown(
            "**Make a link for a class.** It opens this page as it is now, without what you hide. What you "
            "lock can be seen, but not changed."
        )
        for item, verb in zip(RESTRICTIONS, ("Hide", "Lock"), strict=True):
            st.multiselect(
                verb,
                list(words),
                format_func=lambda name: words[name] or widgets.title_of(name),
                placeholder="Nothing",
                help=item.help,
                **widgets.start_of(st.multiselect, settings[item.name], list(words)),
                **settings.bind(item.name),
            )
        st.code(full_link(settings.query()), language=None, wrap_lines=True)
        if restricted:
            st.caption(
                f"{restricted} {'control is' if restricted == 1 else 'controls are'} hidden or locked here."
            )
            st.button(
                "Show and unlock everything",
                icon=":material/lock_open:",
                key=f"{settings.page}_teach_end",
                on_click=lambda: settings.reset(*(item.name for item in RESTRICTIONS)),
            )
