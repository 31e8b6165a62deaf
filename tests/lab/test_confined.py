"""Calls in a subprocess: results, errors, and limits of time and memory."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from programs import alive, wait_for

import fmviz
from fmviz.engine.errors import StoppedError
from fmviz.lab import confined as module
from fmviz.lab.confined import confined, pack, unpack

LIMITS = {"name": "The file", "seconds": 20.0, "memory": 2e8, "advice": "Take less."}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits hold on Linux")


def test_results_and_errors_are_those_of_the_call():
    assert confined(sorted, [3, 1, 2], **LIMITS) == [1, 2, 3]
    assert confined(os.getpid, **LIMITS) != os.getpid()
    with pytest.raises(ValueError, match="invalid literal for int"):
        confined(int, "seven", **LIMITS)
    with pytest.raises(ValueError, match=r"The file cannot be read \(ZeroDivisionError: .*\)\."):
        confined(divmod, 1, 0, **LIMITS)


def test_what_takes_too_much_is_given_up():
    with pytest.raises(ValueError, match=r"The file takes more than 200 MB of memory to read\. Take less\."):
        confined(bytes, 10**10, **LIMITS)
    with pytest.raises(ValueError, match="longer than 0 s"):
        confined(time.sleep, 60, **LIMITS | {"seconds": 0.1})
    with pytest.raises(ValueError, match="takes longer"):
        confined(sum, range(10**12), **LIMITS | {"seconds": 0.2})
    with pytest.raises(StoppedError):
        confined(time.sleep, 60, **LIMITS, should_stop=lambda: True)


@pytest.mark.parametrize(
    ("function", "argument", "ending"),
    [(os._exit, 1, "exit status 1"), (signal.raise_signal, signal.SIGSEGV, "SIGSEGV")],
)
def test_a_death_is_not_taken_for_a_lack_of_memory(function, argument, ending):
    with pytest.raises(ValueError, match=f"the process that reads it ended with {ending}") as caught:
        confined(function, argument, **LIMITS)
    assert "memory" not in str(caught.value)


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


PARENT = """
import os, time
from fmviz.lab import confined as module
from fmviz.lab.confined import pack, unpack
module.confined(os.getpid, name="", seconds=9, memory=1e8, advice="")
print(module._running[0]._process.pid, flush=True)
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
    module._running[0]._process.kill()
    module._running[0]._process.wait()
    assert confined(sorted, [2, 1], **LIMITS) == [1, 2]
