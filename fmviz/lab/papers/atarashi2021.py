"""Figures and tables of Atarashi, Oyama & Kurihara (2021)."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise, product
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from fmviz.engine.counting import used_mask
from fmviz.engine.design import Design
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.interactions.pairs import tile_edges
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import get_penalty
from fmviz.engine.penalties.operators.squared_norm import prox_squared_l1
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Reason, Snapshot
from fmviz.lab.datasets import make_sparse_interactions
from fmviz.lab.experiment import Experiment
from fmviz.lab.operators import VARIANTS, pairs, sample, study
from fmviz.lab.papers import courses
from fmviz.lab.papers.base import Published, declared, figure, rows_of
from fmviz.lab.papers.courses import MUCH, SHARE, Line, Times, in_words, median_times, n_runs, race, sooner
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables, grouped, names_of, rows_where
from fmviz.lab.papers.verdicts import Finding, Said, Verdict, agreed, by_balance, by_majority, listed, verdict
from fmviz.lab.runner import load_dataset, quality
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


METHODS = {
    "TI": Method("ti"),
    "CS": Method("cs"),
    "L1": Method("l1"),
    "L21": Method("l21"),
    "FM": Method("l2"),
    "Ω*-nmAPGD": Method("omega_star", "nmapgd", dense=True),
    "Ω*-SubGD": Method("omega_star", "subgd", dense=True),
    "SLQR": Method("l1", "incremental_pgd", "qr", dense=True),
}
PROPOSED, SPARSE, OMEGA = ("TI", "CS"), ("TI", "CS", "L1", "L21"), ("Ω*-nmAPGD", "Ω*-SubGD")
WEIGHTED = tuple(name for name in METHODS if name != "FM")
"""Those that are compared by ‖W‖₁."""


# ------------------------------------------------------------------------------------------------------- data

INTERACTIONS, FEATURES = "interaction selection", "feature selection"
SETTINGS = {
    INTERACTIONS: {"d_true": 80, "b": 8, "d_noise": 20},
    FEATURES: {"d_true": 20, "b": 1, "d_noise": 80},
}


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
# Above none and below all by so much is neither dense nor all-zero.
_LEAST, _MOST = 0.01, 0.99
# A gradual course loses at most this share of the features from one λ to the next.
_STEP = 0.5


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
    rows = {name: rows_where(tables, "counts", method=label) for name, label in LABELS.items()}
    paths = {name: grouped(of_method, "seed") for name, of_method in rows.items()}
    between = {
        name: {seed: sum(_LEAST <= row["share"] <= _MOST for row in rows) for seed, rows in course.items()}
        for name, course in paths.items()
    }
    for name in ("l1", "l21"):
        total = len(rows[name])
        extreme = total - sum(between[name].values())
        said: Any = total and (
            by_majority(extreme, total),
            f"At {extreme} of {total} pairs of a P and a λ more than {_MOST:.0%} or less than {_LEAST:.0%} "
            f"of the interactions are used, which makes {extreme / total:.0%}.",
        )
        yield "all_or_nothing", LABELS[name], said
    for name in ("ti", "ti_rows", "cs"):
        seeds = sorted(between[name].keys() & between["l1"].keys() & between["l21"].keys())
        mine = [between[name][seed] for seed in seeds]
        others = [max(between["l1"][seed], between["l21"][seed]) for seed in seeds]
        wins = sum(a > b for a, b in zip(mine, others, strict=True))
        said = seeds and (
            by_majority(wins, len(mine)),
            f"It uses {_LEAST:.0%} to {_MOST:.0%} of the interactions at {_range(mine)} of "
            f"{len(paths[name][seeds[0]])} strengths, where the better of L1 and L21 does at "
            f"{_range(others)}; more for {wins} of {len(mine)} P.",
        )
        yield "moderately_sparse", LABELS[name], said
    for name in ("ti", "ti_rows"):
        kept = [row["features"] == settings["d"] for row in rows[name]]
        yield "ti_features", LABELS[name], kept and (verdict(all(kept)), _ends_of(paths[name]))
    lost = [
        [a["features"] - b["features"] for a, b in pairwise(path)] or [0] for path in paths["cs"].values()
    ]
    # Features are never gained, some are lost, and never half of all at once.
    gradual = all(min(steps) >= 0 and 0 < max(steps) <= _STEP * settings["d"] for steps in lost)
    most = max(0, *map(max, lost)) if lost else 0
    words = lost and f"{_ends_of(paths['cs'])[:-1]}; at most {most} are lost from one λ to the next."
    yield "cs_features", LABELS["cs"], words and (verdict(gradual), words)


def _ends_of(course: Mapping[int, Sequence[Row]]) -> str:
    def at(place: int) -> str:
        rows = [rows[place] for rows in course.values()]
        return f"{_range([row['features'] for row in rows])} at λ = {2.0 ** rows[0]['log2_lambda']:g}"

    return f"Used features: {at(0)}, {at(-1)}, on {len(course)} P."


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


ALGORITHMS = {"sort": "Sort (Algorithm 2)", "random": "Random (Algorithm 3)", "filter": "fmviz"}
# Faster by less is as fast; and shorter laps a clock cannot tell.
_AS_FAST, _LAP = 1.05, 2e-3
_SMALL = 32


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
        calls = {name: partial(prox_squared_l1, scaled, strength, name) for name in ALGORITHMS}
        repeats = {name: max(1, int(np.ceil(_LAP / max(_lap(call), 1e-7)))) for name, call in calls.items()}
        laps: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(settings["rounds"]):
            for name, call in calls.items():
                laps[name].append(_lap(call, repeats[name]))
        alive = np.count_nonzero(prox_squared_l1(scaled, strength)) / scaled.size
        for name, label in ALGORITHMS.items():
            each = median(laps[name]) / len(scaled) * 1e6
            repro.row("times", panel=panel, method=label, d=d, microseconds=each, alive=alive)
        repro.done += 1
        yield f"d = {d:,}, {panel}"


def _lap(call: Callable[[], object], repeats: int = 1) -> float:
    begin = time.thread_time()
    for _ in range(repeats):
        call()
    return (time.thread_time() - begin) / repeats


def _judge_fig10(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for sigma, strength in product(settings["sigma"], settings["lambda"]):
        panel = f"σ = {sigma:g}, λ = {strength:g}"
        sort, random = (
            {row["d"]: row["microseconds"] for row in rows_where(tables, "times", panel=panel, method=label)}
            for label in (ALGORITHMS["sort"], ALGORITHMS["random"])
        )
        ratios = {d: time / random[d] for d, time in sort.items() if d in random}
        if not ratios:
            yield from ((key, panel, None) for key in ("mostly", "small"))
            continue
        wins = sum(ratio > _AS_FAST for ratio in ratios.values())
        low, high = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
        words = (
            f"Random is faster at {wins} of {len(ratios)} lengths; Sort takes {ratios[low]:.2f} times as "
            f"long at d = {low:,} and {ratios[high]:.2f} times at d = {high:,}."
        )
        yield "mostly", panel, (by_majority(wins, len(ratios)), words)
        faster = [d for d, ratio in ratios.items() if ratio < 1.0 / _AS_FAST]
        where = f"at d = {', '.join(f'{d:,}' for d in faster)}" if faster else "at no length"
        words = f"Sort is faster, by at least {_AS_FAST - 1:.0%}, {where}."
        said = verdict(all(d <= _SMALL for d in faster)), words
        yield "small", panel, any(d > _SMALL for d in ratios) and said


# -------------------------------------------------------------------------------------------- figures 3 and 4

ERROR, F1, PSSR = "estimation error", "F1", "PSSR"
METRICS = {ERROR: "estimation_error", F1: "support_f1", PSSR: "support_recovered"}
# Validation and test data sets are numbered from here on.
_FIRST_VALIDATION, _FIRST_TEST = 1_000, 5_000
Pair = tuple[float, float]
"""λ_p and λ."""


def experiment(
    method: str, data: Row, pair: Pair, *, start: int = 0, rank: int = RANK, **limits: Any
) -> Experiment:
    """Return the fit of a planted data set from one start: N(0, 0.01²), no linear term, no bias."""
    own = METHODS[method]
    return Experiment(
        dataset="synthetic",
        dataset_params=tuple(data.items()),
        model=own.model,
        regularizer=own.regularizer,
        solver=own.solver,
        rank=rank,
        lambda_w=0.0,
        lambda_p=pair[0],
        lambda_sparse=pair[1],
        fit_linear=False,
        fit_intercept=False,
        seed=100_000 * start + data["seed"],
        **limits,
    )


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
    methods, sizes = settings["methods"], sorted(settings["n_samples"])
    # Two standard errors of a share of one in two.
    same = {ERROR: 0.005, F1: 0.005, PSSR: 1.0 / (settings["test"] * settings["inits"]) ** 0.5}
    for setting, keys in (
        (INTERACTIONS, ("ti_best", "ti_grows", "ti_alone", "dense", "slqr")),
        (FEATURES, ("cs_best", "several")),
    ):
        rows = {
            (row["method"], row["n_samples"]): row for row in rows_where(tables, "means", setting=setting)
        }
        means = _Means(rows, methods, sizes)
        complete = set(methods) == set(METHODS) and all(
            rows.get((method, n), {}).get(metric) is not None
            for method, n, metric in product(methods, sizes, METRICS)
        )
        if setting not in settings["settings"] or not complete:
            yield from ((key, setting, None) for key in keys)
            continue
        for metric in METRICS:
            yield (
                keys[0],
                metric,
                _best_of_all(means, "TI" if setting == INTERACTIONS else "CS", metric, same),
            )
        if setting == FEATURES:
            for method in ("TI", "L21", "L1"):
                at = means.path(method, PSSR)[-1]
                yield "several", method, (verdict(at >= 0.5), f"PSSR is {at:.3f} at the largest N.")
            continue
        for metric in (F1, PSSR):
            path = means.path("TI", metric)
            rising = path[-1] > path[0] and all(b >= a - 0.02 for a, b in pairwise(path))
            words = listed(zip(path, sizes, strict=True), "{:.3f} at {}")
            yield (
                "ti_grows",
                metric,
                (verdict(rising if len(path) > 1 else None), f"{metric} of TI: {words}."),
            )
        most = {other: max(means.path(other, PSSR)) for other in means.others("TI")}
        some = listed(((other, value) for other, value in most.items() if value > 0.0), "{} {:.3f}")
        words = f"Above 0 at some N: {some}." if some else "It is 0 for all others at every N."
        yield "ti_alone", PSSR, (verdict(not some), words)
        rivals = ["CS", "L21", "L1", "FM"]
        for method in OMEGA:
            gaps = means.lead(method, rivals, ERROR)
            said, wins, _ = by_balance(gaps, same[ERROR])
            words = means.words(ERROR, [method, *rivals])
            yield "dense", method, (said, f"It is lower than all four at {wins} of {len(gaps)} N. {words}")
        gaps = means.lead("SLQR", means.others("TI", "SLQR"), F1)
        said, wins, _ = by_balance(gaps, same[F1])
        words = f"It is higher than that of all others at {wins} of {len(gaps)} N. {means.words(F1)}"
        yield "slqr", F1, (said, words)
        columns = zip(*(means.path(name, ERROR) for name in ("SLQR", *means.others("SLQR"))), strict=True)
        wins = sum(own > max(others) for own, *others in columns)
        words = f"It is the highest of all at {wins} of {len(sizes)} N. {means.words(ERROR)}"
        yield "slqr", ERROR, (by_majority(wins, len(sizes)), words)


class _Means(NamedTuple):
    rows: Mapping[tuple[str, int], Row]
    methods: Sequence[str]
    sizes: Sequence[int]

    def path(self, method: str, metric: str) -> list[float]:
        return [self.rows[method, n][metric] for n in self.sizes]

    def words(self, metric: str, methods: Sequence[str] = ()) -> str:
        ends = listed(((m, self.path(m, metric)[-1]) for m in methods or self.methods), "{} {:.3f}")
        return f"{metric} at N = {self.sizes[-1]}: {ends}."

    def lead(self, method: str, others: Sequence[str], metric: str) -> list[float]:
        """Return by how much a method is better than the best of others, at each N."""
        sign = -1.0 if metric == ERROR else 1.0
        columns = zip(*(self.path(name, metric) for name in (method, *others)), strict=True)
        return [sign * mine - max(sign * other for other in theirs) for mine, *theirs in columns]

    def others(self, *methods: str) -> list[str]:
        return [name for name in self.methods if name not in methods]


def _best_of_all(means: _Means, method: str, metric: str, same: Mapping[str, float]) -> Said:
    gaps = means.lead(method, means.others(method), metric)
    said, wins, losses = by_balance(gaps, same[metric])
    return said, (
        f"{method} is ahead of all others at {wins} of {len(gaps)} N and behind one of them at {losses}. "
        f"{means.words(metric)}"
    )


_SENSITIVE = ("TI", "CS", "L21", "L1")
_PANELS = {"estimation_error": "Estimation error", "support_f1": "F1", "support_recovered": "PSSR"}
# Adequate: an error at most so much above, or a score of at least such a share of, the best mean of all.
_ABOVE, _SHARE = 0.1, 0.9


def _planted_of(settings: Settings, seed: int) -> Row:
    kind = {name: settings[name] for name in ("d_true", "b", "d_noise")}
    return {**kind, "seed": seed, "n_samples": settings["N"]}


def _exponents(settings: Settings) -> range:
    return range(settings["log2_lambda"][0], settings["log2_lambda"][1] + 1)


def fig4(repro: Reproduction) -> Iterator[str]:
    """Fit planted data sets under every strength, one after the other, so that all curves grow alike."""
    settings = repro.settings
    seeds, inits = range(settings["data_sets"]), range(settings["starts"])
    cases = list(product(seeds, inits, _exponents(settings), _SENSITIVE))
    repro.total = len(cases)
    limits = {"max_epochs": settings["epochs"], "tol": settings["tol"], "rank": settings["k"]}
    experiments = [
        experiment(
            method, _planted_of(settings, seed), (settings["lambda_p"], 2.0**exponent), start=start, **limits
        )
        for seed, start, exponent, method in cases
    ]
    repro.check()
    yield "Readying the kernels"
    with closing(repro.fits(experiments, settings["seconds"])) as results:
        for index, result in results:
            seed, start, exponent, method = cases[index]
            name = f"seed {seed}"
            if name not in repro.data:
                data = load_dataset("synthetic", **_planted_of(settings, seed))
                repro.use(name, data.X, data.y)
            if failure := result.get("failure"):
                repro.row("failures", method=method, log2_lambda=exponent, message=failure)
            else:
                place = {"method": method, "data": name, "start": start, "lambda_sparse": 2.0**exponent}
                for metric, panel in _PANELS.items():
                    value = result["values"][metric]
                    repro.row("scores", panel=panel, **place, value=value, status=result["status"])
            repro.done += 1
            if repro.due() or repro.done == repro.total:
                yield f"{method}, λ = {2.0**exponent:g}, data set {seed + 1} of {settings['data_sets']}"
    if lost := len(repro.tables.get("failures", ())):
        repro.note(f"{lost} of {len(cases)} fits failed and are left out: see the table of failures.")


def _judge_fig4(tables: Tables, settings: Settings) -> Iterator[Finding]:
    error, *scores = _PANELS.values()
    for panel in (error, *scores):
        values: dict[tuple[str, float], list[float]] = {}
        for row in rows_where(tables, "scores", panel=panel):
            if row["value"] is not None:
                values.setdefault((row["method"], row["lambda_sparse"]), []).append(row["value"])
        widths = dict.fromkeys(_SENSITIVE, 0)
        # Widths of curves that are still growing say nothing.
        if len(values) == len(_SENSITIVE) * len(_exponents(settings)):
            means = {key: fmean(each) for key, each in values.items()}
            at_best = (min if panel == error else max)(means.values())
            for (method, _), value in means.items():
                good = value <= at_best + _ABOVE if panel == error else 0 < value >= _SHARE * at_best
                widths[method] += good
        words = f"Strengths λ, a factor of 2 apart, at which it is adequate: {listed(widths.items())}."
        for key, name, others in (("cs_widest", "CS", ("TI", "L21", "L1")), ("ti_next", "TI", ("L21", "L1"))):
            if key == "cs_widest" or panel in scores:
                most = max(widths[other] for other in others)
                said = verdict(None if widths[name] == most else widths[name] > most)
                yield key, panel, any(widths.values()) and (said, words)


# ----------------------------------------------------------------------------------------- figures 5, 6 and 7

# Ends that differ by less, relative to the smaller, are equal; and the lead that is remarkable.
_SAME_END, _REMARKABLE = 1e-3, 0.1
# With all methods, and with those alone that minimise a bound of the objective or have it inexactly.
_READINGS = {"all methods": WEIGHTED, "without SLQR": tuple(name for name in WEIGHTED if name != "SLQR")}
_OTHERS = tuple(name for name in WEIGHTED if name not in PROPOSED)


def weights_l1(parameters: Parameters) -> float:
    """Return ‖W‖₁ over all entries: 2Ω_*(P) + ‖P‖² for a factorization machine ([A] 3.2)."""
    if parameters.W is not None:
        return float(np.abs(parameters.W).sum())
    P = parameters.P
    return 2.0 * get_penalty("omega_star").value(P) + float(np.square(P).sum())


def weighted_problem(method: str, X: Any, y: np.ndarray, lambda_p: float, lambda_sparse: float) -> Problem:
    """Return what one of `WEIGHTED` minimises; the strengths are λ_tr and λ of SLQR."""
    own = METHODS[method]
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

    def start(line: Line) -> tuple[Problem, Parameters]:
        problem = weighted_problem(line.label, X, y, lambda_p, strength)
        return problem, start_of(problem, seed)

    def value(last: Snapshot) -> float:
        return last.loss + strength * weights_l1(last.parameters)

    def ending(line: Line, own: Mapping[str, Any], course: Sequence[Row], last: Snapshot) -> Row:
        return {"epoch": last.epoch, "settled": settled(course), "status": courses.reason(last)}

    lines, seconds = [Line(name, METHODS[name].solver) for name in WEIGHTED], repro.settings["seconds"]
    yield from race(repro, panel, seed, data, lines, start, value, ending, seconds, traced=traced)


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


def weighted_ends(tables: Tables, panel: str, column: str) -> dict[str, list[float]]:
    """Return a column of the table "ends" by method, for the starts from which all have ended."""
    seeds = courses.starts(tables, panel, dict.fromkeys(WEIGHTED, 1))
    rows = [row for seed in seeds for row in rows_where(tables, "ends", panel=panel, seed=seed)]
    return grouped(rows, "method", column)


def _judge_fig5(tables: Tables, settings: Settings) -> Iterator[Finding]:
    strengths = settings["lambda"]
    for strength in strengths:
        ends = {
            setting: weighted_ends(tables, f"{setting}, λ = {strength:g}", "objective")
            for setting in (INTERACTIONS, FEATURES)
        }
        for words, methods in _READINGS.items():
            case = f"λ = {strength:g}, {words}"
            some = {
                setting: {name: by_method[name] for name in methods if by_method}
                for setting, by_method in ends.items()
            }
            yield "ti_lowest", case, _lowest(("TI",), some[INTERACTIONS])
            if strength == max(strengths):
                yield "remarkable", case, _remarkable(some[INTERACTIONS])
            yield "both_lowest", case, _lowest(PROPOSED, some[FEATURES])
        times = weighted_ends(tables, f"{FEATURES}, λ = {strength:g}", "settled")
        medians = {method: median(times[method]) for method in WEIGHTED if times}
        fastest = times and max(medians[m] for m in PROPOSED) < min(medians[m] for m in _OTHERS)
        words = f"Median seconds to within {SHARE:.0%} of the own end: {_by_method(medians, ' s')}"
        yield "both_fastest", f"λ = {strength:g}", times and (verdict(bool(fastest)), words)


def _lowest(first: Sequence[str], ends: Mapping[str, Sequence[float]]) -> Said | None:
    if not ends:
        return None
    others = [ends[method] for method in ends if method not in first]
    own = map(max, *(ends[method] for method in first)) if len(first) > 1 else ends[first[0]]
    gaps = [min(theirs) / mine - 1.0 for mine, *theirs in zip(own, *others, strict=True)]
    said, wins, _ = by_balance(gaps, _SAME_END)
    means = {method: fmean(values) for method, values in ends.items()}
    ended = "TI ends" if len(first) == 1 else "TI and CS end"
    words = f"{ended} below all others on {wins} of {len(gaps)} data sets. Mean ends: {_by_method(means)}"
    return said, words


def _remarkable(ends: Mapping[str, Sequence[float]]) -> Said | None:
    if not ends:
        return None
    means = {method: fmean(values) for method, values in ends.items()}
    second = min((method for method in means if method != "TI"), key=means.__getitem__)
    lead = means[second] / means["TI"] - 1.0
    words = f"The lowest mean end of the others, of {second}, lies {lead:+.1%} from that of TI."
    return verdict(lead >= _REMARKABLE), words


def _by_method(values: Mapping[str, float], unit: str = "") -> str:
    return listed(values.items(), f"{{}} {{:.4g}}{unit}") + "."


# Whose epochs grow with which power of d.
_POWERS = {"linear": (1, SPARSE), "quadratic": (2, OMEGA), "cubic": (3, ("SLQR",))}
# How far a fitted exponent may be from that of the statement, and up to which ratio two lines overlap.
_NEAR, _OVERLAP = 0.3, 1.5
_SLOWER, _SLOWER_AT = 100.0, 4_000


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
    sizes = sorted(settings["d"])
    times = {
        (method, d): [row["seconds"] for row in rows_where(tables, "times", method=method, d=d)]
        for method, d in product(WEIGHTED, sizes)
    }
    if not all(times.values()):
        yield from ((key, "all", None) for key in (*_POWERS, "slqr", "overlap"))
        return
    means = {method: {d: fmean(times[method, d]) for d in sizes} for method in WEIGHTED}
    for key, (power, methods) in _POWERS.items():
        for method in methods:
            words = ", ".join(f"{seconds:.3g} s at d = {d:,}" for d, seconds in means[method].items())
            if len(sizes) < 2:
                yield key, method, ("not settled", f"One size says nothing of growth: {words}.")
                continue
            slope = float(np.polyfit(np.log(sizes), np.log(list(means[method].values())), 1)[0])
            words = f"The fitted exponent of d is {slope:.2f}: {words}."
            yield key, method, (verdict(abs(slope - power) <= _NEAR), words)
    d = sizes[-1]
    at = {method: course[d] for method, course in means.items()}
    least = at["SLQR"] / max(at[method] for method in SPARSE)
    words = f"SLQR takes {least:.3g} times as long as the slowest of the four. One epoch: "
    # Smaller sizes can confirm the statement, but not refute it.
    slower = least > _SLOWER or (False if d >= _SLOWER_AT else None)
    yield "slqr", f"d = {d:,}", (verdict(slower), words + _by_method(at, " s"))
    for first, second in (("TI", "L1"), ("CS", "L21")):
        ratios = {d: means[first][d] / means[second][d] for d in sizes}
        near = all(1.0 / _OVERLAP <= ratio <= _OVERLAP for ratio in ratios.values())
        words = ", ".join(f"{ratio:.2f} at d = {d:,}" for d, ratio in ratios.items())
        words = f"{first} takes so many times as long as {second}: {words}."
        yield "overlap", f"{first} and {second}", (verdict(near), words)


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
# Of the steps η₀ it is the largest that usually diverged.
_LARGE_STEP = 1.0


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
        label = courses.label_of(line, own)
        return {"label": label, "eta0": own.get("eta0"), "epochs": last.epoch, "diverged": diverged}

    begin, value = lambda line: (problem, start), lambda last: scale * last.objective
    yield from race(repro, panel, seed, data, lines, begin, value, ending, seconds)


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
    return Problem.build(
        X / np.sqrt(d),
        y / d,
        penalty=LETTERS[letter][1],
        rank=RANK,
        lambda_p=strength / d**2,
        lambda_sparse=strength / d**2,
        fit_linear=False,
        fit_intercept=False,
    )


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
    def times(letter: str, n: int) -> Times | None:
        needed = n_runs(racers(LETTERS[letter][1], settings["eta0"], mini_batches=False))
        return median_times(tables, panel_of_fig8(letter, n), needed)

    few, many = min(settings["N"]), max(settings["N"])
    yield "coordinate", panel_of_fig8("a", few), sooner(times("a", few), COORDINATE, BATCH, MUCH)
    for letter in LETTERS:
        said = sooner(times(letter, many), STOCHASTIC, (*COORDINATE, *BATCH))
        yield "stochastic", panel_of_fig8(letter, many), said


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
        yield "coordinate", panel, sooner(times, COORDINATE, BATCH, MUCH)
        yield "stochastic", panel, times and _not_faster(times)
        yield "mini_batches", panel, times and _helped(times)
        if panel != f"{A9A}, CS":
            yield "behind", panel, sooner(times, COORDINATE, MINI_BATCHES)
    large = [row for row in tables.get("ends", ()) if row["eta0"] == _LARGE_STEP]
    risen = sum(row["diverged"] for row in large)
    words = f"{risen} of {len(large)} runs diverged, or ended above their start."
    yield "diverges", "all", large and (by_majority(risen, len(large)), words)


def _not_faster(times: Times) -> Said:
    batch = [name for name in (*COORDINATE, *BATCH) if name in times["early"]]
    ends = [[min(each[name] for name in group) for group in (STOCHASTIC, batch)] for each in times.values()]
    reached = [stochastic >= other for stochastic, other in ends if min(stochastic, other) < np.inf]
    return agreed(reached), in_words(times, (*STOCHASTIC, *batch))


def _helped(times: Times) -> Said:
    pairs = zip(MINI_BATCHES, STOCHASTIC, strict=True)
    each: set[Verdict] = {courses.ahead(times, (small,), (name,)) for small, name in pairs}
    return each.pop() if len(each) == 1 else "not settled", in_words(times, (*MINI_BATCHES, *STOCHASTIC))


# ---------------------------------------------------------------------------------------------------- table 3

LIMITED, FREE = "table3a", "table3b"
# Up to this difference of RMSE or AUC nothing is settled.
_SAME_SCORE = 2e-4
# Absolute deviation of a score that is tolerated, and relative ones of counts.
_TOLERANCE, _COUNT = 0.003, {LIMITED: 0.046, FREE: 0.1}
_STRENGTHS = ("lambda_w", "lambda_p", "lambda_sparse")
_FIXED = ("split_seed", "drawn", "rank", "init_scale", "epochs", "tol", "target", "accept", "narrowest")
PRINTED_SETS = (ML100K, A9A, RCV1, FD)
PRINTED: dict[str, dict[str, list[list[float]]]] = declared("atarashi2021_table3")["printed"]


def problem_of_table3(trial: Row, own: Settings) -> Problem:
    """Return the problem of the training rows; `own` are the settings of all fits."""
    X, y = parts(trial["data"], own["split_seed"], own["drawn"]).train
    strengths = {name: trial[name] for name in _STRENGTHS}
    return Problem.build(X, y, penalty=METHODS[trial["method"]].regularizer, rank=own["rank"], **strengths)


def scored(problem: Problem, end: Snapshot, split: Parts) -> Row:
    """Return the scores of a fit, and how many interactions it uses."""

    def score(design: Design, y: np.ndarray) -> float:
        return quality(y, problem.model.predict(design, end.parameters))["auc" if split.highest else "rmse"]

    scores = {"validation": score(*split.validation), "score": score(*split.test)}
    about = {"used": end.used_interactions, "epochs": end.epoch, "seconds": end.seconds}
    return {**scores, **about, "status": courses.reason(end)}


def fit(trial: Row, own: Settings) -> Row:
    """Fit the training rows from one start."""
    problem, rng = problem_of_table3(trial, own), np.random.default_rng([trial["seed"], 1])
    budget = Budget(own["epochs"], tol=own["tol"], report_every=None)
    *_, end = iterate(problem, "auto", budget, init_scale=own["init_scale"], rng=rng)
    return scored(problem, end, parts(trial["data"], own["split_seed"], own["drawn"]))


def search(trial: Row, own: Settings) -> Row:
    """Return the same of the fit at which a search for λ ends; without a score where it finds nothing."""
    problem = problem_of_table3(trial, own)
    limits = {
        "grid": tuple(trial["bracket"]),
        "narrowest": own["narrowest"],
        "budget": Budget(own["epochs"], tol=own["tol"], report_every=None),
    }
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
    own = {name: settings[name] for name in _FIXED}
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
        for labels, row in repro.trials("fit", fit, trials, columns, own=own):
            repro.row(table, **{**labels, **row})
            yield f"{name}: {labels['method']}, λ = {labels['lambda_sparse']:g}, start {labels['seed']}"

    for name in names:
        yield f"Loading {name}"
        split = parts(name, own["split_seed"], own["drawn"])
        (design, y), score = split.train, "AUC" if split.highest else "RMSE"
        live = int(np.count_nonzero(np.diff(design.columns.indptr)))
        sizes = {"validation": split.validation[1].size, "test": split.test[1].size}
        repro.use(name, design.matrix, y, **sizes, features_in_training=live, score=score)
        first = [trial(FM, seed, w, p) for seed in tuning for w, p in pairs]
        kinds = [{**first[0], "method": method} for method in (FM, *SPARSE)]
        yield from repro.ready(fit, kinds, lambda labels: labels["method"], own={**own, "epochs": 1})
        yield from fits("fm", first)
        chosen = best_row(repro.tables["fm"], name, FM, split.highest)
        w, p = chosen["lambda_w"], chosen["lambda_p"]
        yield from fits("fm", [trial(FM, seed, w, p) for seed in seeds[len(tuning) :]])
        p /= 10.0
        yield from fits(
            "grid", [trial(m, seed, w, p, x) for m in SPARSE for x in settings["grid"] for seed in seeds]
        )
        todo = []
        for labels in [trial(method, seed, w, p) for method in SPARSE for seed in seeds]:
            mine = rows_where(
                repro.tables, "grid", **{key: labels[key] for key in ("data", "method", "seed")}
            )
            used = {row["lambda_sparse"]: row["used"] for row in mine if row["used"] is not None}
            if bracket := bracket_of(used, own["accept"]):
                todo.append({**labels, "bracket": bracket})
                continue
            repro.done += 1
            words = "The grid holds no two strengths between which the wanted number could lie."
            repro.row("search", **labels, score=None, used=None, probes=0, message=words)
        for labels, row in repro.trials("search", search, todo, columns, own=own):
            repro.row("search", **{**{k: v for k, v in labels.items() if k != "bracket"}, **row})
            yield f"{name}: {labels['method']}, search, start {labels['seed']}"
        _conclude(repro, name, split.highest)
        yield f"{name} is done"


FM = "FM"


def best_row(rows: Sequence[Row], data: str, method: str, highest: bool) -> Row:
    """Return the first row at the strengths with the best mean validation score, or raise ValueError."""
    groups: dict[tuple[float, ...], list[Row]] = {}
    for row in rows:
        if row["data"] == data and row["method"] == method:
            groups.setdefault(tuple(row[name] for name in _STRENGTHS), []).append(row)
    usable = [group for group in groups.values() if all(row["validation"] is not None for row in group)]
    if not usable:
        raise ValueError(f"No strengths worked for {method} on {data}.")
    return (max if highest else min)(usable, key=lambda group: _mean(group, "validation"))[0]


def _conclude(repro: Reproduction, name: str, highest: bool) -> None:
    """Fill the tables of the paper: means over the starts."""

    def add(table: str, method: str, rows: Sequence[Row], reached: bool = True) -> None:
        def mean(column: str, how: Any = np.mean) -> float | None:
            return float(how([row[column] for row in rows])) if reached else None

        scores = {"score": mean("score"), "spread": mean("score", np.std), "used": mean("used")}
        starts = {"starts": len(rows), "reached": sum(row["score"] is not None for row in rows)}
        strength = mean("lambda_sparse")
        repro.row(table, data=name, method=method, **scores, lambda_sparse=strength, **starts)

    for method in SPARSE:
        rows = rows_where(repro.tables, "search", data=name, method=method)
        # As in the paper, a method that misses the range is given no score.
        add(LIMITED, method, rows, all(row["score"] is not None for row in rows))
    for method in (*SPARSE, FM):
        table = "fm" if method == FM else "grid"
        at = best_row(repro.tables[table], name, method, highest)
        strengths = {key: at[key] for key in _STRENGTHS}
        add(FREE, method, rows_where(repro.tables, table, data=name, method=method, **strengths))


def _judge_table3(tables: Tables, settings: Settings) -> Iterator[Finding]:
    every = [row["data"] for row in rows_where(tables, FREE, method=FM)]
    if not every:
        keys = ("proposed", "ti", "margins", "reach", "fm", "partial")
        yield from ((key, "all data", None) for key in keys)
    singles = [name for name in every if name in (ML100K, A9A)] or every[:1]
    for name in every:
        data = rows_where(tables, "data", data=name)[0]
        fm = rows_where(tables, FREE, data=name, method=FM)[0]
        printed = {table: _printed(table, name) for table in (LIMITED, FREE)}
        live = data["features_in_training"]
        possible = live * (live - 1) // 2
        for table in (LIMITED, FREE):
            rows = {row["method"]: row for row in rows_where(tables, table, data=name)}
            scores = {method: row["score"] for method, row in rows.items() if row["score"] is not None}
            case = f"{name}, {table[-2:]}"
            yield "proposed", case, _compared(scores, data["score"], PROPOSED, ("L1", "L21", FM))
            if name not in PRINTED_SETS:
                yield "margins", case, _NOT_PRINTED
            else:
                gaps = [
                    (method, score - fm["score"], printed[table][method] - printed[FREE][FM])
                    for method, score in scores.items()
                    if method != FM and method in printed[table]
                ]
                near = all(abs(ours - theirs) <= _TOLERANCE for _, ours, theirs in gaps)
                words = f"Above FM, in brackets as printed: {listed(gaps, '{} {:+.5f} ({:+.5f})') or 'none'}."
                yield "margins", case, (verdict(near if gaps else None), words)
            if table == FREE:
                for method in PROPOSED:
                    used = rows[method]["used"]
                    some = used == 0 if (name, method) == (FD, "CS") else 0 < used < possible
                    words = f"It uses {used:,.1f} of {possible:,} interactions."
                    yield "partial", f"{name}, {method}", (verdict(some), words)
                continue
            if name in singles:
                yield "ti", name, _compared(scores, data["score"], ("TI",), ("CS", "L1", "L21"))
            reached = listed((m, f"{row['reached']} of {row['starts']}") for m, row in rows.items())
            words = f"Starts from which the range was reached: {reached}."
            if name not in PRINTED_SETS:
                yield "reach", name, ("not settled", f"{_NOT_PRINTED[1]} {words}")
            else:
                yield "reach", name, (verdict(set(scores) == set(printed[table])), words)
        words = (
            f"FM uses {fm['used']:,.1f} of the {possible:,} pairs of the {live:,} features of the training"
        )
        words = f"{words} rows."
        yield "fm", name, (verdict(fm["used"] == (0 if name == RCV1 else possible)), words)


_NOT_PRINTED: Said = "not settled", "Not a data set of the paper."


def _printed(table: str, data: str) -> dict[str, float]:
    if data not in PRINTED_SETS:
        return {}
    cells = {method: row[PRINTED_SETS.index(data)] for method, row in PRINTED[table].items()}
    return {method: cell[0] for method, cell in cells.items() if cell}


def _compared(scores: Mapping[str, float], score: str, first: Sequence[str], others: Sequence[str]) -> Said:
    sign = 1.0 if score == "AUC" else -1.0
    words = f"{score}: {listed(scores.items(), '{} {:.5f}') or 'none'}."
    mine, theirs = ([sign * scores[m] for m in group if m in scores] for group in (first, others))
    if not mine or not theirs:
        return "not settled", f"Not both have a score. {words}"
    gap = max(mine) - max(theirs)
    return verdict(None if abs(gap) <= _SAME_SCORE else gap > 0), f"Ahead by {gap:+.5f}. {words}"


def _published() -> Iterator[Published]:
    for table, methods in PRINTED.items():
        for column, name in enumerate(PRINTED_SETS):
            for method, cells in methods.items():
                if cell := cells[column]:
                    of, source = {"data": name, "method": method}, f"Table {table[-2:]}"
                    yield Published(table, of, "score", cell[0], source, _TOLERANCE / cell[0])
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
    figure("atarashi2021_fig4", fig4, _judge_fig4, above=_ABOVE, share=_SHARE),
    figure("atarashi2021_fig5", fig5, _judge_fig5, same=_SAME_END, remarkable=_REMARKABLE, stay=SHARE),
    figure("atarashi2021_fig6", fig6, _judge_fig6, near=_NEAR, overlap=_OVERLAP),
    figure("atarashi2021_fig7", fig7, _judge_fig7),
    figure("atarashi2021_fig8", fig8, _judge_fig8),
    figure("atarashi2021_fig9", fig9, _judge_fig9),
    figure("atarashi2021_fig10", fig10, _judge_fig10),
    figure("atarashi2021_table3", table3, _judge_table3, published=_published(), tolerance=_TOLERANCE),
)
