"""Publish what goes on to the browsers that watch, over one WebSocket a page.

A page makes a `Topic` and hands its id to a component of the browser, which asks for the next message when it
has painted the last: a slow browser skips some and holds up nobody. A topic is brought up to date once for
all who watch it, at most ten times a second, by one thread; without anybody who asks nothing is made.
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
from typing import Any, NamedTuple

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit import config

_LOG = logging.getLogger(__name__)
PERIOD = 0.1
"""The least seconds between two messages of a topic."""
_MOST_TOPICS = 500
# Of one browser window, and of one question.
_MOST_ASKED, _LONGEST = 64, 1_000


class Asked(NamedTuple):
    """What a browser has of a topic: the number of its last message, and so many rows of a generation."""

    number: int
    rows: int
    generation: str


class Topic:
    """Something that changes, and that any number of browsers may watch.

    Parameters
    ----------
    refresh : callable
        ``refresh(topic)`` sets `head`, `rows` and `body` to what there is now, and returns whether anything
        has changed. It is called by one thread at a time.

    Attributes
    ----------
    id : str
        Cannot be guessed: whoever has it may watch.
    number : int
        Of the last message.
    head : dict
        Short facts, sent in every message.
    rows : list of str
        JSON texts, such as the records of epochs: a browser is sent those that it lacks, and the last one
        that it has, which may have changed.
    generation : str
        Changes where the rows are not a continuation of those before.
    body : bytes
        Sent as it is.
    """

    def __init__(self, refresh: Callable[[Topic], bool]) -> None:
        self.id = secrets.token_urlsafe(18)
        self._refresh = refresh
        self.number = 0
        self.head: dict[str, Any] = {}
        self.rows: list[str] = []
        self.generation = ""
        self.body = b""
        self._sent: tuple[int, str, str, tuple[str, ...], bytes] = (0, "", "{}", (), b"")
        self.refreshed = -float("inf")
        self.asking: dict[_Browser, Asked] = {}

    def update(self, now: float) -> None:
        """Bring it up to date, if the last time is long enough ago."""
        if now - self.refreshed < PERIOD:
            return
        self.refreshed = now
        try:
            changed = self._refresh(self)
        except Exception:
            _LOG.exception("a topic failed")
            changed, self.head = not self.head.get("gone"), {"gone": True}
        if changed or not self.number:
            head = json.dumps(self.head, separators=(",", ":"), ensure_ascii=False)
            self.number += 1
            # All at once: messages are made by other threads.
            self._sent = self.number, self.generation, head, tuple(self.rows), self.body

    def message(self, asked: Asked) -> bytes:
        """Return the message for a browser: the length of a JSON text, this text, and the body."""
        number, generation, head, rows, body = self._sent
        first = max(0, min(asked.rows, len(rows)) - 1) if asked.generation == generation else 0
        place = json.dumps({"topic": self.id, "number": number, "generation": generation, "from": first})
        text = f'{place[:-1]},"head":{head},"rows":[{",".join(rows[first:])}]}}'.encode()
        return struct.pack("<I", len(text)) + text + body


@dataclass(eq=False)
class _Browser:
    """A connection."""

    loop: asyncio.AbstractEventLoop
    ready: dict[Topic, Asked] = field(default_factory=dict)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def notify(self, topic: Topic, asked: Asked) -> None:
        """Have a topic sent; for any thread."""
        self.ready[topic] = asked
        with suppress(RuntimeError):  # the loop of a server that has ended
            self.loop.call_soon_threadsafe(self.wake.set)


class Channel:
    """All topics of a server, the thread that keeps them up to date, and the route to them."""

    def __init__(self) -> None:
        self._topics: OrderedDict[Hashable, Topic] = OrderedDict()
        self._ids: dict[str, Topic] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def topic(self, key: Hashable, refresh: Callable[[Topic], bool]) -> Topic:
        """Return the topic of a key, made when it is first asked for."""
        with self._changed:
            if (topic := self._topics.get(key)) is None:
                topic = self._topics[key] = Topic(refresh)
                self._ids[topic.id] = topic
                while len(self._topics) > _MOST_TOPICS:
                    _, oldest = self._topics.popitem(last=False)
                    del self._ids[oldest.id]
            self._topics.move_to_end(key)
            return topic

    def ask(self, browser: _Browser, id: str, asked: Asked | None) -> None:
        """Note that a browser wants the next message of a topic, or with None that it wants no more."""
        with self._changed:
            topic = self._ids.get(id)
            if topic is None:
                browser.notify(_Gone(id), Asked(0, 0, ""))
            elif asked is None:
                topic.asking.pop(browser, None)
            else:
                topic.asking[browser] = asked
                self._work()

    def leave(self, browser: _Browser) -> None:
        """Forget a browser."""
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
                            browser.notify(topic, asked)
            with self._changed:
                # Until the next of them is due, or somebody asks.
                self._changed.wait(max(0.001, min(t.refreshed for t in watched) + PERIOD - time.monotonic()))

    async def serve(self, socket: WebSocket) -> None:
        """Send a browser what it asks for, until it leaves."""
        await socket.accept()
        browser = _Browser(asyncio.get_running_loop())
        hearing = asyncio.create_task(self._hear(socket, browser))
        hearing.add_done_callback(lambda _: browser.wake.set())
        try:
            while not hearing.done():
                await browser.wake.wait()
                browser.wake.clear()
                while browser.ready:
                    topic, asked = browser.ready.popitem()
                    await socket.send_bytes(topic.message(asked))
        except (WebSocketDisconnect, RuntimeError, OSError):
            pass
        finally:
            hearing.cancel()
            self.leave(browser)
            with suppress(RuntimeError, WebSocketDisconnect):
                await socket.close()

    async def _hear(self, socket: WebSocket, browser: _Browser) -> None:
        asked: set[str] = set()
        with suppress(WebSocketDisconnect, ValueError, TypeError, KeyError):
            async for text in socket.iter_text():
                question = json.loads(text[:_LONGEST])
                id = str(question["topic"])
                asked.add(id)
                if len(asked) > _MOST_ASKED:
                    return
                last = None
                if not question.get("leave"):
                    number, rows = int(question.get("number", 0)), int(question.get("rows", 0))
                    last = Asked(number, rows, str(question.get("generation", "")))
                self.ask(browser, id, last)


class _Gone(Topic):
    """The answer where there is no such topic, as after a server has been started again."""

    def __init__(self, id: str) -> None:
        super().__init__(lambda _: False)
        self.id, self._sent = id, (-1, "", '{"gone":true}', (), b"")


channel = Channel()


def path() -> str:
    """Return the path of the channel; Streamlit puts no base path before routes that are not its own."""
    base = (config.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}/_fmviz/live" if base else "/_fmviz/live"


def routes() -> list[BaseRoute]:
    """Return what `streamlit.App` mounts."""
    return [WebSocketRoute(path(), channel.serve)]
