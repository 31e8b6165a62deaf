"""Serving of the dashboard: allowed hosts, response headers, and a warning about remote access."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from fmviz.engine._jit import has_compiled
from fmviz.lab.search.arena import make_ready
from fmviz.ui import channel, session_uploads
from fmviz.ui.sockets import Sockets

FRAME_ANCESTORS = "FMVIZ_FRAME_ANCESTORS"
"""Sites that may embed fmviz in a frame, in Content-Security-Policy syntax; by default only itself."""
# Streamlit's upload endpoint, on any page.
_UPLOAD = re.compile("/_stcore/upload_file/([^/]+)/")


def around() -> dict[str, Any]:
    """Return the middleware and the additional routes for `streamlit.App`."""
    return {"middleware": [Middleware(Guard)], "routes": channel.routes()}


def in_sessions(draw: Callable[[], None]) -> None:
    """Draw the page in a session, or prepare the server at its first import.

    Cached kernels of the start page are loaded in the background for the first visitor. Without a cache they
    are not: compiling in the background would only compete with the visitor's page.
    """
    if get_script_run_ctx(suppress_warning=True) is None:
        tell_who_can_reach_it()
        if has_compiled():
            threading.Thread(target=make_ready, name="fmviz-make-ready", daemon=True).start()
    else:
        draw()


def tell_who_can_reach_it() -> None:
    """Warn if the dashboard accepts connections from other machines."""
    address = config.get_option("server.address")
    try:
        private = address == "localhost" or ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        private = False
    if not private:
        print(
            f"fmviz listens on {address or 'all addresses'}: anyone who can reach this computer can open it "
            "without a login, train models, and see, change and delete stored runs. Uploads are visible only "
            "to users with their link. docs/guide/serving.md describes how to add a login.",
            file=sys.stderr,
        )


class Guard:
    """An ASGI middleware that checks host names, limits sockets and uploads, and adds headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._sockets = Sockets(app)
        ancestors = " ".join(os.environ.get(FRAME_ANCESTORS, "").split()) or "'self'"
        headers = {
            "Content-Security-Policy": f"frame-ancestors {ancestors}; object-src 'none'; base-uri 'self'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "X-Powered-By": "fmviz",  # Identifies fmviz on a port to `fmviz serve`.
        }
        # The older header cannot name other sites.
        if ancestors == "'self'":
            headers["X-Frame-Options"] = "SAMEORIGIN"
        self._headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            app = self._sockets if scope["type"] == "websocket" else self._app
            await app(scope, receive, send)
            return
        asked = Headers(scope=scope)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = {name for name, _ in self._headers}
                kept = [(name, value) for name, value in message["headers"] if name.lower() not in ours]
                message = {**message, "headers": [*kept, *self._headers]}
            await send(message)

        host = asked.get("host")
        # Health checks use the address of the server.
        health = scope["path"].endswith("/_stcore/health")
        app = self._app
        if not (health or is_host_allowed(host)):
            app = PlainTextResponse(
                f"fmviz does not accept the host name {(host or '')[:100]!r}. Use the address printed at its "
                "start, or allow this name with fmviz serve --allow or server.allowedHosts in "
                ".streamlit/config.toml.",
                421,
            )
        upload = _UPLOAD.search(scope["path"]) if scope["method"] == "PUT" else None
        if upload is None or app is not self._app:
            await app(scope, receive, answer)
            return
        length = asked.get("content-length", "")
        if not re.fullmatch("[0-9]{1,15}", length):
            app = PlainTextResponse("Uploads need a Content-Length header.", 411)
        elif (refused := session_uploads.why_not(int(length), upload[1])) is not None:
            app = PlainTextResponse(refused, 413)
        with session_uploads.arriving(upload[1], int(length) if app is self._app else 0):
            await app(scope, receive, answer)
