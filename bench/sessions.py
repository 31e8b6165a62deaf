"""Load-test the dashboard: many sessions press Play simultaneously; time first epochs and clicks.

    python -m bench.sessions               # 20 sessions for 60 seconds
    python -m bench.sessions 40 600        # 40 sessions for ten minutes

Serves a separate dashboard with a separate store, compiles the kernels of the default run of *Train* by a
first run, and opens this page in a number of sessions, each with a WebSocket for Streamlit's protocol and
another for the channel. Sessions request pictures like `channel.js`, keep the messages that a browser keeps,
press Play simultaneously, and continue clicking. The report contains the seconds from Play to the first
displayed epoch, and from a click to the end of its response, the fairness of epochs before the first further
click, the pictures per second, failures, and memory and threads of the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import struct
import sys
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from .serve import processor_seconds, served, server_of

REST = (5, 25, 150)
"""The idle time in seconds before the server is measured again."""
_PAINTING = 1 / 60
_UNDISTURBED = 4.0
"""The time in seconds during which all sessions play without further clicks."""
_CLICKS = ("train_pause", "train_play", "train_step", "train_play", "train_stop", "train_reset", "train_play")


@dataclass
class Session:
    """A browser tab.

    Attributes
    ----------
    url : str
        The server.
    link : str
        The page, with its settings.
    """

    url: str
    link: str = "train?level=expert"
    buttons: dict[str, str] = field(default_factory=dict)
    disabled: set[str] = field(default_factory=set)
    epoch: int = -1
    clicks: list[float] = field(default_factory=list)
    pictures: list[float] = field(default_factory=list)
    epochs: list[tuple[float, int]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    played: float = 0.0
    first_epoch: float | None = None

    def __post_init__(self) -> None:
        self._kept: dict[str, ForwardMsg] = {}
        self._page = ""
        self._query = self.link.partition("?")[2]
        self._topic, self._phase = "", ""
        self._others: set[asyncio.Task[None]] = set()
        self._answered = asyncio.Event()
        self._socket: ClientConnection

    async def open(self) -> None:
        """Open the page and wait until it is rendered."""
        address = self.url.replace("http", "ws", 1) + "/_stcore/stream"
        self._socket = await connect(
            address, subprotocols=["streamlit"], max_size=None, origin=self.url, ping_interval=None
        )
        self._reading = asyncio.create_task(self._read())
        await self._ask([])

    async def close(self) -> None:
        """Close the tab."""
        for task in self._others:
            task.cancel()
        await self._socket.close()
        await self._reading

    async def click(self, key: str) -> bool:
        """Press a button and wait for the end of the response; return whether the button was available."""
        if key not in self.buttons or key in self.disabled:
            return False
        if key == "train_play" and not self.played:
            self.played = time.perf_counter()
        began = time.perf_counter()
        await self._ask([WidgetState(id=self.buttons[key], trigger_value=True)])
        self.clicks.append(time.perf_counter() - began)
        return True

    async def _ask(self, states: list[WidgetState]) -> None:
        """Request a rerun of the page, and wait for it."""
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_script_hash = self._query, self._page
        state.page_name = "" if self._page else self.link.partition("?")[0]
        state.cached_message_hashes.extend(self._kept)
        state.context_info.url = f"{self.url}/{self.link}"
        state.widget_states.widgets.extend(states)
        self._answered.clear()
        with suppress(ConnectionClosed):
            await self._socket.send(message.SerializeToString())
        await self._answered.wait()

    async def _read(self) -> None:
        with suppress(ConnectionClosed):
            async for data in self._socket:
                assert isinstance(data, bytes)
                message = ForwardMsg.FromString(data)
                if message.WhichOneof("type") == "ref_hash":
                    message = self._kept[message.ref_hash]
                elif message.metadata.cacheable:
                    self._kept[message.hash] = message
                self._take(message)
        self._answered.set()

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "navigation":
            self._page = message.navigation.page_script_hash
        elif kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._element(message.delta.new_element)
        elif kind == "script_finished" and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
            self._answered.set()

    def _element(self, element: Any) -> None:
        kind = element.WhichOneof("type")
        if kind == "button":
            key = element.button.id.rpartition("-")[2]
            self.buttons[key] = element.button.id
            (self.disabled.add if element.button.disabled else self.disabled.discard)(key)
        elif kind == "exception":
            self.failures.append(element.exception.message)
        elif kind == "alert" and element.alert.format == element.alert.ERROR:
            self.failures.append(element.alert.body)
        elif kind == "bidi_component" and element.bidi_component.component_name == "fmviz.stage":
            self._stage(element.bidi_component.bytes)

    def _stage(self, data: bytes) -> None:
        size = struct.unpack_from("<I", data, 4)[0]
        stage = json.loads(data[8 : 8 + size])["stage"]
        self._phase = stage["phase"]
        self._look(stage)
        live = stage["live"] or {"topic": ""}
        if live["topic"] != self._topic:
            self._topic = live["topic"]
            if self._topic:
                self._apart(self._watch(self._topic, live["path"]))

    def _look(self, facts: dict[str, Any]) -> None:
        for label, value, *_ in facts["numbers"]:
            if label == "Epoch":
                self.epoch = int(value.replace(",", ""))
                self.epochs.append((time.perf_counter(), self.epoch))
        if self.epoch > 0 and self.played and self.first_epoch is None:
            self.first_epoch = time.perf_counter() - self.played

    async def _watch(self, topic: str, path: str) -> None:
        """Request the messages of a topic, each after the last has been painted, while it is displayed."""
        question = {"topic": topic, "number": 0, "rows": 0, "generation": ""}
        address = self.url.replace("http", "ws", 1) + path
        with suppress(ConnectionClosed):
            async with connect(address, max_size=None, origin=self.url, ping_interval=None) as socket:
                while self._topic == topic:
                    await socket.send(json.dumps(question))
                    data = await socket.recv()
                    assert isinstance(data, bytes)
                    size = struct.unpack_from("<I", data)[0]
                    message = json.loads(data[4 : 4 + size])
                    head = message["head"]
                    question |= {name: message[name] for name in ("number", "generation")}
                    question["rows"] = message["from"] + len(message["rows"])
                    if "numbers" in head:
                        self.pictures.append(time.perf_counter())
                        self._look(head)
                    if (phase := head.get("phase", "gone")) != self._phase:
                        self._phase = phase
                        self._apart(self._ask([]))
                    if head.get("gone"):
                        return
                    await asyncio.sleep(_PAINTING)

    def _apart(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)


@dataclass(frozen=True)
class Rest:
    """Resource usage of a server: resident bytes, threads, and CPU seconds so far."""

    resident: float
    threads: int
    processor: float

    @classmethod
    def of(cls, pid: int) -> Rest:
        """Read the usage of a process."""
        status = Path(f"/proc/{pid}/status").read_text()
        usage = {name: int(re.search(rf"{name}:\s+(\d+)", status)[1]) for name in ("VmRSS", "Threads")}  # type: ignore[index]
        return cls(1024.0 * usage["VmRSS"], usage["Threads"], processor_seconds(pid))

    def __str__(self) -> str:
        return f"{self.resident / 1e6:.0f} MB, {self.threads} threads"


async def visit(session: Session, start: asyncio.Event, until: float, chance: random.Random) -> None:
    """Press Play together with all other sessions, then continue clicking like a user."""
    await start.wait()
    await session.click("train_play")
    while (remaining := until - time.monotonic()) > 0:
        await asyncio.sleep(min(remaining, chance.uniform(_UNDISTURBED, 12.0)))
        pressed = [key for key in _CLICKS if key in session.buttons and key not in session.disabled]
        if pressed and time.monotonic() < until:
            await session.click(chance.choice(pressed))


async def measure(url: str, n: int, seconds: float) -> None:
    """Measure and print."""
    pid = server_of(url.rpartition(":")[2])
    first = Session(url)
    await first.open()
    await first.click("train_play")
    while first.epoch < 1:
        await asyncio.sleep(0.1)
    await first.click("train_stop")
    await first.close()
    await asyncio.sleep(2)
    before = Rest.of(pid)
    print(f"load {os.getloadavg()[0]:.1f}; at rest before: {before}", flush=True)
    sessions = [Session(url) for _ in range(n)]
    opened = []
    for session in sessions:
        began = time.perf_counter()
        await session.open()
        opened.append(time.perf_counter() - began)
    start, until = asyncio.Event(), time.monotonic() + seconds
    visits = [
        asyncio.create_task(visit(session, start, until, random.Random(seed)))
        for seed, session in enumerate(sessions)
    ]
    await asyncio.sleep(1)
    idle, began = Rest.of(pid), time.monotonic()
    start.set()
    await asyncio.wait(visits, timeout=seconds + 60)
    busy, took = Rest.of(pid), time.monotonic() - began
    for session in sessions:
        await session.close()
    seen = sorted(session.first_epoch for session in sessions if session.first_epoch is not None)
    clicks = np.array([took for session in sessions for took in session.clicks])
    pictures = np.array([len(session.pictures) / took for session in sessions])
    failures = sorted({sentence for session in sessions for sentence in session.failures})
    print(f"{n} pages opened one after another, median {np.median(opened):.2f} s")
    print(f"first epoch: {len(seen)} of {n}; seconds " + " ".join(f"{seconds:.1f}" for seconds in seen))
    print(f"{clicks.size} clicks: " + quantiles(clicks))
    epochs = np.array(
        [
            max((epoch for at, epoch in session.epochs if at <= session.played + _UNDISTURBED), default=0)
            for session in sessions
        ]
    )
    print(
        f"epochs in {_UNDISTURBED:g} s: median {np.median(epochs):.0f}, least {epochs.min()}, {jain(epochs)}"
    )
    print(f"pictures a second: median {np.median(pictures):.1f}, least {pictures.min():.1f}")
    print(f"{(busy.processor - idle.processor) / took:.2f} cores; then {busy}; load {os.getloadavg()[0]:.1f}")
    print(
        f"unanswered sessions: {sum(not visit.done() or visit.exception() is not None for visit in visits)}"
    )
    print("failures: " + ("; ".join(failures) or "none"), flush=True)
    for wait in REST:
        await asyncio.sleep(wait)
        print(f"{wait} s later: {Rest.of(pid)}", flush=True)


def jain(shares: np.ndarray[Any, Any]) -> str:
    """Return Jain's fairness index, 1 if all shares are equal."""
    return f"Jain's index {shares.sum() ** 2 / max(1, shares.size * (shares**2).sum()):.3f}"


def quantiles(seconds: np.ndarray[Any, Any]) -> str:
    """Return the median, the 95th percentile and the maximum."""
    if not seconds.size:
        return "none"
    half, most = np.quantile(seconds, [0.5, 0.95])
    return f"median {half:.2f} s, p95 {most:.2f} s, worst {seconds.max():.2f} s"


def main() -> None:
    """Serve, measure and print."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    with served() as url:
        asyncio.run(measure(url, n, seconds))


if __name__ == "__main__":
    main()
