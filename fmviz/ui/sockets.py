"""Limits on WebSockets: origin, number and message rate.

The same limits apply to Streamlit's socket and to that of the live pictures, ahead of both. Clients are
identified by address, which, unlike cookies and other headers, they cannot choose.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from fmviz.ui import channel

_LOG = logging.getLogger(__name__)
# Total number; half of it per address, which may be a proxy for a whole class.
_MOST_SOCKETS = 1_000
# A Streamlit socket opens four files, and its session keeps three of them for two minutes.
_FILES_EACH = 8
# Messages per second, and per burst. A repeating key sends 30 a second, and the messages of two seconds at
# once if the server was busy.
_RATE, _BURST = 50.0, 100
# Messages since Streamlit's last reply, each of which may have started a thread: per socket with almost no
# replies so far, and for all sockets of an address.
_UNSERVED, _UNSERVED_OF_ADDRESS = 10, 200
# Seconds for which an address may not open a socket after one of its sockets was closed.
_REFUSED = 10.0
_PORTS, _LOOPBACK = {"http": 80, "https": 443}, {"localhost", "127.0.0.1", "::1"}


def raise_descriptors() -> int:
    """Raise the soft limit of open files to the hard limit; return the possible number of sockets."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # Not on Windows.

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        # macOS rejects larger values if there is no hard limit.
        files = max(soft, 10_240 if hard == resource.RLIM_INFINITY else min(hard, 65_536))
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
        return min(_MOST_SOCKETS, max(2, files // _FILES_EACH))
    return _MOST_SOCKETS


def is_ours(headers: Headers) -> bool:
    """Return whether a socket request has an allowed host, and comes from our page or from a program.

    Programs other than browsers send no origin. A page is ours if its host and port match the request or,
    behind a proxy with another name, if it has an allowed name and the default port of its scheme, which is
    reserved to the administrator of the computer. No address is resolved.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if not is_host_allowed(host) or origin is None:
        return origin is None and is_host_allowed(host)
    try:
        page, here = urlsplit(origin), urlsplit(f"//{host}")
        default = _PORTS[page.scheme]
        port = page.port or default
        if page.hostname == here.hostname or page.hostname in _LOOPBACK or port != default:
            return page.hostname == here.hostname and port == (here.port or default)
    except (KeyError, ValueError):
        return False
    return page.hostname in [name.strip().lower() for name in config.get_option("server.allowedHosts")]


@dataclass(eq=False)
class _Socket:
    address: str
    live: bool
    accepted: bool = False
    sent: int = 0
    unserved: int = 0
    messages: float = 0.0
    heard: float = 0.0


class Sockets:
    """An ASGI application for WebSockets, in front of another one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open: list[_Socket] = []
        self._most = raise_descriptors()
        self._refused: dict[str, float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a socket to its end, or refuse it."""
        headers = MutableHeaders(raw=list(scope["headers"]))
        socket = _Socket((scope.get("client") or [""])[0], scope["path"] == channel.path())
        if reason := self._why_not(headers, socket.address):
            # Before accepting: afterwards uvicorn continues to read for ten seconds.
            await send({"type": "websocket.close", "code": 1008, "reason": reason})
            return
        # Streamlit sees a page of its own host and resolves no addresses.
        headers["host"] = urlsplit(headers.get("origin", "")).netloc or headers.get("host", "")
        self._open.append(socket)

        async def hear() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive" and self._is_hasty(socket):
                _LOG.warning("closed a socket of %s: too many messages", socket.address)
                self._refused[socket.address] = time.monotonic() + _REFUSED
                return {"type": "websocket.disconnect", "code": 1008}
            return message

        async def answer(message: Message) -> None:
            if message["type"] == "websocket.send":
                socket.sent, socket.unserved = socket.sent + 1, 0
            elif message["type"] == "websocket.accept":
                socket.accepted = True
            elif socket.accepted:  # Close, see above. The socket ends when this function returns.
                return
            await send(message)

        try:
            await self._app({**scope, "headers": headers.raw}, hear, answer)
        finally:
            self._open.remove(socket)

    def _why_not(self, headers: Headers, address: str) -> str:
        """Return why an address may not open another socket, or ""."""
        if not is_ours(headers):
            return "Only fmviz pages can open this socket."
        now = time.monotonic()
        self._refused = {other: until for other, until in self._refused.items() if until > now}
        if address in self._refused:
            return f"Too many requests from this address. Try again in {_REFUSED:.0f} seconds."
        if max(len(self._open), 2 * sum(s.address == address for s in self._open)) >= self._most:
            return "Too many pages are open. Close some, or try again later."
        return ""

    def _is_hasty(self, socket: _Socket) -> bool:
        """Count a message of a socket; return whether the rate is too high."""
        before, socket.heard = socket.heard, time.monotonic()
        socket.messages = max(0.0, socket.messages - _RATE * (socket.heard - before)) + 1
        socket.unserved += not socket.live
        return (
            socket.messages > _BURST
            or socket.unserved > min(_BURST, _UNSERVED + socket.sent)
            or sum(s.unserved for s in self._open if s.address == socket.address) > _UNSERVED_OF_ADDRESS
        )
