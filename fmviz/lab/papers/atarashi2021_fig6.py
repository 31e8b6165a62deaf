"""Figure 6 of atarashi2021: the time of an epoch, by the number of features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from statistics import fmean, median
from typing import Any

import numpy as np

from fmviz.engine.drive import Budget, iterate
from fmviz.engine.problem import Problem
from fmviz.lab.datasets.synthetic import make_sparse_interactions
from fmviz.lab.papers.base import (
    Artefact,
    Check,
    Desk,
    Picture,
    Statement,
    Tables,
    Verdict,
    rows_where,
    without_numbers,
)
from fmviz.lab.papers.checkpoints import key_of
from fmviz.lab.papers.protocols.recovery import METHODS as ALL
from fmviz.lab.papers.protocols.shared import ATARASHI2021
from fmviz.lab.papers.protocols.weights import (
    INIT_SD,
    METHODS,
    RANK,
    in_words,
)

_SPARSE = ("TI", "CS", "L1", "L21")
_OMEGA = ("Ω*-nmAPGD", "Ω*-SubGD")
_POWERS = {**dict.fromkeys(_SPARSE, 1), **dict.fromkeys(_OMEGA, 2), "SLQR": 3}
# How far a fitted exponent may be from that of the statement, and up to which ratio two lines overlap.
_NEAR, _OVERLAP = 0.3, 1.5
_PAIRS = (("TI", "L1"), ("CS", "L21"))
_SLOWER, _SLOWER_AT = 100.0, 4_000
_PANEL = "One epoch"


def _run(desk: Desk) -> Iterator[str]:
    settings = desk.settings
    cases = list(product(range(settings["data_sets"]), settings["d"], METHODS))
    desk.total = len(cases)
    for seed, d, method in cases:
        if desk.should_stop():
            return
        yield f"d = {d:,}, data set {seed + 1} of {settings['data_sets']}: {method}"
        blocks = max(1, d // settings["block"])
        X, y, _ = make_sparse_interactions(settings["N"], d, blocks, 0, random_state=seed)
        desk.use(f"d = {d:,}, seed {seed}", X, y)

        def steps(
            method: str = method, d: int = d, seed: int = seed, X: np.ndarray = X, y: np.ndarray = y
        ) -> Iterator[str]:
            own = ALL[method]
            problem = Problem.build(
                X,
                y,
                model=own.model,
                penalty=own.regularizer,
                rank=RANK,
                lambda_p=settings["strength"],
                lambda_sparse=settings["strength"],
                fit_linear=False,
                fit_intercept=False,
            )
            budget = Budget(settings["epochs"], tol=0.0, certify_every=settings["epochs"] + 1)
            rng = np.random.default_rng([seed, 1])
            seconds = []
            for last in iterate(problem, own.solver, budget, desk.should_stop, init_scale=INIT_SD, rng=rng):
                seconds.append(last.seconds)
                yield f"d = {d:,}: {method}, epoch {last.epoch}"
            if not desk.should_stop():
                # The first one starts the solver, too.
                laps = np.diff(seconds[1:] if len(seconds) > 2 else seconds)
                desk.row("times", panel=_PANEL, method=method, d=d, seed=seed, seconds=median(laps))

        yield from desk.once(key_of(seed, d, method), steps)
        if desk.should_stop():
            return
        desk.done += 1


def _means(tables: Tables, sizes: list[int]) -> dict[str, dict[int, float]]:
    """Return the mean seconds by method and d; empty where some are missing."""
    found: dict[str, dict[int, float]] = {}
    for method, d in product(METHODS, sizes):
        times = [row["seconds"] for row in rows_where(tables, "times", method=method, d=d)]
        if not times:
            return {}
        found.setdefault(method, {})[d] = fmean(times)
    return found


def _judge(tables: Tables, settings: Mapping[str, Any]) -> Iterator[Check]:
    sizes = sorted(settings["d"])
    means = _means(tables, sizes)
    if not means:
        yield from (without_numbers(one.key, "all") for one in ARTEFACT.statements)
        return
    for method in METHODS:
        yield _growth(method, means[method])
    at = {method: means[method][sizes[-1]] for method in METHODS}
    least = at["SLQR"] / max(at[method] for method in _SPARSE)
    # Smaller sizes can confirm the statement, but not refute it.
    refuted: Verdict = "does not hold" if sizes[-1] >= _SLOWER_AT else "not settled"
    held: Verdict = "holds" if least > _SLOWER else refuted
    yield Check(
        "slqr",
        f"d = {sizes[-1]:,}",
        held,
        f"SLQR takes {least:.3g} times as long as the slowest of the four. One epoch: {in_words(at, ' s')}",
    )
    for pair in _PAIRS:
        ratios = [means[pair[0]][d] / means[pair[1]][d] for d in sizes]
        near = all(1.0 / _OVERLAP <= ratio <= _OVERLAP for ratio in ratios)
        words = ", ".join(f"{ratio:.2f} at d = {d:,}" for d, ratio in zip(sizes, ratios, strict=True))
        yield Check(
            "overlap",
            " and ".join(pair),
            "holds" if near else "does not hold",
            f"{pair[0]} takes so many times as long as {pair[1]}: {words}.",
        )


def _growth(method: str, course: Mapping[int, float]) -> Check:
    power = _POWERS[method]
    key = {1: "linear", 2: "quadratic", 3: "cubic"}[power]
    words = ", ".join(f"{seconds:.3g} s at d = {d:,}" for d, seconds in course.items())
    if len(course) < 2:
        return Check(key, method, "not settled", f"One size says nothing of growth: {words}.")
    slope = float(np.polyfit(np.log(list(course)), np.log(list(course.values())), 1)[0])
    verdict: Verdict = "holds" if abs(slope - power) <= _NEAR else "does not hold"
    return Check(key, method, verdict, f"The fitted exponent of d is {slope:.2f}: {words}.")


ARTEFACT = Artefact(
    name="atarashi2021_fig6",
    paper=ATARASHI2021,
    title="Fig. 6: the time of an epoch, by the number of features",
    statements=(
        Statement("linear", "The running time of TI, CS, L1 and L21 increased linearly with d.", "8.2.4"),
        Statement("quadratic", "That of Ω*-nmAPGD and Ω*-SubGD increased quadratically.", "8.2.4"),
        Statement("cubic", "That of SLQR increased cubically.", "8.2.4"),
        Statement(
            "slqr", "At d = 4,000 SLQR ran more than 100 times slower than TI, CS, L1 and L21.", "8.2.4"
        ),
        Statement("overlap", "The plots of TI and L1 overlap, and those of CS and L21.", "Fig. 6"),
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
    judge=_judge,
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
