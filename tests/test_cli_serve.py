"""``fmviz serve`` from a checkout and from an installed package."""

from __future__ import annotations

import argparse
import os
import socket
import sys

import pytest

from fmviz.cli import serve


class Became(Exception):  # noqa: N818 - no error
    """What a process becomes cannot be seen from within."""


@pytest.fixture
def became(monkeypatch):
    def note(program, line, environment):
        raise Became(program, line, environment)

    monkeypatch.setattr(os, "execve", note)


def test_it_becomes_the_server(became, tmp_path, command):
    line = ("--debug", "serve", "--port", "8765", "--store", tmp_path / "s.sqlite")
    assert "Became" in command(*line, code=2).err
    parser = argparse.ArgumentParser()
    serve.add(parser)
    with pytest.raises(Became) as caught:
        serve.run(parser.parse_args(["--host", "0.0.0.0", "--store", "s.sqlite"]))
    program, line, environment = caught.value.args
    assert program == sys.executable
    assert line[1:4] == ["-c", serve._SERVER, "run"]
    assert line[4].endswith("app.py")
    assert line[5:7] == ["--server.address", "0.0.0.0"]
    assert set(line[7::2]) == {"--server.allowedHosts"}
    assert {"localhost", "127.0.0.1", socket.gethostname()} <= set(line[8::2])
    assert environment["FMVIZ_STORE"] == os.path.abspath("s.sqlite")


@pytest.mark.parametrize("name", ["FMVIZ_MEMORY", "FMVIZ_UPLOADS"])
def test_limits_that_are_none_are_refused(monkeypatch, became, command, name):
    monkeypatch.setenv(name, "much")
    assert f"{name} is 'much'; give a number with its unit" in command("serve", code=2).err


def test_the_entry_page_of_an_installed_package(monkeypatch, tmp_path):
    package = tmp_path / "fmviz"
    (package / "app" / "pages").mkdir(parents=True)
    (tmp_path / "app.py").write_text("# Somebody else's.")
    monkeypatch.setattr(serve, "_PACKAGE", package)
    with pytest.raises(ValueError, match="not installed"):
        serve.entry_page()
    for script in ("app.py", "pages/train.py"):
        (package / "app" / script).write_text("")
    assert serve.entry_page() == package / "app" / "app.py"


def test_ports_and_addresses_that_there_cannot_be(command):
    for given, said in (("--port 70000", "is no port"), ("--host nope.invalid", "is no address")):
        assert f"{given} {said}" in command("serve", *given.split(), code=2).err


def test_names_are_allowed_on_purpose():
    assert "--server.allowedHosts" not in serve.command(None, None)
    assert serve.command(None, None, ["fm.example.org"])[-2:] == ["--server.allowedHosts", "fm.example.org"]
