"""The ‖W‖₁-regularized objective of atarashi2021: Figs. 5 and 7, and the problems of Fig. 6."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import get_penalty
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.papers.protocols.descent import SHARE, Line, Prepare, Race, Value, starts
from fmviz.lab.papers.protocols.recovery import METHODS as ALL
from fmviz.lab.papers.reproduction import Reproduction, Row, Tables, rows_where
from fmviz.lab.papers.statements import listed

METHODS = tuple(name for name in ALL if name != "FM")
PROPOSED = ("TI", "CS")
OTHERS = tuple(name for name in METHODS if name not in PROPOSED)
ONCE = dict.fromkeys(METHODS, 1)
RANK, INIT_SD = 30, 0.01
READING = (
    "The objective that is drawn is (1/N)Σℓ + λ‖W‖₁ over all entries of W, as for (22); the term of λ_p, "
    "which all methods minimise with it, is not part of it. The paper does not write the objective out."
)


def panel_of(case: str, strength: float) -> str:
    """Return the name of a panel."""
    return f"{case}, λ = {strength:g}"


def weights_l1(parameters: Parameters) -> float:
    """Return ‖W‖₁ over all entries: 2Ω_*(P) + ‖P‖² for a factorization machine ([A] 3.2)."""
    if parameters.W is not None:
        return float(np.abs(parameters.W).sum())
    P = parameters.P
    return 2.0 * get_penalty("omega_star").value(P) + float(np.square(P).sum())


def problem_of(method: str, X: Any, y: np.ndarray, lambda_p: float, lambda_sparse: float) -> Problem:
    """Return what one of `METHODS` minimises; the strengths are λ_tr and λ of SLQR."""
    own = ALL[method]
    return Problem.build(
        X,
        y,
        model=own.model,
        penalty=own.regularizer,
        rank=RANK,
        lambda_p=lambda_p,
        lambda_sparse=lambda_sparse,
        fit_linear=False,
        fit_intercept=False,
    )


def start_of(problem: Problem, seed: int) -> Parameters:
    """Return the start that a seed draws."""
    return problem.start(INIT_SD, np.random.default_rng([seed, 1]))


def race_of(
    load: Callable[[], tuple[Any, np.ndarray]],
    *,
    panel: str,
    seed: int,
    data: str,
    lambda_p: float,
    lambda_sparse: float,
    seconds: float,
    traced: bool = True,
    methods: Sequence[str] = METHODS,
) -> Race:
    """Return the race of the methods on the data that `load` returns; see `Race` for the rest."""

    def opened(repro: Reproduction) -> tuple[Prepare, Value]:
        X, y = load()
        repro.use(data, X, y)

        def prepare(line: Line) -> tuple[Problem, Parameters]:
            problem = problem_of(line.label, X, y, lambda_p, lambda_sparse)
            return problem, start_of(problem, seed)

        return prepare, lambda last: last.loss + lambda_sparse * weights_l1(last.parameters)

    return Race(
        panel,
        seed,
        data,
        [Line(name, ALL[name].solver) for name in methods],
        opened,
        seconds,
        ending=_ending,
        mark=lambda own: traced,
        traced=traced,
    )


def _ending(line: Line, own: Mapping[str, Any], course: Sequence[Row], last: Snapshot) -> Row:
    assert last.status is not None, "the last snapshot says how the run ended"
    return {"epoch": last.epoch, "settled": settled(course), "status": str(last.status.reason)}


def settled(course: Sequence[Row]) -> float:
    """Return the seconds after which the objective stays within `SHARE` of its last value."""
    end = course[-1]["objective"]
    away = [i for i, row in enumerate(course) if abs(row["objective"] - end) > SHARE * abs(end)]
    return float(course[away[-1] + 1]["seconds"] if away else course[0]["seconds"])


def ends(tables: Tables, panel: str, column: str) -> dict[str, list[float]]:
    """Return a column of the table "ends" by method, for the starts from which all have ended."""
    found: dict[str, list[float]] = {}
    for seed in starts(tables, panel, ONCE):
        for row in rows_where(tables, "ends", panel=panel, seed=seed):
            found.setdefault(row["method"], []).append(row[column])
    return found


def in_words(values: Mapping[str, float], unit: str = "") -> str:
    """Return values by method as a sentence."""
    return listed(values.items(), f"{{}} {{:.4g}}{unit}") + "."
