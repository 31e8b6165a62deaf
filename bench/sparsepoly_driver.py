"""Run sparsepoly for `bench.peers`, in an interpreter that has sparsepoly, numpy and scipy.

Requests and responses are pickled dictionaries on standard input and output; arrays are sent as bytes, since
the two interpreters may have different versions of numpy. A fit waits in the callback that sparsepoly calls
after each epoch until the next request: its epochs can therefore alternate with ours, and only epochs are
timed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import time
import warnings
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp


def pack(value: Any) -> Any:
    """Return the value with every array as a tuple of type, shape and bytes."""
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, dict):
        return {key: pack(part) for key, part in value.items()}
    return value


def unpack(value: Any) -> Any:
    """Undo `pack`."""
    if isinstance(value, tuple) and value and value[0] == "array":
        return np.frombuffer(value[3], dtype=value[1]).reshape(value[2]).copy()
    if isinstance(value, dict):
        return {key: unpack(part) for key, part in value.items()}
    return value


def send(stream: IO[bytes], message: dict[str, Any]) -> None:
    """Write a message."""
    pickle.dump(pack(message), stream)
    stream.flush()


def receive(stream: IO[bytes]) -> dict[str, Any]:
    """Read a message; raises EOFError if the connection is closed."""
    return unpack(pickle.load(stream))


def _status(name: str) -> int:
    """Return a size from /proc/self/status in bytes, 0 if missing."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def reset_peak() -> int:
    """Reset the peak memory of this process; return its current memory in bytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak_bytes() -> int:
    """Return the peak since `reset_peak`, in bytes."""
    return _status("VmHWM")


def matrix(parts: dict[str, Any]) -> Any:
    """Return X in the input format of sparsepoly: dense, or a CSR matrix with 32-bit indices."""
    if "dense" in parts:
        return parts["dense"]
    indices, indptr = parts["indices"].astype(np.int32), parts["indptr"].astype(np.int32)
    return sp.csr_matrix((parts["data"], indices, indptr), shape=parts["shape"])


class Fit:
    """A fit that advances epoch by epoch."""

    def __init__(self, answer: IO[bytes], ask: IO[bytes]) -> None:
        self._answer, self._ask = answer, ask
        self._left, self._epochs = 0, 0
        self._held, self._mark = reset_peak(), time.thread_time()

    def __call__(self, model: Any) -> bool | None:
        """Report after the requested number of epochs, and wait (callback)."""
        self._epochs += 1
        self._left -= 1
        if self._left > 0:
            return None
        seconds = time.thread_time() - self._mark
        # PBCD and PSGD work on a transposed copy that reaches the model only at the end.
        P = sys._getframe(1).f_locals.get("P")
        P = model.P_[0].T if P is None else P[0]
        peak = peak_bytes() - self._held
        send(self._answer, {"seconds": seconds, "epochs": self._epochs, "peak": peak})
        while True:
            request = receive(self._ask)
            if request["do"] == "state":
                send(self._answer, {"P": np.ascontiguousarray(P), "w": model.w_})
            elif request["do"] == "stop":
                return True
            else:
                self._left = request["epochs"]
                self._mark = time.thread_time()
                return None


def model_of(settings: dict[str, Any], start: dict[str, Any], callback: Any, epochs: int) -> Any:
    """Return an estimator that starts from given parameters."""
    from sparsepoly import SparseFactorizationMachineClassifier, SparseFactorizationMachineRegressor

    chosen = dict(settings)
    loss = chosen.pop("loss")
    if loss == "squared":
        model = SparseFactorizationMachineRegressor(**chosen)
    else:
        model = SparseFactorizationMachineClassifier(loss=loss, **chosen)
    model.set_params(max_iter=epochs, warm_start=True, callback=callback, n_calls=1, tol=-np.inf)
    rank = start["P"].shape[1]
    model.set_params(n_components=rank)
    model.P_ = np.ascontiguousarray(start["P"].T)[None].copy()
    model.w_, model.lams_ = start["w"].copy(), np.ones(rank)
    return model


def serve(ask: IO[bytes], answer: IO[bytes]) -> None:
    """Respond to requests until the connection is closed."""
    X: Any = None
    y = np.zeros(0)
    while True:
        try:
            request = receive(ask)
        except EOFError:
            return
        if request["do"] == "data":
            X, y = matrix(request["X"]), request["y"]
        elif request["do"] == "fit":
            settings, start = request["settings"], request["start"]
            few = np.r_[np.flatnonzero(y > 0)[:5], np.flatnonzero(y <= 0)[:5]]
            # Compiling is not timed.
            model_of(settings, start, None, 1).fit(X[few], y[few])
            model_of(settings, start, Fit(answer, ask), 10**9).fit(X, y)
        send(answer, {"done": request["do"]})


def main() -> None:
    """Reserve standard output for messages; redirect prints to standard error."""
    warnings.simplefilter("ignore")
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, answer)


if __name__ == "__main__":
    main()
