"""The dashboard as it is served: names that are answered, headers, and the warning of a public address."""

from __future__ import annotations

import resource
import threading
import time
from types import SimpleNamespace

import pytest
from programs import run_afresh
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from streamlit import config, net_util
from streamlit.web.server.starlette import starlette_websocket

from fmviz.ui import serving, session_uploads


def get(monkeypatch, host: str, ancestors: str = "") -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of an answer."""
    monkeypatch.setenv(serving.FRAME_ANCESTORS, ancestors)
    monkeypatch.setattr(config, "get_option", {"server.allowedHosts": ["localhost", "*.example.org"]}.get)
    sent: list[dict] = []

    async def send(message):
        sent.append(message)

    headers = [(b"host", host.encode()), (b"accept", b"text/html"), (b"accept-encoding", b"gzip")]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
    answer = serving.Guard(PlainTextResponse("a page"))(scope, None, send)
    # Nothing is waited for, and a browser of another test may have an event loop at work.
    with pytest.raises(StopIteration):
        answer.send(None)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, sent[1]["body"]


@pytest.mark.parametrize("host", ["localhost:8501", "fm.example.org"])
def test_pages_say_who_may_embed_them(monkeypatch, host):
    status, headers, _ = get(monkeypatch, host)
    assert status == 200
    assert headers["content-security-policy"].startswith("frame-ancestors 'self';")
    assert headers["x-frame-options"] == "SAMEORIGIN"
    assert headers["x-content-type-options"] == "nosniff"
    _, headers, _ = get(monkeypatch, host, "https://moodle.example.edu")
    assert "frame-ancestors https://moodle.example.edu;" in headers["content-security-policy"]
    assert "x-frame-options" not in headers


def test_uploads_are_counted_before_they_are_read(monkeypatch, store):
    """By session and in all, whatever page they come from: `PUT` of 12 files of 50 bytes."""
    monkeypatch.setattr(config, "get_option", {"server.allowedHosts": ["localhost"]}.get)
    monkeypatch.setattr(session_uploads, "SESSION_BYTES", 200)
    monkeypatch.setenv("FMVIZ_UPLOADS", "0.3 kB")
    stored: dict[str, dict[str, SimpleNamespace]] = {}
    runtime = SimpleNamespace(uploaded_file_mgr=SimpleNamespace(file_storage=stored))
    monkeypatch.setattr(
        session_uploads, "Runtime", SimpleNamespace(exists=lambda: True, instance=lambda: runtime)
    )
    # Two at once: one that is being received counts.
    waiting = serving.Guard(endless)(placed("b", "0", b"50"), None, None)
    waiting.send(None)
    answers = [upload(stored, session, str(n)) for session in "ab" for n in range(6)]
    assert [status for status, _ in answers] == [204] * 4 + [413] * 2 + [204] + [413] * 5
    assert "this session can upload 0 bytes more, of 200 bytes" in answers[5][1]
    assert "the server has room for 0 bytes more, of 300 bytes for all visitors" in answers[-1][1]
    waiting.close()
    assert upload(stored, "b", "7")[0] == 204
    assert upload(stored, "b", "8", length=None)[0] == 411
    stored.clear()
    assert upload(stored, "a", "0")[0] == 204


def placed(session: str, file: str, length: bytes | None) -> dict:
    headers = [(b"host", b"localhost"), *([] if length is None else [(b"content-length", length)])]
    path = f"/_stcore/upload_file/{session}/{file}"
    return {"type": "http", "method": "PUT", "path": path, "headers": headers}


class Never:
    def __await__(self):
        yield


async def endless(scope, receive, send):
    await Never()


def upload(stored, session: str, file: str, length: bytes | None = b"50") -> tuple[int, str]:
    """Return status and words of an answer to an upload, which Streamlit would have stored."""
    sent: list[dict] = []

    async def streamlit(scope, receive, send):
        stored.setdefault(session, {})[file] = SimpleNamespace(data=bytes(50))
        await Response(status_code=204)(scope, receive, send)

    async def send(message):
        sent.append(message)

    with pytest.raises(StopIteration):
        serving.Guard(streamlit)(placed(session, file, length), None, send).send(None)
    return sent[0]["status"], sent[1]["body"].decode()


@pytest.fixture
def clock(monkeypatch):
    """What the time of a socket's limits is; nothing asks for addresses."""
    names = ["localhost", "127.0.0.1", "::1", "192.0.2.9", "*.example.org", "fm.example.org"]
    monkeypatch.setattr(config, "get_option", {"server.allowedHosts": names, "server.baseUrlPath": ""}.get)
    for name in ("get_internal_ip", "get_external_ip"):
        monkeypatch.setattr(net_util, name, lambda: pytest.fail("an address was looked up"))
    clock = SimpleNamespace(now=time.monotonic())
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


