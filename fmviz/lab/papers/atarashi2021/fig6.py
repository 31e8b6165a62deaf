"""Figure 6 of atarashi2021: the time of an epoch, by the number of features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean, median
from typing import Any

import numpy as np

from fmviz.engine.drive import Budget, iterate
from fmviz.lab.datasets.drawn import make_sparse_interactions
from fmviz.lab.papers.checkpoints import key_of
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.recovery import METHODS as ALL
from fmviz.lab.papers.protocols.weights import METHODS, in_words, problem_of, start_of
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Cases, Said, over, verdict

_SPARSE = ("TI", "CS", "L1", "L21")
# Whose epochs grow with which power of d.
_METHODS = {1: _SPARSE, 2: ("Ω*-nmAPGD", "Ω*-SubGD"), 3: ("SLQR",)}
# How far a fitted exponent may be from that of the statement, and up to which ratio two lines overlap.
_NEAR, _OVERLAP = 0.3, 1.5
_PAIRS = (("TI", "L1"), ("CS", "L21"))
_SLOWER, _SLOWER_AT = 100.0, 4_000


def _run(repro: Reproduction) -> Iterator[str]:
    settings = repro.settings
    for seed, d, method in repro.each(product(range(settings["data_sets"]), settings["d"], METHODS)):
        yield f"d = {d:,}, data set {seed + 1} of {settings['data_sets']}: {method}"
        blocks = max(1, d // settings["block"])
        X, y, _ = make_sparse_interactions(settings["N"], d, blocks, 0, random_state=seed)
        repro.use(f"d = {d:,}, seed {seed}", X, y)
        yield from repro.once(key_of(seed, d, method), partial(_epochs, repro, method, X, y, seed))
        if repro.should_stop():
            return
        repro.done += 1


def _epochs(repro: Reproduction, method: str, X: np.ndarray, y: np.ndarray, seed: int) -> Iterator[str]:
    """Time epochs; the table "times"."""
    epochs, strength, d = repro.settings["epochs"], repro.settings["strength"], X.shape[1]
    problem = problem_of(method, X, y, strength, strength)
    budget, solver = Budget(epochs, tol=0.0, certify_every=epochs + 1), ALL[method].solver
    seconds = []
    for last in iterate(problem, solver, budget, repro.should_stop, start=start_of(problem, seed)):
        seconds.append(last.seconds)
        yield f"d = {d:,}: {method}, epoch {last.epoch}"
    if not repro.should_stop():
        # The first one starts the solver, too.
        laps = np.diff(seconds[1:] if len(seconds) > 2 else seconds)
        repro.row("times", panel="One epoch", method=method, d=d, seed=seed, seconds=median(laps))


def _courses(power: int) -> Cases:
    """Return the cases of the methods of a power of d: the mean seconds at every d, once all are there."""

    def cases(tables: Tables, settings: Settings) -> Iterator[tuple[str, Any]]:
        means = _means(tables, sorted(settings["d"]))
        for method in _METHODS[power]:
            yield (method, (power, means[method])) if means else ("all", None)

    return cases


def _means(tables: Tables, sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    """Return the mean seconds by method and d; empty where some are missing."""
    found: dict[str, dict[int, float]] = {}
    for method, d in product(METHODS, sizes):
        times = [row["seconds"] for row in rows_where(tables, "times", method=method, d=d)]
        if not times:
            return {}
        found.setdefault(method, {})[d] = fmean(times)
    return found


def _growth(given: tuple[int, Mapping[int, float]]) -> Said:
    power, course = given
    words = ", ".join(f"{seconds:.3g} s at d = {d:,}" for d, seconds in course.items())
    if len(course) < 2:
        return "not settled", f"One size says nothing of growth: {words}."
    slope = float(np.polyfit(np.log(list(course)), np.log(list(course.values())), 1)[0])
    return verdict(abs(slope - power) <= _NEAR), f"The fitted exponent of d is {slope:.2f}: {words}."


def _at_largest(tables: Tables, settings: Settings) -> Iterator[tuple[str, Any]]:
    largest = max(settings["d"])
    means = _means(tables, sorted(settings["d"]))
    at = {method: course[largest] for method, course in means.items()}
    yield (f"d = {largest:,}", (largest, at)) if at else ("all", None)


def _slower(given: tuple[int, Mapping[str, float]]) -> Said:
    d, at = given
    least = at["SLQR"] / max(at[method] for method in _SPARSE)
    # Smaller sizes can confirm the statement, but not refute it.
    held = least > _SLOWER or (False if d >= _SLOWER_AT else None)
    return verdict(held), (
        f"SLQR takes {least:.3g} times as long as the slowest of the four. One epoch: {in_words(at, ' s')}"
    )


def _pairs(tables: Tables, settings: Settings) -> Iterator[tuple[str, Any]]:
    means = _means(tables, sorted(settings["d"]))
    for pair in _PAIRS:
        yield (" and ".join(pair), (pair, means)) if means else ("all", None)


def _overlap(given: tuple[tuple[str, str], Mapping[str, Mapping[int, float]]]) -> Said:
    (one, other), means = given
    ratios = {d: means[one][d] / means[other][d] for d in means[one]}
    near = all(1.0 / _OVERLAP <= ratio <= _OVERLAP for ratio in ratios.values())
    words = ", ".join(f"{ratio:.2f} at d = {d:,}" for d, ratio in ratios.items())
    return verdict(near), f"{one} takes so many times as long as {other}: {words}."


ARTEFACT = figure(
    __name__,
    _run,
    {
        "linear": over(_courses(1), _growth),
        "quadratic": over(_courses(2), _growth),
        "cubic": over(_courses(3), _growth),
        "slqr": over(_at_largest, _slower),
        "overlap": over(_pairs, _overlap),
    },
    near=_NEAR,
    overlap=_OVERLAP,
)
