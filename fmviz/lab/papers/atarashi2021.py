"""Figures and tables of Atarashi, Oyama & Kurihara (2021)."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise, product
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fmviz.engine.counting import used_mask
from fmviz.engine.design import Design
from fmviz.engine.drive import Budget, iterate
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
from fmviz.lab.operators import VARIANTS, pairs, sample, study
from fmviz.lab.papers import courses
from fmviz.lab.papers.base import Published, declared, figure, rows_of
from fmviz.lab.papers.courses import MUCH, SHARE, Line, ahead, in_words, median_times, n_runs, race, sooner
from fmviz.lab.papers.reproduction import Reproduction, Settings
from fmviz.lab.papers.tables import Row, Tables, frame, names_of, pivot, rows_where
from fmviz.lab.papers.verdicts import Finding, Said, agreed, by_balance, by_majority, listed
from fmviz.lab.runner import load_dataset
from fmviz.metrics import Predictions, measured
from fmviz.paths import search_lambda

SETS = declared("atarashi2021")["sets"]
ML100K, A9A, RCV1, FD = SETS
DRAWN = "drawn ratings"
RANK, INIT_SD = 30, 0.01


class Method(NamedTuple):
    """How a method is run: names from the registries, and whether its steps take O(d²) or more."""

    regularizer: str
    solver: str = "auto"
    model: str = "fm"
    dense: bool = False


METHODS = {name: Method(**own) for name, own in declared("atarashi2021")["methods"].items()}
PROPOSED, SPARSE, OMEGA = ("TI", "CS"), ("TI", "CS", "L1", "L21"), ("Ω*-nmAPGD", "Ω*-SubGD")
WEIGHTED = tuple(name for name in METHODS if name != "FM")
"""Those that are compared by ‖W‖₁."""


# ------------------------------------------------------------------------------------------------------- data

SETTINGS: dict[str, Row] = declared("atarashi2021")["planted"]
INTERACTIONS, FEATURES = SETTINGS
# No linear term, and no bias.
_BARE: Mapping[str, Any] = {"rank": RANK, "fit_linear": False, "fit_intercept": False}
Rows = tuple[Design, np.ndarray]


class Parts(NamedTuple):
    """A data set in three, after whether its score, the AUC and not the RMSE, is to be high."""

    highest: bool
    train: Rows
    validation: Rows
    test: Rows


def planted(setting: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of a data set of one of `SETTINGS`."""
    data = load_dataset("synthetic", **SETTINGS[setting], n_samples=n, seed=seed)
    return data.X, data.y


all_rows = partial(rows_of, SETS)
"""Returns all rows of one of `SETS`, or of so many ratings, about, that are drawn."""


