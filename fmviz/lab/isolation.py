"""Isolation of a process from files, the network and other processes, as far as the Linux kernel allows.

A process calls `enter_namespaces`; its descendant calls `restrict` before reading an untrusted file.
Protections refused by the kernel, for instance in a container, are skipped. `trespass`, called in the
isolated process, tests the protections.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

# System call numbers, the same on all processors except Alpha.
_IO_URING_SETUP, _MOUNT_SETATTR, _CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 425, 442, 444, 445, 446
# Namespaces of `unshare`, and options of `prctl`.
_USER, _NETWORK, _PROCESSES, _MOUNTS = 0x10000000, 0x40000000, 0x20000000, 0x20000
_NO_NEW_PRIVILEGES, _SECCOMP = 38, 22
# Landlock's rights: their number by version, and the rights to read.
_N_RIGHTS, _READ_FILE, _READ_FOLDER = {1: 13, 2: 14, 3: 15, 5: 16}, 1 << 2, 1 << 3
# Operations of the filters of seccomp.
_LOAD, _EQUAL, _AT_LEAST, _END = 0x20, 0x15, 0x35, 0x06
# The processor in the notation of seccomp, and the number of its system call `socket`.
_SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
PROTECTIONS = {
    "read": ("read the run store or other personal files", "Landlock"),
    "write": ("write, truncate or delete files", "Landlock or a mount namespace"),
    "permissions": ("change the permissions of files", "a mount namespace"),
    "network": ("use the network", "seccomp or a network namespace"),
    "programs": ("leave programs running", "a process namespace"),
    "environment": ("read the environment of other processes", "Landlock or a user namespace"),
}
"""The actions attempted by `trespass`, with the mechanism that prevents each."""
_libc: Any = ctypes.CDLL(None) if sys.platform == "linux" else None


def enter_namespaces() -> None:
    """Enter new namespaces with read-only file systems; the next forked process is its first.

    No user is mapped into the user namespace: owners can still read files, but not create any. The process
    must have a single thread.
    """
    for namespace in (_USER, _NETWORK, _PROCESSES):
        _libc.unshare(namespace)
    if _libc.unshare(_MOUNTS) == 0:  # Otherwise this would change the mounts of the system.
        # To read-only (1), with all mounts below (0x8000); -100 is the current folder, for relative paths.
        _libc.syscall(_MOUNT_SETATTR, -100, b"/", 0x8000, struct.pack("4Q", 1, 0, 0, 0), ctypes.c_size_t(32))


def restrict() -> None:
    """Drop privileges, sockets, programs, and access to files other than Python and its libraries."""
    import resource  # Not on Windows.

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _libc.prctl(_NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    _restrict_files(_libc.syscall)
    if platform.machine() in _SOCKET:
        _restrict_sockets(*_SOCKET[platform.machine()])
    # Drop all capabilities, which could undo this; the first number is a version.
    _libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24))


def _restrict_files(syscall: Callable[..., int]) -> None:
    """Allow only reading of libraries, by Landlock; running programs is not allowed."""
    version = syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    n_rights = max((n for since, n in _N_RIGHTS.items() if since <= version), default=0)
    # Also TCP since version 4, and abstract sockets and signals since version 6.
    rules = struct.pack("3Q", (1 << n_rights) - 1, 3 * (version >= 4), 3 * (version >= 6))
    ruleset = syscall(_CREATE_RULESET, rules, ctypes.c_size_t(len(rules)), 0)
    paths = {
        # System libraries.
        *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo"),
        *("/etc/ld.so.cache", "/etc/localtime", "/proc/meminfo"),
        # Python, installed packages, and fmviz.
        *(f"{prefix}/{name}" for prefix in (sys.prefix, sys.base_prefix) for name in ("lib", "lib64")),
        *(path for path in sys.path if path.endswith("-packages")),
        str(Path(__file__).resolve().parents[1]),
    }
    for path in filter(os.path.exists, paths):
        allowed = _READ_FILE | (_READ_FOLDER if os.path.isdir(path) else 0)
        syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", allowed, os.open(path, os.O_PATH)), 0)
    syscall(_RESTRICT_SELF, ruleset, 0)


def _restrict_sockets(processor: int, number: int) -> None:
    """Refuse new sockets by seccomp, including Unix sockets, which need no network."""
    program = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 0, 2, processor),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, 1 << 30),  # The x32 system calls.
        (_END, 0, 0, 0x80000000),  # Killed.
        (_EQUAL, 2, 0, number),
        (_EQUAL, 1, 0, _IO_URING_SETUP),
        (_END, 0, 0, 0x7FFF0000),  # Allowed.
        (_END, 0, 0, 0x50001),  # Refused with EPERM.
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    _libc.prctl(_SECCOMP, ctypes.c_ulong(2), struct.pack("@HP", len(program), ctypes.addressof(code)))


def trespass(files: Sequence[str], server: int) -> list[str]:
    """Attempt forbidden actions, and return the keys of `PROTECTIONS` that succeeded.

    Parameters
    ----------
    files : sequence of str
        Files to read; the first is also the target of writes.
    server : int
        Process id whose environment is to be read.
    """
    attempts: list[tuple[str, Callable[[], Any]]] = [
        *(("read", partial(os.open, path, os.O_RDONLY)) for path in files),
        ("permissions", partial(os.chmod, files[0], 0o600)),
        ("write", partial(os.truncate, files[0], 0)),
        ("write", partial(os.mkdir, f"{files[0]}.new")),
        ("write", partial(os.remove, files[0])),
        ("network", lambda: socket.socket(type=socket.SOCK_DGRAM).connect(("127.0.0.1", 9))),
        ("environment", partial(Path(f"/proc/{server}/environ").read_bytes)),
    ]
    succeeded = [] if os.getppid() == 1 else ["programs"]
    for name, attempt in attempts:
        with suppress(OSError):
            attempt()
            succeeded.append(name)
    return succeeded
