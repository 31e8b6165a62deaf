"""Figure 10 of atarashi2021: how long Algorithms 2 and 3 take for the operator of λ‖·‖₁²."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product, starmap
from statistics import median

import numpy as np

from fmviz.engine.penalties.operators.squared_norm import prox_squared_l1
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Said, by_majority, over, verdict

METHODS = {"sort": "Sort (Algorithm 2)", "random": "Random (Algorithm 3)", "filter": "fmviz"}
# Faster by less is as fast.
_SAME = 1.05
_SMALL = 32
# Shorter laps a clock cannot tell.
_LAP = 2e-3
Ratios = Mapping[int, float]


def _panel(sigma: float, strength: float) -> str:
    return f"σ = {sigma:g}, λ = {strength:g}"


def _run(repro: Reproduction) -> Iterator[str]:
    settings = repro.settings
    lengths = [2**e for e in settings["log2_d"]]
    rng = np.random.default_rng(0)
    vectors = {
        d: rng.standard_normal((max(settings["vectors"], settings["entries"] // d), d)) for d in lengths
    }
    for d, M in vectors.items():
        repro.use(f"d = {d}", M)
    cases = repro.each(product(lengths, settings["sigma"], settings["lambda"]))
    yield "Readying the kernels"
    for name in METHODS:
        prox_squared_l1(vectors[lengths[0]], 0.1, name)
    for d, sigma, strength in cases:
        scaled, panel = sigma * vectors[d], _panel(sigma, strength)
        times = _seconds(
            {name: partial(prox_squared_l1, scaled, strength, name) for name in METHODS}, settings["rounds"]
        )
        alive = np.count_nonzero(prox_squared_l1(scaled, strength)) / scaled.size
        for name, label in METHODS.items():
            each = times[name] / len(scaled) * 1e6
            repro.row("times", panel=panel, method=label, d=d, microseconds=each, alive=alive)
        repro.done += 1
        yield f"d = {d:,}, {panel}"


def _seconds(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median processor time of each call, taken in turns."""
    laps: dict[str, list[float]] = {name: [] for name in calls}
    repeats = {}
    for name, call in calls.items():
        repeats[name] = max(1, int(np.ceil(_LAP / max(_lap(call, 1), 1e-7))))
    for _ in range(rounds):
        for name, call in calls.items():
            laps[name].append(_lap(call, repeats[name]))
    return {name: median(times) for name, times in laps.items()}


def _lap(call: Callable[[], object], repeats: int) -> float:
    begin = time.thread_time()
    for _ in range(repeats):
        call()
    return (time.thread_time() - begin) / repeats


def _ratios(tables: Tables, settings: Settings) -> Iterator[tuple[str, Ratios]]:
    """Yield for every panel the time of Sort over that of Random, by d."""
    for panel in starmap(_panel, product(settings["sigma"], settings["lambda"])):
        sort, random = (
            {row["d"]: row["microseconds"] for row in rows_where(tables, "times", panel=panel, method=label)}
            for label in (METHODS["sort"], METHODS["random"])
        )
        yield panel, {d: time / random[d] for d, time in sort.items() if d in random}


def _mostly(ratios: Ratios) -> Said:
    wins = sum(ratio > _SAME for ratio in ratios.values())
    low, high = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return by_majority(wins, len(ratios)), (
        f"Random is faster at {wins} of {len(ratios)} lengths; Sort takes {ratios[low]:.2f} times as long at "
        f"d = {low:,} and {ratios[high]:.2f} times at d = {high:,}."
    )


def _small(ratios: Ratios) -> Said | None:
    faster = [d for d, ratio in ratios.items() if ratio < 1.0 / _SAME]
    if not any(d > _SMALL for d in ratios):
        return None
    where = f"at d = {', '.join(f'{d:,}' for d in faster)}" if faster else "at no length"
    words = f"Sort is faster, by at least {_SAME - 1:.0%}, {where}."
    return verdict(all(d <= _SMALL for d in faster)), words


ARTEFACT = figure(
    __name__,
    _run,
    {
        "mostly": over(_ratios, _mostly),
        "small": over(_ratios, _small),
    },
)
