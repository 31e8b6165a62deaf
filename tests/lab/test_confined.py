"""Calls in a subprocess: results, errors, and limits of time and memory."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from programs import alive, run_afresh, wait_for

import fmviz
from fmviz.engine.errors import StoppedError
from fmviz.lab import confined as module
from fmviz.lab.confined import confined, pack, unpack
from fmviz.lab.files import default_path
from fmviz.lab.store import RunStore

LIMITS = {"name": "The file", "seconds": 20.0, "memory": 2e8, "advice": "Take less."}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits hold on Linux")


def test_results_are_those_of_the_call():
    assert confined(sorted, [3, 1, 2], **LIMITS) == [1, 2, 3]
    assert confined(os.getpid, **LIMITS) != os.getpid()


def test_errors_are_those_of_the_call():
    with pytest.raises(ValueError, match="invalid literal for int"):
        confined(int, "seven", **LIMITS)
    with pytest.raises(ValueError, match=r"The file cannot be read \(ZeroDivisionError: .*\)\."):
        confined(divmod, 1, 0, **LIMITS)


def test_errors_are_the_same_without_a_process(monkeypatch):
    monkeypatch.setattr(module, "FORKS", False)
    assert confined(os.getpid, **LIMITS) == os.getpid()
    test_errors_are_those_of_the_call()


def test_what_takes_too_much_is_given_up():
    with pytest.raises(ValueError, match=r"The file needs more than 200 MB of memory to read\. Take less\."):
        confined(bytes, 10**10, **LIMITS)
    with pytest.raises(ValueError, match="longer than 0 s"):
        confined(time.sleep, 60, **LIMITS | {"seconds": 0.1})
    with pytest.raises(ValueError, match="takes longer"):
        confined(sum, range(10**12), **LIMITS | {"seconds": 0.2})
    with pytest.raises(StoppedError):
        confined(time.sleep, 60, **LIMITS, should_stop=lambda: True)


@pytest.mark.parametrize(
    ("function", "argument", "ending"),
    [
        (os._exit, 1, "sent no answer"),
        (signal.raise_signal, signal.SIGSEGV, "crashed"),
        (signal.raise_signal, signal.SIGSYS, "crashed"),
    ],
)
def test_a_death_is_not_taken_for_a_lack_of_memory(function, argument, ending):
    with pytest.raises(ValueError, match=rf"\(the process that reads it {ending}\)") as caught:
        confined(function, argument, **LIMITS)
    assert "memory" not in str(caught.value)


def test_a_process_that_the_system_kills_lacked_memory():
    with pytest.raises(ValueError, match=r"\(.*was killed by the system, probably for lack of memory\)"):
        confined(signal.raise_signal, signal.SIGKILL, **LIMITS)


def test_a_process_that_has_no_limits_of_its_own_is_given_up():
    code = "import signal, time; signal.signal(signal.SIGALRM, signal.SIG_IGN); time.sleep(30)"
    with pytest.raises(ValueError, match="takes longer"):
        confined(exec, code, **LIMITS | {"seconds": 0.1})


class Exploit:
    def __reduce__(self):
        return Path.touch, (Path("exploited"),)


@pytest.mark.parametrize("answer", [pickle.dumps(("returned", Exploit())), b"", b"\0" * 8, b"\xff" * 64])
def test_an_answer_runs_nothing(monkeypatch, tmp_path, answer):
    """Whatever a process that a file has taken over sends in place of its result."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_answer", lambda *_: memoryview(answer + bytes(8)))
    with pytest.raises(ValueError, match=r"The file cannot be read \(.*sent no answer\)"):
        confined(sorted, [1], **LIMITS)
    assert not Path("exploited").exists()


def test_results_come_back_as_they_were():
    table = pd.DataFrame(
        {
            "a": [1, 2, 3],
            "b": [0.1, np.nan, np.inf],
            "c": ["x", None, "\0 ü"],
            "d": [True, None, False],
            "e": np.array(["2024-01-31", "NaT", "1969-01-01T00:00:01"], dtype="datetime64[us]"),
            "f": np.array([1, 2, 3], dtype=np.uint8),
            "g": [np.nan] * 3,
        }
    )
    back = unpack(pack({"table": table, "array": np.eye(2), "bytes": b"\x80", "numbers": [1, 0.1, None]}))
    pd.testing.assert_frame_equal(back["table"], table)
    assert np.array_equal(back["array"], np.eye(2))
    assert (back["bytes"], back["numbers"]) == (b"\x80", [1, 0.1, None])


