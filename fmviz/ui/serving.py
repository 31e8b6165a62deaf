"""How the dashboard is served: under which names, with which headers, and a warning where others reach it."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

__all__ = ["FRAME_ANCESTORS", "guarded", "in_sessions", "is_private", "tell_who_can_reach_it"]

FRAME_ANCESTORS = "FMVIZ_FRAME_ANCESTORS"
"""The sites that may show fmviz in a frame, as Content-Security-Policy writes them; by default its own."""


def guarded() -> list[Middleware]:
    """Return what stands between the net and the pages."""
    return [Middleware(Guard)]


def in_sessions(draw: Callable[[], None]) -> None:
    """Draw in a session; the server, which imports the entry page first, is told who can reach it."""
    if get_script_run_ctx(suppress_warning=True) is None:
        tell_who_can_reach_it()
    else:
        draw()


def tell_who_can_reach_it() -> None:
    """Warn where the dashboard listens to others than this machine."""
    address = config.get_option("server.address")
    if not is_private(address):
        print(
            f"fmviz listens on {address or 'all addresses'}: whoever can reach this computer can open it, "
            "without a login. They can train, and see, change and delete the stored runs; an upload is known "
            "only to those who have its link. docs/guide/serving.md says how to put a login before it.",
            file=sys.stderr,
        )


def is_private(address: str | None) -> bool:
    """Return whether an address to listen on is reached from this machine alone."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        return False


class Guard:
    """An ASGI middleware: no answer to names that are not ours, and headers on every other answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        ancestors = " ".join(os.environ.get(FRAME_ANCESTORS, "").split()) or "'self'"
        headers = {
            "Content-Security-Policy": f"frame-ancestors {ancestors}; object-src 'none'; base-uri 'self'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
        }
        # The older header, which has no word for other sites.
        if ancestors == "'self'":
            headers["X-Frame-Options"] = "SAMEORIGIN"
        self._headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; Streamlit itself checks the names of its websocket."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = {name for name, _ in self._headers}
                kept = [(name, value) for name, value in message["headers"] if name.lower() not in ours]
                message = {**message, "headers": [*kept, *self._headers]}
            await send(message)

        host = Headers(scope=scope).get("host")
        # What watches over a server asks by its address.
        health = scope["path"].endswith("/_stcore/health")
        app: Any = self._app if health or is_host_allowed(host) else _refused(host)
        await app(scope, receive, answer)


def _refused(host: str | None) -> PlainTextResponse:
    return PlainTextResponse(
        f"fmviz is not served under the name {(host or '')[:100]!r}. Open it by the address that it was "
        "started with; who started it can allow this name with fmviz serve --allow, or server.allowedHosts "
        "in .streamlit/config.toml.",
        421,
    )
