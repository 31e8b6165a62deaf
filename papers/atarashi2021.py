"""Figures and tables of Atarashi, Oyama & Kurihara (2021)."""

from __future__ import annotations

import math
import time
import timeit
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise, product
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.counting import used_mask
from fmviz.engine.design import Design
from fmviz.engine.fit import Budget, Fit
from fmviz.engine.interactions.weights import tile_edges
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import get_penalty
from fmviz.engine.penalties.operators.squared_norm import prox_squared_l1
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Reason, Snapshot
from fmviz.engine.target import Target
from fmviz.lab.catalog import DataChoice
from fmviz.lab.datasets import make_sparse_interactions
from fmviz.lab.experiment import Experiment
from fmviz.lab.operators import VARIANTS, sample, study
from fmviz.lab.papers import Row, Tables
from fmviz.lab.runner import Run, load_dataset
from fmviz.metrics import Predictions, measured
from papers.base import declared, figure, rows_of
from papers.courses import MUCH, ahead, descend, in_words, median_times, reason, settled, sooner
from papers.judging import (
    Finding,
    Said,
    agreed,
    balance,
    frame,
    listed,
    majority,
    names_of,
    pivot,
    rows_where,
)
from papers.reproduction import Reproduction, Rows, Settings, use

PAPER = declared("atarashi2021")
SETS, METHODS, SETTINGS = PAPER["sets"], PAPER["methods"], PAPER["planted"]
ML100K, A9A, RCV1, FD = SETS
INTERACTIONS, FEATURES = SETTINGS
DRAWN = "drawn ratings"
FM, PROPOSED, SPARSE, OMEGA = "FM", ("TI", "CS"), ("TI", "CS", "L1", "L21"), ("Ω*-nmAPGD", "Ω*-SubGD")
WEIGHTED = tuple(name for name in METHODS if name != FM)
"""Methods compared by ‖W‖₁."""
# No linear term and no bias.
_BARE: Mapping[str, Any] = {"rank": 30, "fit_linear": False, "fit_intercept": False}


# ------------------------------------------------------------------------------------------------------- data


