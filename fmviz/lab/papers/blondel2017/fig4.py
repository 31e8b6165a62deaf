"""Figure 4 of blondel2017: ratings, as numbers and as levels, by machines of one and of several outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fmviz.engine.design import Design
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.shared_basis.path import Step, largest_strength, validated_path
from fmviz.engine.solvers import get_solver
from fmviz.engine.target import Target
from fmviz.lab.datasets.drawn import rated_items
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.benchmarks import available
from fmviz.lab.papers.protocols.class_machines import PENALTIES, Trial
from fmviz.lab.papers.protocols.classes import by_margin, names
from fmviz.lab.papers.protocols.trials import each
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables, rows_where
from fmviz.lab.papers.statements import over
from fmviz.lab.runner import load_dataset
from fmviz.metrics import ndcg, rmse

MOVIELENS, DRAWN = "MovieLens 100K", "drawn ratings"
MEASURES = ("RMSE", "nDCG@1", "nDCG@5")


@dataclass(frozen=True)
class Machine:
    """How ratings are fitted.

    Attributes
    ----------
    penalty : str
        Of the output layer.
    levels : bool
        Whether outputs say if a rating is at most each level, and not the one output what it is.
    kernel : str
        Of the bases.
    alone : bool
        Whether there are no bases, and biases of users and items alone.
    """

    penalty: str
    levels: bool = True
    kernel: str = "anova"
    alone: bool = False


FM, PN, BIASES = "one output, FM", "one output, PN", "biases alone"
SEVERAL = {f"{title}, several outputs": Machine(penalty) for title, penalty in PENALTIES.items()}
METHODS: dict[str, Machine] = {
    **SEVERAL,
    FM: Machine("l1", levels=False),
    PN: Machine("l1", levels=False, kernel="polynomial"),
    BIASES: Machine("l1", levels=False, alone=True),
    "biases alone, several outputs": Machine("l1", alone=True),
}
# λ beyond which no basis is worth its price.
_NONE = 1e3
# Those of which the statement is.
GROUPS = tuple(name for name in SEVERAL if not name.startswith("ℓ₁,"))


class Rated(NamedTuple):
    """Ratings with who gave them."""

    X: Any
    y: np.ndarray
    user: np.ndarray


@lru_cache(maxsize=1)
def ratings(data: str, drawn: int) -> Rated:
    """Return users and items one-hot with their ratings; about so many, where they are drawn."""
    if data == MOVIELENS:
        found = load_dataset("movielens_100k")
        X, y = found.X, found.y
    else:
        X, y = rated_items(drawn, max(10, drawn // 106), max(10, drawn // 60), 4, np.random.default_rng(0))
    # Both ones of a row; users come first.
    return Rated(X, y, sp.csr_array(X).indices.reshape(-1, 2).min(axis=1))


def parts(n: int, seed: int) -> list[np.ndarray]:
    """Return half of the rows to train, a quarter to choose by, and a quarter to test."""
    order = np.random.default_rng([seed, 0]).permutation(n)
    return np.split(order, [n // 2, n // 2 + n // 4])


def fitted(
    trial: Trial,
    *,
    drawn: int,
    units: int,
    bases: int,
    accuracy: float,
    ridges: tuple[float, ...],
    ridges_of_levels: tuple[float, ...],
    shares: tuple[float, ...],
) -> Row:
    """Return the machines on the way: λ, bases, RMSE on validation rows, and `MEASURES` on test rows."""
    machine, rated = METHODS[trial.method], ratings(trial.data, drawn)
    train, chosen, test = parts(rated.y.size, trial.seed)
    levels = np.unique(rated.y)
    designs = {name: Design(rated.X[rows]) for name, rows in (("chosen", chosen), ("test", test))}
    y = rated.y[train]
    problem = Problem.build(
        rated.X[train],
        np.where(y[:, None] <= levels[:-1], 1.0, -1.0) if machine.levels else y,
        loss="logistic" if machine.levels else "squared",
        penalty=machine.penalty,
        model=get_model("shared_basis", {"kernel": machine.kernel}),
        rank=units,
        fit_linear=True,
        fit_intercept=True,
    )
    at_most = Target(rated.y[:0], "ordinal", levels)

    def predicted(part: str, end: Parameters) -> np.ndarray:
        f = problem.model.predict(designs[part], end)
        if not machine.levels:
            return f
        p = problem.loss.probability(f)
        assert p is not None, "the logistic loss has probabilities"
        return at_most.probabilities(p) @ levels

    def score(end: Parameters) -> float:
        return -rmse(rated.y[chosen], predicted("chosen", end))

    solver = get_solver("conditional_gradient", {"bases": bases, "accuracy": accuracy})

    def path(at: Problem, strengths: Iterable[float], epochs: int) -> Iterator[Step]:
        return validated_path(at, score, strengths, solver, np.random.default_rng([trial.seed, 1]), epochs)

    grid = ridges_of_levels if machine.levels else ridges
    ends = {ridge: next(path(problem.at(lambda_w=ridge), (_NONE,), 1)) for ridge in grid}
    ridge = max(ends, key=lambda one: ends[one].score)
    way = [ends[ridge]]
    if not machine.alone:
        at = problem.at(lambda_w=ridge)
        top = largest_strength(at)
        way += path(at, [share * top for share in shares], -(-units // bases) + 2)
    points = []
    for step in way:
        measured = _measured(rated.y[test], predicted("test", step.parameters), rated.user[test])
        points.append([step.strength, step.n_bases, -step.score, *measured])
    return {"points": points, "lambda_w": ridge}


def _measured(y: np.ndarray, predicted: np.ndarray, user: np.ndarray) -> list[float]:
    return [rmse(y, predicted), *(ndcg(y, predicted, at, user) for at in (1, 5))]


def _run(repro: Reproduction) -> Iterator[str]:
    settings = repro.settings
    here = available(repro, {MOVIELENS: "movielens_100k"}, (DRAWN,))
    for name in here:
        rated = ratings(name, settings["drawn"])
        repro.use(name, rated.X, rated.y, users=len(np.unique(rated.user)))
    trials = [
        Trial(name, method, seed) for seed, name, method in product(range(settings["splits"]), here, METHODS)
    ]
    repro.total += len(trials)
    own = {name: settings[name] for name in ("drawn", "units", "bases", "accuracy")}
    own |= {name: tuple(settings[name]) for name in ("ridges", "ridges_of_levels", "shares")}
    columns = ("points", "lambda_w")
    for trial, found in each(repro, partial(fitted, **own), trials, columns, "fig4", own):
        for size in range(settings["bases"], settings["units"] + 1, settings["bases"]):
            allowed = [one for one in found["points"] or () if one[1] <= size]
            if not allowed:
                continue
            best = min(allowed, key=lambda one: (one[2], one[1]))
            named = {"data": trial.data, "method": trial.method, "seed": trial.seed, "bases": size}
            measured = dict(zip(MEASURES, best[3:], strict=True))
            repro.row("test", **named, used=best[1], strength=best[0], lambda_w=found["lambda_w"], **measured)
            for measure, value in measured.items():
                panel = measure if len(here) == 1 else f"{trial.data}: {measure}"
                repro.row("lines", panel=panel, method=trial.method, seed=trial.seed, x=size, y=value)
        yield f"{trial.data}, split {trial.seed + 1}: {trial.method}"
    if not repro.should_stop():
        _ends(repro, here)


def _ends(repro: Reproduction, here: list[str]) -> None:
    """Fill the table "ends": means over the splits at the largest number of bases."""
    for name, method in product(here, METHODS):
        rows = rows_where(repro.tables, "test", data=name, method=method, bases=repro.settings["units"])
        if not rows:
            continue
        told: dict[str, Any] = {"data": name, "method": method, "splits": len(rows)}
        for measure in (*MEASURES, "used"):
            values = [row[measure] for row in rows]
            told[measure] = fmean(values)
            told[f"{measure} std"] = stdev(values) if len(values) > 1 else None
        repro.row("ends", **told)


def _leads(
    opponents: Mapping[str, str], measures: tuple[str, ...], tables: Tables, settings: Settings
) -> Iterator[tuple[str, list[float]]]:
    """Yield by how much the machines of several outputs are better than others on every split."""
    for name, measure, method, other in product(names(tables, settings), measures, GROUPS, opponents):
        mine, theirs = (
            {
                row["seed"]: row[measure]
                for row in rows_where(tables, "test", data=name, method=one, bases=settings["units"])
            }
            for one in (method, other)
        )
        sign = -1.0 if measure == "RMSE" else 1.0
        leads = [sign * (mine[seed] - theirs[seed]) for seed in sorted(mine.keys() & theirs.keys())]
        yield f"{name}, {measure}, {method.split(',')[0]} against {opponents[other]}", leads


def _cases(*opponents: str, measures: tuple[str, ...]) -> Callable[..., Any]:
    return partial(_leads, {one: one.removeprefix("one output, ") for one in opponents}, measures)


_say = partial(by_margin, unit="")

ARTEFACT = figure(
    __name__,
    _run,
    {
        "single": over(_cases(FM, PN, measures=MEASURES), _say),
        "baselines": over(_cases(BIASES, measures=MEASURES[1:]), _say),
    },
    bases=5,
)
