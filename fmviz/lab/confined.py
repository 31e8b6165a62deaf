"""Function calls in a subprocess with limits of time and memory, and results without code.

On Linux a fork server (`fmviz.lab.forking`) imports the function and forks a keeper for every call, which
forks the worker that makes the call; later calls start within milliseconds. If the kernel allows it
(`fmviz.lab.isolation`), the worker has no access to files and network and runs in a separate process
namespace, whose first process stands between worker and keeper and ends with them. The keeper appends the
exit status of the worker to the answer. Answers are data without code: a worker compromised by a file can
only send values. On other systems functions are called in the same process, without limits.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import pickle
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.engine._jit import cache_directory
from fmviz.engine.errors import StoppedError
from fmviz.engine.fit import never
from fmviz.engine.memory import in_words
from fmviz.lab.forking import FORKS, ForkServer
from fmviz.lab.isolation import enter_namespaces, restrict

# Allocators that reserve address space in advance would exceed the limit without using the memory.
_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
}
_PATIENCE = 0.1
# Polling interval of a keeper for the end of its worker, in milliseconds.
_STEP = 5
# Wall-clock seconds per second of processor time.
_WAITING = 6.0
_NUMBER_BYTES = 8
# Exit statuses of a worker; any other status is a crash.
_RETURNED, _MEMORY, _REFUSED, _FAILED = 0, 10, 11, 12


def confined(
    function: Callable[..., Any],
    *arguments: Any,
    name: str,
    seconds: float,
    memory: float,
    advice: str,
    should_stop: Callable[[], bool] = never,
) -> Any:
    """Return ``function(*arguments)``, called in a subprocess.

    Parameters
    ----------
    function : callable
        Importable by name, with picklable arguments. Returns a value for `pack`; tuples become lists.
    name : str
        Name of the file, for messages.
    seconds : float
        Limit of processor time; the limit of wall-clock time is six times as long.
    memory : float
        The limit in bytes of additional memory, and of the result.
    advice : str
        The advice in messages on exceeded limits.
    should_stop : callable
        Polled ten times a second; the call is aborted when it returns true.

    Raises
    ------
    ValueError
        If the function raises an exception (with the message of a ValueError) or exceeds a limit.
    StoppedError
        If `should_stop` returns true.
    """
    if not FORKS:
        try:
            return function(*arguments)
        except Exception as error:
            raise (
                error
                if isinstance(error, ValueError)
                else ValueError(f"{name} cannot be read ({type(error).__name__}: {error}). {advice}")
            ) from None
    with _server.connect(function) as connection:
        answer = _answer(connection, (function, arguments, memory, seconds), memory, should_stop)
    result, status = answer[:-_NUMBER_BYTES], int.from_bytes(answer[-_NUMBER_BYTES:], "big", signed=True)
    if status == -signal.SIGXCPU:
        raise ValueError(f"{name} takes longer than {seconds:.0f} s to read. {advice}")
    if status == _MEMORY:
        raise ValueError(f"{name} needs more than {in_words(memory)} of memory to read. {advice}")
    try:
        value = unpack(result) if status in (_RETURNED, _REFUSED, _FAILED) else _ending(status)
    except Exception:  # A compromised process may send anything.
        status, value = _FAILED, _ending(_FAILED)
    if status == _RETURNED:
        return value
    if status == _REFUSED:
        raise ValueError(value)
    raise ValueError(f"{name} cannot be read ({value}). {advice}")


def _ending(status: int) -> str:
    """Return a description of the end of a process without an answer."""
    return "the process that reads it " + (
        "was killed by the system, probably for lack of memory"
        if status == -signal.SIGKILL
        else ("crashed" if status < 0 else "sent no answer")
    )


def _answer(
    connection: socket.socket, request: Any, most: float, should_stop: Callable[[], bool]
) -> memoryview:
    """Send the request and return the answer with the exit status."""
    answer, deadline = bytearray(), time.monotonic() + _WAITING * request[-1]
    threading.Thread(target=_send, args=(connection, request), daemon=True).start()
    try:
        while not should_stop():
            # Not select, which rejects descriptors above 1,023: a server may have more.
            if wait([connection], _PATIENCE):
                part = connection.recv(1 << 20)
                if not part:
                    return memoryview(answer)
                answer += part
            # A compromised worker may have disabled its own timer.
            if time.monotonic() > deadline:
                return memoryview((-signal.SIGXCPU).to_bytes(_NUMBER_BYTES, "big", signed=True))
            if len(answer) > most:
                raise ValueError("The answer of the reading process is too long.")
        raise StoppedError
    except ConnectionError:  # The server has ended.
        return memoryview(b"")
    finally:
        # The keeper then kills the worker.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _send(connection: socket.socket, request: Any) -> None:
    # The child may have died.
    with contextlib.suppress(OSError):
        connection.sendall(pickle.dumps(request, protocol=5))
        connection.shutdown(socket.SHUT_WR)


def _environment() -> dict[str, str]:
    root, cache = Path(__file__).resolve().parents[2], cache_directory().parents[1]
    path = os.pathsep.join(x for x in (str(root), os.environ.get("PYTHONPATH", "")) if x)
    # The user's environment may contain passwords: pass only variables that Python may need.
    own = {name: text for name, text in os.environ.items() if name == "LD_LIBRARY_PATH"}
    return own | _ENVIRONMENT | {"PYTHONPATH": path, "FMVIZ_CACHE_DIR": str(cache)}


_server = ForkServer(f"{__name__}.keep", _environment)


# -------------------------------------------------------------------------------------- in the fork server


def keep(descriptor: int) -> None:
    """Fork the worker of a call, kill it if the caller disconnects, and send its exit status."""
    status, closed = 1, select.poll()
    closed.register(descriptor, 0)  # Reports only the closing of the other end.
    enter_namespaces()
    try:
        if pid := os.fork():
            with socket.socket(fileno=descriptor) as connection:
                while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
                    if closed.poll(_STEP):
                        os.kill(pid, signal.SIGKILL)
                code = os.waitstatus_to_exitcode(ended[1])
                # The exit status after signal n is 256 - n.
                code -= 256 * (code > 127)
                connection.sendall(code.to_bytes(_NUMBER_BYTES, "big", signed=True))
        # A namespace ends with its first process, which ignores the signals that end a worker.
        elif os.getpid() == 1 and (pid := os.fork()):
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        else:
            status = _work(descriptor)
    finally:
        os._exit(status)


def _work(descriptor: int) -> int:
    """Answer one request; return the exit status."""
    with socket.socket(fileno=descriptor) as connection:
        with connection.makefile("rb") as stream:
            function, arguments, memory, seconds = pickle.load(stream)
        import resource  # Not on Windows.

        os.dup2(0, 2)  # Else it could type into the terminal.
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
        # The present address space plus the limit of the call.
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = int(pages * os.sysconf("SC_PAGE_SIZE") + memory)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        restrict()
        try:
            answer, status = pack(function(*arguments)), _RETURNED
        except MemoryError:
            return _MEMORY
        except ValueError as error:
            answer, status = pack(str(error)), _REFUSED
        except Exception as error:
            answer, status = pack(f"{type(error).__name__}: {error}"[:300]), _FAILED
        connection.sendall(answer)
        return status


# ------------------------------------------------------------------------------------------ results as bytes


def pack(value: Any) -> bytes:
    """Serialize a JSON value, or a mapping whose values may also be arrays, tables or bytes."""
    places: list[tuple[str, str, int]] = []
    parts: list[bytes | memoryview] = []
    if isinstance(value, dict):
        plain = {}
        for name, part in value.items():
            kind = next((kind for kind, (of, _, _) in _KINDS.items() if isinstance(part, of)), None)
            if kind is None:
                plain[name] = part
            else:
                parts.append(_KINDS[kind][1](part))
                places.append((name, kind, len(parts[-1])))
        value = plain
    head = json.dumps([value, places]).encode()
    return b"".join([len(head).to_bytes(_NUMBER_BYTES, "big"), head, *parts])


def unpack(data: bytes | memoryview) -> Any:
    """Deserialize bytes by `pack`, without running code; raises on anything else."""
    data = memoryview(data)
    begin = _NUMBER_BYTES + int.from_bytes(data[:_NUMBER_BYTES], "big")
    value, places = json.loads(bytes(data[_NUMBER_BYTES:begin]))
    for name, kind, size in places:
        value[name] = _KINDS[kind][2](data[begin : (begin := begin + size)])
    return value


def _written(save: Callable[[IO[bytes], Any], None], value: Any) -> memoryview:
    sink = io.BytesIO()
    save(sink, value)
    return sink.getbuffer()


def _table_bytes(table: pd.DataFrame) -> memoryview:
    import pyarrow as pa  # Slow to import and rarely needed.

    arrow = pa.Table.from_pandas(table, preserve_index=False, nthreads=1)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, arrow.schema) as stream:
        stream.write_table(arrow)
    return memoryview(sink.getvalue())


def _table(data: memoryview) -> pd.DataFrame:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
        arrow = stream.read_all()
    # Invalid offsets would read outside the buffer.
    arrow.validate(full=True)
    return arrow.to_pandas(ignore_metadata=True, use_threads=False)


_KINDS: dict[str, tuple[type, Callable[[Any], bytes | memoryview], Callable[[memoryview], Any]]] = {
    "bytes": (bytes, lambda part: part, bytes),
    "array": (
        np.ndarray,
        partial(_written, partial(np.save, allow_pickle=False)),
        lambda data: np.load(io.BytesIO(data), allow_pickle=False),
    ),
    # Also read without pickles.
    "sparse": (
        sp.csr_array,
        partial(_written, partial(sp.save_npz, compressed=False)),
        lambda data: sp.load_npz(io.BytesIO(data)),
    ),
    "table": (pd.DataFrame, _table_bytes, _table),
}
