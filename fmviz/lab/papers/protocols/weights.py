"""The ‖W‖₁-regularized objective of the methods of atarashi2021: the runs of Figs. 5 and 7."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fmviz.engine.drive import Budget, iterate
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import get_penalty
from fmviz.engine.problem import Problem
from fmviz.lab.papers.base import Desk, Row, Tables, rows_where
from fmviz.lab.papers.checkpoints import key_of
from fmviz.lab.papers.protocols.descent import SHARE, thinned
from fmviz.lab.papers.protocols.recovery import METHODS as ALL

METHODS = tuple(name for name in ALL if name != "FM")
PROPOSED = ("TI", "CS")
OTHERS = tuple(name for name in METHODS if name not in PROPOSED)
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


def follow(
    desk: Desk,
    X: Any,
    y: np.ndarray,
    method: str,
    *,
    panel: str,
    seed: int,
    data: str,
    lambda_p: float,
    lambda_sparse: float,
    seconds: float,
    traced: bool = True,
) -> Iterator[str]:
    """Run one method, and add to the tables "trace" and "ends" what its W comes to.

    Parameters
    ----------
    desk : Desk
        Whose tables; its settings have ``epochs`` and ``tol``.
    X, y : matrix, ndarray
        The data.
    method : str
        One of `METHODS`.
    panel, seed : str, int
        What the rows are told apart by; the seed draws the start, too.
    data : str
        The name of the data in `Desk.data`.
    lambda_p, lambda_sparse : float
        The strengths, λ_tr and λ of SLQR.
    seconds : float
        Solver seconds.
    traced : bool
        Whether the course is kept, or its end alone.
    """
    settings = desk.settings

    def steps() -> Iterator[str]:
        own = ALL[method]
        problem = Problem.build(
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
        budget = Budget(settings["epochs"], seconds, settings["tol"], certify_every=settings["epochs"] + 1)
        rng = np.random.default_rng([seed, 1])
        course: list[Row] = []
        run = iterate(problem, own.solver, budget, desk.should_stop, init_scale=INIT_SD, rng=rng)
        for last, chosen in thinned(run):
            if chosen:
                value = last.loss + lambda_sparse * weights_l1(last.parameters)
                course.append({"epoch": last.epoch, "seconds": last.seconds, "objective": value})
            if desk.due():
                yield f"{panel}: {method}, epoch {last.epoch}"
        if desk.should_stop():
            return
        labels = {"panel": panel, "method": method, "seed": seed}
        if traced:
            for row in course:
                desk.row("trace", **labels, **row)
        desk.row("ends", **labels, **course[-1], settled=_settled(course), status=str(last.status.reason))  # type: ignore[union-attr]

    key = key_of(panel, seed, method, traced, desk.data[data])
    yield from desk.once(key, steps)


def _settled(course: Sequence[Row]) -> float:
    """Return the seconds after which the objective stays within `SHARE` of its last value."""
    end = course[-1]["objective"]
    away = [i for i, row in enumerate(course) if abs(row["objective"] - end) > SHARE * abs(end)]
    return float(course[away[-1] + 1]["seconds"] if away else course[0]["seconds"])


def ends(tables: Tables, panel: str, column: str) -> dict[str, dict[int, float]]:
    """Return a column of the table "ends" by method and seed; empty where a method has none yet."""
    found: dict[str, dict[int, float]] = {}
    for row in rows_where(tables, "ends", panel=panel):
        found.setdefault(row["method"], {})[row["seed"]] = row[column]
    counts = {len(found.get(method, ())) for method in METHODS}
    return found if len(counts) == 1 and 0 not in counts else {}


def in_words(values: Mapping[str, float], unit: str = "") -> str:
    """Return values by method as a sentence."""
    return ", ".join(f"{method} {value:.4g}{unit}" for method, value in values.items()) + "."
