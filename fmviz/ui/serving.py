"""Serve the dashboard: allowed hosts, response headers, and a warning where others can reach it."""

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
"""The sites that may show fmviz in a frame, as Content-Security-Policy writes them; by default its own."""

# Where Streamlit takes uploads of a session, whatever page it is on.
_UPLOAD = re.compile("/_stcore/upload_file/([^/]+)/")


def around() -> dict[str, Any]:
    """Return what stands between the net and the pages, and the routes beside these, for `streamlit.App`."""
    return {"middleware": [Middleware(Guard)], "routes": channel.routes()}


def in_sessions(draw: Callable[[], None]) -> None:
    """Draw in a session; the server, which imports the entry page first, is made ready and its reach told.

    The kernels of the start page are loaded in the background, so that its first visitor need not wait. Where
    they must be compiled first, this would only compete with that visitor, whose page compiles what it shows.
    """
    if get_script_run_ctx(suppress_warning=True) is None:
        tell_who_can_reach_it()
        if has_compiled():
            threading.Thread(target=make_ready, name="fmviz-make-ready", daemon=True).start()
    else:
        draw()


def tell_who_can_reach_it() -> None:
    """Warn where the dashboard listens to others than this machine."""
    address = config.get_option("server.address")
    try:
        private = address == "localhost" or ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        private = False
    if not private:
        print(
            f"fmviz listens on {address or 'all addresses'}: whoever can reach this computer can open it, "
            "without a login. They can train, and see, change and delete the stored runs; an upload is known "
            "only to those who have its link. docs/guide/serving.md says how to put a login before it.",
            file=sys.stderr,
        )


class Guard:
    """An ASGI middleware: names that are not ours refused, sockets and uploads counted, headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._sockets = Sockets(app)
        ancestors = " ".join(os.environ.get(FRAME_ANCESTORS, "").split()) or "'self'"
        headers = {
            "Content-Security-Policy": f"frame-ancestors {ancestors}; object-src 'none'; base-uri 'self'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "X-Powered-By": "fmviz",  # By which `fmviz serve` knows who has its port.
        }
        # The older header, which has no word for other sites.
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
        # What watches over a server asks by its address.
        health = scope["path"].endswith("/_stcore/health")
        app = self._app
        if not (health or is_host_allowed(host)):
            app = PlainTextResponse(
                f"fmviz is not served under the name {(host or '')[:100]!r}. Open it by the address that it "
                "was started with; who started it can allow this name with fmviz serve --allow, or "
                "server.allowedHosts in .streamlit/config.toml.",
                421,
            )
        upload = _UPLOAD.search(scope["path"]) if scope["method"] == "PUT" else None
        if upload is None or app is not self._app:
            await app(scope, receive, answer)
            return
        length = asked.get("content-length", "")
        if not re.fullmatch("[0-9]{1,15}", length):
            app = PlainTextResponse("An upload has to say how long it is, in Content-Length.", 411)
        elif (refused := session_uploads.why_not(int(length), upload[1])) is not None:
            app = PlainTextResponse(refused, 413)
        with session_uploads.arriving(upload[1], int(length) if app is self._app else 0):
            await app(scope, receive, answer)
