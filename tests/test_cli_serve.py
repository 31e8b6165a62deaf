"""``fmviz serve`` from a checkout and from an installed package."""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from programs import ROOT, run_afresh

from fmviz.cli import serve
from fmviz.ui.serving import Guard


class Became(Exception):  # noqa: N818 - no error
    """What a process becomes cannot be seen from within."""


@pytest.fixture
def became(monkeypatch):
    def note(program, line, environment):
        raise Became(program, line, environment)

    monkeypatch.setattr(os, "execve", note)


def test_it_becomes_the_server(became, tmp_path, command, monkeypatch):
    # Its usual port may be in use.
    monkeypatch.setattr(serve, "check_port", lambda port, host: None)
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


def test_on_windows_the_server_is_a_child_process(became, command, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(serve, "check_port", lambda port, host: None)
    started = []
    monkeypatch.setattr(subprocess, "call", lambda line, env: started.append(line) or 7)
    command("serve", "--port", "8765", code=7)
    assert started[0][-2:] == ["--server.port", "8765"]


@pytest.mark.parametrize("name", ["FMVIZ_MEMORY", "FMVIZ_UPLOADS"])
def test_limits_that_are_none_are_refused(monkeypatch, became, command, name):
    monkeypatch.setenv(name, "much")
    assert f"{name} is 'much'; give a number with a unit" in command("serve", code=2).err


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


def test_ports_and_addresses_that_there_cannot_be(became, command):
    for option, said in (
        ("--port 70000", "is not a port"),
        ("--port abc", "is not a port"),
        ("--host nope.invalid", "is not an address"),
        ("--host 192.0.2.1", "is not an address"),
    ):
        assert f"{option} {said}" in command("serve", *option.split(), code=2).err


@pytest.mark.parametrize(
    ("form", "ours"), [(None, True), (None, False), ("make run PORT=", True), ("make run PORT=", False)]
)
def test_a_port_that_is_taken(monkeypatch, became, command, form, ours):
    class Health(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            for name, value in Guard(None)._headers if ours else ():
                self.send_header(name.decode(), value.decode())
            self.end_headers()

    if form is not None:
        monkeypatch.setenv("FMVIZ_PORT_FORM", form)
        assert "\nPORT=abc is not a port" in "\n" + command("serve", "--port", "abc", code=2).err
    with HTTPServer(("127.0.0.1", 0), Health) as server:
        port = server.server_port
        threading.Thread(target=server.handle_request, daemon=True).start()
        message = command("serve", "--port", port, code=2).err
    assert f"Port {port} cannot be used ({'fmviz runs at' if ours else 'Address already in use'}" in message
    assert int(message.partition(f". Choose another one: {form or 'fmviz serve --port '}")[2]) > port


def test_names_are_allowed_on_purpose():
    assert "--server.allowedHosts" not in serve.command(None, None)
    assert serve.command(None, None, ["fm.example.org"])[-2:] == ["--server.allowedHosts", "fm.example.org"]


# ------------------------------------------------------------------------------------- in which surroundings


def test_what_a_command_starts_imports_nothing_from_the_current_folder(tmp_path):
    # A script as pip installs it, which does not import from there either; then it starts workers.
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "fmviz"
    script.write_text(
        "from fmviz.__main__ import main\n"
        "from functools import partial\n"
        "from fmviz.lab.background.workers import carry_out\n"
        "if __name__ == '__main__':\n"
        "    try: main()\n"
        "    except SystemExit: print(sorted(carry_out([partial(dict.fromkeys, [n]) for n in (1, 2)])))\n"
    )
    (tmp_path / "random.py").write_text("raise SystemExit('random.py of the folder was run')")
    assert "[(0, 1), (1, 2)]" in run_afresh(script, "--version", folder=tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        line = [sys.executable, script, "serve", "--port", str(free.getsockname()[1])]
    with subprocess.Popen(
        line, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    ) as server:
        assert any(b"You can now view" in text for text in server.stdout)
        server.terminate()


HOMELESS = """
import os, pwd, sys
def unknown(uid): raise KeyError(uid)
pwd.getpwuid, sys.stderr = unknown, sys.stdout
del os.environ["HOME"]
from fmviz.engine import _jit
from fmviz.lab.files import default_path
print(_jit.cache_directory(), default_path(), default_path(), sep="\\n")
"""


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_without_a_home_directory_files_go_to_a_private_temporary_one(tmp_path, mode):
    usual = tmp_path / f"fmviz-{os.getuid()}"
    usual.mkdir()
    usual.chmod(mode)
    unset = dict.fromkeys(("FMVIZ_STORE", "FMVIZ_CACHE_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME"), "")
    message, kernels, *stores = run_afresh("-c", HOMELESS, HOME="/", TMPDIR=tmp_path, **unset).splitlines()
    home = Path(kernels).parents[3]
    assert (home == usual) == (mode == 0o700)
    assert (home.parent, home.stat().st_mode & 0o777) == (tmp_path, 0o700)
    assert f"stores its files in {home}" in message
    assert stores == 2 * [str(home / ".local/share/fmviz/runs.sqlite")]


def test_without_a_home_directory_the_variables_are_enough(tmp_path):
    variables = {"FMVIZ_STORE": tmp_path / "runs.sqlite", "FMVIZ_CACHE_DIR": tmp_path}
    kernels, *stores = run_afresh("-c", HOMELESS, HOME="/", **variables).splitlines()
    assert Path(kernels).parents[1] == tmp_path
    assert stores == 2 * [str(variables["FMVIZ_STORE"])]


def test_scripts_see_the_checkout_and_its_environment_alone():
    foreign = dict.fromkeys(("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"), "1")
    printed = subprocess.check_output(
        ["sh", "-c", ". tools/common.sh; env"], cwd=ROOT, env=os.environ | foreign, text=True
    )
    # A 0 that is set overrules `user = true` of a pip.conf, too.
    assert [text for text in printed.splitlines() if text.startswith((*foreign,))] == ["PIP_USER=0"]
    for path in {*(ROOT / "tools").glob("*.sh")} - {ROOT / "tools" / "common.sh"}:
        assert "\n. tools/common.sh\n" in path.read_text(encoding="utf-8"), path


def test_an_image_has_all_that_an_installed_package_has_beside_its_modules():
    setup, dockerfile, ignored = (
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("setup.py", ".docker/Dockerfile", ".dockerignore")
    )
    copied = [source for text in re.findall("(?m)^COPY (.*)$", dockerfile) for source in text.split()[:-1]]
    pages = re.findall('"([^"]+)"', re.search("(?m)^PAGES = .*$", setup)[0])
    assert all(any(Path(page).is_relative_to(source) for source in copied) for page in pages)
    # Kernels are for any processor, and data are open to any user of group 0.
    assert all(text in dockerfile for text in ("NUMBA_CPU_NAME=", "--group=0 --mode=0770 /data"))
    assert {Path(file).parts[0] for file in re.findall("(?m)^!?([^#\\n]+)$", ignored)} == {
        "**",
        "*",
        *(Path(source).parts[0] for source in copied),
    }
