"""The dashboard as it is served: names that are answered, headers, and the warning of a public address."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from programs import run_afresh
from starlette.responses import PlainTextResponse, Response
from streamlit import config

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
    assert "a session may upload 200 bytes, of which it has 0 bytes left" in answers[5][1]
    assert "all visitors may upload 300 bytes, and there is room for 0 bytes" in answers[-1][1]
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
