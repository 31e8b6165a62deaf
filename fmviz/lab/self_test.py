"""The self-test of an installation: versions, folders, every operator, and a fit."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_info

from fmviz.engine._jit import cache_directory, is_writable
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.penalties import PENALTIES
from fmviz.engine.problem import Problem
from fmviz.lab.failure import in_words
from fmviz.lab.store import RunStore, StoreError
from fmviz.operators import certificate, prox, regularizer_value

__all__ = ["CERTIFICATE", "Finding", "checkup"]

CERTIFICATE = 1e-10
"""What the certificate of an exact operator may be at most."""

_FIT_CERTIFICATE = 1e-6


@dataclass(frozen=True)
class Finding:
    """What one look has found.

    Attributes
    ----------
    part : str
        Under what it is listed: "versions", "threads", "cache", "store", "operators", "fit".
    name : str
        What was looked at.
    words : str
        What was found.
    fine : bool
        Whether it is as it must be.
    values : mapping
        The same as numbers, where there are some.
    """

    part: str
    name: str
    words: str
    fine: bool = True
    values: dict[str, Any] = field(default_factory=dict)


def checkup(store: Path) -> Iterator[Finding]:
    """Look at everything, with the run store at `store`, and yield each finding as soon as it is there."""
    yield from _versions()
    yield from _threads()
    yield _cache()
    yield _store(store)
    for name in PENALTIES:
        yield _guarded("operators", name, lambda name=name: _operator(name))
    yield _guarded("fit", "ti by pcd", _fit)


def _guarded(part: str, name: str, look: Any) -> Finding:
    try:
        return look()
    except Exception as error:
        return Finding(part, name, in_words(error)[0], fine=False)


def _versions() -> Iterator[Finding]:
    from fmviz import __version__

    yield Finding("versions", "fmviz", __version__)
    yield Finding("versions", "Python", f"{platform.python_version()} on {platform.platform()}")
    for name in ("numpy", "scipy", "numba", "llvmlite", "pandas", "scikit-learn", "joblib"):
        yield _version(name, needed=True)
    for name in ("threadpoolctl", "platformdirs", "plotly", "streamlit"):
        yield _version(name, needed=True)
    yield _version("distributed", needed=False)


def _version(name: str, needed: bool) -> Finding:
    try:
        return Finding("versions", name, metadata.version(name))
    except metadata.PackageNotFoundError:
        words = "missing; install it with pip" if needed else "not installed; only sweeps on Dask need it"
        return Finding("versions", name, words, fine=not needed)


def _threads() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding("threads", "cores", str(cores), values={"cores": cores})
    for pool in threadpool_info():
        if pool["user_api"] == "blas":
            words = f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads"
            yield Finding("threads", "BLAS", words, values={"threads": pool["num_threads"]})
    # No kernel is parallel, so that no layer is ever loaded: what is configured is all there is to tell.
    configured: Any = numba.config
    yield Finding(
        "threads",
        "Numba",
        f"layer {configured.THREADING_LAYER!r} is configured and not used: every kernel runs on one thread",
    )
    if configured.DISABLE_JIT:
        yield Finding("threads", "compilation", "switched off by NUMBA_DISABLE_JIT: everything is slow")


def _cache() -> Finding:
    directory = cache_directory()
    files = [path for path in directory.rglob("*") if path.is_file()]
    kernels = sum(path.suffix == ".nbc" for path in files)
    size = sum(path.stat().st_size for path in files)
    values = {"path": str(directory), "kernels": kernels, "bytes": size}
    filled = f"{kernels:,} kernels, {size / 1e6:.1f} MB" if kernels else "empty; fmviz warmup fills it"
    state, fine = "writable", True
    if not is_writable(directory):
        state, fine = "cannot be written", kernels > 0
        filled = filled if kernels else "and is empty; name another with FMVIZ_CACHE_DIR"
    words = f"{directory}, {state}, {filled}"
    return Finding("cache", "compiled kernels", words, fine=fine, values=values)


def _store(path: Path) -> Finding:
    if not path.exists():
        place = next(parent for parent in path.absolute().parents if parent.exists())
        fine = os.access(place, os.W_OK)
        words = "none yet; the first run makes it" if fine else f"cannot be made in {place}"
        return Finding("store", "runs", f"{path}: {words}", fine=fine, values={"path": str(path)})
    try:
        store = RunStore(path)
    except StoreError as error:
        return Finding("store", "runs", str(error), fine=False, values={"path": str(path)})
    try:
        said = " ".join(str(store.database.read("PRAGMA integrity_check")[0][0]).split())
        size = sum(p.stat().st_size for p in path.parent.glob(f"{path.name}*"))
        runs = store.count()
    except Exception as error:
        words = str(error) if isinstance(error, StoreError) else f"{path}: {error}"
        return Finding("store", "runs", words, fine=False, values={"path": str(path)})
    finally:
        store.close()
    state = "whole" if said == "ok" else f"damaged: {said}; move it away, and a new one is made"
    writable = os.access(path, os.W_OK)
    words = f"{path}, {size / 1e6:.1f} MB, {runs:,} runs, {state}{'' if writable else ', cannot be written'}"
    values = {"path": str(path), "bytes": size, "runs": runs, "integrity": said}
    return Finding("store", "runs", words, fine=said == "ok" and writable, values=values)


def _operator(name: str) -> Finding:
    """Apply an operator to a random matrix; where it is not exact, it must not be worse than its input."""
    P = np.random.default_rng(0).normal(size=(20, 5))
    strength = 0.02
    Q = prox(name, P, strength)
    zeros = int((Q == 0).sum())
    if PENALTIES[name].exact_prox:
        found = certificate(name, P, Q, strength)
        words = f"certificate {found:.1e}, {zeros} of {Q.size} entries zero"
        return Finding("operators", name, words, found <= CERTIFICATE, {"certificate": found, "zeros": zeros})
    before = strength * regularizer_value(name, P)
    after = 0.5 * float(np.square(Q - P).sum()) + strength * regularizer_value(name, Q)
    words = f"inexact; its objective falls from {before:.4g} to {after:.4g}"
    return Finding("operators", name, words, after <= before, {"before": before, "after": after})


def _fit() -> Finding:
    """Fit a small machine: the objective must fall in every epoch, and the certificate be small."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    problem = Problem.build(
        X,
        X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3],
        penalty="ti",
        rank=4,
        lambda_w=1e-3,
        lambda_p=1e-3,
        lambda_sparse=1e-2,
    )
    budget = Budget(1_000, None, 1e-9)
    objectives = []
    for end in iterate(problem, "pcd", budget, init_scale=0.1, rng=rng):
        objectives.append(end.objective)
    steps = np.diff(objectives)
    falls = bool((steps <= 1e-12 * np.abs(objectives[:-1])).all())
    fine = falls and end.certificate <= _FIT_CERTIFICATE and bool(np.isfinite(objectives).all())
    words = (
        f"objective {'falls' if falls else 'does not fall'} in each of {end.epoch:,} epochs, from "
        f"{objectives[0]:.4g} to {objectives[-1]:.4g}; certificate {end.certificate:.1e}, "
        f"{end.used_interactions} interactions"
    )
    return Finding("fit", "ti by pcd", words, fine, {"certificate": end.certificate, "epochs": end.epoch})
