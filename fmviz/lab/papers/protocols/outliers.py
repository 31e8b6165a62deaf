"""Robust machines where rows are wrong: data with a known truth, and a fit for every loss and every norm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fmviz.engine.design import Design
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.losses import Absolute, CappedHinge, CappedInsensitive, Huber, Loss, Squared
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import IncrementalSVD, Solver, TwoStage
from fmviz.engine.starts.robust import Caps, EstimatedCaps, estimate_caps, linear_strength
from fmviz.lab.contamination import contaminated
from fmviz.lab.papers.reproduction import Row
from fmviz.lab.runner import load_dataset, split

PLANTED, ABALONE, FLIGHTS, MOVIELENS = "planted", "abalone", "nycflights", "MovieLens"
LARGE = (FLIGHTS, MOVIELENS)
"""What is fitted by mini-batches."""
SETS = {ABALONE: "abalone", FLIGHTS: "flights", MOVIELENS: "movielens_100k"}
LOSSES = ("squared", "Huber", "absolute", "capped")
SQUARED, TRACE, CAPPED = NORMS = ("‖Z‖²", "trace norm", "capped norm")
GROSS, ONE_SIDED, MILD, CLUSTER, SECOND = KINDS = (
    "gross errors",
    "gross, upwards",
    "mild errors",
    "moved features",
    "second law",
)
# Of Huber's δ, in deviations of the noise; of rows kept out of training, or to choose a strength by.
_HUBER, _TEST, _CHOOSE = 1.345, 0.25, 0.2
# Up to so many features Z is formed.
_MOST_FEATURES = 60
_NOISE, _NO_CAP = 0.1, 1e12


class Rows(NamedTuple):
    """Rows with a known truth.

    Attributes
    ----------
    X : (N, d) ndarray
        The features.
    y : (N,) ndarray
        The targets, some of them wrong.
    Z : (d, d) ndarray
        The true Z.
    wrong : (N,) bool ndarray
        Which rows are.
    """

    X: np.ndarray
    y: np.ndarray
    Z: np.ndarray
    wrong: np.ndarray


def planted(seed: int, percent: int, kind: str = GROSS, n: int = 1_500, d: int = 30, rank: int = 3) -> Rows:
    """Return standard normal features, Z = VVᵀ and w with V and w standard normal, and wrong rows.

    The noise has 0.1 deviations of the noiseless target, gross errors 3 to 8 deviations of y, mild ones 3 to
    8 of the noise. Two kinds have a share of their own: features of a tenth of the rows that are moved by 5
    deviations each, and one factor more on the fifth of the rows that is furthest from the mean.
    """
    rng = np.random.default_rng(seed)
    X, V = rng.normal(size=(n, d)), rng.normal(size=(d, rank))
    f = np.square(X @ V).sum(axis=1) + X @ rng.normal(size=d)
    y = f + _NOISE * f.std() * rng.normal(size=n)
    if kind in (CLUSTER, SECOND):
        rng = np.random.default_rng(seed)
        if kind == CLUSTER:
            wrong = rng.random(n) < 0.1
            X[wrong] = 5.0 + 0.1 * rng.normal(size=(int(wrong.sum()), d))
        else:
            lengths = np.square(X).sum(axis=1)
            wrong = lengths > np.quantile(lengths, 0.8)
            y = np.where(wrong, y + 3.0 * np.square(X @ rng.normal(size=d)), y)
        return Rows(X, y, V @ V.T, wrong)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.permutation(n)[: n * percent // 100]] = True
    size = rng.uniform(3, 8, n) * (_NOISE * f.std() if kind == MILD else y.std())
    sign = 1.0 if kind == ONE_SIDED else rng.choice([-1.0, 1.0], n)
    return Rows(X, np.where(wrong, y + sign * size, y), V @ V.T, wrong)


@dataclass(frozen=True)
class Trial:
    """A data set, the share of wrong rows in percent, and the seed of rows and errors."""

    data: str
    percent: int
    seed: int


@dataclass(frozen=True)
class Study:
    """How machines are fitted.

    Attributes
    ----------
    rows, features : int
        Of planted data.
    strengths : tuple of float
        λ_Z to choose from, as shares of what outweighs the loss.
    epochs, rounds : int
        Epochs of a fit, and rounds of a convex problem.
    epochs_large, rank : int
        Epochs by mini-batches, and the rank of Z there, which is not formed.
    """

    rows: int
    features: int
    strengths: tuple[float, ...]
    epochs: int
    rounds: int
    epochs_large: int
    rank: int

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Study:
        """Return that of the settings of an artefact."""
        given = {name: settings[name] for name in cls.__dataclass_fields__}
        return cls(**{**given, "strengths": tuple(given["strengths"])})


@dataclass(frozen=True, eq=False)
class _Parts:
    """Rows to fit, to choose a strength by, and what tells how good a machine is."""

    problem: Problem
    wrong: np.ndarray
    choose: Callable[[Parameters], float]
    score: Callable[[Parameters], float]


def machines(trial: Trial, study: Study) -> Row:
    """Return the rows of all losses and norms on a data set, under "rows"; for `trials.each`."""
    parts = _parts(trial, study)
    rng = np.random.default_rng([trial.seed, 2])
    solver = _solver(parts.problem, study)
    found = estimate_caps(parts.problem, Caps(), solver, rng)
    return {"rows": [*_fits(parts, found, solver, study, rng)]}


def _parts(trial: Trial, study: Study) -> _Parts:
    rng = np.random.default_rng([trial.seed, 1])
    if trial.data == PLANTED:
        X, y, Z, wrong = planted(trial.seed, trial.percent, n=study.rows, d=study.features)

        def score(at: Parameters) -> float:
            return float(np.linalg.norm((at.P * at.multipliers) @ at.P.T - Z) / np.linalg.norm(Z))
    else:
        dataset = load_dataset(SETS[trial.data])
        truth = np.log(dataset.y) if trial.data == ABALONE else dataset.y
        known, unseen = split(len(truth), _TEST, trial.seed)
        kind = "flipped" if dataset.task == "binary" else "gross"
        share: dict[str, Any] = {kind: trial.percent / 100.0, "errors_seed": trial.seed}
        X, clean = dataset.X[known], truth[known]
        y = contaminated(clean, dataset.task, **share)
        wrong = y != clean
        test, right = Design(dataset.X[unseen]), truth[unseen]

        def score(at: Parameters) -> float:
            f = RobustFM().predict(test, at)
            wrongly = np.mean(f * right <= 0.0) if dataset.task == "binary" else np.abs(f - right).mean()
            return float(wrongly)

    order = rng.permutation(len(y))
    kept, others = np.split(order, [round((1.0 - _CHOOSE) * len(y))])
    design, held, target = Design(X[kept]), Design(X[others]), y[others]
    binary = trial.data == FLIGHTS

    def choose(at: Parameters) -> float:
        f = RobustFM().predict(held, at)
        return float(np.mean(f * target <= 0.0) if binary else np.median(np.abs(f - target)))

    d = design.n_features
    problem = Problem.build(
        design,
        y[kept],
        loss=CappedHinge() if binary else CappedInsensitive(),
        penalty="l2",
        model=RobustFM(),
        rank=d if d <= _MOST_FEATURES else study.rank,
    )
    return _Parts(problem.at(lambda_w=linear_strength(problem)), wrong[kept], choose, score)


def _solver(problem: Problem, study: Study) -> Solver:
    if problem.design.n_features > _MOST_FEATURES:
        return IncrementalSVD()
    return TwoStage(accuracy=1e-5, rounds=study.rounds)


def _fits(
    parts: _Parts, found: EstimatedCaps, solver: Solver, study: Study, rng: np.random.Generator
) -> Iterator[Row]:
    model: Any = found.problem.model
    epochs = study.epochs_large if isinstance(solver, IncrementalSVD) else study.epochs
    capped = found.problem.loss
    budget = Budget(epochs, tol=1e-3, report_every=None)
    losses: dict[str, tuple[Loss, float]] = {
        "squared": (Squared(), found.scale),
        "Huber": (Huber(_HUBER * found.scale), found.scale),
        "absolute": (replace(capped, cap=_NO_CAP) if isinstance(capped, CappedHinge) else Absolute(), 1.0),
        "capped": (capped, 1.0),
    }
    # Losses with kinks have the slope 1: so much pulls at Z, at most.
    pull = _largest_square(parts.problem)
    size = float(found.start.multipliers.max(initial=0.0)) or float(np.sqrt(model.cap))
    norms = {
        SQUARED: (RobustFM("squared"), [share * pull / (2.0 * size) for share in study.strengths]),
        TRACE: (RobustFM("trace"), [share * pull for share in study.strengths]),
        CAPPED: (model, [found.problem.lambda_p]),
    }
    for name, (loss, slope) in losses.items():
        for norm, (own, strengths) in norms.items():
            begin, ends = time.process_time(), []
            for strength in strengths:
                problem = replace(parts.problem, loss=loss, model=own, lambda_p=slope * strength)
                start = found.start if loss is capped else problem.start(0.0, rng)
                *_, end = iterate(problem, solver, budget, start=start, rng=rng)
                ends.append((parts.choose(end.parameters), strength, end.parameters))
            _, strength, best = min(ends, key=lambda one: one[0])
            yield {
                "loss": name,
                "norm": norm,
                "score": parts.score(best),
                "rank": int(np.count_nonzero(best.multipliers > 0.01 * best.multipliers.max(initial=0.0))),
                "f1": _f1(parts, loss, best) if loss is capped else None,
                "strength": slope * strength,
                "seconds": time.process_time() - begin,
            }


def _largest_square(problem: Problem) -> float:
    """Return the largest eigenvalue of XᵀX/N."""
    X = problem.design.matrix
    v = np.ones(problem.design.n_features)
    size = 1.0
    for _ in range(20):
        v = np.asarray(X.T @ (X @ v)) / len(problem.y)
        size = float(np.linalg.norm(v)) or 1.0
        v /= size
    return size


def _f1(parts: _Parts, loss: Loss, at: Parameters) -> float | None:
    """Return how well the rows that are set aside are those that are wrong; None where none is."""
    kinks, problem = loss.majoriser, parts.problem
    if kinks is None or not parts.wrong.any():
        return None
    aside = kinks.excess(problem.predict(at), problem.y) > kinks.cap
    return 2.0 * float((aside & parts.wrong).sum()) / float(aside.sum() + parts.wrong.sum())
