"""``fmviz doctor``: check the installation."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from fmviz.cli._terminal import STORE, declare, store_path, to_stderr

HELP = "print versions, cores and folders, and check a compiled kernel"
add = partial(declare, {"": STORE})
_LIBRARIES = ("numpy", "scipy", "numba", "pandas", "scikit-learn", "joblib", "plotly", "streamlit")


def run(arguments: argparse.Namespace) -> int:
    """Print all checks; return 1 if one fails."""
    bad = []
    for name, words, fine in _findings(store_path(arguments)):
        print(f"{'-- ' if fine is None else 'ok ' if fine else 'BAD'} {name:<8} {words}", flush=True)
        bad += [name] if fine is False else []
    to_stderr(f"Failed checks: {', '.join(bad)}.") if bad else print("Everything works.")
    return 1 if bad else 0


def _findings(path: Path) -> Iterator[tuple[str, str, bool | None]]:
    """Yield the name of every check, its result, and whether it passes; None if the system lacks support."""
    from fmviz import __version__, operators
    from fmviz.engine._jit import cache_directory, is_writable
    from fmviz.engine.threads import count_cores
    from fmviz.lab.store import RunStore, StoreError
    from fmviz.lab.store.rescue import damages

    system = f"Python {platform.python_version()} on {platform.platform()}, {count_cores()} cores"
    yield "fmviz", f"{__version__}, {system}", True
    installed = {
        distribution.metadata["Name"].lower(): distribution.version
        for distribution in metadata.distributions()
    }
    versions = ", ".join(f"{name} {installed.get(name, 'missing')}" for name in _LIBRARIES)
    yield "library", versions, set(_LIBRARIES) <= set(installed)
    cache = cache_directory()
    kernels, writable = sum(1 for _ in cache.rglob("*.nbc")), is_writable(cache)
    state = f"{kernels:,} kernels" if kernels else "empty; fmviz warmup fills it"
    advice = "" if writable else ", cannot be written; set FMVIZ_CACHE_DIR to another folder"
    yield "kernels", f"{cache}: {state}{advice}", writable or kernels > 0
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    yield "folder", f"{folder}, for runs and uploads", os.access(folder, os.W_OK)
    if path.exists():
        try:
            store = RunStore(path)
            runs, damaged = len(store.rows()), damages(store)
            said = " ".join(str(store.database.read("PRAGMA integrity_check(3)")[0][0]).split())
            store.close()
            advice = f", {len(damaged):,} damaged; fmviz runs salvage NEW saves the others" if damaged else ""
            yield "store", f"{path}: {runs:,} runs{advice}, integrity: {said}", said == "ok" and not damaged
        except StoreError as error:
            yield "store", str(error), False
    P = [[3.0], [2.0]]
    certificate = operators.certificate("ti", P, operators.prox("ti", P, 0.5), 0.5)
    yield "numbers", f"certificate of a compiled operator: {certificate:.1e}", certificate <= 1e-10
    unrestricted = "reader", "reads files without restrictions, which fmviz has on Linux only", None
    yield from _reader_findings(path) if sys.platform == "linux" else [unrestricted]


def _reader_findings(path: Path) -> Iterator[tuple[str, str, bool | None]]:
    """Yield the restrictions on the process that reads untrusted files, enforced or not."""
    from fmviz.lab.confined import confined
    from fmviz.lab.isolation import PROTECTIONS, trespass

    with TemporaryDirectory() as folder:
        (file := Path(folder, "file")).touch()
        succeeded = confined(
            trespass,
            [str(each) for each in (file, path.absolute()) if each.exists()],
            os.getpid(),
            name="A file",
            seconds=20.0,
            memory=1e9,
            advice="Try again.",
        )
    for name, (action, means) in PROTECTIONS.items():
        can = (f"can {action}, which {means} would prevent", None)
        yield "reader", *(can if name in succeeded else (f"cannot {action}", True))
