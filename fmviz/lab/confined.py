"""Call functions in a subprocess with limits of time and memory, and pass their results without code.

On Linux a helper process, started with the first call, imports what is called and forks a child for every
call, so that the next one takes milliseconds to begin. It ends with its parent, however that ends, and takes
its children with it; of each that ends it adds the exit status to the answer. Answers hold no code, so that
a child that a file has taken over can send nothing but values. Elsewhere calls are made in this process,
without limits.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.drive import never
from fmviz.engine.errors import StoppedError
from fmviz.engine.memory import in_words

_FORKS = sys.platform == "linux"
# An allocator that reserves addresses ahead would meet the limit of memory long before it uses any.
_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
_PATIENCE = 0.1
_START_SECONDS = 120.0
# Seconds by the clock for each of processor time.
_WAITING = 6.0
_NUMBER_BYTES = 8
_LONGEST_NAME = 4096
# The exit status of a child; any other is that of a death.
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
    """Return ``function(*arguments)``, called in a process of its own.

    Parameters
    ----------
    function : callable
        Importable by its name, with arguments that can be pickled; it returns what
        `pack` takes, and lists come back for tuples.
    name : str
        What sentences call that which is read.
    seconds : float
        The most processor time that it may take; by the clock it may be six times that, since others may be
        at work.
    memory : float
        The most bytes that it may take besides its arguments, and that its result may have.
    advice : str
        The sentence that tells a way out where that is too little.
    should_stop : callable
        Asked ten times a second; where it is true the call is given up.

    Raises
    ------
    ValueError
        What the function raised; or a sentence, if it took too long or too much memory, or raised anything
        else.
    StoppedError
        If `should_stop` was true.
    """
    if not _FORKS:
        return function(*arguments)
    with _helper().child(function) as connection:
        answer = _answer(connection, (function, arguments, memory), seconds, memory, should_stop)
    if answer is None:
        raise ValueError(f"{name} takes longer than {seconds:.0f} s to read. {advice}")
    result, status = answer[:-_NUMBER_BYTES], int.from_bytes(answer[-_NUMBER_BYTES:], "big", signed=True)
    if status == _MEMORY:
        raise ValueError(f"{name} takes more than {in_words(memory)} of memory to read. {advice}")
    try:
        value = unpack(result) if status in (_RETURNED, _REFUSED, _FAILED) else None
    except Exception:  # Whatever a process sends that a file has taken over.
        status = _FAILED
        value = "the process that reads it sent no answer"
    if status == _RETURNED:
        return value
    if status == _REFUSED:
        raise ValueError(value)
    if status != _FAILED:
        value = f"the process that reads it ended with {_ending(status)}"
    raise ValueError(f"{name} cannot be read ({value}). {advice}")


def _ending(status: int) -> str:
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"exit status {status}"


def _answer(
    connection: socket.socket,
    request: Any,
    seconds: float,
    most: float,
    should_stop: Callable[[], bool],
) -> memoryview | None:
    """Send the request and return the answer and the exit status; None if it took too long."""
    answer = bytearray()
    pid, deadline = 0, time.monotonic() + _START_SECONDS
    sending = threading.Thread(target=_send, args=(connection, request), daemon=True)
    try:
        while True:
            if should_stop():
                raise StoppedError
            if time.monotonic() > deadline or (pid and _processor_seconds(pid) > seconds):
                return None
            if not select.select([connection], [], [], _PATIENCE)[0]:
                continue
            if not pid:
                if not (first := connection.recv(_NUMBER_BYTES)):
                    raise RuntimeError("the process that reads files could not be started")
                pid = int.from_bytes(first, "big")
                deadline = time.monotonic() + _WAITING * seconds
                sending.start()
            elif part := connection.recv(1 << 20):
                answer += part
                if len(answer) > most:
                    raise ValueError("The process that reads files sent too long an answer.")
            else:
                pid = 0
                return memoryview(answer)
    finally:
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken, 0 if it has ended."""
    try:
        # The name, in brackets, may hold spaces; user and system time are the 14th and 15th field.
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _send(connection: socket.socket, request: Any) -> None:
    # A child that died has no use for it.
    with contextlib.suppress(OSError):
        connection.sendall(pickle.dumps(request, protocol=5))
        connection.shutdown(socket.SHUT_WR)


