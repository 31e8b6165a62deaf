"""Live updates for browsers, over one WebSocket per page.

A page creates a `Topic` and passes its id to a browser component, which requests the next message after
painting the last: a slow browser skips messages and delays no other. One thread refreshes each topic once for
all of its viewers, at most ten times a second, and only on request. `fmviz.ui.sockets` limits the number of
connections and the rate of requests.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit import config

_LOG = logging.getLogger(__name__)
PERIOD = 0.1
"""Minimum interval between messages of a topic, in seconds."""
_MOST_TOPICS = 500
# The seconds for which a topic counts as watched after an update: browsers request again after painting.
_WATCHED = 5.0
# Limits per connection and per request.
_MOST_WAITING, _LONGEST = 64, 1_000
_GONE = '{"gone":true}'


class Asked(NamedTuple):
    """A browser's state of a topic: the number of its last message, and its rows of a generation."""

    number: int
    rows: int
    generation: str


class Topic:
    """A changing object that any number of browsers can watch.

    Parameters
    ----------
    refresh : callable
        ``refresh(topic)`` updates `head`, `rows` and `body`, and returns whether anything changed. Only one
        thread calls it at a time.

    Attributes
    ----------
    id : str
        Unguessable id; it grants access.
    number : int
        Number of the last message.
    head : dict
        Short facts, sent in every message.
    rows : list of str
        JSON texts, such as the records of epochs. A browser receives its missing rows, and again its last
        one, which may have changed.
    generation : str
        Changes when the rows do not continue the previous ones.
    body : bytes
        Binary part, sent unchanged.
    """

    def __init__(self, refresh: Callable[[Topic], bool]) -> None:
        self.id = secrets.token_urlsafe(18)
        self._refresh = refresh
        self.number = 0
        self.head: dict[str, Any] = {}
        self.rows: list[str] = []
        self.generation = ""
        self.body = b""
        self._sent: tuple[Any, ...] = (0, "", "{}", (), b"")
        self.refreshed = -float("inf")
        self.asking: dict[_Browser, Asked] = {}

    def update(self, now: float) -> None:
        """Refresh the topic, unless the last refresh is too recent."""
        if now - self.refreshed < PERIOD:
            return
        self.refreshed = now
        try:
            if self._refresh(self) or not self.number:
                self._publish()
        except BaseException:  # The thread serves all topics and must survive.
            if self._sent[2] != _GONE:
                _LOG.exception("a topic failed")
                self.head, self.rows, self.generation, self.body = {"gone": True}, [], "", b""
                self._publish()

    def _publish(self) -> None:
        head = json.dumps(self.head, separators=(",", ":"))
        sent = self.number + 1, self.generation, head, tuple(self.rows), self.body
        # Unserializable content fails here, where it affects no other topic.
        _encode(self.id, sent, 0)
        # One assignment: other threads build messages.
        self._sent, self.number = sent, sent[0]

    def message(self, asked: Asked) -> bytes:
        """Return the message for a browser: the length of a JSON text, this text, and the body."""
        _, generation, _, rows, _ = sent = self._sent
        first = max(0, min(asked.rows, len(rows)) - 1) if asked.generation == generation else 0
        return _encode(self.id, sent, first)

    @property
    def watched(self) -> bool:
        """Whether a browser waits for the topic, or paints its last message."""
        return bool(self.asking) or time.monotonic() - self.refreshed < _WATCHED


def _encode(id: str, sent: tuple[Any, ...], first: int) -> bytes:
    number, generation, head, rows, body = sent
    facts = {"topic": id, "number": number, "generation": generation, "from": first}
    text = f'{json.dumps(facts)[:-1]},"head":{head},"rows":[{",".join(rows[first:])}]}}'.encode()
    return struct.pack("<I", len(text)) + text + body


def _gone(id: str) -> bytes:
    """Return the reply for an unknown topic, for instance after a restart of the server."""
    return _encode(id, (-1, "", _GONE, (), b""), 0)


