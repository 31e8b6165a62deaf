"""Figures about robust_fm, whose text prints no experiment: these are ours, declared as such."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse.linalg import svds
from sklearn.metrics import f1_score

from fmviz import RobustFMRegressor
from fmviz.engine.design import Design
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.losses import Absolute, CappedHinge, CappedInsensitive, Huber, Loss, Squared
from fmviz.engine.models.robust import RobustFM
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import IncrementalSVD, TwoStage
from fmviz.engine.starts.robust import Caps, estimate_caps, linear_strength
from fmviz.lab.contamination import contaminated
from fmviz.lab.papers.base import declared, figure, load
from fmviz.lab.papers.judging import Finding, Row, Said, Tables, frame, listed, majority
from fmviz.lab.papers.reproduction import Reproduction, Rows, Settings, use
from fmviz.lab.runner import split

SETS = declared("robust_fm")["sets"]
ABALONE, FLIGHTS, MOVIELENS = SETS
PLANTED, LARGE = "planted", (FLIGHTS, MOVIELENS)
"""Made here; and what is fitted by mini-batches."""
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


class Planted(NamedTuple):
    """Rows with a known truth: the true Z, and which targets or features are wrong."""

    X: np.ndarray
    y: np.ndarray
    Z: np.ndarray
    wrong: np.ndarray


def planted(
    seed: int, percent: int, kind: str = GROSS, n: int = 1_500, d: int = 30, rank: int = 3
) -> Planted:
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
        return Planted(X, y, V @ V.T, wrong)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.permutation(n)[: n * percent // 100]] = True
    size = rng.uniform(3, 8, n) * (_NOISE * f.std() if kind == MILD else y.std())
    sign = 1.0 if kind == ONE_SIDED else rng.choice([-1.0, 1.0], n)
    return Planted(X, np.where(wrong, y + sign * size, y), V @ V.T, wrong)


# ---------------------------------------------------------------------------------------------- contamination


@dataclass(frozen=True, eq=False)
class _Parts:
    """Rows to fit, which of them are wrong, what a strength is chosen by, and how good a machine is."""

    problem: Problem
    wrong: np.ndarray
    choose: Callable[[Parameters], float]
    score: Callable[[Parameters], float]


def contamination(own: Settings, data: str, percent: int, seed: int) -> Rows:
    """Fit rows, so many in 100 of them wrong, under every loss and every norm of Z: rows of "test"."""
    known: Any = planted(0, 0, n=own["rows"], d=own["features"]) if data == PLANTED else load(SETS, data)
    yield use(data, known.X, known.y)
    parts = _parts(data, percent, seed, own)
    for row in _fits(parts, own, np.random.default_rng([seed, 2])):
        place = {"panel": f"{data}, {row['norm']}", "method": row["loss"]}
        yield "test", {"data": data, "percent": percent, "seed": seed, **place, **row}


def trials_of_contamination(repro: Reproduction) -> Iterator[Row]:
    """Yield the data sets with their splits, of which large ones have fewer."""
    for data, percent in product(repro.available(PLANTED), repro.settings["percent"]):
        for seed in range(repro.settings["seeds_large" if data in LARGE else "seeds"]):
            yield {"data": data, "percent": percent, "seed": seed}


def _parts(data: str, percent: int, seed: int, own: Settings) -> _Parts:
    rng = np.random.default_rng([seed, 1])
    if data == PLANTED:
        X, y, Z, wrong = planted(seed, percent, n=own["rows"], d=own["features"])

        def score(at: Parameters) -> float:
            return float(np.linalg.norm((at.P * at.multipliers) @ at.P.T - Z) / np.linalg.norm(Z))
    else:
        dataset = load(SETS, data)
        truth = np.log(dataset.y) if data == ABALONE else dataset.y
        known, unseen = split(len(truth), _TEST, seed)
        kind = "flipped" if dataset.task == "binary" else "gross"
        share: dict[str, Any] = {kind: percent / 100.0, "errors_seed": seed}
        X, clean = dataset.X[known], truth[known]
        y = contaminated(clean, dataset.task, **share)
        wrong = y != clean
        test, right = Design(dataset.X[unseen]), truth[unseen]

        def score(at: Parameters) -> float:
            f = RobustFM().predict(test, at)
            wrongly = np.mean(f * right <= 0.0) if dataset.task == "binary" else np.abs(f - right).mean()
            return float(wrongly)

    order = rng.permutation(len(y))
    fitted, others = np.split(order, [round((1.0 - _CHOOSE) * len(y))])
    design, unfitted, target = Design(X[fitted]), Design(X[others]), y[others]
    binary = data == FLIGHTS

    def choose(at: Parameters) -> float:
        f = RobustFM().predict(unfitted, at)
        return float(np.mean(f * target <= 0.0) if binary else np.median(np.abs(f - target)))

    d = design.n_features
    problem = Problem.build(
        design,
        y[fitted],
        loss=CappedHinge() if binary else CappedInsensitive(),
        penalty="l2",
        model=RobustFM(),
        rank=d if d <= _MOST_FEATURES else own["rank"],
    )
    return _Parts(problem.at(lambda_w=linear_strength(problem)), wrong[fitted], choose, score)


def _fits(parts: _Parts, own: Settings, rng: np.random.Generator) -> Iterator[Row]:
    large = parts.problem.design.n_features > _MOST_FEATURES
    solver = IncrementalSVD() if large else TwoStage(accuracy=1e-5, rounds=own["rounds"])
    caps = estimate_caps(parts.problem, Caps(), solver, rng)
    model: Any = caps.problem.model
    capped = caps.problem.loss
    budget = Budget(own["epochs_large" if large else "epochs"], tol=1e-3, report_every=None)
    losses: dict[str, tuple[Loss, float]] = {
        "squared": (Squared(), caps.scale),
        "Huber": (Huber(_HUBER * caps.scale), caps.scale),
        "absolute": (replace(capped, cap=_NO_CAP) if isinstance(capped, CappedHinge) else Absolute(), 1.0),
        "capped": (capped, 1.0),
    }
    # Losses with kinks have the slope 1: so much pulls at Z, at most.
    X = parts.problem.design.matrix
    pull = float(svds(X, 1, v0=np.ones(min(X.shape)), return_singular_vectors=False)[0] ** 2 / X.shape[0])
    size = float(caps.start.multipliers.max(initial=0.0)) or float(np.sqrt(model.cap))
    norms = {
        SQUARED: (RobustFM("squared"), [share * pull / (2.0 * size) for share in own["strengths"]]),
        TRACE: (RobustFM("trace"), [share * pull for share in own["strengths"]]),
        CAPPED: (model, [caps.problem.lambda_p]),
    }
    for (name, (loss, slope)), (norm, (machine, strengths)) in product(losses.items(), norms.items()):
        begin, ends = time.process_time(), []
        for strength in strengths:
            problem = replace(parts.problem, loss=loss, model=machine, lambda_p=slope * strength)
            start = caps.start if loss is capped else problem.start(0.0, rng)
            *_, end = iterate(problem, solver, budget, start=start, rng=rng)
            ends.append((parts.choose(end.parameters), strength, end.parameters))
        _, strength, best = min(ends, key=lambda end: end[0])
        yield {
            "loss": name,
            "norm": norm,
            "score": parts.score(best),
            "rank": int(np.count_nonzero(best.multipliers > 0.01 * best.multipliers.max(initial=0.0))),
            "f1": _f1(parts, loss, best) if loss is capped else None,
            "strength": slope * strength,
            "seconds": time.process_time() - begin,
        }


def _f1(parts: _Parts, loss: Loss, at: Parameters) -> float | None:
    """Return how well the rows that are set aside are those that are wrong; None where none is."""
    kinks, problem = loss.majoriser, parts.problem
    if kinks is None or not parts.wrong.any():
        return None
    return float(f1_score(parts.wrong, kinks.excess(problem.predict(at), problem.y) > kinks.cap))


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
                harmed = bool(ratio > settings["harmed"])
                numbers = {"each": each, "most": means.index[-1], "ratio": ratio}
                yield key, f"{data}, {norm}", (harmed is expected, numbers)
        capped, squared = (scores(data, loss, norm, settings["many"]) for loss in ("capped", "squared"))
        yield "squared", f"{data}, {norm}", lower(capped, squared)
    for loss in LOSSES:
        yield "norm", f"{loss} loss", lower(scores(PLANTED, loss, CAPPED), scores(PLANTED, loss, TRACE))


# ----------------------------------------------------------------------------------------------------- limits

ERROR, F1 = "relative error of Z", "F1 of the rows that are set aside"


def limits(own: Settings, seed: int, kind: str) -> Rows:
    """Fit with nothing tuned: how near Z comes, and how well outliers are set aside."""
    yield use(PLANTED, *planted(0, 0, n=own["rows"], d=own["features"])[:2])
    X, y, Z, wrong = planted(seed, own["percent"], kind, own["rows"], own["features"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Where it fails, it may not converge.
        machine = RobustFMRegressor(random_state=seed).fit(X, y)
    apart = (machine.P_ * machine.coefficients_) @ machine.P_.T - Z
    values = {ERROR: np.linalg.norm(apart) / np.linalg.norm(Z), F1: f1_score(wrong, machine.outlier_mask_)}
    for panel, y_value in values.items():
        place = {"panel": panel, "method": kind, "stage": "automatic rule"}
        yield "ratios", {"y": y_value, "seed": seed, "rank": machine.rank_, **place}


def _judge_limits(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for kind in KINDS:
        rows = frame(tables, "ratios", method=kind)
        if not rows.empty and rows["panel"].nunique() == 2:
            error, score = rows.groupby("panel")["y"].median().reindex([ERROR, F1])
            eliminated = error <= settings["near"] and score >= settings["found"]
            yield "eliminates", kind, (eliminated, {"error": error, "score": score})


ARTEFACTS = (
    figure("robust_fm_contamination", contamination, _judge_contamination, trials=trials_of_contamination),
    figure("robust_fm_limits", limits, _judge_limits),
)