def planted(setting: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of a data set of one of `SETTINGS`."""
    data = load_dataset("synthetic", **SETTINGS[setting], n_samples=n, seed=seed)
    return data.X, data.y


@lru_cache(maxsize=2)
def parts(data: str, split_seed: int, drawn: int) -> dict[str, Any]:
    """Return training, validation and test rows of a data set, as in Table 2, and its score."""
    cuts, unseen = [64, 80], []
    if data in (ML100K, DRAWN):
        X, y = rows_of(SETS, data, drawn)
    else:
        known, test = (load_dataset(SETS[data]["name"], part=part) for part in ("train", "test"))
        # a9a and RCV1: 26,048 of 32,561 and 16,193 of 20,242.
        X, y, cuts, unseen = known.X, known.y, [80], [(Design(test.X), test.y)]
    order = np.random.default_rng([split_seed, 0]).permutation(y.size)
    some = [(Design(X[rows]), y[rows]) for rows in np.split(order, [cut * y.size // 100 for cut in cuts])]
    split = dict(zip(("train", "validation", "test"), (*some, *unseen), strict=True))
    return {**split, "score": "AUC" if unseen else "RMSE"}


# ---------------------------------------------------------------------------------------- figures 1, 2 and 10

LABELS = {"l1": "L1", "l21": "L21", "ti": "TI by columns (Eq. 30)", "ti_rows": "TI by rows", "cs": "CS"}


def operators(own: Settings, seed: int, method: str) -> Rows:
    """Apply a proximal operator to a random P: rows of "counts" and "W"."""
    d, exponents = own["d"], own["log2_lambda"]
    P, label = sample(d, own["k"], "normal", seed), LABELS[method]
    yield use(f"P, seed {seed}", P)
    course = study(P, VARIANTS[method], exponents)
    for at, exponent in enumerate(exponents):
        used, place = course.interactions[at], {"method": label, "seed": seed, "log2_lambda": exponent}
        about = {"share": used / math.comb(d, 2), "certificate": course.certificates[at]}
        yield "counts", {**place, "interactions": used, "features": course.features[at], **about}
    edges = tile_edges(d, own["tiles"])
    sizes = np.diff(edges)
    possible = np.maximum(np.outer(sizes, sizes) - np.diag(sizes), 1)
    for exponent in own["shown"] if seed == 0 else ():
        # One row per row of tiles: the share of used pairs i ≠ j in each tile.
        mask = used_mask(course.Q[course.at(exponent)]).astype(float)
        tiles = np.add.reduceat(np.add.reduceat(mask, edges[:-1], 0), edges[:-1], 1)
        for first, row in zip(edges, np.round(tiles / possible, 3), strict=False):
            yield "W", {"method": label, "log2_lambda": exponent, "first": first, "shares": row.tolist()}


def _judge_operators(tables: Tables, settings: Settings) -> Iterator[Finding]:
    counts, extremes = frame(tables, "counts"), [LABELS["l1"], LABELS["l21"]]
    if counts.empty:
        return
    counts["between"] = counts["share"].between(settings["least"], settings["most"])
    between = counts.pivot_table("between", "seed", "method", aggfunc="sum")
    for label, rows in counts.groupby("method", sort=False):
        if label in extremes:
            end = ~rows["between"]
            numbers = {"extreme": sum(end), "total": len(rows), "share": end.mean()}
            yield "all_or_nothing", label, majority(end, **numbers)
            continue
        known = between.reindex(columns=[label, *extremes]).dropna().astype(int)
        if len(known):
            mine, others = known[label], known[extremes].max(axis=1)
            numbers = {
                "mine": _range(mine),
                "others": _range(others),
                "strengths": len(settings["log2_lambda"]),
            }
            yield "moderately_sparse", label, majority(mine > others, **numbers)
        features = rows.pivot(index="seed", columns="log2_lambda", values="features")
        first, *_, last = features
        steps = -features.diff(axis=1).iloc[:, 1:]
        lost = steps.max(axis=1)
        # Features are never gained, some are lost, and never half of all at once.
        gradual = (steps >= 0).all(axis=None) and lost.between(1, settings["step"] * settings["d"]).all()
        numbers = {
            "start": _range(features[first]), "first": 2.0**first,
            "end": _range(features[last]), "last": 2.0**last,
            "n": len(features), "lost": int(lost.max()),
        }  # fmt: skip
        same = (features == settings["d"]).all(axis=None)
        yield (
            ("cs_features", label, (gradual, numbers))
            if label == "CS"
            else ("ti_features", label, (same, numbers))
        )


def _range(values: Any) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


ALGORITHMS = {"sort": "Sort (Algorithm 2)", "random": "Random (Algorithm 3)", "filter": "fmviz"}


def fig10(own: Settings, exponent: int, sigma: float, strength: float) -> Rows:
    """Time the algorithms for the operator of λ‖·‖₁², alternating."""
    rng, d = np.random.default_rng(0), 2**exponent
    # The vectors of all lengths are drawn in sequence.
    drawn = {e: rng.standard_normal((max(own["vectors"], own["entries"] >> e), 2**e)) for e in own["log2_d"]}
    yield use(f"d = {d}", drawn[exponent])
    scaled = sigma * drawn[exponent]
    # The first call compiles the kernel.
    alive = [np.count_nonzero(prox_squared_l1(scaled, strength, name)) for name in ALGORITHMS][-1]
    # Times below 2 ms are too short for the clock.
    timers = {
        label: timeit.Timer(partial(prox_squared_l1, scaled, strength, name), timer=time.thread_time)
        for name, label in ALGORITHMS.items()
    }
    repeats = {name: max(1, int(np.ceil(2e-3 / max(t.timeit(1), 1e-7)))) for name, t in timers.items()}
    laps = pd.DataFrame(
        {name: t.timeit(repeats[name]) / repeats[name] for name, t in timers.items()}
        for _ in range(own["rounds"])
    )
    for label, each in (laps.median() / len(scaled) * 1e6).items():
        place = {"panel": f"σ = {sigma:g}, λ = {strength:g}", "method": label, "d": d}
        yield "times", {**place, "microseconds": each, "alive": alive / scaled.size}


def _judge_fig10(tables: Tables, settings: Settings) -> Iterator[Finding]:
    as_fast, small = 1.0 + settings["ahead"], settings["small"]
    for panel in dict.fromkeys(row["panel"] for row in tables.get("times", ())):
        times = pivot(tables, "times", "microseconds", "d", panel=panel)
        ratios = times[ALGORITHMS["sort"]] / times[ALGORITHMS["random"]]
        low, high = ratios.idxmin(), ratios.idxmax()
        numbers = {"low": low, "least": ratios[low], "high": high, "most": ratios[high]}
        yield "mostly", panel, majority(ratios > as_fast, **numbers)
        faster = ratios.index[ratios < 1.0 / as_fast]
        where = f"at d = {', '.join(f'{d:,}' for d in faster)}" if len(faster) else "at no length"
        if max(ratios.index) > small:
            yield "small", panel, (all(faster <= small), {"where": where})


# -------------------------------------------------------------------------------------------- figures 3 and 4

ERROR, F1, PSSR = "estimation error", "F1", "PSSR"
METRICS = {ERROR: "estimation_error", F1: "support_f1", PSSR: "support_recovered"}
# The numbers of the first validation and the first test data set.
_FIRST_VALIDATION, _FIRST_TEST = 1_000, 5_000


def fit_planted(method: str, data: Row, start: int, seconds: float, **about: Any) -> Snapshot:
    """Fit a planted data set from one start: N(0, 0.01²), no linear term, no bias."""
    about |= {name: METHODS[method][name] for name in ("model", "regularizer", "solver")}
    place = {"dataset": DataChoice.of("synthetic", data), "lambda_w": 0.0}
    fit = Experiment(**{**_BARE, **place, **about}, seed=100_000 * start + data["seed"])
    return Run.prepare(fit).end(seconds)


def fig3(own: Settings, n_samples: int, setting: str, method: str) -> Rows:
    """Tune a method on some planted data sets and evaluate it on others."""
    yield use(f"{setting}, N = {n_samples}, seed 0", *planted(setting, n_samples, 0))
    dense, grid = METHODS[method]["dense"], own["grid"]
    pairs = [(value, 0.0) for value in own["fm_grid"]] if method == FM else list(product(grid, grid))
    limits = {"max_epochs": own["epochs"], "tol": own["dense_tol" if dense else "tol"]}
    seconds = n_samples / 50.0 * own["dense_share" if dense else "share"]

    def fits(
        pairs: Iterable[tuple[float, float]], seeds: Iterable[int], starts: Iterable[int]
    ) -> pd.DataFrame:
        rows, names = [], ["lambda_p", "lambda_sparse"]
        for pair, seed, start in product(pairs, seeds, starts):
            data = {**SETTINGS[setting], "seed": seed, "n_samples": n_samples}
            strengths = dict(zip(names, pair, strict=True))
            end = fit_planted(method, data, start, seconds, **limits, **strengths)
            metrics = {metric: end.metrics[name] for metric, name in METRICS.items()}
            about = {"seconds": end.seconds, "converged": float(reason(end) == Reason.CONVERGED)}
            rows.append({**strengths, **about, **metrics})
        return pd.DataFrame(rows).set_index(names)

    known = fits(pairs, range(_FIRST_VALIDATION, _FIRST_VALIDATION + own["validation"]), [0])
    chosen = {metric: best(known, metric) for metric in METRICS}
    tests = range(_FIRST_TEST, _FIRST_TEST + own["test"])
    unseen = fits(dict.fromkeys(chosen.values()), tests, range(own["inits"]))
    place, means = {"setting": setting, "n_samples": n_samples, "method": method}, {}
    for metric, pair in chosen.items():
        tested, validation = unseen.loc[[pair]], known.loc[[pair], metric].mean()
        means[metric] = tested[metric].mean()
        about = {"lambda_p": pair[0], "lambda_sparse": pair[1], **tested[["seconds", "converged"]].mean()}
        scores = {"metric": metric, "test": means[metric], "validation": validation}
        yield "tuned", {**place, **scores, **about}
        labels = {"data": f"{setting}: {metric}", "method": method, "bases": n_samples}
        yield from (("test", {**labels, "seed": i, "score": x}) for i, x in enumerate(tested[metric]))
    yield "means", {**place, **means}


def best(fits: pd.DataFrame, metric: str) -> tuple[float, float]:
    """Return the strengths with the best mean of a metric; ties in PSSR are broken by F1, others by order."""
    names = {ERROR: [ERROR], F1: [F1], PSSR: [PSSR, F1]}[metric]
    # NaN, from a fit that diverged at the start, never wins.
    means = fits.groupby(level=[0, 1], sort=False)[names].agg(lambda scores: scores.mean(skipna=False))
    return means.sort_values(names, ascending=metric == ERROR, kind="stable").index[0]


def _judge_fig3(tables: Tables, settings: Settings) -> Iterator[Finding]:
    sizes = sorted(settings["n_samples"])
    # Two standard errors of a share of one half.
    same: dict[str, Any] = dict.fromkeys(METRICS, settings["same"])
    same[PSSR] = 1.0 / (settings["test"] * settings["inits"]) ** 0.5
    for setting in settings["settings"]:
        means = {metric: pivot(tables, "means", metric, "n_samples", setting=setting) for metric in METRICS}
        expected = len(sizes), len(METHODS) if set(settings["methods"]) == set(METHODS) else 0
        if any(each.dropna().shape != expected for each in means.values()):
            continue
        against = partial(_against, means, same)
        if setting == FEATURES:
            yield from (("cs_best", metric, against(metric, "CS")) for metric in METRICS)
            for method, at in means[PSSR].iloc[-1][["TI", "L21", "L1"]].items():
                yield "several", method, (at >= settings["correct"], {"at": at})
            continue
        yield from (("ti_best", metric, against(metric, "TI")) for metric in METRICS)
        for metric in (F1, PSSR):
            path = list(means[metric]["TI"])
            rising = path[-1] > path[0] and all(b >= a - settings["fall"] for a, b in pairwise(path))
            numbers = {"metric": metric, "path": listed(zip(path, sizes, strict=True), "{:.3f} at {}")}
            yield "ti_grows", metric, (rising if len(path) > 1 else None, numbers)
        most = means[PSSR].drop(columns="TI").max()
        some = listed(most[most > 0.0].items(), "{} {:.3f}")
        words = f"Above 0 at some N: {some}" if some else "It is 0 for all others at every N"
        yield "ti_alone", PSSR, (not some, {"some": words})
        yield from (("dense", method, against(ERROR, method, ["CS", "L21", "L1", "FM"])) for method in OMEGA)
        yield "slqr", F1, against(F1, "SLQR", ignored="TI")
        yield "slqr", ERROR, against(ERROR, "SLQR", worst=True)


def _against(
    means: Mapping[str, pd.DataFrame],
    same: Mapping[str, float],
    metric: str,
    method: str,
    others: Sequence[str] = (),
    ignored: str = "",
    worst: bool = False,
) -> Said:
    """Return the number of sizes at which a method is better than all or some others, or worse than all."""
    at, known = means[metric], [method, *others] if others else list(METHODS)
    sign = -1.0 if (metric == ERROR) is not worst else 1.0
    rivals = [name for name in known if name not in (method, ignored)]
    gaps = sign * at[method] - (sign * at[rivals]).max(axis=1)
    words = f"{metric} at N = {at.index[-1]}: {listed(at.iloc[-1][known].items(), '{} {:.3f}')}."
    what = "the highest of all" if worst else "higher than that of all others"
    return balance(gaps, 0.0 if worst else same[metric], means=words, what=what)


_SENSITIVE = ("TI", "CS", "L21", "L1")
_PANELS = {"estimation_error": "Estimation error", "support_f1": "F1", "support_recovered": "PSSR"}


def fig4(own: Settings, seed: int, start: int, method: str) -> Rows:
    """Fit a planted data set under every strength."""
    data = {**{name: own[name] for name in ("d_true", "b", "d_noise")}, "n_samples": own["N"], "seed": seed}
    drawn = load_dataset("synthetic", **data)
    yield use(f"seed {seed}", drawn.X, drawn.y)
    limits = {"max_epochs": own["epochs"], "tol": own["tol"], "rank": own["k"], "lambda_p": own["lambda_p"]}
    low, high = own["log2_lambda"]
    for strength in 2.0 ** np.arange(low, high + 1):
        end = fit_planted(method, data, start, own["seconds"], lambda_sparse=float(strength), **limits)
        place = {"method": method, "data": f"seed {seed}", "start": start, "lambda_sparse": strength}
        for metric, panel in _PANELS.items():
            yield "scores", {"panel": panel, **place, "value": end.metrics[metric], "status": reason(end)}


def _judge_fig4(tables: Tables, settings: Settings) -> Iterator[Finding]:
    low, high = settings["log2_lambda"]
    for panel in _PANELS.values():
        means = pivot(tables, "scores", "value", "lambda_sparse", panel=panel)
        if means.dropna().shape != (high + 1 - low, len(_SENSITIVE)):
            continue
        if panel == _PANELS["estimation_error"]:
            good = means <= means.min(axis=None) + settings["above"]
        else:
            good = (means > 0.0) & (means >= settings["share"] * means.max(axis=None))
        widths = good.sum()[list(_SENSITIVE)]
        for key, name, others in (("cs_widest", "CS", ["TI", "L21", "L1"]), ("ti_next", "TI", ["L21", "L1"])):
            if widths.any() and (key == "cs_widest" or panel != _PANELS["estimation_error"]):
                gap = widths[name] - widths[others].max()
                yield key, panel, (gap > 0 if gap else None, {"widths": listed(widths.items())})


# ----------------------------------------------------------------------------------------- figures 5, 6 and 7

# All methods, and only those that minimise a bound of the objective or solve it inexactly.
_READINGS = {"all methods": [], "without SLQR": ["SLQR"]}
_OTHERS = tuple(name for name in WEIGHTED if name not in PROPOSED)


def weights_l1(at: Parameters) -> float:
    """Return ‖W‖₁ over all entries."""
    return float(np.abs(at.P @ at.P.T if at.W is None else at.W).sum())


def weighted_problem(method: str, X: Any, y: np.ndarray, lambda_p: float, lambda_sparse: float) -> Problem:
    """Return the problem of one of `WEIGHTED`; the strengths are λ_tr and λ of SLQR."""
    own: Row = {"lambda_p": lambda_p, "lambda_sparse": lambda_sparse, **_BARE}
    return Problem.build(X, y, model=METHODS[method]["model"], penalty=METHODS[method]["regularizer"], **own)


def start_of(problem: Problem, seed: int) -> Parameters:
    """Return the start of a seed."""
    return problem.start(0.01, np.random.default_rng([seed, 1]))


def weighted(
    own: Settings, labels: Row, data: str, rows: tuple[Any, np.ndarray], lambda_p: float, strength: float
) -> Rows:
    """Run a method, and yield the curve and the final value of its ‖W‖₁-regularized objective."""
    yield use(data, *rows)
    problem = weighted_problem(labels["method"], *rows, lambda_p, strength)
    course, last = descend(
        problem,
        start_of(problem, labels["seed"]),
        METHODS[labels["method"]]["solver"],
        labels["seed"],
        own,
        lambda last: last.loss + strength * weights_l1(last.parameters),
    )
    yield from (("trace", {**labels, **row}) for row in course)
    about = {"epoch": last.epoch, "settled": settled(course), "status": reason(last)}
    yield "ends", {**labels, "objective": course[-1]["objective"], "seconds": last.seconds, **about}


def fig5(own: Settings, seed: int, setting: str, strength: float, method: str) -> Rows:
    """Run a method on planted data; curves are kept for the first data sets, final values for the others."""
    labels = {"panel": f"{setting}, λ = {strength:g}", "seed": seed, "method": method}
    rows = planted(setting, own["N"], seed)
    run = weighted(own, labels, f"{setting}, seed {seed}", rows, own["lambda_p"], strength)
    yield from (row for row in run if seed < own["drawn_sets"] or row[0] != "trace")


def _judge_fig5(tables: Tables, settings: Settings) -> Iterator[Finding]:
    def ends(setting: str, column: str, strength: float) -> pd.DataFrame:
        rows = pivot(tables, "ends", column, panel=f"{setting}, λ = {strength:g}")
        return rows.reindex(columns=WEIGHTED).dropna()

    for strength, (words, missing) in product(settings["lambda"], _READINGS.items()):
        case = f"λ = {strength:g}, {words}"
        for key, first, setting in (
            ("ti_lowest", ["TI"], INTERACTIONS),
            ("both_lowest", list(PROPOSED), FEATURES),
        ):
            objectives = ends(setting, "objective", strength).drop(columns=missing)
            if objectives.empty:
                continue
            gaps = objectives.drop(columns=first).min(axis=1) / objectives[first].max(axis=1) - 1.0
            means = objectives.mean()
            yield key, case, balance(gaps, settings["same"], means=listed(means.items(), "{} {:.4g}"))
            if key == "ti_lowest" and strength == max(settings["lambda"]):
                second = means.drop("TI").idxmin()
                lead = means[second] / means["TI"] - 1.0
                yield "remarkable", case, (lead >= settings["remarkable"], {"second": second, "lead": lead})
    for strength in settings["lambda"]:
        medians = ends(FEATURES, "settled", strength).median()
        fastest = medians[list(PROPOSED)].max() < medians[list(_OTHERS)].min()
        said = fastest, {"times": listed(medians.items(), "{} {:.4g} s")}
        if medians.notna().any():
            yield "both_fastest", f"λ = {strength:g}", said


# Exponents of d in the time of an epoch.
_POWERS = {"linear": (1, SPARSE), "quadratic": (2, OMEGA), "cubic": (3, ("SLQR",))}


def fig6(own: Settings, seed: int, d: int, method: str) -> Rows:
    """Time the epochs of a method for a number of features."""
    X, y, _ = make_sparse_interactions(own["N"], d, max(1, d // own["block"]), 0, random_state=seed)
    yield use(f"d = {d:,}, seed {seed}", X, y)
    problem = weighted_problem(method, X, y, own["strength"], own["strength"])
    budget = Budget(own["epochs"], tol=0.0, certify_every=own["epochs"] + 1)
    course = Fit.of(problem, METHODS[method]["solver"], budget, start=start_of(problem, seed)).epochs()
    seconds = [last.seconds for last in course]
    # The first one also starts the solver.
    laps = np.diff(seconds[1:] if len(seconds) > 2 else seconds)
    yield "times", {"panel": "One epoch", "method": method, "d": d, "seed": seed, "seconds": median(laps)}


def _judge_fig6(tables: Tables, settings: Settings) -> Iterator[Finding]:
    means = pivot(tables, "times", "seconds", "d").reindex(index=sorted(settings["d"]), columns=WEIGHTED)
    if means.isna().any(axis=None):
        return
    for key, (power, methods) in _POWERS.items():
        for method in methods:
            slope = np.polyfit(np.log(means.index), np.log(means[method]), 1)[0] if len(means) > 1 else np.nan
            times = listed(((seconds, d) for d, seconds in means[method].items()), "{:.3g} s at d = {:,}")
            near = abs(slope - power) <= settings["near"] if len(means) > 1 else None
            yield key, method, (near, {"slope": slope, "times": times})
    d, at = means.index[-1], means.iloc[-1]
    least = at["SLQR"] / at[list(SPARSE)].max()
    # Smaller sizes can confirm the statement, but not refute it.
    slower = least > settings["slower"] or (False if d >= settings["slower_at"] else None)
    yield "slqr", f"d = {d:,}", (slower, {"least": least, "times": listed(at.items(), "{} {:.4g} s")})
    for first, second in (("TI", "L1"), ("CS", "L21")):
        ratios = means[first] / means[second]
        words = listed(((ratio, d) for d, ratio in ratios.items()), "{:.2f} at d = {:,}")
        near = ratios.between(1.0 / settings["overlap"], settings["overlap"]).all()
        yield "overlap", f"{first} and {second}", (near, {"first": first, "second": second, "ratios": words})


def fig7(own: Settings, seed: int, data: str, strength: float, method: str) -> Rows:
    """Run a method on real data."""
    labels = {"panel": f"{data}, λ = {strength:g}", "seed": seed, "method": method}
    yield from weighted(own, labels, data, rows_of(SETS, data, own["drawn"]), own["lambda_p"][data], strength)


def _judge_fig7(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for name, strength in product(names_of(tables, settings), settings["lambda"]):
        panel = f"{name}, λ = {strength:g}"
        yield (
            "fastest",
            panel,
            sooner(median_times(tables, panel, WEIGHTED), PROPOSED, _OTHERS, MUCH, WEIGHTED),
        )


# -------------------------------------------------------------------------------------------- figures 8 and 9

BATCH, COORDINATE, STOCHASTIC = ("APGD", "nmAPGD"), ("PCD", "PBCD"), ("PSGD", "Katyusha")
MINI_BATCHES = tuple(f"MB-{name}" for name in STOCHASTIC)
LETTERS = {"a": (INTERACTIONS, "ti"), "b": (FEATURES, "ti"), "c": (FEATURES, "cs")}


def racers(regularizer: str) -> tuple[str, ...]:
    """Return the algorithms for TI ("ti") or CS ("cs"), without mini-batches."""
    return (COORDINATE[get_penalty(regularizer).row_wise], *BATCH, *STOCHASTIC)


def algorithm(
    own: Settings, panel: str, seed: int, method: str, problem: Problem, scale: float = 1.0
) -> Rows:
    """Run an algorithm with the best of several initial steps; objectives are multiplied by `scale`."""
    tries: list[Row] = [{}]
    if method in (*STOCHASTIC, *MINI_BATCHES):
        # As published: P is dense under PSGD, and no step is undone.
        dense = {"operator": "dense"} if method == "PSGD" else {}
        tries = [{"eta0": eta0, "monotone": False, **dense} for eta0 in own["eta0"]]
    if method == "coordinate descent":
        method = COORDINATE[problem.penalty.row_wise]
    solver, start = method.lower().replace("-", "_"), start_of(problem, seed)
    runs: list[tuple[bool, float, int, list[Row]]] = []
    for parameters in tries:
        course, last = descend(
            problem, start, solver, seed, own, lambda last: scale * last.objective, parameters
        )
        first, end = course[0]["objective"], course[-1]["objective"]
        diverged = reason(last) == Reason.DIVERGED or end > first
        label = f"{method}, {len(runs)}" if len(tries) > 1 else method
        runs.append((diverged, end, len(runs), course))
        labels = {"panel": panel, "seed": seed, "method": method}
        about = {"label": label, "eta0": parameters.get("eta0"), "epochs": last.epoch, "diverged": diverged}
        yield "ends", {**labels, "objective": end, "seconds": last.seconds, **about}
    yield from (("trace", {**labels, **row}) for row in min(runs)[-1])


def problem_of_fig8(letter: str, strength: float, X: np.ndarray, y: np.ndarray) -> Problem:
    """Return the problem of a panel, with 1/d² times the objective of the paper.

    As in the paper for the stochastic methods, rows are divided by √d and targets by d; this divides the
    squared loss and the strengths by d².
    """
    d = X.shape[1]
    strengths: Row = dict.fromkeys(("lambda_p", "lambda_sparse"), strength / d**2)
    return Problem.build(X / np.sqrt(d), y / d, penalty=LETTERS[letter][1], **strengths, **_BARE)


def fig8(own: Settings, seed: int, n: int, letter: str, method: str) -> Rows:
    """Run an algorithm on planted data."""
    X, y = planted(LETTERS[letter][0], n, 0)
    yield use(f"{LETTERS[letter][0]}, N = {n:,}", X, y)
    own = {**own, "seconds": own["seconds"][own["N"].index(n)]}
    problem = problem_of_fig8(letter, own["strength"], X, y)
    panel = f"{LETTERS[letter][1].upper()}, {LETTERS[letter][0]}, N = {n:,}"
    yield from algorithm(own, panel, seed, method, problem, float(X.shape[1] ** 2))


def _judge_fig8(tables: Tables, settings: Settings) -> Iterator[Finding]:
    few, many = min(settings["N"]), max(settings["N"])
    for n, letters in ((few, "a"), (many, LETTERS)):
        for setting, regularizer in (LETTERS[letter] for letter in letters):
            panel = f"{regularizer.upper()}, {setting}, N = {n:,}"
            times = median_times(tables, panel, racers(regularizer))
            if n == few:
                yield "coordinate", panel, sooner(times, COORDINATE, BATCH, MUCH)
            else:
                yield "stochastic", panel, sooner(times, STOCHASTIC, (*COORDINATE, *BATCH))


def fig9(own: Settings, seed: int, data: str, regularizer: str, method: str) -> Rows:
    """Run an algorithm on real data."""
    X, y = rows_of(SETS, data, own["drawn"])
    yield use(data, X, y)
    problem = Problem.build(X, y, penalty=regularizer, rank=30, **own["strengths"][data])
    yield from algorithm(own, f"{data}, {regularizer.upper()}", seed, method, problem)


def _judge_fig9(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for name, regularizer in product(names_of(tables, settings), settings["regularizers"]):
        panel, methods = f"{name}, {regularizer.upper()}", racers(regularizer)
        times = median_times(tables, panel, (*methods, *MINI_BATCHES))
        if times.empty:
            continue
        yield "coordinate", panel, sooner(times, COORDINATE, BATCH, MUCH)
        stochastic, others = (times[list(group)].min(axis=1) for group in (STOCHASTIC, methods[:3]))
        reached = np.isfinite(np.minimum(stochastic, others))
        said = agreed(stochastic[reached] >= others[reached])
        yield "stochastic", panel, (said, in_words(times, (*STOCHASTIC, *methods[:3])))
        helped = agreed(ahead(times, (f"MB-{name}",), (name,)) for name in STOCHASTIC)
        yield "mini_batches", panel, (helped, in_words(times, (*MINI_BATCHES, *STOCHASTIC)))
        if panel != f"{A9A}, CS":
            yield "behind", panel, sooner(times, COORDINATE, MINI_BATCHES)
    if large := rows_where(tables, "ends", eta0=settings["large_step"]):
        yield "diverges", "all", majority(row["diverged"] for row in large)


# ---------------------------------------------------------------------------------------------------- table 3

LIMITED, FREE = "table3a", "table3b"
REACHED = "Reached."
PRINTED: list[Row] = declared("atarashi2021_table3")["printed"]


def problem_of_table3(own: Settings, data: str, method: str, **strengths: Any) -> Problem:
    """Return the problem of the training rows."""
    X, y = parts(data, own["split_seed"], own["drawn"])["train"]
    return Problem.build(X, y, penalty=METHODS[method]["regularizer"], rank=own["rank"], **strengths)


def scored(problem: Problem, end: Snapshot, split: Mapping[str, Any]) -> Row:
    """Return the scores of a fit and its number of used interactions."""
    scores = {}
    for column, (design, y) in (("validation", split["validation"]), ("score", split["test"])):
        target = Target.of(y)
        known = Predictions(target, problem.model.predict(design, end.parameters))
        scores[column] = measured(target.kind, known)[split["score"].lower()]
    about = {"used": end.used_interactions, "epochs": end.epoch, "seconds": end.seconds}
    return {**scores, **about, "status": reason(end)}


def fit(own: Settings, data: str, method: str, seed: int, **strengths: float) -> Rows:
    """Fit the training rows from one start: a row of "fm", or rows of "grid" and the end of a search."""
    problem = problem_of_table3(own, data, method, **strengths)
    split = parts(data, own["split_seed"], own["drawn"])
    place = {"data": data, "method": method, "seed": seed, **strengths}
    budget, scale = Budget(own["epochs"], tol=own["tol"], report_every=None), own["init_scale"]

    def end_at(strength: float) -> Snapshot:
        rng, at = np.random.default_rng([seed, 1]), problem.at(lambda_sparse=strength)
        return Fit.of(at, "auto", budget, init_scale=scale, rng=rng).end()

    for strength in [0.0] if method == FM else own["grid"]:
        scores = scored(problem, end_at(strength), split)
        yield "fm" if method == FM else "grid", {**place, "lambda_sparse": strength, **scores}
    if method == FM:
        return
    row, last = bisected(end_at, own)
    row |= scored(problem, last, split) if row["message"] == REACHED else {}
    yield "search", {**place, **row}


def bisected(end_at: Callable[[float], Snapshot], own: Settings) -> tuple[Row, Snapshot]:
    """Search the λ of an accepted number of interactions as the paper does, by a binary search (8.3).

    All fits start alike, down the grid until one has too many; the bracket is then halved.
    """
    (least, most), low, high, probes = own["accept"], math.nan, math.nan, 0
    waiting, searching = sorted(own["grid"], reverse=True), True
    while searching:
        strength = waiting.pop(0) if waiting else 0.5 * (low + high)
        end, probes = end_at(strength), probes + 1
        used = end.used_interactions
        if used > most:
            low, waiting = strength, []
        elif used < least:
            high = strength
        reached = least <= used <= most
        searching = not reached and (bool(waiting) or high - low >= own["narrowest"])
    message = REACHED if reached else f"Not reachable: the last bracket is {low:g} to {high:g}."
    row = {"lambda_sparse": strength, "score": None, "used": used, "probes": probes, "message": message}
    return row, end


def table3(repro: Reproduction) -> Iterator[str]:
    """Tune FM, then fit the others, for all tables of the paper."""
    settings = repro.settings
    names, many = repro.available(DRAWN), settings["seeds"]
    tuning = range(min(settings["tuning_seeds"], many))
    for name in names:
        yield f"Loading {name}"
        split = parts(name, settings["split_seed"], settings["drawn"])
        design, y = split["train"]
        live = int(np.count_nonzero(np.diff(design.columns.indptr)))
        sizes = {part: split[part][1].size for part in ("validation", "test")}
        repro.add(use(name, design.matrix, y, **sizes, features_in_training=live, score=split["score"]))

        def trial(method: str, seed: int, w: float, p: float, data: str = name) -> Row:
            return {"data": data, "method": method, "seed": seed, "lambda_w": w, "lambda_p": p}

        pairs = product(tuning, settings["lambda_w"], settings["lambda_p"])
        yield from repro.fill(fit, [trial(FM, *pair) for pair in pairs])
        w, p = (best_strengths(repro.tables, name, FM)[at] for at in ("lambda_w", "lambda_p"))
        others = [trial(FM, seed, w, p) for seed in range(len(tuning), many)]
        others += [trial(method, seed, w, p / 10.0) for method in SPARSE for seed in range(many)]
        yield from repro.fill(fit, others)
        sources = [(LIMITED, "search", {"method": method}) for method in SPARSE]
        sources += [(FREE, "grid", best_strengths(repro.tables, name, method)) for method in SPARSE]
        for table, source, where in [*sources, (FREE, "fm", best_strengths(repro.tables, name, FM))]:
            rows = frame(repro.tables, source, data=name, **where)
            score, about = rows["score"], {"starts": len(rows), "reached": rows["score"].notna().sum()}
            means = {
                "score": score.mean(),
                "spread": score.std(ddof=0),
                **rows[["used", "lambda_sparse"]].mean(),
            }
            # As in the paper, a method that misses the range has no score.
            means = dict.fromkeys(means) if score.isna().any() else means
            repro.add((table, {"data": name, "method": where["method"], **means, **about}))


def best_strengths(tables: Tables, data: str, method: str) -> Row:
    """Return a method with the strengths of best mean validation score, or raise ValueError."""
    own = frame(tables, "fm" if method == FM else "grid", data=data, method=method)
    names = ["lambda_w", "lambda_p", "lambda_sparse"]
    if own.empty:
        raise ValueError(f"All strengths failed for {method} on {data}.")
    means = own.groupby(names, sort=False)["validation"].agg(lambda scores: scores.mean(skipna=False))
    highest = rows_where(tables, "data", data=data)[0]["score"] == "AUC"
    best = means.idxmax() if highest else means.idxmin()
    return {"method": method, **dict(zip(names, best, strict=True))}


def _judge_table3(tables: Tables, settings: Settings) -> Iterator[Finding]:
    names = [row["data"] for row in rows_where(tables, FREE, method=FM)]
    singles = [name for name in names if name in (ML100K, A9A)] or names[:1]
    for name in names:
        data = rows_where(tables, "data", data=name)[0]
        fm = rows_where(tables, FREE, data=name, method=FM)[0]
        live, paper = data["features_in_training"], name in SETS
        possible = live * (live - 1) // 2
        numbers = {"possible": possible, "live": live}
        yield "fm", name, (fm["used"] == (0 if name == RCV1 else possible), {**numbers, "used": fm["used"]})
        for table in (LIMITED, FREE):
            rows = {row["method"]: row for row in rows_where(tables, table, data=name)}
            scores = {method: row["score"] for method, row in rows.items() if row["score"] is not None}
            compared = partial(_compared, scores, data["score"], settings["same"])
            yield "proposed", f"{name}, {table[-2:]}", compared(PROPOSED, ("L1", "L21", FM))
            printed = _printed(table, name)
            gaps = [
                (method, scores[method] - fm["score"], printed[method] - _printed(FREE, name)[FM])
                for method in scores
                if method != FM and method in printed
            ]
            near = all(abs(ours - theirs) <= settings["tolerance"] for _, ours, theirs in gaps)
            words = {"gaps": listed(gaps, "{} {:+.5f} ({:+.5f})") or "none"} if paper else _NOT_PRINTED
            yield "margins", f"{name}, {table[-2:]}", (near if gaps else None, words)
            if table == LIMITED:
                reached = listed((m, f"{row['reached']} of {row['starts']}") for m, row in rows.items())
                words = {"odd": "" if paper else f"{_NOT_PRINTED} ", "reached": reached}
                yield "reach", name, (set(scores) == set(printed) if paper else None, words)
                if name in singles:
                    yield "ti", name, compared(("TI",), ("CS", "L1", "L21"))
        for method in PROPOSED:
            used = rows[method]["used"]
            some = used == 0 if (name, method) == (FD, "CS") else 0 < used < possible
            yield "partial", f"{name}, {method}", (some, {**numbers, "used": used})


_NOT_PRINTED = "Not a data set of the paper."


def _printed(table: str, data: str) -> dict[str, float]:
    return {row["method"]: row["score"] for row in PRINTED if (row["table"], row["data"]) == (table, data)}


def _compared(
    scores: Mapping[str, float], score: str, same: float, first: Sequence[str], others: Sequence[str]
) -> Said:
    sign = 1.0 if score == "AUC" else -1.0
    words = f"{score}: {listed(scores.items(), '{} {:.5f}') or 'none'}."
    mine, theirs = ([sign * scores[m] for m in group if m in scores] for group in (first, others))
    if not mine or not theirs:
        return None, f"A score is missing. {words}"
    gap = max(mine) - max(theirs)
    return None if abs(gap) <= same else gap > 0, {"gap": gap, "scores": words}


_FIG2 = figure("atarashi2021_fig2", operators, _judge_operators)
ARTEFACTS = (
    replace(
        _FIG2,
        name="atarashi2021_fig1",
        title="Fig. 1: proximal operators of L1 and L21",
        statements=tuple(said for said in _FIG2.statements if said.key == "all_or_nothing"),
        # The first statement concerns TI.
        differences=_FIG2.differences[1:],
        settings={**_FIG2.settings, "methods": ["l1", "l21"]},
        published=(),
    ),
    _FIG2,
    figure("atarashi2021_fig3", fig3, _judge_fig3),
    figure("atarashi2021_fig4", fig4, _judge_fig4),
    figure("atarashi2021_fig5", fig5, _judge_fig5),
    figure("atarashi2021_fig6", fig6, _judge_fig6),
    figure("atarashi2021_fig7", fig7, _judge_fig7),
    figure("atarashi2021_fig8", fig8, _judge_fig8),
    figure("atarashi2021_fig9", fig9, _judge_fig9),
    figure("atarashi2021_fig10", fig10, _judge_fig10),
    figure("atarashi2021_table3", table3, _judge_table3),
)