@dataclass(eq=False)
class _Browser:
    """A connection."""

    loop: asyncio.AbstractEventLoop
    # By topic id: repeated requests get one reply.
    ready: dict[str, Callable[[], bytes]] = field(default_factory=dict)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    room: asyncio.Event = field(default_factory=asyncio.Event)

    def notify(self, id: str, message: Callable[[], bytes]) -> None:
        """Schedule the message of a topic; thread-safe."""
        self.ready[id] = message
        with suppress(RuntimeError):  # the loop of a stopped server
            self.loop.call_soon_threadsafe(self.wake.set)


class Channel:
    """All topics of a server, the thread that refreshes them, and their route."""

    def __init__(self) -> None:
        self._topics: OrderedDict[Hashable, Topic] = OrderedDict()
        self._ids: dict[str, Topic] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def topic(self, key: Hashable, refresh: Callable[[Topic], bool]) -> Topic:
        """Return the topic of a key; the first request creates it."""
        with self._changed:
            if (topic := self._topics.get(key)) is None:
                while len(self._topics) >= _MOST_TOPICS:
                    self._evict()
                topic = self._topics[key] = Topic(refresh)
                self._ids[topic.id] = topic
            self._topics.move_to_end(key)
            return topic

    def _evict(self) -> None:
        """Drop the oldest unwatched topic or, if all are watched, the oldest."""
        oldest = min(self._topics, key=lambda key: self._topics[key].watched)
        topic = self._topics.pop(oldest)
        del self._ids[topic.id]
        for browser in topic.asking:
            browser.notify(topic.id, partial(_gone, topic.id))

    def ask(self, browser: _Browser, id: str, asked: Asked | None) -> None:
        """Register a browser for the next message of a topic; None unregisters it."""
        with self._changed:
            topic = self._ids.get(id)
            if topic is None:
                browser.notify(id, partial(_gone, id))
            elif asked is None:
                topic.asking.pop(browser, None)
            else:
                topic.asking[browser] = asked
                self._work()

    def leave(self, browser: _Browser) -> None:
        """Drop a browser."""
        with self._changed:
            for topic in self._topics.values():
                topic.asking.pop(browser, None)

    def _work(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._publish, name="fmviz-publisher", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _publish(self) -> None:
        while True:
            with self._changed:
                watched = [topic for topic in self._topics.values() if topic.asking]
                if not watched:
                    self._changed.wait()
                    continue
            for topic in watched:
                topic.update(time.monotonic())
                with self._changed:
                    for browser, asked in list(topic.asking.items()):
                        if asked.number != topic.number:
                            del topic.asking[browser]
                            browser.notify(topic.id, partial(topic.message, asked))
            with self._changed:
                # Until the next refresh is due, or a request arrives.
                self._changed.wait(max(0.001, min(t.refreshed for t in watched) + PERIOD - time.monotonic()))

    async def serve(self, socket: WebSocket) -> None:
        """Serve a browser until it disconnects or sends an invalid request."""
        await socket.accept()
        browser = _Browser(asyncio.get_running_loop())
        work = [asyncio.create_task(each(socket, browser)) for each in (self._hear, self._send)]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in work:
                task.cancel()
            self.leave(browser)

    async def _hear(self, socket: WebSocket, browser: _Browser) -> None:
        with suppress(WebSocketDisconnect, ValueError, TypeError, KeyError, OverflowError, RecursionError):
            async for text in socket.iter_text():
                question = json.loads(text[:_LONGEST])
                id, last = str(question["topic"]), None
                if not question.get("leave"):
                    number, rows = int(question.get("number", 0)), int(question.get("rows", 0))
                    last = Asked(number, rows, str(question.get("generation", "")))
                self.ask(browser, id, last)
                while len(browser.ready) >= _MOST_WAITING:
                    browser.room.clear()
                    await browser.room.wait()

    async def _send(self, socket: WebSocket, browser: _Browser) -> None:
        with suppress(WebSocketDisconnect, RuntimeError, OSError):
            while await browser.wake.wait():
                browser.wake.clear()
                while browser.ready:
                    _, message = browser.ready.popitem()
                    browser.room.set()
                    await socket.send_bytes(message())


channel = Channel()


def path() -> str:
    """Return the path of the channel; Streamlit adds its base path only to its own routes."""
    base = (config.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}/_fmviz/live" if base else "/_fmviz/live"


def routes() -> list[BaseRoute]:
    """Return the route for `streamlit.App`."""
    return [WebSocketRoute(path(), channel.serve)]
