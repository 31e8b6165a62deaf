"""Test the channel by which browsers watch what goes on."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import AsyncMock, Mock

import pytest
import uvicorn
from starlette.applications import Starlette
from websockets.sync.client import connect

from fmviz.ui import channel as channels


class Counter:
    """A run of numbers that counts how often it was looked at."""

    def __init__(self):
        self.value = 0
        self.looks = 0

    def refresh(self, topic):
        self.looks += 1
        changed = self.value != topic.head.get("value")
        topic.head = {"value": self.value}
        topic.rows = [json.dumps([n]) for n in range(self.value)]
        topic.body = bytes([self.value])
        return changed


@pytest.fixture
def channel(monkeypatch):
    fresh = channels.Channel()
    monkeypatch.setattr(channels, "channel", fresh)
    return fresh


@pytest.fixture
def address(channel):
    server = uvicorn.Server(
        uvicorn.Config(Starlette(routes=channels.routes()), port=0, log_level="warning", lifespan="off")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"ws://127.0.0.1:{port}{channels.path()}"
    server.should_exit = True
    thread.join(10)


def read(message):
    size = struct.unpack("<I", message[:4])[0]
    return json.loads(message[4 : 4 + size]), message[4 + size :]


def ask(socket, topic, number=0, rows=0, generation=""):
    socket.send(json.dumps({"topic": topic, "number": number, "rows": rows, "generation": generation}))


def test_a_browser_is_sent_what_it_lacks(channel, address):
    run = Counter()
    run.value = 3
    topic = channel.topic("run", run.refresh)
    with connect(address) as socket:
        ask(socket, topic.id)
        text, body = read(socket.recv(timeout=5))
        assert (text["from"], text["rows"], text["head"], body) == (0, [[0], [1], [2]], {"value": 3}, b"\x03")
        run.value = 5
        ask(socket, topic.id, text["number"], 3)
        text, _ = read(socket.recv(timeout=5))
        # The last row that it has may have changed.
        assert (text["from"], text["rows"]) == (2, [[2], [3], [4]])
        topic.generation = "every second"
        run.value = 6
        ask(socket, topic.id, text["number"], 5)
        text, _ = read(socket.recv(timeout=5))
        assert text["from"] == 0
        assert len(text["rows"]) == 6


def test_a_topic_is_made_once_for_all_who_watch_and_not_for_nobody(channel, address):
    run = Counter()
    topic = channel.topic("run", run.refresh)
    assert channel.topic("run", run.refresh) is topic
    with connect(address) as a, connect(address) as b:
        for number in range(1, 4):
            run.value = number
            for socket in (a, b):
                ask(socket, topic.id, number - 1)
            assert [read(socket.recv(timeout=5))[0]["head"] for socket in (a, b)] == [{"value": number}] * 2
        looks = run.looks
        time.sleep(3 * channels.PERIOD)
        assert run.looks == looks


def test_nothing_comes_before_something_has_changed(channel, address):
    run = Counter()
    topic = channel.topic("run", run.refresh)
    with connect(address) as socket:
        ask(socket, topic.id)
        number = read(socket.recv(timeout=5))[0]["number"]
        ask(socket, topic.id, number)
        threading.Timer(0.3, lambda: setattr(run, "value", 1)).start()
        started = time.monotonic()
        assert read(socket.recv(timeout=5))[0]["head"] == {"value": 1}
        assert time.monotonic() - started > 0.25


def test_an_unknown_topic_is_gone(address):
    with connect(address) as socket:
        ask(socket, "guess")
        assert read(socket.recv(timeout=5))[0]["head"] == {"gone": True}


def test_a_topic_that_fails_is_gone_and_others_go_on(channel, address):
    run = Counter()
    run.value = 2
    broken = channel.topic("a", Mock(side_effect=RuntimeError("a defect")))
    good = channel.topic("b", run.refresh)
    with connect(address) as socket:
        ask(socket, broken.id)
        assert read(socket.recv(timeout=5))[0]["head"] == {"gone": True}
        ask(socket, good.id)
        assert read(socket.recv(timeout=5))[0]["head"] == {"value": 2}


@pytest.mark.parametrize(
    "broken", [{"head": {"value": object()}}, {"head": {1: 2, "a": {3}}}, {"rows": [1]}, {"generation": b""}]
)
def test_what_cannot_be_sent_is_gone_and_others_go_on(channel, address, broken):
    run = Counter()
    good = channel.topic("good", run.refresh)
    bad = channel.topic("bad", lambda topic: vars(topic).update(broken) or True)
    with connect(address) as socket:
        for value in (1, 2):
            ask(socket, bad.id)
            assert read(socket.recv(timeout=5))[0]["head"] == {"gone": True}
            run.value = value
            ask(socket, good.id, value - 1)
            assert read(socket.recv(timeout=5))[0]["head"] == {"value": value}


def test_a_watched_topic_outlives_those_that_nobody_asks_for(channel, address, monkeypatch):
    monkeypatch.setattr(channels, "_MOST_TOPICS", 5)
    run = Counter()
    watched = channel.topic("watched", run.refresh)
    with connect(address) as socket:
        ask(socket, watched.id)
        number = read(socket.recv(timeout=5))[0]["number"]
        for other in range(20):
            channel.topic(other, run.refresh)
        ask(socket, watched.id, number)
        run.value = 7
        assert read(socket.recv(timeout=5))[0]["head"] == {"value": 7}


def test_who_waits_for_a_topic_that_is_evicted_hears_so(channel, address, monkeypatch):
    monkeypatch.setattr(channels, "_MOST_TOPICS", 2)
    topics = [channel.topic(n, Counter().refresh) for n in range(2)]
    with connect(address) as socket:
        for topic in topics:
            ask(socket, topic.id)
            ask(socket, topic.id, read(socket.recv(timeout=5))[0]["number"])
        channel.topic("another", Counter().refresh)
        answer, _ = read(socket.recv(timeout=5))
        assert (answer["topic"], answer["head"]) == (topics[0].id, {"gone": True})


def test_an_unknown_topic_is_answered_once_however_often_it_is_asked_for(channel):
    browser = channels._Browser(Mock())
    for _ in range(1_000):
        channel.ask(browser, "guess", channels.Asked(0, 0, ""))
    assert len(browser.ready) == 1


def test_a_browser_that_takes_nothing_is_heard_no_further(channel):
    heard, sent = [], []

    async def ask_for_much():
        for n in range(200):
            heard.append(n)
            yield json.dumps({"topic": str(n)})

    async def take(data):
        if not sent:
            await asyncio.sleep(0.2)
        sent.append(len(heard))

    socket = Mock(accept=AsyncMock(), close=AsyncMock(), iter_text=ask_for_much, send_bytes=take)
    # A browser of another test may have an event loop at work in this thread.
    with ThreadPoolExecutor() as executor:
        executor.submit(asyncio.run, channel.serve(socket)).result(30)
    assert sent[0] <= channels._MOST_WAITING + 1 < len(heard)


@pytest.mark.parametrize("text", ["", "[]", "{}", "not JSON", '{"topic": "x", "rows": "many"}', "1" * 5_000])
def test_a_malformed_question_ends_the_connection_only(channel, address, text):
    topic = channel.topic("run", Counter().refresh)
    with connect(address) as socket:
        socket.send(text)
    with connect(address) as socket:
        ask(socket, topic.id)
        assert read(socket.recv(timeout=5))[0]["head"] == {"value": 0}
