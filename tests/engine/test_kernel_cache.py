"""The folder of compiled kernels: damaged, read-only, or impossible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs import run_afresh

from fmviz.engine import _jit

pytestmark = pytest.mark.needs_jit


def add_one(x):
    return x + 1.0


def hits(place: Path) -> int:
    """Call a kernel of that folder as a new process does; return how often it came from the cache."""
    kernel = _jit._kernel(add_one, "add_one", False)
    assert kernel(1.0) == 2.0
    return sum(kernel.stats.cache_hits.values())


def zeroed(data: bytes) -> bytes:
    """Return the machine code with a run of zeros in its middle, as after a power failure."""
    middle = len(data) // 2
    return data[:middle] + bytes(64) + data[middle + 64 :]


@pytest.fixture
def place(tmp_path, monkeypatch):
    place = tmp_path / "kernels"
    monkeypatch.setattr(_jit, "cache_directory", lambda: place)
    return place


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:100], lambda data: data[:-1], zeroed]
)
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_damaged_file_is_replaced(place, suffix, damage):
    assert (hits(place), hits(place)) == (0, 1)
    (file,) = place.rglob(f"*.{suffix}")
    file.write_bytes(damage(file.read_bytes()))
    hits(place)
    assert hits(place) == 1


READ_ONLY = """
import errno, json, os, sys, tempfile
place = os.environ["FMVIZ_CACHE_DIR"]

def refuse(event, arguments):
    # As on a disk that is mounted read-only, also for root.
    writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes or event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.utime"):
        if str(arguments[0]).startswith(place):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), arguments[0])

if len(sys.argv) > 1:
    sys.addaudithook(refuse)
from fmviz.engine import _jit
from fmviz.engine.counting import used_interactions
import numpy as np
used_interactions(np.eye(2))
stats = [kernel.stats for kernel in _jit.KERNELS.values() if kernel.signatures]
print(json.dumps({
    "hits": sum(sum(one.cache_hits.values()) for one in stats),
    "misses": sum(sum(one.cache_misses.values()) for one in stats),
    "ready": _jit.has_compiled(),
    "writable": _jit.is_writable(_jit.cache_directory()),
    "temporary": os.listdir(tempfile.gettempdir()),
}))
"""


def in_a_process(tmp_path: Path, place: Path, *given: str, **environment: str) -> dict:
    (tmp_path / "temporary").mkdir(exist_ok=True)
    folders = {"FMVIZ_CACHE_DIR": place, "TMPDIR": tmp_path / "temporary"}
    return json.loads(run_afresh("-c", READ_ONLY, *given, **folders, **environment))


def test_a_cache_that_cannot_be_written_is_read(tmp_path):
    first = in_a_process(tmp_path, tmp_path / "place")
    assert (first["hits"], first["ready"], first["writable"]) == (0, True, True)
    assert first["misses"] > 0
    second = in_a_process(tmp_path, tmp_path / "place", "read-only")
    assert (second["hits"], second["misses"]) == (first["misses"], 0)
    assert (second["ready"], second["writable"]) == (True, False)
    assert second["temporary"] == []
    # Another processor has other kernels.
    third = in_a_process(tmp_path, tmp_path / "place", "read-only", NUMBA_CPU_NAME="generic")
    assert (third["hits"], third["misses"], third["ready"]) == (0, first["misses"], False)


def test_kernels_are_compiled_where_no_cache_can_be(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    result = in_a_process(tmp_path, tmp_path / "file")
    assert (result["hits"], result["writable"], result["temporary"]) == (0, False, [])