async def acting(scope, receive, send):
    """Do what Streamlit does: accept pages of its own, then by a script receive, send or let time pass."""
    if starlette_websocket._is_origin_allowed(*map(Headers(scope=scope).get, ("origin", "host"))):
        await send({"type": "websocket.accept"})
        for act in scope["script"]:
            if act == "receive" and (await receive())["type"] == "websocket.disconnect":
                return await send({"type": "websocket.close"})
            if act == "send":
                await send({"type": "websocket.send", "bytes": b""})
            if act == "wait":
                scope["clock"].now += 1 / 30
        await Never()
    return await send({"type": "websocket.close"})


def open_socket(guard, clock, script=(), path="/_stcore/stream", host="localhost:8501", origin=None) -> str:
    """Return what a socket sends, and whether it stays open after its script."""
    sent: list[str] = []

    async def receive():
        return {"type": "websocket.receive", "bytes": b"Z\0"}

    async def send(message):
        sent.append(message["type"].removeprefix("websocket."))

    raw = [(b"host", host.encode()), *([] if origin is None else [(b"origin", origin.encode())])]
    scope = {"type": "websocket", "path": path, "headers": raw, "client": ("192.0.2.1", 5)}
    work = guard({**scope, "script": script, "clock": clock}, receive, send)
    try:
        work.send(None)
    except StopIteration:
        return f"{sent[0]}, ended"
    clock.sockets = [*getattr(clock, "sockets", ()), work]
    return f"{sent[0]}, open"


@pytest.mark.parametrize("path", ["/_stcore/stream", "/_fmviz/live"])
@pytest.mark.parametrize(
    ("host", "origin", "ours"),
    [
        ("localhost:8501", None, True),
        ("localhost:8501", "http://localhost:8501", True),
        ("localhost:8501", "http://LOCALHOST:8501", True),
        ("[::1]:8501", "http://[::1]:8501", True),
        ("fm.example.org", "https://fm.example.org", True),
        ("fm.example.org:443", "https://fm.example.org", True),
        ("127.0.0.1:8501", "https://fm.example.org", True),
        ("a.example.org:8443", "https://a.example.org:8443", True),
        ("localhost:8501", "http://localhost:9999", False),
        ("localhost:8501", "http://localhost", False),
        ("localhost:8501", "http://127.0.0.1:8501", False),
        ("192.0.2.9:8501", "http://192.0.2.9:9999", False),
        ("localhost:8501", "https://fm.example.org:8443", False),
        ("localhost:8501", "https://a.example.org", False),
        ("localhost:8501", "https://evil.com", False),
        ("localhost:8501", "https://localhost:8501@evil.com", False),
        ("localhost:8501", "http://localhost:port", False),
        ("localhost:8501", "null", False),
        ("localhost:8501", "", False),
        ("evil.com", "https://evil.com", False),
        ("evil.com", None, False),
    ],
)
def test_host_and_allowed_hosts_decide_which_pages_open_a_socket(clock, path, host, origin, ours):
    outcome = open_socket(serving.Guard(acting), clock, path=path, host=host, origin=origin)
    assert outcome == ("accept, open" if ours else "close, ended")


