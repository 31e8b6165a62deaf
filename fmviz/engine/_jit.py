"""Compile Numba kernels and cache them on disk.

Numba keys its cache on the source file of a kernel: after an edit in another file of the engine, it would
silently load outdated machine code. The cache directory is therefore named by a hash of all engine sources,
the processor, and the relevant versions and flags.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache, partial, wraps
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numba
import numba.core.event
import numpy as np
from numba.core import caching
from numba.core.registry import cpu_target
from numba.extending import register_jitable

# Any, since Numba sets its configuration at run time, invisible to a type checker.
_config: Any = numba.config

__all__ = [
    "KERNELS",
    "cache_directory",
    "cached_factory",
    "compiling",
    "has_compiled",
    "home",
    "is_writable",
    "jitable",
    "named",
    "nothing",
    "python_version",
    "zero",
]

# Reductions may be reordered to allow vectorization. NaN and infinity keep their meaning: without
# `nnan` and `ninf`, divergence remains detectable.
_FASTMATH = {"reassoc", "contract", "nsz", "arcp"}
_KEPT_DIGESTS = 4
_KEPT_SECONDS = 86_400.0

KERNELS: dict[str, Any] = {}
"""All compiled kernels of this process by qualified name; the tests iterate over them."""


def jitable(*function: Any, **options: Any) -> Any:
    """Mark a plain function as callable from kernels and usable in closures of factories.

    It is inlined at every call. Otherwise LLVM would call a weak symbol, which is bound to the function's own
    compilation in the process that compiles a kernel, and to the kernel's copy in all later ones: the two
    round differently.
    """
    decorate = register_jitable(**{"forceinline": True, **options})
    return decorate(*function) if function else decorate


@jitable
def nothing(*unused):
    """Do nothing; placeholder for an inapplicable part of a view."""


@jitable
def zero(*unused):
    """Return 0; placeholder for an inapplicable number of a view."""
    return 0.0


def _digest() -> str:
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    state = hashlib.sha256(f"{numba.__version__} {np.__version__} {sorted(_FASTMATH)}".encode())
    # The tuple describes the processor; kernels are processor-specific.
    processor = cpu_target.target_context.codegen().magic_tuple()
    state.update(f"{_config.BOUNDSCHECK} {_config.OPT} {processor}".encode())
    for source in sources:
        state.update(source.name.encode())
        state.update(source.read_bytes())
    return state.hexdigest()[:16]


def is_writable(directory: Path) -> bool:
    """Return whether files can be created in a directory."""
    try:
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


def home() -> Path:
    """Return the home directory; if there is none, set HOME to a private temporary one and print it."""
    with contextlib.suppress(RuntimeError):
        return Path.home()
    directory = Path(tempfile.gettempdir()) / f"fmviz-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    # Another user may have created it, or a link with its name.
    if (status := directory.lstat()).st_mode != stat.S_IFDIR | 0o700 or status.st_uid != os.getuid():
        directory = Path(tempfile.mkdtemp(prefix="fmviz-"))
    print(
        f"There is no home directory: fmviz stores its files in {directory}, which may be emptied at a "
        "restart. Set HOME, or FMVIZ_STORE and FMVIZ_CACHE_DIR, to use another location.",
        file=sys.stderr,
    )
    os.environ["HOME"] = str(directory)
    return directory


@cache
def cache_directory() -> Path:
    """Return the directory of compiled kernels; set ``FMVIZ_CACHE_DIR`` to change it.

    It is specific to this version and processor. If it is read-only, missing kernels are compiled in every
    process.
    """
    named = os.environ.get("FMVIZ_CACHE_DIR")
    root = Path(named or Path(os.environ.get("XDG_CACHE_HOME") or home() / ".cache") / "fmviz") / "kernels"
    directory = root / _digest()
    with contextlib.suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
        os.utime(directory)
        # Directories used today may be in use by another process of another version or checkout.
        used = sorted((p.stat().st_mtime, p) for p in root.iterdir() if p.is_dir())
        for when, old in used[:-_KEPT_DIGESTS]:
            if when < time.time() - _KEPT_SECONDS:
                shutil.rmtree(old, ignore_errors=True)
    return directory


def has_compiled() -> bool:
    """Return whether the cache contains kernels for this version and processor."""
    return any(cache_directory().glob("*/*.nbi"))


def _kernel(function: Callable[..., Any], name: str, exact: bool) -> Any:
    """Compile `function` in nopython mode, without the GIL, and cache the result on disk."""
    fastmath: bool | set[str] = False if exact else _FASTMATH
    compiled: Any = numba.njit(nogil=True, error_model="numpy", fastmath=fastmath)(function)
    if compiled is not function:  # Unchanged if compilation is disabled.
        # All kernels of a factory would share an index, in which Numba numbers their files without a lock:
        # two processes compiling at once could store the code of one kernel under the key of another.
        compiled._cache = _Cache(function, cache_directory() / hashlib.sha256(name.encode()).hexdigest()[:12])
    return compiled


class _Locator(caching.UserProvidedCacheLocator):
    """Locate the cache of a kernel, even in a read-only directory, which Numba's own locator rejects."""

    def __init__(self, function: Callable[..., Any], directory: Path) -> None:
        self._py_file = function.__code__.co_filename
        self._lineno = function.__code__.co_firstlineno
        self._cache_path = str(directory)


