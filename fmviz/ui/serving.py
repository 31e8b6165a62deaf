"""Serve the dashboard: allowed hosts, response headers, and a warning where others can reach it."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.server_util import is_url_from_allowed_origins
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from fmviz.engine._jit import has_compiled
from fmviz.lab.search.arena import make_ready
from fmviz.ui import channel, session_uploads

FRAME_ANCESTORS = "FMVIZ_FRAME_ANCESTORS"
"""The sites that may show fmviz in a frame, as Content-Security-Policy writes them; by default its own."""

# Streamlit adds an entry to the history of the browser whenever a page mirrors its settings into the address,
# also as it opens: Back would return to the page that one wants to leave, which would mirror them again. On a
# busy server, what an opening page mirrors arrives while the address is still that of the page before: wait.
# It also labels sliders twice, by themselves and by their group, and has names of icons read aloud.
_SCRIPT = b"""<script>{
  const push = history.pushState;
  let waiting = 0;
  history.pushState = function (state, title, url) {
    clearTimeout(waiting);
    const here = location.pathname;
    if (new URL(url, location.href).pathname !== here) return push.call(history, state, title, url);
    waiting = setTimeout(() => location.pathname === here && history.replaceState(state, title, url), 100);
  };
  new MutationObserver(() => {
    for (const thumb of document.querySelectorAll('[data-testid="stSlider"] input[aria-labelledby]'))
      thumb.removeAttribute("aria-labelledby");
    for (const icon of document.querySelectorAll('[role="img"][aria-label$=" icon"]:not([aria-hidden])'))
      icon.setAttribute("aria-hidden", "true");
  }).observe(document, { childList: true, subtree: true });
}</script>"""
_HEAD = b"<head>"
# Where Streamlit takes uploads of a session, whatever page it is on.
_UPLOAD = re.compile("/_stcore/upload_file/([^/]+)/")
# Neither compressed bytes nor what a browser has kept can be changed.
_CONDITIONS = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")


def guarded() -> list[Middleware]:
    """Return what stands between the net and the pages."""
    return [Middleware(Guard)]


def in_sessions(draw: Callable[[], None]) -> None:
    """Draw in a session; the server, which imports the entry page first, is made ready and its reach told.

    The kernels of the start page are loaded in the background, so that its first visitor need not wait. Where
    they must be compiled first, this would only compete with that visitor, whose page compiles what it shows.
    """
    if get_script_run_ctx(suppress_warning=True) is None:
        hear_endings()
        tell_who_can_reach_it()
        if has_compiled():
            threading.Thread(target=make_ready, name="fmviz-make-ready", daemon=True).start()
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
    """An ASGI middleware: names that are not ours refused, uploads counted, headers, Back in one step."""

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
        """Serve a request; Streamlit checks names and origins for its websocket, but not for ours."""
        if scope["type"] == "websocket" and scope["path"] == channel.path() and not await _is_ours(scope):
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        if page := scope["method"] == "GET" and "text/html" in asked.get("accept", ""):
            kept = [(name, value) for name, value in scope["headers"] if name not in _CONDITIONS]
            scope = {**scope, "headers": kept}
        waiting: list[Message] = []

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = {name for name, _ in self._headers}
                kept = [(name, value) for name, value in message["headers"] if name.lower() not in ours]
                message = {**message, "headers": [*kept, *self._headers]}
                if page and Headers(raw=kept).get("content-type", "").startswith("text/html"):
                    waiting.append(message)
                    return
            elif waiting:
                begin, message = _with_script(waiting.pop(), message)
                await send(begin)
            await send(message)

        host = asked.get("host")
        # What watches over a server asks by its address.
        health = scope["path"].endswith("/_stcore/health")
        app: Any = self._app
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


async def _is_ours(scope: Scope) -> bool:
    """Return whether a socket is asked for under one of our names, by a page of ours."""
    asked = Headers(scope=scope)
    host, origin = asked.get("host", ""), asked.get("origin")
    if not is_host_allowed(host):
        return False
    # Programs that are no browsers name no origin. The last check may have to look up addresses.
    if origin is None or urlsplit(origin).netloc.lower() == host.lower():
        return True
    return await asyncio.to_thread(is_url_from_allowed_origins, origin)


def _with_script(begin: Message, body: Message) -> tuple[Message, Message]:
    """Return the beginning of a page, and its first bytes with the script."""
    changed = body.get("body", b"").replace(_HEAD, _HEAD + _SCRIPT, 1)
    grown = len(changed) - len(body.get("body", b""))
    headers = MutableHeaders(raw=list(begin["headers"]))
    if "content-length" in headers:
        headers["content-length"] = str(int(headers["content-length"]) + grown)
    for name in ("etag", "last-modified"):
        del headers[name]
    return {**begin, "headers": headers.raw}, {**body, "body": changed}


_begin = AppSession._create_scriptrunner


def hear_endings() -> None:
    """Have a new run begin only when all that the run before it has said is on its way to the browser.

    A fragment is drawn by the run that goes on, unless that run has just ended and refuses. What it said last
    may then still wait for the event loop, and would be ignored, since another run is the current one: the
    page would lack its last elements until the next click, or seem to be running. All of it is in the queue
    of the loop by then, so the new run is put behind it.
    """
    AppSession._create_scriptrunner = _begin_in_turn  # type: ignore[method-assign, assignment]


def _begin_in_turn(session: AppSession, asked: Any) -> None:
    if session._scriptrunner is None:
        _begin(session, asked)
    else:
        session._call_soon_on_event_loop(partial(_begin_after, session, session._scriptrunner, asked))


def _begin_after(session: AppSession, ended: Any, asked: Any) -> None:
    current = session._scriptrunner
    if session._state is AppSessionState.SHUTDOWN_REQUESTED:
        return
    if current is None or current is ended:
        _begin(session, asked)
    elif not current.request_rerun(asked):
        _begin_in_turn(session, asked)