LOADED = ["receive", *["send"] * 100]
KEY = [*["wait", "receive"] * 20, "send"]


@pytest.mark.parametrize(
    ("script", "path", "closed"),
    [
        (["receive"] * 10, "/_stcore/stream", False),
        (["receive"] * 11, "/_stcore/stream", True),
        ([*LOADED, *["receive"] * 99], "/_stcore/stream", False),
        ([*LOADED, *["receive"] * 100], "/_stcore/stream", True),
        ([*LOADED, *["wait", *["receive", "send"] * 3] * 80], "/_stcore/stream", True),
        ([*LOADED, *KEY * 30], "/_stcore/stream", False),
        (["receive"] * 100, "/_fmviz/live", False),
        (["receive"] * 101, "/_fmviz/live", True),
        (["wait", *["receive", "send"] * 3] * 80, "/_fmviz/live", True),
        (["wait", "receive", "send"] * 600, "/_fmviz/live", False),
    ],
)
def test_a_socket_is_closed_that_sends_more_than_people_do(clock, script, path, closed):
    """Without an announced close, after which uvicorn would read on; others of its address open none soon."""
    guard = serving.Guard(acting)
    assert open_socket(guard, clock, script, path) == f"accept, {'ended' if closed else 'open'}"
    assert open_socket(guard, clock) == ("close, ended" if closed else "accept, open")
    clock.now += 11
    assert open_socket(guard, clock) == "accept, open"


def test_many_sockets_of_an_address_start_no_more_work_than_some(clock):
    guard = serving.Guard(acting)
    outcomes = [open_socket(guard, clock, ["receive"] * 10) for _ in range(30)]
    assert outcomes == ["accept, open"] * 20 + ["accept, ended"] + ["close, ended"] * 9


def test_sockets_are_counted_and_the_limit_of_open_files_is_raised(monkeypatch, clock):
    limits = [(96, 400)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    guard = serving.Guard(acting)
    assert limits[-1] == (400, 400)
    assert [open_socket(guard, clock) for _ in range(30)] == ["accept, open"] * 25 + ["close, ended"] * 5
    clock.sockets.pop().close()
    assert open_socket(guard, clock) == "accept, open"


@pytest.mark.parametrize("host", ["evil.com", "localhost.evil.com:8501", "a@localhost"])
def test_other_names_are_not_answered(monkeypatch, host):
    assert get(monkeypatch, host)[0] == 421


@pytest.mark.parametrize(
    ("address", "private"), [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False), (None, False)]
)
def test_a_public_address_is_warned_of(monkeypatch, capsys, address, private):
    monkeypatch.setattr(config, "get_option", {"server.address": address}.get)
    serving.tell_who_can_reach_it()
    assert ("without a login" in capsys.readouterr().err) != private


@pytest.mark.parametrize("compiled", [True, False])
def test_the_server_loads_what_its_first_visitor_waits_for_but_compiles_nothing(monkeypatch, compiled):
    done = threading.Event()
    monkeypatch.setattr(serving, "tell_who_can_reach_it", lambda: None)
    monkeypatch.setattr(serving, "has_compiled", lambda: compiled)
    monkeypatch.setattr(serving, "make_ready", done.set)
    serving.in_sessions(lambda: pytest.fail("no session is there to draw in"))
    assert done.wait(10 if compiled else 0.1) == compiled


def test_pages_are_imported_without_a_word():
    # The server imports the start page before Streamlit has a runtime.
    code = (
        "import importlib, pkgutil, sys; sys.stderr = sys.stdout; import fmviz.ui\n"
        "for module in pkgutil.walk_packages(fmviz.ui.__path__, 'fmviz.ui.'):\n"
        "    importlib.import_module(module.name)"
    )
    assert run_afresh("-c", code) == ""