class _Results(caching.CompileResultCacheImpl):
    def __init__(self, function: Callable[..., Any], directory: Path) -> None:
        self._locator = _Locator(function, directory)
        self._lineno = function.__code__.co_firstlineno
        self._filename_base = self.get_filename_base(function.__qualname__, getattr(sys, "abiflags", ""))


class _Files(caching.IndexDataCacheFile):
    """Index and machine code with a checksum, verified before loading."""

    def _dump(self, value: Any) -> bytes:
        data = super()._dump(value)
        return data + hashlib.sha256(data).digest()

    def _load_data(self, name: str) -> Any:
        data = Path(self._data_path(name)).read_bytes()
        if hashlib.sha256(data[:-32]).digest() != data[-32:]:
            raise ValueError(f"{name} is damaged")
        return super()._load_data(name)


class _Cache(caching.FunctionCache):
    """The cache of a kernel; if its files are damaged, the kernel is compiled."""

    def __init__(self, function: Callable[..., Any], directory: Path) -> None:
        self._impl_class: Any = partial(_Results, directory=directory)
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function, or None; remove damaged files."""
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None
        except Exception:  # Reading a truncated pickle may raise any exception.
            shutil.rmtree(self._cache_path, ignore_errors=True)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled function to the cache, if possible."""
        # The disk may be full or read-only; a damaged index then remains.
        with contextlib.suppress(Exception):
            super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return the cache key of a compiled function.

        Numba's own key pickles the closure, and the bytes of a pickle depend on which equal strings are the
        same object. This differs between the process that compiles a source file and those that load its
        bytecode, and these would recompile every kernel.
        """
        return sig, codegen.magic_tuple(), hashlib.sha256(_identity(self._py_func).encode()).hexdigest()


def _identity(value: Any, within: tuple[Any, ...] = ()) -> str:
    """Describe a value, or a function with its closure, by a string that is identical in every process."""
    if isinstance(value, FunctionType):
        if value in within:
            return value.__qualname__
        captured = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = (value.__module__, value.__qualname__, value.__code__, value.__defaults__, captured)
        return _identity(parts, (*within, value))
    if isinstance(value, CodeType):
        return _identity((value.co_code, value.co_names, value.co_varnames, value.co_consts), within)
    if isinstance(value, list | tuple):
        return f"({', '.join(_identity(part, within) for part in value)})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(_identity(part, within) for part in value))}}}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes()!r}"
    return f"{type(value).__qualname__} {value!r}"


def cached_factory(exact: bool = False) -> Callable[..., Callable[..., Any]]:
    """Make a kernel factory return the same compiled kernel for equal arguments, in all threads.

    The factory may only close over plain jitable functions: closures over compiled ones never hit Numba's
    cache. With `exact`, the arithmetic is strictly IEEE, for kernels whose accuracy depends on the order of
    operations.
    """

    def decorate(factory: Callable[..., Callable[..., Any]]) -> Callable[..., Any]:
        compiled: dict[tuple[Any, ...], Any] = {}
        lock = threading.Lock()

        @wraps(factory)
        def get(*args: Any) -> Any:
            if (kernel := compiled.get(args)) is not None:
                return kernel
            with lock:
                if args not in compiled:
                    parts = [getattr(a, "name", getattr(a, "__name__", str(a))) for a in args]
                    name = f"{factory.__module__}.{factory.__name__}({', '.join(parts)})"
                    KERNELS[name] = compiled[args] = _kernel(factory(*args), name, exact)
                return compiled[args]

        return get

    return decorate


def named(exact: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a module-level kernel and register it in `KERNELS`; `exact` as in `cached_factory`."""

    def decorate(function: Callable[..., Any]) -> Any:
        name = f"{function.__module__}.{function.__name__}"
        KERNELS[name] = _kernel(function, name, exact)
        return KERNELS[name]

    return decorate


def python_version(compiled: Any) -> Callable[..., Any]:
    """Return the Python source function of a kernel, even if compilation is disabled."""
    return getattr(compiled, "py_func", compiled)


class _CompileListener(numba.core.event.Listener):
    """Record the kernels being compiled in any thread."""

    def __init__(self) -> None:
        self.active: list[str] = []

    def on_start(self, event: Any) -> None:
        self.active.append(event.data["dispatcher"].py_func.__qualname__.split(".")[0])

    def on_end(self, event: Any) -> None:
        if self.active:
            self.active.pop()


_listener = _CompileListener()
numba.core.event.register("numba:compile", _listener)


def compiling() -> tuple[str, ...]:
    """Return the name of the kernel currently being compiled in any thread, or an empty string.

    Numba compiles one kernel at a time; other names are functions called by the kernel.
    """
    return tuple(_listener.active[:1])