class _Helper:
    """The process that forks a child for every call."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._control, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(x for x in (root, os.environ.get("PYTHONPATH", "")) if x)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from {__name__} import serve; serve({theirs.fileno()})"],
                pass_fds=(theirs.fileno(),),
                env=os.environ | _ENVIRONMENT | {"PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C in a terminal is for the parent, which decides.
            )

    def alive(self) -> bool:
        """Tell whether it serves this process; after a fork it is another's."""
        return self.owner == os.getpid() and self._process.poll() is None

    def child(self, function: Callable[..., Any]) -> socket.socket:
        """Return the connection to a new child, which is to call a function."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [pickle.dumps(function)], [theirs.fileno()])
        return ours

    def close(self) -> None:
        """Let it end, and its children with it."""
        self._control.close()
        if self.owner == os.getpid():
            self._process.kill()
            self._process.wait()


_lock = threading.Lock()
_running: list[_Helper] = []


def _helper() -> _Helper:
    with _lock:
        if not _running or not _running[0].alive():
            _end()
            _running.append(_Helper())
        return _running[0]


@atexit.register
def _end() -> None:
    while _running:
        _running.pop().close()


# -------------------------------------------------------------------------------------- in the helper process


def serve(descriptor: int) -> None:
    """Fork a child for every connection that comes, until the parent is gone."""
    # The end of a child wakes this process.
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, int] = {}
    with socket.socket(fileno=descriptor) as control:
        while True:
            ready = select.select([control, woken], [], [])[0]
            if woken in ready:
                woken.recv(_LONGEST_NAME)
                _bury(children)
            if control not in ready:
                continue
            message, connections, *_ = socket.recv_fds(control, _LONGEST_NAME, 1)
            if not message:
                break
            # With it its module, which all children then have. What fails here fails in the child, too.
            with contextlib.suppress(Exception):
                pickle.loads(message)
            pid = os.fork()
            if not pid:
                status = 1
                try:
                    for other in (control.detach(), *children.values()):
                        os.close(other)
                    status = _work(connections[0])
                finally:
                    os._exit(status)
            children[pid] = connections[0]
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _bury(children: dict[int, int]) -> None:
    """Add the exit status to the answer of every child that has ended."""
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            break
        with socket.socket(fileno=children.pop(pid)) as connection, contextlib.suppress(OSError):
            code = os.waitstatus_to_exitcode(status)
            connection.sendall(code.to_bytes(_NUMBER_BYTES, "big", signed=True))


def _work(descriptor: int) -> int:
    """Answer one request; return the exit status."""
    with socket.socket(fileno=descriptor) as connection:
        connection.sendall(os.getpid().to_bytes(_NUMBER_BYTES, "big"))
        with connection.makefile("rb") as stream:
            function, arguments, memory = pickle.load(stream)
        import resource  # Windows has none.

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # What this process has taken, and what the call may take besides.
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = int(pages * os.sysconf("SC_PAGE_SIZE") + memory)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
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
    """Return the bytes of a value that JSON takes, or of a mapping.

    Of a mapping each value may also be an array, a table with unique names of its columns, or bytes.
    """
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
    """Return what `pack` packed, with lists for tuples; anything else raises, and runs nothing."""
    data = memoryview(data)
    begin = _NUMBER_BYTES + int.from_bytes(data[:_NUMBER_BYTES], "big")
    value, places = json.loads(bytes(data[_NUMBER_BYTES:begin]))
    for name, kind, size in places:
        value[name] = _KINDS[kind][2](data[begin : (begin := begin + size)])
    return value


def _array_bytes(array: np.ndarray) -> memoryview:
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=False)
    return sink.getbuffer()


def _array(data: memoryview) -> np.ndarray:
    array: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
    return array


def _table_bytes(table: pd.DataFrame) -> memoryview:
    import pyarrow as pa  # Takes a while to import, and most programs need none of it.

    arrow = pa.Table.from_pandas(table, preserve_index=False, nthreads=1)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, arrow.schema) as stream:
        stream.write_table(arrow)
    return memoryview(sink.getvalue())


def _table(data: memoryview) -> pd.DataFrame:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
        arrow = stream.read_all()
    # Offsets that point outside would be followed.
    arrow.validate(full=True)
    return arrow.to_pandas(ignore_metadata=True, use_threads=False)


_KINDS: dict[str, tuple[type, Callable[[Any], bytes | memoryview], Callable[[memoryview], Any]]] = {
    "bytes": (bytes, lambda part: part, bytes),
    "array": (np.ndarray, _array_bytes, _array),
    "table": (pd.DataFrame, _table_bytes, _table),
}