ATTACK = """
import ctypes, os, socket, stat, subprocess, time

def attempt(name, action, *arguments):
    try:
        action(*arguments)
    except OSError:
        return
    succeeded.add(name)

def sockets():
    for descriptor in range(64):
        try:
            yield stat.S_ISSOCK(os.fstat(descriptor).st_mode)
        except OSError:
            pass

succeeded = set()
for file in files:
    attempt("read", open, file)
    attempt("open to write", open, file, "r+b")
    attempt("change permissions", os.chmod, file, 0o666)
    attempt("truncate", os.truncate, file, 0)
    attempt("make a folder", os.mkdir, file + ".new")
    attempt("make a link", os.symlink, file, file + ".link")
    attempt("rename", os.rename, file, file + ".old")
    attempt("delete", os.remove, file)
    attempt("list", os.listdir, os.path.dirname(file))
attempt("run a program", subprocess.run, ["/bin/true"])
attempt("connect", socket.create_connection, address, 5)
attempt("send", lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", address))
attempt("connect to a file", lambda: socket.socket(socket.AF_UNIX).connect(path))
attempt("read the environment", open, f"/proc/{server}/environ")
attempt("kill", os.kill, server, 0)
# Python itself sets the first; threadpoolctl and scikit-learn set those of OpenMP.
own = {name for name in os.environ if name not in ("LC_CTYPE", "LD_LIBRARY_PATH") and name[:4] != "KMP_"}
if len(own) > 5:
    succeeded.add("environment")
if sum(sockets()) > 1:
    succeeded.add("receive the requests of others")
reading, writing = os.pipe()
if not os.fork():
    os.setsid()
    ctypes.CDLL(None).prctl(15, name)  # PR_SET_NAME
    os.write(writing, b"x")
    os.closerange(0, 64)
    time.sleep(600)
os.read(reading, 1)
"""
FACTS = """
import ctypes
libc = ctypes.CDLL(None)
print(libc.syscall(444, None, ctypes.c_size_t(0), 1) >= 3 and libc.unshare(0x70020000) == 0)
"""


def test_a_process_that_a_file_has_taken_over_reaches_nothing(tmp_path, monkeypatch):
    """Where the kernel has Landlock, from version 3 on, and namespaces for this user."""
    if run_afresh("-c", FACTS).strip() != "True":
        pytest.skip("this kernel has no Landlock, or gives this user no namespaces")
    monkeypatch.setenv("FMVIZ_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.setenv("A_PASSWORD", "swordfish")
    RunStore(default_path()).close()
    (other := Path(tempfile.mkdtemp(), "file")).write_text("x")
    name, before = f"fmviz{os.getpid()}".encode(), default_path().read_bytes()
    space = {"files": [str(default_path()), str(other)], "server": os.getpid(), "name": name}
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(path := str(tmp_path / "socket"))
        local.listen()
        space |= {"code": ATTACK, "address": server.getsockname(), "path": path}
        succeeded = confined(eval, "(exec(code, globals()), sorted(succeeded))[1]", space, **LIMITS)
    running = [file for file in Path("/proc").glob("[0-9]*/comm") if name in file.read_bytes()]
    for file in running:
        os.kill(int(file.parent.name), signal.SIGKILL)
    assert (succeeded, running) == ([], [])
    assert default_path().read_bytes() == before
    assert [file.name for file in other.parent.iterdir()] == ["file"]


PARENT = """
import os, time
from fmviz.lab import confined as module
from fmviz.lab.confined import pack, unpack
module.confined(os.getpid, name="", seconds=9, memory=1e8, advice="")
print(module._server._process.pid, flush=True)
module.confined(time.sleep, 600, name="", seconds=900, memory=1e8, advice="")
"""


def test_nothing_outlives_its_parent():
    root = str(Path(fmviz.__file__).parents[1])
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": root},
    )
    helper = int(parent.stdout.readline())
    children = Path(f"/proc/{helper}/task/{helper}/children")
    wait_for(children.read_text)
    forked = children.read_text().split()
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    wait_for(lambda: not any(map(alive, (helper, *map(int, forked)))))


def test_a_helper_that_has_died_is_replaced():
    confined(os.getpid, **LIMITS)
    module._server._process.kill()
    module._server._process.wait()
    assert confined(sorted, [2, 1], **LIMITS) == [1, 2]
