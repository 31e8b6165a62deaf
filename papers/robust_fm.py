"""Figures about robust_fm: the paper contains no experiment; these experiments are ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse.linalg import svds
from sklearn.metrics import f1_score

from fmviz.engine.design import Design
from fmviz.engine.fit import Budget, Fit
from fmviz.engine.losses import Absolute, CappedHinge, CappedInsensitive, Huber, Loss, Squared
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import IncrementalSVD, TwoStage
from fmviz.engine.starts.robust import Caps, estimate_caps, linear_strength
from fmviz.lab.datasets.drawn import contaminated
from fmviz.lab.papers import Tables
from fmviz.lab.runner import load_dataset, split
from papers.base import declared, figure
from papers.judging import Finding, Said, frame, listed, majority
from papers.reproduction import Rows, Settings, use

SETS = declared("robust_fm")["sets"]
ABALONE, FLIGHTS, MOVIELENS = SETS
PLANTED, LARGE = "planted", (FLIGHTS, MOVIELENS)
"""Planted data; and data fitted by mini-batches."""
LOSSES = ("squared", "Huber", "absolute", "capped")
SQUARED, TRACE, CAPPED = NORMS = ("‖Z‖²", "trace norm", "capped norm")
# Huber's δ in noise deviations; shares of held-out rows, for test and for the choice of a strength.
_HUBER, _TEST, _CHOOSE = 1.345, 0.25, 0.2
# Maximum number of features for an explicit Z.
_MOST_FEATURES = 60
_NOISE, _NO_CAP = 0.1, 1e12


class Planted(NamedTuple):
    """Rows with a known truth: the true Z, and the corrupted targets or features."""

    X: np.ndarray
    y: np.ndarray
    Z: np.ndarray
    wrong: np.ndarray


def planted(seed: int, percent: int, n: int = 1_500, d: int = 30, rank: int = 3) -> Planted:
    """Return standard normal features, Z = VVᵀ and w with V and w standard normal, and corrupted rows.

    The noise has 0.1 deviations of the noiseless target, errors are ±3 to 8 deviations of y.
    """
    rng = np.random.default_rng(seed)
    X, V = rng.normal(size=(n, d)), rng.normal(size=(d, rank))
    f = np.square(X @ V).sum(axis=1) + X @ rng.normal(size=d)
    y = f + _NOISE * f.std() * rng.normal(size=n)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.permutation(n)[: n * percent // 100]] = True
    errors = rng.uniform(3, 8, n) * y.std() * rng.choice([-1.0, 1.0], n)
    return Planted(X, np.where(wrong, y + errors, y), V @ V.T, wrong)


# ---------------------------------------------------------------------------------------------- contamination


Score = Callable[[Parameters], float]


def wrong_rows(
    own: Settings, data: str, percent: int, seed: int
) -> tuple[Any, np.ndarray, np.ndarray, Score]:
    """Return X and y, the corrupted rows (a percentage), and the score function of a machine."""
    if data == PLANTED:
        X, y, Z, wrong = planted(seed, percent, n=own["rows"], d=own["features"])
        size = np.linalg.norm(Z)
        return X, y, wrong, lambda at: float(np.linalg.norm((at.P * at.multipliers) @ at.P.T - Z) / size)
    dataset = load_dataset(**SETS[data])
    truth = np.log(dataset.y) if data == ABALONE else dataset.y
    known, unseen = split(len(truth), _TEST, seed)
    share: dict[str, Any] = {"flipped" if data == FLIGHTS else "gross": percent / 100.0, "errors_seed": seed}
    y, test = contaminated(truth[known], dataset.task, **share), Design(dataset.X[unseen])
    return dataset.X[known], y, y != truth[known], lambda at: _error(data, test, truth[unseen], at, np.mean)


def _error(data: str, design: Design, y: np.ndarray, at: Parameters, typical: Callable[[Any], Any]) -> float:
    f = RobustFM().predict(design, at)
    return float(np.mean(f * y <= 0.0) if data == FLIGHTS else typical(np.abs(f - y)))


def contamination(own: Settings, data: str, percent: int, seed: int) -> Rows:
    """Fit rows with a percentage of errors under every loss and every norm of Z: rows of "test"."""
    if data in LARGE and seed >= own["seeds_large"]:
        return
    known: Any = (
        load_dataset(**SETS[data]) if data in SETS else planted(0, 0, n=own["rows"], d=own["features"])
    )
    yield use(data, known.X, known.y)
    X, y, wrong, score = wrong_rows(own, data, percent, seed)
    order = np.random.default_rng([seed, 1]).permutation(len(y))
    fitted, others = np.split(order, [round((1.0 - _CHOOSE) * len(y))])
    design, chosen_by = Design(X[fitted]), Design(X[others])
    large = (d := design.n_features) > _MOST_FEATURES
    problem = Problem.build(
        design,
        y[fitted],
        loss=CappedHinge() if data == FLIGHTS else CappedInsensitive(),
        penalty="l2",
        model=RobustFM(),
        rank=own["rank"] if large else d,
    )
    problem, rng = problem.at(lambda_w=linear_strength(problem)), np.random.default_rng([seed, 2])
    solver = IncrementalSVD() if large else TwoStage(accuracy=1e-5, rounds=own["rounds"])
    estimated, robust_start, scale = estimate_caps(problem, Caps(), solver, problem.start(0.0, rng), rng)
    model: Any = estimated.model
    capped: Any = estimated.loss
    budget = Budget(own["epochs_large" if large else "epochs"], tol=1e-3, report_every=None)
    losses: dict[str, tuple[Loss, float]] = {
        "squared": (Squared(), scale),
        "Huber": (Huber(_HUBER * scale), scale),
        "absolute": (replace(capped, cap=_NO_CAP) if data == FLIGHTS else Absolute(), 1.0),
        "capped": (capped, 1.0),
    }
    # Losses with kinks have slope 1, which bounds the gradient with respect to Z.
    matrix = design.matrix
    largest = svds(matrix, 1, v0=np.ones(min(matrix.shape)), return_singular_vectors=False)[0]
    pull = float(largest**2 / matrix.shape[0])
    size = float(robust_start.multipliers.max(initial=0.0)) or float(np.sqrt(model.cap))
    norms = {
        SQUARED: (RobustFM("squared"), [share * pull / (2.0 * size) for share in own["strengths"]]),
        TRACE: (RobustFM("trace"), [share * pull for share in own["strengths"]]),
        CAPPED: (model, [estimated.lambda_p]),
    }
    for (name, (loss, slope)), (norm, (machine, strengths)) in product(losses.items(), norms.items()):
        begin = time.process_time()
        ends: dict[float, tuple[float, Parameters]] = {}
        for strength in strengths:
            at = replace(problem, loss=loss, model=machine, lambda_p=slope * strength)
            start = robust_start if loss is capped else at.start(0.0, rng)
            end = Fit.of(at, solver, budget, start=start, rng=rng).end()
            error = _error(data, chosen_by, y[others], end.parameters, np.median)
            ends.setdefault(error, (slope * strength, end.parameters))
        strength, best = ends[min(ends)]
        aside = capped.majoriser.excess(problem.predict(best), problem.y) > capped.majoriser.cap
        yield "test", {
            "data": data, "percent": percent, "seed": seed, "panel": f"{data}, {norm}", "method": name,
            "loss": name,
            "norm": norm,
            "score": score(best),
            "rank": int(np.count_nonzero(best.multipliers > 0.01 * best.multipliers.max(initial=0.0))),
            "f1": f1_score(wrong[fitted], aside) if loss is capped and wrong[fitted].any() else None,
            "strength": strength,
            "seconds": time.process_time() - begin,
        }  # fmt: skip


def _judge_contamination(tables: Tables, settings: Settings) -> Iterator[Finding]:
    def scores(data: str, loss: str, norm: str, least: int = 0) -> pd.Series:
        rows = frame(tables, "test", data=data, loss=loss, norm=norm)
        rows = rows.reindex(columns=["percent", "seed", "score"]).dropna()
        return rows[rows["percent"] >= least].set_index(["percent", "seed"])["score"]

    def lower(ours: pd.Series, theirs: pd.Series) -> Said | None:
        pairs = pd.concat([ours, theirs], axis=1, keys=["mine", "other"]).dropna()
        return majority(pairs["mine"] < pairs["other"], **pairs.mean()) if len(pairs) else None

    names = dict.fromkeys(row["data"] for row in tables.get("test", ()))
    for data, norm in product(names, NORMS):
        for key, loss, expected in (("immune", "capped", False), ("absolute", "absolute", True)):
            means = scores(data, loss, norm).groupby(level="percent").mean()
            if len(means) > 1:
                ratio = means.iloc[-1] / (means.iloc[0] or 1e-300)
                each = listed(((f"{percent} %:", f"{score:.3g}") for percent, score in means.items()))
                numbers = {"each": each, "most": means.index[-1], "ratio": ratio}
                yield key, f"{data}, {norm}", ((ratio > settings["harmed"]) == expected, numbers)
        capped, squared = (scores(data, loss, norm, settings["many"]) for loss in ("capped", "squared"))
        yield "squared", f"{data}, {norm}", lower(capped, squared)
    for loss in LOSSES:
        yield "norm", f"{loss} loss", lower(scores(PLANTED, loss, CAPPED), scores(PLANTED, loss, TRACE))


ARTEFACTS = (figure("robust_fm_contamination", contamination, _judge_contamination),)
