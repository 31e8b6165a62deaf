"""Test the channel by which browsers watch what goes on."""

from __future__ import annotations

import json
import struct
import threading
import time
from unittest.mock import Mock

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


@pytest.mark.parametrize("text", ["", "[]", "{}", "not JSON", '{"topic": "x", "rows": "many"}', "1" * 5_000])
def test_a_malformed_question_ends_the_connection_only(channel, address, text):
    topic = channel.topic("run", Counter().refresh)
    with connect(address) as socket:
        socket.send(text)
    with connect(address) as socket:
        ask(socket, topic.id)
        assert read(socket.recv(timeout=5))[0]["head"] == {"value": 0}