@lru_cache(maxsize=2)
def parts(data: str, split_seed: int, drawn: int) -> Parts:
    """Return a data set, split as in Table 2 of the paper by a seed."""

    def some(X: Any, y: np.ndarray, *cuts: int) -> list[Rows]:
        order = np.random.default_rng([split_seed, 0]).permutation(y.size)
        return [(Design(X[rows]), y[rows]) for rows in np.split(order, [cut * y.size // 100 for cut in cuts])]

    if data in (ML100K, DRAWN):
        return Parts(False, *some(*all_rows(data, drawn), 64, 80))
    known, unseen = (load_dataset(SETS[data]["name"], part=part) for part in ("train", "test"))
    # a9a and RCV1: 26,048 of 32,561 and 16,193 of 20,242.
    train, validation = some(known.X, known.y, 80)
    return Parts(True, train, validation, (Design(unseen.X), unseen.y))


# ---------------------------------------------------------------------------------------- figures 1, 2 and 10

LABELS = {"l1": "L1", "l21": "L21", "ti": "TI by columns (Eq. 30)", "ti_rows": "TI by rows", "cs": "CS"}


def operators(repro: Reproduction) -> Iterator[str]:
    """Apply proximal operators to a random P: tables "counts" and "W"."""
    settings = repro.settings
    d, exponents = settings["d"], settings["log2_lambda"]
    for seed, name in repro.each(product(range(settings["matrices"]), settings["methods"])):
        P, method = sample(d, settings["k"], "normal", seed), LABELS[name]
        repro.use(f"P, seed {seed}", P)
        course = study(P, VARIANTS[name], exponents)
        for at, exponent in enumerate(exponents):
            used, place = course.interactions[at], {"method": method, "seed": seed, "log2_lambda": exponent}
            about = {"share": used / pairs(d), "certificate": course.certificates[at]}
            repro.row("counts", **place, interactions=used, features=course.features[at], **about)
        edges = tile_edges(d, settings["tiles"])
        sizes = np.diff(edges)
        possible = np.maximum(np.outer(sizes, sizes) - np.diag(sizes), 1)
        for exponent in settings["shown"] if seed == 0 else ():
            # A row of tiles a row: the share of the pairs i ≠ j in a tile that are used.
            mask = used_mask(course.Q[course.at(exponent)]).astype(float)
            tiles = np.add.reduceat(np.add.reduceat(mask, edges[:-1], 0), edges[:-1], 1)
            for first, row in zip(edges, np.round(tiles / possible, 3), strict=False):
                repro.row("W", method=method, log2_lambda=exponent, first=first, shares=row.tolist())
        repro.done += 1
        yield f"{method}: P {seed + 1} of {settings['matrices']}"


def _judge_operators(tables: Tables, settings: Settings) -> Iterator[Finding]:
    counts = frame(tables, "counts")
    if counts.empty:
        return
    counts["between"] = counts["share"].between(settings["least"], settings["most"])
    for label in (LABELS["l1"], LABELS["l21"]):
        mine = counts["between"][counts["method"] == label]
        if len(mine):
            extreme, total = len(mine) - mine.sum(), len(mine)
            numbers = {"extreme": extreme, "total": total, "share": extreme / total}
            yield "all_or_nothing", label, (by_majority(extreme, total), numbers)
    between = counts.pivot_table("between", "seed", "method", aggfunc="sum")
    for name in ("ti", "ti_rows", "cs"):
        both = between.reindex(columns=[LABELS[x] for x in (name, "l1", "l21")]).dropna().astype(int)
        if both.empty:
            continue
        mine, others = both.iloc[:, 0], both.iloc[:, 1:].max(axis=1)
        wins, n = sum(mine > others), len(both)
        numbers = {"mine": _range(mine), "others": _range(others), "strengths": len(settings["log2_lambda"])}
        yield "moderately_sparse", LABELS[name], (by_majority(wins, n), {**numbers, "wins": wins, "n": n})
    for name, key, falls in (
        ("ti", "ti_features", False),
        ("ti_rows", "ti_features", False),
        ("cs", "cs_features", True),
    ):
        features = pivot(tables, "counts", "features", columns="log2_lambda", method=LABELS[name])
        features = features.dropna().astype(int)
        if features.empty:
            continue
        first, last = features.columns[[0, -1]]
        steps = -features.diff(axis=1).iloc[:, 1:]
        lost = steps.max(axis=1)
        # Features are never gained, some are lost, and never half of all at once.
        gradual = (steps >= 0).all(axis=None) and lost.between(1, settings["step"] * settings["d"]).all()
        numbers = {
            "start": _range(features[first]), "first": 2.0**first,
            "end": _range(features[last]), "last": 2.0**last,
            "n": len(features), "lost": int(lost.max()),
        }  # fmt: skip
        holds = gradual if falls else (features == settings["d"]).all(axis=None)
        yield key, LABELS[name], (holds, numbers)


def _range(values: Any) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


ALGORITHMS = {"sort": "Sort (Algorithm 2)", "random": "Random (Algorithm 3)", "filter": "fmviz"}
# Shorter laps a clock cannot tell.
_LAP = 2e-3


def fig10(repro: Reproduction) -> Iterator[str]:
    """Time the algorithms for the operator of λ‖·‖₁², in turns."""
    settings = repro.settings
    lengths = [2**e for e in settings["log2_d"]]
    rng = np.random.default_rng(0)
    vectors = {}
    for d in lengths:
        vectors[d] = rng.standard_normal((max(settings["vectors"], settings["entries"] // d), d))
        repro.use(f"d = {d}", vectors[d])
    cases = repro.each(product(lengths, settings["sigma"], settings["lambda"]))
    yield "Readying the kernels"
    for name in ALGORITHMS:
        prox_squared_l1(vectors[lengths[0]], 0.1, name)
    for d, sigma, strength in cases:
        scaled, panel = sigma * vectors[d], f"σ = {sigma:g}, λ = {strength:g}"
        timers = {
            name: timeit.Timer(partial(prox_squared_l1, scaled, strength, name), timer=time.thread_time)
            for name in ALGORITHMS
        }
        repeats = {name: max(1, int(np.ceil(_LAP / max(t.timeit(1), 1e-7)))) for name, t in timers.items()}
        laps = pd.DataFrame(
            {name: t.timeit(repeats[name]) / repeats[name] for name, t in timers.items()}
            for _ in range(settings["rounds"])
        )
        alive = np.count_nonzero(prox_squared_l1(scaled, strength)) / scaled.size
        for name, label in ALGORITHMS.items():
            each = laps[name].median() / len(scaled) * 1e6
            repro.row("times", panel=panel, method=label, d=d, microseconds=each, alive=alive)
        repro.done += 1
        yield f"d = {d:,}, {panel}"


def _judge_fig10(tables: Tables, settings: Settings) -> Iterator[Finding]:
    as_fast, small = 1.0 + settings["ahead"], settings["small"]
    for panel in dict.fromkeys(row["panel"] for row in tables.get("times", ())):
        times = pivot(tables, "times", "microseconds", "d", panel=panel).reindex(columns=ALGORITHMS.values())
        ratios = (times[ALGORITHMS["sort"]] / times[ALGORITHMS["random"]]).dropna()
        if ratios.empty:
            continue
        wins, low, high = sum(ratios > as_fast), ratios.idxmin(), ratios.idxmax()
        numbers = {"low": low, "least": ratios[low], "high": high, "most": ratios[high]}
        said = by_majority(wins, len(ratios)), {**numbers, "wins": wins, "n": len(ratios)}
        yield "mostly", panel, said
        faster = ratios.index[ratios < 1.0 / as_fast]
        where = f"at d = {', '.join(f'{d:,}' for d in faster)}" if len(faster) else "at no length"
        if max(ratios.index) > small:
            yield "small", panel, (all(faster <= small), {"where": where})


# -------------------------------------------------------------------------------------------- figures 3 and 4

ERROR, F1, PSSR = "estimation error", "F1", "PSSR"
METRICS = {ERROR: "estimation_error", F1: "support_f1", PSSR: "support_recovered"}
# Validation and test data sets are numbered from here on.
_FIRST_VALIDATION, _FIRST_TEST = 1_000, 5_000
Pair = tuple[float, float]
"""λ_p and λ."""


def experiment(method: str, data: Row, pair: Pair, *, start: int = 0, **limits: Any) -> Experiment:
    """Return the fit of a planted data set from one start: N(0, 0.01²), no linear term, no bias."""
    own = METHODS[method]
    about = {"model": own.model, "regularizer": own.regularizer, "solver": own.solver}
    strengths = {"lambda_w": 0.0, "lambda_p": pair[0], "lambda_sparse": pair[1]}
    place = {"dataset": DataChoice.of("synthetic", data)}
    seed = 100_000 * start + data["seed"]
    return Experiment(**{**_BARE, **about, **strengths, **place, **limits}, seed=seed)


def fig3(repro: Reproduction) -> Iterator[str]:
    """Tune methods on some planted data sets and measure them on others; those of the most rows first."""
    settings = repro.settings
    for setting, n in product(settings["settings"], settings["n_samples"]):
        repro.use(f"{setting}, N = {n}, seed 0", *planted(setting, n, 0))
    sizes = sorted(settings["n_samples"], reverse=True)
    studies = list(product(sizes, settings["settings"], settings["methods"]))
    tests = len(METRICS) * settings["test"] * settings["inits"]
    repro.total = sum(len(pairs_of(settings, study[2])) * settings["validation"] + tests for study in studies)
    for n, setting, method in studies:
        results = yield from tuned(repro, setting, n, method)
        labels = {"setting": setting, "n_samples": n, "method": method}
        means: Row = {}
        for metric, (pair, validation, tests) in results.items():
            scores = [test[METRICS[metric]] for test in tests]
            means[metric] = float(np.mean(scores))
            about = {name: _mean(tests, name) for name in ("seconds", "converged")}
            about |= {"lambda_p": pair[0], "lambda_sparse": pair[1], "validation": validation[metric]}
            repro.row("tuned", **labels, metric=metric, test=means[metric], **about)
            place = {"data": f"{setting}: {metric}", "method": method, "bases": n}
            for number, score in enumerate(scores):
                repro.row("test", **place, seed=number, score=score)
        repro.row("means", **labels, **means)
        yield f"{setting}, N = {n}: {method}"


def pairs_of(settings: Settings, method: str) -> list[Pair]:
    """Return the strengths among which a method is tuned."""
    grid = settings["grid"]
    return [(value, 0.0) for value in settings["fm_grid"]] if method == "FM" else list(product(grid, grid))


def tuned(
    repro: Reproduction, setting: str, n: int, method: str
) -> Generator[str, None, dict[str, tuple[Pair, Row, list[Row]]]]:
    """Tune a method for each metric by itself, then measure it; counts the fits.

    Returns by metric the strengths, their mean metrics in validation, and the tests.
    """
    settings, dense = repro.settings, METHODS[method].dense
    seconds = n / 50.0 * settings["dense_share" if dense else "share"]
    limits = {"max_epochs": settings["epochs"], "tol": settings["dense_tol" if dense else "tol"]}

    def measured(cases: list[tuple[Pair, int, int]], weight: int = 1) -> Generator[str, None, list[Row]]:
        todo = [
            experiment(method, SETTINGS[setting] | {"seed": seed, "n_samples": n}, pair, start=init, **limits)
            for pair, seed, init in cases
        ]
        rows: dict[int, Row] = {}
        with closing(repro.fits(todo, seconds)) as results:
            for index, result in results:
                if failure := result.get("failure"):
                    raise RuntimeError(f"{todo[index].to_json()}: {failure}\n{result['details']}")
                rows[index] = {**result["values"], "converged": float(result["status"] == "converged")}
                repro.done += weight
                if repro.due():
                    yield f"{setting}, N = {n}: {method}"
        return [rows[index] for index in range(len(todo))]

    pairs, many = pairs_of(settings, method), settings["validation"]
    seeds = range(_FIRST_VALIDATION, _FIRST_VALIDATION + many)
    results = yield from measured([(pair, seed, 0) for pair in pairs for seed in seeds])
    means = {}
    for i, pair in enumerate(pairs):
        rows = results[i * many : (i + 1) * many]
        means[pair] = {metric: _mean(rows, name) for metric, name in METRICS.items()}
    chosen = {metric: best(means, metric) for metric in METRICS}
    unseen = list(product(range(_FIRST_TEST, _FIRST_TEST + settings["test"]), range(settings["inits"])))
    tests: dict[Pair, list[Row]] = {}
    for pair in dict.fromkeys(chosen.values()):
        shared = list(chosen.values()).count(pair)
        tests[pair] = yield from measured([(pair, seed, init) for seed, init in unseen], shared)
    return {metric: (pair, means[pair], tests[pair]) for metric, pair in chosen.items()}


def _mean(rows: Sequence[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def best(means: Mapping[Pair, Mapping[str, float]], metric: str) -> Pair:
    """Return the pair whose means are best on a metric; ties in PSSR are broken by F1, others by order."""

    def rank(pair: Pair) -> Pair:
        at = means[pair]
        return (-at[ERROR], 0.0) if metric == ERROR else (at[metric], at[F1])

    # NaN, of a fit that diverged at the start, never wins.
    usable = [pair for pair in means if not np.isnan(rank(pair)[0])] or list(means)
    return max(usable, key=rank)


def _judge_fig3(tables: Tables, settings: Settings) -> Iterator[Finding]:
    sizes = sorted(settings["n_samples"])
    # Two standard errors of a share of one in two.
    same: dict[str, Any] = dict.fromkeys(METRICS, settings["same"])
    same[PSSR] = 1.0 / (settings["test"] * settings["inits"]) ** 0.5
    for setting in settings["settings"]:
        rows = rows_where(tables, "means", setting=setting)
        means = {metric: pivot({"": rows}, "", metric, "n_samples") for metric in METRICS if rows}
        expected = len(sizes), len(METHODS) if set(settings["methods"]) == set(METHODS) else 0
        if not means or any(each.dropna().shape != expected for each in means.values()):
            continue

        against = partial(_against, means, same)
        if setting == FEATURES:
            for metric in METRICS:
                yield "cs_best", metric, against(metric, "CS")
            for method in ("TI", "L21", "L1"):
                at = means[PSSR][method].iloc[-1]
                yield "several", method, (at >= settings["correct"], {"at": at})
            continue
        for metric in METRICS:
            yield "ti_best", metric, against(metric, "TI")
        for metric in (F1, PSSR):
            path = list(means[metric]["TI"])
            rising = path[-1] > path[0] and all(b >= a - settings["fall"] for a, b in pairwise(path))
            numbers = {"metric": metric, "path": listed(zip(path, sizes, strict=True), "{:.3f} at {}")}
            yield "ti_grows", metric, (rising if len(path) > 1 else None, numbers)
        most = means[PSSR].drop(columns="TI").max()
        some = listed(most[most > 0.0].items(), "{} {:.3f}")
        words = f"Above 0 at some N: {some}" if some else "It is 0 for all others at every N"
        yield "ti_alone", PSSR, (not some, {"some": words})
        for method in OMEGA:
            yield "dense", method, against(ERROR, method, ["CS", "L21", "L1", "FM"])
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
    """Say at how many sizes a method is better than all others, or than some; or worse than all."""
    at, known = means[metric], [method, *others] if others else list(METHODS)
    sign = -1.0 if (metric == ERROR) is not worst else 1.0
    rivals = [name for name in known if name not in (method, ignored)]
    gaps = sign * at[method] - (sign * at[rivals]).max(axis=1)
    said, wins, losses = by_balance(gaps, 0.0 if worst else same[metric])
    words = f"{metric} at N = {at.index[-1]}: {listed(at.iloc[-1][known].items(), '{} {:.3f}')}."
    what = "the highest of all" if worst else "higher than that of all others"
    return said, {"wins": wins, "losses": losses, "n": len(gaps), "means": words, "what": what}


_SENSITIVE = ("TI", "CS", "L21", "L1")
_PANELS = {"estimation_error": "Estimation error", "support_f1": "F1", "support_recovered": "PSSR"}


def fig4(repro: Reproduction) -> Iterator[str]:
    """Fit planted data sets under every strength, one after the other, so that all curves grow alike."""
    settings = repro.settings
    (low, high), seeds = settings["log2_lambda"], range(settings["data_sets"])
    kind = {**{name: settings[name] for name in ("d_true", "b", "d_noise")}, "n_samples": settings["N"]}
    for seed in seeds:
        data = load_dataset("synthetic", **kind, seed=seed)
        repro.use(f"seed {seed}", data.X, data.y)
    cases = list(product(seeds, range(settings["starts"]), range(low, high + 1), _SENSITIVE))
    repro.total = len(cases)
    limits = {"max_epochs": settings["epochs"], "tol": settings["tol"], "rank": settings["k"]}
    experiments = [
        experiment(
            method, {**kind, "seed": seed}, (settings["lambda_p"], 2.0**exponent), start=start, **limits
        )
        for seed, start, exponent, method in cases
    ]
    repro.check()
    yield "Readying the kernels"
    with closing(repro.fits(experiments, settings["seconds"])) as results:
        for index, result in results:
            seed, start, exponent, method = cases[index]
            if failure := result.get("failure"):
                repro.row("failures", method=method, log2_lambda=exponent, message=failure)
            else:
                place = {"method": method, "data": f"seed {seed}", "start": start}
                place["lambda_sparse"] = 2.0**exponent
                for metric, panel in _PANELS.items():
                    value = result["values"][metric]
                    repro.row("scores", panel=panel, **place, value=value, status=result["status"])
            repro.done += 1
            if repro.due() or repro.done == repro.total:
                yield f"{method}, λ = {2.0**exponent:g}, data set {seed + 1} of {settings['data_sets']}"
    if lost := len(repro.tables.get("failures", ())):
        repro.note(f"{lost} of {len(cases)} fits failed and are left out: see the table of failures.")


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

# With all methods, and with those alone that minimise a bound of the objective or have it inexactly.
_READINGS = {"all methods": [], "without SLQR": ["SLQR"]}
_OTHERS = tuple(name for name in WEIGHTED if name not in PROPOSED)


def weights_l1(parameters: Parameters) -> float:
    """Return ‖W‖₁ over all entries: 2Ω_*(P) + ‖P‖² for a factorization machine ([A] 3.2)."""
    if parameters.W is not None:
        return float(np.abs(parameters.W).sum())
    P = parameters.P
    return 2.0 * get_penalty("omega_star").value(P) + float(np.square(P).sum())


def weighted_problem(method: str, X: Any, y: np.ndarray, lambda_p: float, lambda_sparse: float) -> Problem:
    """Return what one of `WEIGHTED` minimises; the strengths are λ_tr and λ of SLQR."""
    own: Row = {"lambda_p": lambda_p, "lambda_sparse": lambda_sparse, **_BARE}
    model, penalty = METHODS[method].model, METHODS[method].regularizer
    return Problem.build(X, y, model=model, penalty=penalty, **own)


def start_of(problem: Problem, seed: int) -> Parameters:
    """Return the start that a seed draws."""
    return problem.start(INIT_SD, np.random.default_rng([seed, 1]))


def weighted_race(
    repro: Reproduction,
    panel: str,
    seed: int,
    data: str,
    read: Callable[[], tuple[Any, np.ndarray]],
    strengths: Pair,
    traced: bool = True,
) -> Iterator[str]:
    """Race the methods under λ_p and λ on data."""
    yield f"{panel}: reading the data"
    (X, y), (lambda_p, strength) = read(), strengths
    repro.use(data, X, y)

    def value(last: Snapshot) -> float:
        return last.loss + strength * weights_l1(last.parameters)

    def ending(line: Line, own: Mapping[str, Any], course: Sequence[Row], last: Snapshot) -> Row:
        return {"epoch": last.epoch, "settled": settled(course), "status": courses.reason(last)}

    problems = {name: weighted_problem(name, X, y, lambda_p, strength) for name in WEIGHTED}
    starts = {name: (problem, start_of(problem, seed)) for name, problem in problems.items()}
    lines, seconds = [Line(name, METHODS[name].solver) for name in WEIGHTED], repro.settings["seconds"]
    yield from race(repro, panel, seed, data, lines, starts, ending, seconds, value, traced=traced)


def settled(course: Sequence[Row]) -> float:
    """Return the seconds after which the objective stays within `SHARE` of its last value."""
    end = course[-1]["objective"]
    away = [i for i, row in enumerate(course) if abs(row["objective"] - end) > SHARE * abs(end)]
    return float(course[away[-1] + 1]["seconds"] if away else course[0]["seconds"])


def fig5(repro: Reproduction) -> Iterator[str]:
    """Race the methods on planted data; of the first data sets the courses are kept, of others the ends."""
    settings = repro.settings
    cases = list(product(range(settings["data_sets"]), settings["settings"], settings["lambda"]))
    for seed, setting, strength in repro.each(cases, len(cases) * len(WEIGHTED)):
        panel, strengths = f"{setting}, λ = {strength:g}", (settings["lambda_p"], strength)
        read, traced = partial(planted, setting, settings["N"], seed), seed < settings["drawn_sets"]
        yield from weighted_race(repro, panel, seed, f"{setting}, seed {seed}", read, strengths, traced)


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
            said, wins, _ = by_balance(gaps, settings["same"])
            means = objectives.mean()
            numbers = {"wins": wins, "n": len(gaps), "means": listed(means.items(), "{} {:.4g}")}
            yield key, case, (said, numbers)
            if key == "ti_lowest" and strength == max(settings["lambda"]):
                second = means.drop("TI").idxmin()
                lead = means[second] / means["TI"] - 1.0
                yield "remarkable", case, (lead >= settings["remarkable"], {"second": second, "lead": lead})
    for strength in settings["lambda"]:
        times = ends(FEATURES, "settled", strength)
        if not times.empty:
            medians = times.median()
            fastest = medians[list(PROPOSED)].max() < medians[list(_OTHERS)].min()
            numbers = {"times": listed(medians.items(), "{} {:.4g} s")}
            yield "both_fastest", f"λ = {strength:g}", (fastest, numbers)


# Whose epochs grow with which power of d.
_POWERS = {"linear": (1, SPARSE), "quadratic": (2, OMEGA), "cubic": (3, ("SLQR",))}


def fig6(repro: Reproduction) -> Iterator[str]:
    """Time the epochs of all methods, by the number of features."""
    settings = repro.settings
    for seed, d, method in repro.each(product(range(settings["data_sets"]), settings["d"], WEIGHTED)):
        yield f"d = {d:,}, data set {seed + 1} of {settings['data_sets']}: {method}"
        blocks = max(1, d // settings["block"])
        X, y, _ = make_sparse_interactions(settings["N"], d, blocks, 0, random_state=seed)
        repro.use(f"d = {d:,}, seed {seed}", X, y)
        yield from repro.once((seed, d, method), partial(_epochs, repro, method, X, y, seed))


def _epochs(repro: Reproduction, method: str, X: np.ndarray, y: np.ndarray, seed: int) -> Iterator[str]:
    epochs, strength, d = repro.settings["epochs"], repro.settings["strength"], X.shape[1]
    problem = weighted_problem(method, X, y, strength, strength)
    budget, solver = Budget(epochs, tol=0.0, certify_every=epochs + 1), METHODS[method].solver
    seconds = []
    for last in iterate(problem, solver, budget, repro.should_stop, start=start_of(problem, seed)):
        seconds.append(last.seconds)
        yield f"d = {d:,}: {method}, epoch {last.epoch}"
    repro.check()
    # The first one starts the solver, too.
    laps = np.diff(seconds[1:] if len(seconds) > 2 else seconds)
    repro.row("times", panel="One epoch", method=method, d=d, seed=seed, seconds=median(laps))


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


def fig7(repro: Reproduction) -> Iterator[str]:
    """Race the methods on real data."""
    settings = repro.settings
    cases = list(product(range(settings["starts"]), repro.available(DRAWN), settings["lambda"]))
    for seed, name, strength in repro.each(cases, len(cases) * len(WEIGHTED)):
        read, strengths = partial(all_rows, name, settings["drawn"]), (settings["lambda_p"][name], strength)
        yield from weighted_race(repro, f"{name}, λ = {strength:g}", seed, name, read, strengths)


def _judge_fig7(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for name, strength in product(names_of(tables, settings), settings["lambda"]):
        panel = f"{name}, λ = {strength:g}"
        times = median_times(tables, panel, dict.fromkeys(WEIGHTED, 1))
        yield "fastest", panel, sooner(times, PROPOSED, _OTHERS, MUCH, WEIGHTED)


# -------------------------------------------------------------------------------------------- figures 8 and 9

BATCH, COORDINATE, STOCHASTIC = ("APGD", "nmAPGD"), ("PCD", "PBCD"), ("PSGD", "Katyusha")
MINI_BATCHES = tuple(f"MB-{name}" for name in STOCHASTIC)
LETTERS = {"a": (INTERACTIONS, "ti"), "b": (FEATURES, "ti"), "c": (FEATURES, "cs")}


def racers(regularizer: str, eta0: Sequence[float], *, mini_batches: bool) -> list[Line]:
    """Return the algorithms for TI ("ti") or CS ("cs")."""
    steps = [{"eta0": value, "monotone": False} for value in eta0]
    dense = [{**own, "operator": "dense"} for own in steps]
    coordinate = COORDINATE[get_penalty(regularizer).row_wise]
    lines = [Line(name, name.lower()) for name in (coordinate, *BATCH)]
    for name, tries in (("PSGD", dense), ("Katyusha", steps)):
        lines.append(Line(name, name.lower(), tries))
        if mini_batches:
            lines.append(Line(f"MB-{name}", f"mb_{name.lower()}", steps))
    return lines


def algorithm_race(
    repro: Reproduction,
    panel: str,
    seed: int,
    data: str,
    problem: Problem,
    lines: Sequence[Line],
    seconds: float,
    scale: float = 1.0,
) -> Iterator[str]:
    """Race algorithms on a problem, all from one start; `scale` times its objective is drawn."""
    start = start_of(problem, seed)

    def ending(line: Line, own: Mapping[str, Any], course: Sequence[Row], last: Snapshot) -> Row:
        risen = course[-1]["objective"] > course[0]["objective"]
        diverged = courses.reason(last) == Reason.DIVERGED or risen
        own = {"label": line.title(own), "eta0": own.get("eta0")}
        return {**own, "epochs": last.epoch, "diverged": diverged}

    starts = {line.label: (problem, start) for line in lines}
    yield from race(repro, panel, seed, data, lines, starts, ending, seconds, scale)


def panel_of_fig8(letter: str, n: int) -> str:
    """Return the name of a panel."""
    setting, regularizer = LETTERS[letter]
    return f"{regularizer.upper()}, {setting}, N = {n:,}"


def problem_of_fig8(letter: str, strength: float, X: np.ndarray, y: np.ndarray) -> Problem:
    """Return the problem of a panel, whose objective is 1/d² times that of the paper.

    As the paper does for the stochastic methods, rows are divided by √d and targets by d, so that a squared
    loss is divided by d², and strengths with it.
    """
    d = X.shape[1]
    strengths: Row = dict.fromkeys(("lambda_p", "lambda_sparse"), strength / d**2)
    return Problem.build(X / np.sqrt(d), y / d, penalty=LETTERS[letter][1], **strengths, **_BARE)


def fig8(repro: Reproduction) -> Iterator[str]:
    """Race algorithms on planted data, by the number of rows."""
    settings = repro.settings
    sizes = list(zip(settings["N"], settings["seconds"], strict=True))
    cases = list(product(range(settings["starts"]), sizes, settings["panels"]))
    lines = {letter: racers(LETTERS[letter][1], settings["eta0"], mini_batches=False) for letter in LETTERS}
    total = sum(sum(n_runs(lines[letter]).values()) for *_, letter in cases)
    for seed, (n, seconds), letter in repro.each(cases, total):
        panel, data = panel_of_fig8(letter, n), f"{LETTERS[letter][0]}, N = {n:,}"
        yield f"{panel}: reading the data"
        X, y = planted(LETTERS[letter][0], n, 0)
        repro.use(data, X, y)
        problem = problem_of_fig8(letter, settings["strength"], X, y)
        yield from algorithm_race(
            repro, panel, seed, data, problem, lines[letter], seconds, float(X.shape[1] ** 2)
        )


def _judge_fig8(tables: Tables, settings: Settings) -> Iterator[Finding]:
    few, many = min(settings["N"]), max(settings["N"])
    for letter, n in (("a", few), *((letter, many) for letter in LETTERS)):
        needed = n_runs(racers(LETTERS[letter][1], settings["eta0"], mini_batches=False))
        panel = panel_of_fig8(letter, n)
        times = median_times(tables, panel, needed)
        if n == few:
            yield "coordinate", panel, sooner(times, COORDINATE, BATCH, MUCH)
        else:
            yield "stochastic", panel, sooner(times, STOCHASTIC, (*COORDINATE, *BATCH))


def fig9(repro: Reproduction) -> Iterator[str]:
    """Race algorithms on real data."""
    settings = repro.settings
    names = repro.available(DRAWN)
    cases = list(product(range(settings["starts"]), names, settings["regularizers"]))
    lines = {name: racers(name, settings["eta0"], mini_batches=True) for name in settings["regularizers"]}
    total = sum(sum(n_runs(lines[regularizer]).values()) for *_, regularizer in cases)
    for seed, name, regularizer in repro.each(cases, total):
        panel = f"{name}, {regularizer.upper()}"
        yield f"{panel}: reading the data"
        X, y = all_rows(name, settings["drawn"])
        repro.use(name, X, y)
        problem = Problem.build(X, y, penalty=regularizer, rank=RANK, **settings["strengths"][name])
        yield from algorithm_race(repro, panel, seed, name, problem, lines[regularizer], settings["seconds"])


def _judge_fig9(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for name, regularizer in product(names_of(tables, settings), settings["regularizers"]):
        panel = f"{name}, {regularizer.upper()}"
        needed = n_runs(racers(regularizer, settings["eta0"], mini_batches=True))
        times = median_times(tables, panel, needed)
        if times.empty:
            continue
        yield "coordinate", panel, sooner(times, COORDINATE, BATCH, MUCH)
        batch = [name for name in (*COORDINATE, *BATCH) if name in times]
        stochastic, others = (times[list(group)].min(axis=1) for group in (STOCHASTIC, batch))
        reached = np.isfinite(np.minimum(stochastic, others))
        said = agreed(stochastic[reached] >= others[reached])
        yield "stochastic", panel, (said, in_words(times, (*STOCHASTIC, *batch)))
        each = {ahead(times, (f"MB-{name}",), (name,)) for name in STOCHASTIC}
        helped = each.pop() if len(each) == 1 else None
        yield "mini_batches", panel, (helped, in_words(times, (*MINI_BATCHES, *STOCHASTIC)))
        if panel != f"{A9A}, CS":
            yield "behind", panel, sooner(times, COORDINATE, MINI_BATCHES)
    large = rows_where(tables, "ends", eta0=settings["large_step"])
    wins = sum(row["diverged"] for row in large)
    if large:
        yield "diverges", "all", (by_majority(wins, len(large)), {"wins": wins, "n": len(large)})


# ---------------------------------------------------------------------------------------------------- table 3

LIMITED, FREE = "table3a", "table3b"
# Relative deviations of counts that are tolerated.
_COUNT = {LIMITED: 0.046, FREE: 0.1}
_STRENGTHS = ["lambda_w", "lambda_p", "lambda_sparse"]
PRINTED_SETS = (ML100K, A9A, RCV1, FD)
PRINTED: dict[str, dict[str, list[list[float]]]] = declared("atarashi2021_table3")["printed"]


def problem_of_table3(trial: Row, own: Settings) -> Problem:
    """Return the problem of the training rows; `own` are the settings of all fits."""
    X, y = parts(trial["data"], own["split_seed"], own["drawn"]).train
    strengths = {name: trial[name] for name in _STRENGTHS}
    return Problem.build(X, y, penalty=METHODS[trial["method"]].regularizer, rank=own["rank"], **strengths)


def _budget(own: Settings) -> Budget:
    return Budget(own["epochs"], tol=own["tol"], report_every=None)


def scored(problem: Problem, end: Snapshot, split: Parts) -> Row:
    """Return the scores of a fit, and how many interactions it uses."""

    def score(design: Design, y: np.ndarray) -> float:
        target = Target.of(y)
        known = Predictions(target, problem.model.predict(design, end.parameters))
        return measured(target.kind, known)["auc" if split.highest else "rmse"]

    scores = {"validation": score(*split.validation), "score": score(*split.test)}
    about = {"used": end.used_interactions, "epochs": end.epoch, "seconds": end.seconds}
    return {**scores, **about, "status": courses.reason(end)}


def fit(trial: Row, own: Settings) -> Row:
    """Fit the training rows from one start."""
    problem, rng = problem_of_table3(trial, own), np.random.default_rng([trial["seed"], 1])
    *_, end = iterate(problem, "auto", _budget(own), init_scale=own["init_scale"], rng=rng)
    return scored(problem, end, parts(trial["data"], own["split_seed"], own["drawn"]))


def search(trial: Row, own: Settings) -> Row:
    """Return the same of the fit at which a search for λ ends; without a score where it finds nothing."""
    problem = problem_of_table3(trial, own)
    limits = {"grid": tuple(trial["bracket"]), "narrowest": own["narrowest"], "budget": _budget(own)}
    start = {"init_scale": own["init_scale"], "random_state": [trial["seed"], 1]}
    probes = list(search_lambda(problem, own["target"], tuple(own["accept"]), **limits, **start))
    last = probes[-1]
    about = {"lambda_sparse": last.lambda_sparse, "probes": len(probes), "message": last.message}
    if last.status != "found":
        return {**about, "score": None, "used": last.used_interactions}
    split = parts(trial["data"], own["split_seed"], own["drawn"])
    return {**scored(problem, last.snapshot, split), **about}


def bracket_of(used: Mapping[float, int], accept: Sequence[int]) -> list[float]:
    """Return the strengths between which a search begins, from the largest down.

    The first one with too many interactions, and the one before; or the first one whose number is accepted,
    alone. Empty where there is neither, or the largest strength already has too many.
    """
    before: list[float] = []
    for strength in sorted(used, reverse=True):
        if used[strength] > accept[1]:
            return [*before, strength] if before else []
        if used[strength] >= accept[0]:
            return [strength]
        before = [strength]
    return []


def table3(repro: Reproduction) -> Iterator[str]:
    """Tune FM, then fit and search for the others; all tables of the paper."""
    settings = repro.settings
    columns = ("validation", "score", "used")
    names = repro.available(DRAWN)
    pairs = list(product(settings["lambda_w"], settings["lambda_p"]))
    seeds, tuning = range(settings["seeds"]), range(min(settings["tuning_seeds"], settings["seeds"]))
    later, sparse = len(seeds) - len(tuning), len(SPARSE) * len(seeds)
    repro.total = len(names) * (len(pairs) * len(tuning) + later + sparse * (len(settings["grid"]) + 1))

    def trial(method: str, seed: int, w: float, p: float, strength: float = 0.0) -> Row:
        labels = {"data": name, "method": method, "seed": seed}
        return {**labels, "lambda_w": w, "lambda_p": p, "lambda_sparse": strength}

    def fits(table: str, trials: list[Row]) -> Iterator[str]:
        for labels, row in repro.trials("fit", fit, trials, columns):
            repro.row(table, **{**labels, **row})
            yield f"{name}: {labels['method']}, λ = {labels['lambda_sparse']:g}, start {labels['seed']}"

    for name in names:
        yield f"Loading {name}"
        split = parts(name, settings["split_seed"], settings["drawn"])
        (design, y), score = split.train, "AUC" if split.highest else "RMSE"
        live = int(np.count_nonzero(np.diff(design.columns.indptr)))
        sizes = {"validation": split.validation[1].size, "test": split.test[1].size}
        repro.use(name, design.matrix, y, **sizes, features_in_training=live, score=score)
        first = [trial(FM, seed, w, p) for seed in tuning for w, p in pairs]
        kinds = [{**first[0], "method": method} for method in (FM, *SPARSE)]
        yield from repro.ready(fit, kinds, lambda labels: labels["method"], epochs=1)
        yield from fits("fm", first)
        w, p, _ = best_strengths(repro.tables["fm"], name, FM, split.highest).values()
        yield from fits("fm", [trial(FM, seed, w, p) for seed in seeds[len(tuning) :]])
        p /= 10.0
        yield from fits(
            "grid", [trial(m, seed, w, p, x) for m in SPARSE for x in settings["grid"] for seed in seeds]
        )
        todo = []
        for labels in [trial(method, seed, w, p) for method in SPARSE for seed in seeds]:
            own = {key: labels[key] for key in ("data", "method", "seed")}
            mine = rows_where(repro.tables, "grid", **own)
            used = {row["lambda_sparse"]: row["used"] for row in mine if row["used"] is not None}
            if bracket := bracket_of(used, settings["accept"]):
                todo.append({**labels, "bracket": bracket})
                continue
            repro.done += 1
            words = "The grid holds no two strengths between which the wanted number could lie."
            repro.row("search", **labels, score=None, used=None, probes=0, message=words)
        for labels, row in repro.trials("search", search, todo, columns):
            del labels["bracket"]
            repro.row("search", **{**labels, **row})
            yield f"{name}: {labels['method']}, search, start {labels['seed']}"
        _conclude(repro, name, split.highest)
        yield f"{name} is done"


FM = "FM"


def best_strengths(rows: Sequence[Row], data: str, method: str, highest: bool) -> Row:
    """Return the strengths with the best mean validation score, or raise ValueError."""
    own = frame({"": rows}, "", data=data, method=method)
    # A failed fit, which has no score, rules its strengths out.
    groups = own.groupby(_STRENGTHS, sort=False)["validation"]
    means = groups.agg(lambda scores: scores.mean(skipna=False)).dropna()
    if means.empty:
        raise ValueError(f"No strengths worked for {method} on {data}.")
    return dict(zip(_STRENGTHS, means.idxmax() if highest else means.idxmin(), strict=True))


def _conclude(repro: Reproduction, name: str, highest: bool) -> None:
    """Fill the tables of the paper: means over the starts."""

    def add(table: str, method: str, rows: pd.DataFrame) -> None:
        score = rows["score"]
        means = {"score": score.mean(), "spread": score.std(ddof=0), "used": rows["used"].mean()}
        means["lambda_sparse"] = rows["lambda_sparse"].mean()
        if score.isna().any():
            # As in the paper, a method that misses the range is given no score.
            means = dict.fromkeys(means, None)
        starts = {"starts": len(rows), "reached": int(score.notna().sum())}
        repro.row(table, data=name, method=method, **means, **starts)

    for method in SPARSE:
        add(LIMITED, method, frame(repro.tables, "search", data=name, method=method))
    for method in (*SPARSE, FM):
        table = "fm" if method == FM else "grid"
        at = best_strengths(repro.tables[table], name, method, highest)
        add(FREE, method, frame(repro.tables, table, data=name, method=method, **at))


def _judge_table3(tables: Tables, settings: Settings) -> Iterator[Finding]:
    names = [row["data"] for row in rows_where(tables, FREE, method=FM)]
    singles = [name for name in names if name in (ML100K, A9A)] or names[:1]
    for name in names:
        data = rows_where(tables, "data", data=name)[0]
        fm = rows_where(tables, FREE, data=name, method=FM)[0]
        live, paper = data["features_in_training"], name in PRINTED_SETS
        possible = live * (live - 1) // 2
        numbers = {"possible": possible, "live": live}
        holds = fm["used"] == (0 if name == RCV1 else possible)
        yield "fm", name, (holds, {**numbers, "used": fm["used"]})
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
    if data not in PRINTED_SETS:
        return {}
    cells = {method: row[PRINTED_SETS.index(data)] for method, row in PRINTED[table].items()}
    return {method: cell[0] for method, cell in cells.items() if cell}


def _compared(
    scores: Mapping[str, float], score: str, same: float, first: Sequence[str], others: Sequence[str]
) -> Said:
    sign = 1.0 if score == "AUC" else -1.0
    words = f"{score}: {listed(scores.items(), '{} {:.5f}') or 'none'}."
    mine, theirs = ([sign * scores[m] for m in group if m in scores] for group in (first, others))
    if not mine or not theirs:
        return None, f"Not both have a score. {words}"
    gap = max(mine) - max(theirs)
    return None if abs(gap) <= same else gap > 0, {"gap": gap, "scores": words}


def _published() -> Iterator[Published]:
    tolerance = declared("atarashi2021_table3")["thresholds"]["tolerance"]
    for table, methods in PRINTED.items():
        for (column, name), (method, cells) in product(enumerate(PRINTED_SETS), methods.items()):
            if cell := cells[column]:
                of, source = {"data": name, "method": method}, f"Table {table[-2:]}"
                yield Published(table, of, "score", cell[0], source, tolerance / cell[0])
                yield Published(table, of, "used", cell[1], source, _COUNT[table])


_FIG2 = figure("atarashi2021_fig2", operators, _judge_operators)
ARTEFACTS = (
    replace(
        _FIG2,
        name="atarashi2021_fig1",
        title="Fig. 1: proximal operators of L1 and L21",
        statements=tuple(said for said in _FIG2.statements if said.key == "all_or_nothing"),
        # The first one is about TI.
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
    figure("atarashi2021_table3", table3, _judge_table3, _published()),
)
