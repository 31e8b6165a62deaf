"""Figure 6 of atarashi2021: the time of an epoch, by the number of features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean, median
from typing import Any

import numpy as np

from fmviz.engine.drive import Budget, iterate
from fmviz.lab.datasets.synthetic import make_sparse_interactions
from fmviz.lab.papers.base import Artefact, Desk, Picture, Settings, Statement, Tables, rows_where
from fmviz.lab.papers.checkpoints import key_of
from fmviz.lab.papers.judging import Cases, Said, over, verdict
from fmviz.lab.papers.protocols.recovery import METHODS as ALL
from fmviz.lab.papers.protocols.weights import METHODS, in_words, problem_of, start_of
from fmviz.lab.papers.references import ATARASHI2021

_SPARSE = ("TI", "CS", "L1", "L21")
# Whose epochs grow with which power of d.
_METHODS = {1: _SPARSE, 2: ("Ω*-nmAPGD", "Ω*-SubGD"), 3: ("SLQR",)}
# How far a fitted exponent may be from that of the statement, and up to which ratio two lines overlap.
_NEAR, _OVERLAP = 0.3, 1.5
_PAIRS = (("TI", "L1"), ("CS", "L21"))
_SLOWER, _SLOWER_AT = 100.0, 4_000


def _run(desk: Desk) -> Iterator[str]:
    settings = desk.settings
    for seed, d, method in desk.each(product(range(settings["data_sets"]), settings["d"], METHODS)):
        yield f"d = {d:,}, data set {seed + 1} of {settings['data_sets']}: {method}"
        blocks = max(1, d // settings["block"])
        X, y, _ = make_sparse_interactions(settings["N"], d, blocks, 0, random_state=seed)
        desk.use(f"d = {d:,}, seed {seed}", X, y)
        yield from desk.once(key_of(seed, d, method), partial(_epochs, desk, method, X, y, seed))


def _epochs(desk: Desk, method: str, X: np.ndarray, y: np.ndarray, seed: int) -> Iterator[str]:
    """Time epochs; the table "times"."""
    epochs, strength, d = desk.settings["epochs"], desk.settings["strength"], X.shape[1]
    problem = problem_of(method, X, y, strength, strength)
    budget, solver = Budget(epochs, tol=0.0, certify_every=epochs + 1), ALL[method].solver
    seconds = []
    for last in iterate(problem, solver, budget, desk.should_stop, start=start_of(problem, seed)):
        seconds.append(last.seconds)
        yield f"d = {d:,}: {method}, epoch {last.epoch}"
    if not desk.should_stop():
        # The first one starts the solver, too.
        laps = np.diff(seconds[1:] if len(seconds) > 2 else seconds)
        desk.row("times", panel="One epoch", method=method, d=d, seed=seed, seconds=median(laps))


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


ARTEFACT = Artefact(
    name="atarashi2021_fig6",
    paper=ATARASHI2021,
    title="Fig. 6: the time of an epoch, by the number of features",
    statements=(
        Statement(
            "linear",
            "The running time of TI, CS, L1 and L21 increased linearly with d.",
            "8.2.4",
            over(_courses(1), _growth),
        ),
        Statement(
            "quadratic",
            "That of Ω*-nmAPGD and Ω*-SubGD increased quadratically.",
            "8.2.4",
            over(_courses(2), _growth),
        ),
        Statement("cubic", "That of SLQR increased cubically.", "8.2.4", over(_courses(3), _growth)),
        Statement(
            "slqr",
            "At d = 4,000 SLQR ran more than 100 times slower than TI, CS, L1 and L21.",
            "8.2.4",
            over(_at_largest, _slower),
        ),
        Statement(
            "overlap",
            "The plots of TI and L1 overlap, and those of CS and L21.",
            "Fig. 6",
            over(_pairs, _overlap),
        ),
    ),
    differences=(
        "λ_p and λ are 0.1; the paper does not say which it takes here.",
        "Processor time of one thread, the median over epochs after the first one; comparisons within one "
        "run carry over to other machines, seconds do not.",
        "An epoch of the Ω* methods costs O(Ndk + d²k): with N = 2,500 rows the part that is linear in d is "
        "still large for d of this size, and fitted exponents lie between 1 and 2. An epoch of SLQR costs "
        "O(Nd² + d³).",
        f"Exponents within {_NEAR:g} of those named count as these. Lines overlap where neither takes more "
        f"than {_OVERLAP:g} times as long as the other. The quick budget ends at d = 2,000.",
    ),
    settings={"N": 2_500, "block": 100, "strength": 0.1},
    budgets={
        "quick": {"d": [500, 1_000, 2_000], "data_sets": 1, "epochs": 4},
        "full": {"d": [1_000, 2_000, 3_000, 4_000], "data_sets": 10, "epochs": 5},
    },
    minutes={"quick": 2, "full": 120},
    runner=_run,
    picture=Picture(
        "lines",
        {
            "table": "times",
            "x": "d",
            "y": "seconds",
            "x_title": "d",
            "y_title": "Processor time of an epoch (s)",
            "log": True,
            "ticks": "numbers",
        },
    ),
)
