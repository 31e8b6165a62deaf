"""Several solvers on one problem: Figs. 8 and 9 of atarashi2021."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fmviz.engine.penalties import get_penalty
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Reason, Snapshot
from fmviz.lab.papers.protocols.descent import MUCH, SHARE, Line, Prepare, Race, Value, label_of
from fmviz.lab.papers.reproduction import Reproduction, Row

RANK, INIT_SD = 30, 0.01
BATCH = ("APGD", "nmAPGD")
COORDINATE = ("PCD", "PBCD")
STOCHASTIC = ("PSGD", "Katyusha")
READINGS = (
    "The stochastic methods run as published, without the safeguard that fmviz has by default, and PSGD "
    "applies its operator to all of P at every step, as the paper's; of the initial steps the one with the "
    "lowest end is shown, of each start.",
    "A method that is faster than another comes close to the lowest objective of all before it, in the "
    f"median over the starts and in two readings of close: all but {SHARE:.0%} of the way from the start, "
    f"and to {SHARE:.0%} above it. Much faster means by a factor of {MUCH:g} at least. Where the two "
    "readings disagree, a statement is not settled. Times are looked at in steps of 15% after the first ten "
    "epochs.",
    "Fits end when no parameter changes by more than 1e-7 of the largest one, or after the seconds told with "
    "the settings, of processor time of their thread; the paper's figures have other axes.",
)


def racers(regularizer: str, eta0: Sequence[float], mini_batches: bool) -> list[Line]:
    """Return the lines for TI ("ti") or CS ("cs")."""
    steps = [{"eta0": value, "monotone": False} for value in eta0]
    dense = [{**one, "operator": "dense"} for one in steps]
    coordinate = COORDINATE[get_penalty(regularizer).row_wise]
    found = [Line(name, name.lower()) for name in (coordinate, *BATCH)]
    for name, tries in (("PSGD", dense), ("Katyusha", steps)):
        found.append(Line(name, name.lower(), tries))
        if mini_batches:
            found.append(Line(f"MB-{name}", f"mb_{name.lower()}", steps))
    return found


def race_of(
    load: Callable[[], tuple[Any, np.ndarray]],
    build: Callable[[Any, np.ndarray], tuple[Problem, float]],
    *,
    panel: str,
    seed: int,
    data: str,
    lines: Sequence[Line],
    seconds: float,
) -> Race:
    """Return the race of some lines, all from one start, which the seed draws.

    `load` returns the data, and `build` of them the problem and what its objective is multiplied by; see
    `Race` for the rest.
    """

    def opened(repro: Reproduction) -> tuple[Prepare, Value]:
        X, y = load()
        repro.use(data, X, y)
        problem, scale = build(X, y)
        start = problem.start(INIT_SD, np.random.default_rng([seed, 1]))
        return lambda line: (problem, start), lambda last: scale * last.objective

    return Race(panel, seed, data, lines, opened, seconds, ending=_ending)


def _ending(line: Line, own: Mapping[str, Any], course: Sequence[Row], last: Snapshot) -> Row:
    assert last.status is not None, "the last snapshot says how the run ended"
    risen = course[-1]["objective"] > course[0]["objective"]
    return {
        "label": label_of(line, own),
        "eta0": own.get("eta0"),
        "epochs": last.epoch,
        "diverged": last.status.reason is Reason.DIVERGED or risen,
    }
