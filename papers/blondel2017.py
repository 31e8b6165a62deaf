"""Figures and tables of Blondel, Niculae, Otsuka & Ueda (2017)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice, product
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.engine.design import Design, augmented
from fmviz.engine.models import get_model
from fmviz.engine.parameters import Parameters
from fmviz.engine.penalties import OUTPUT_PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.shared_basis.gradients import BasisGradient
from fmviz.engine.shared_basis.output_layer import largest_strength
from fmviz.engine.shared_basis.selection import select
from fmviz.engine.solvers import Solver, get_solver
from fmviz.engine.target import Target
from fmviz.lab.papers import Row, Tables, Verdict
from fmviz.lab.runner import load_dataset
from fmviz.metrics import ndcg, rmse
from papers.base import Artefact, Judge, declared, figure, rows_of
from papers.judging import Finding, Said, agreed, frame, listed, majority, margin, names_of, pivot, rows_where
from papers.reproduction import Rows, Settings, use

SETS = declared("blondel2017")["sets"]
SEGMENT, VOWEL_TEST, VOWEL_TRAIN, SATIMAGE, LETTER, WINE, PLANTED, MOVIELENS = SETS
# The four data sets of the tables.
COMPARED = (SEGMENT, VOWEL_TEST, SATIMAGE, LETTER)
PENALTIES = {"ℓ₁": "l1", "ℓ₁/ℓ₂": "l1_l2", "ℓ₁/ℓ∞": "l1_linf"}
L1, *GROUPS = PENALTIES
OUTPUT, BOTH, RANDOM_START = "output layer", "both layers", "random start"
LAYERS = (OUTPUT, BOTH)
LINEAR, KERNEL, ONE_BY_ONE, NYSTROEM = "linear", "kernel SVM", "one-versus-rest", "Nyström"


# ------------------------------------------------------------------------------------------------------- data


Split = Sequence[tuple[np.ndarray, np.ndarray]]
"""A split into training rows (half), validation rows and test rows (a quarter each): X and y."""


@lru_cache(maxsize=4)
def split_of(data: str, seed: int) -> Split:
    """Return a stratified split of one of `SETS`, with features scaled to [−1, 1] on the training rows."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import MinMaxScaler

    dataset = load_dataset(**SETS[data])
    X, y = np.asarray(dataset.X), dataset.y
    train, others = train_test_split(np.arange(y.size), test_size=0.5, random_state=seed, stratify=y)
    chosen, test = train_test_split(others, test_size=0.5, random_state=seed, stratify=y[others])
    X = MinMaxScaler((-1.0, 1.0)).fit(X[train]).transform(X)
    return [(X[rows], y[rows]) for rows in (train, chosen, test)]


# The dummy feature provides linear weights and biases.
_NETWORK: Mapping[str, Any] = {"model": "shared_basis", "fit_linear": False, "fit_intercept": False}


def problems(split: Split, **about: Any) -> list[Problem]:
    """Return the problems of the training, validation and test rows, with a dummy feature 1."""
    labels = np.unique(split[0][1])
    given = {**_NETWORK, **about}
    return [Problem.build(augmented(X), Target(y, "class", labels), **given) for X, y in split]


def classes_of(data: str) -> tuple[str, Row]:
    """Return the row of a data set in use."""
    X, y = map(np.concatenate, zip(*split_of(data, 0), strict=True))
    return use(data, X, y, classes=len(np.unique(y)))


# --------------------------------------------------------------------------------------------------- machines

Point = tuple[float, ...]
"""An intermediate machine: its λ, number of bases, and validation and test accuracies in percent."""


def settings_of(settings: Settings, data: str) -> Settings:
    """Return the settings for a data set; letter has more bases."""
    return {**settings, "units": settings["units_letter"]} if data == LETTER else settings


def epochs_of(own: Settings) -> int:
    """Return the number of additions of bases, a few more than necessary, since some bases are dropped."""
    return -(-own["units"] // own["bases"]) + 2


def added(
    problem: Problem, solver: Solver, rng: np.random.Generator, epochs: int
) -> Iterator[tuple[Parameters, float]]:
    """Yield the parameters before and after every epoch of added bases, with the change."""
    run = solver.on(problem)
    run.start(problem.start(0.0, rng), rng)
    yield run.parameters(), np.inf
    for _ in range(epochs):
        change = run.epoch()
        yield run.parameters(), change


def path(
    problem: Problem, strengths: Iterable[float], solver: Solver, rng: np.random.Generator, epochs: int
) -> Iterator[tuple[float, int, Parameters]]:
    """Yield λ, the number of bases and the machine after every epoch, for successive λ.

    Each λ starts without a basis. Its run ends when `rank` bases are in use, or an epoch changes nothing.
    """
    for strength in strengths:
        steps = added(problem.at(lambda_sparse=strength), solver, rng, epochs)
        for end, change in islice(steps, 1, None):
            bases = int(np.count_nonzero(end["V"].any(axis=1)))
            yield strength, bases, end
            if change <= 1e-9 or bases == problem.rank:
                break


def accuracy(problem: Problem, end: Parameters) -> float:
    """Return the accuracy of the class with the largest score, in percent."""
    return 100.0 * float(np.mean(problem.target.chosen(problem.predict(end)) == problem.y))


def _shared(
    seed: int,
    split: Split,
    own: Settings,
    penalty: str,
    refit: str = "output",
    loss: str = "logistic",
    way: str = "ours",
) -> Iterator[Point]:
    """Yield the machines on a shared basis of every λ, epoch by epoch."""
    build = partial(problems, split, loss=loss, rank=own["units"])
    train, *others = build(penalty=penalty)
    # ‖V‖² has no threshold.
    top = largest_strength(build(penalty="l1_l2")[0] if OUTPUT_PENALTIES[penalty].smooth else train)
    solver, epochs = _solver(own, refit), epochs_of(own)
    if way == "random":
        solver, epochs = get_solver("projected_gradient", {"steps": 300}), 1
    elif way == "published":
        about = {"bases": 1, "accuracy": 1e-3, "selection": "refine", "inner": "fista"}
        solver, epochs = get_solver("conditional_gradient", {"refit": refit, **about}), own["units"]
    strengths, rng = [share * top for share in own["shares"]], np.random.default_rng([seed, 1])
    for strength, bases, end in path(train, strengths, solver, rng, epochs):
        yield strength, bases, *(accuracy(other, end) for other in others)


def _solver(own: Settings, refit: str = "output", bases: int = 0) -> Solver:
    about = {"refit": refit, "bases": bases or own["bases"], "accuracy": own["accuracy"]}
    return get_solver("conditional_gradient", about)


def _one_by_one(seed: int, split: Split, own: Settings) -> Iterator[Point]:
    """Yield one-versus-rest networks under ℓ1, all at a common share of their λ_max."""
    (X, y), *others = split
    about = {"loss": "logistic", "penalty": "l1", "rank": own["units"], **_NETWORK}
    signs = (np.where(y == label, 1.0, -1.0) for label in np.unique(y))
    networks = [Problem.build(augmented(X), each, **about) for each in signs]
    designs = [Design(augmented(Z)) for Z, _ in others]
    for share in own["shares"]:
        # Bases, and predictions for other rows, by class and epoch.
        courses = []
        for problem in networks:
            strengths, rng = [share * largest_strength(problem)], np.random.default_rng([seed, 1])
            steps = path(problem, strengths, _solver(own), rng, epochs_of(own))
            predict = problem.model.predict
            courses.append(
                [(bases, *(predict(design, end) for design in designs)) for _, bases, end in steps]
            )
        for epoch in range(max(map(len, courses))):
            bases, *predicted = zip(*(course[min(epoch, len(course) - 1)] for course in courses), strict=True)
            pairs = zip(predicted, others, strict=True)
            yield (
                share,
                sum(bases),
                *(100.0 * float(np.mean(np.argmax(f, axis=0) == t)) for f, (_, t) in pairs),
            )


def _peer(seed: int, split: Split, own: Settings, method: str) -> Iterator[Point]:
    """Yield a scikit-learn classifier for every C and, if applicable, for several numbers of bases."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    # (⟨x, x'⟩ + 1)².
    square: dict[str, Any] = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}
    (X, y), *others = split
    sizes = range(own["bases"], min(own["units"], y.size) + 1, own["bases"]) if method == NYSTROEM else (0,)
    for bases, C in product(sizes, (10.0**e for e in range(-2, 5))):
        machine: Any = SVC(C=C, **square)
        if method == LINEAR:
            machine = LogisticRegression(C=C, max_iter=1000)
        elif method == NYSTROEM:
            features = Nystroem(**square, n_components=bases, random_state=seed)
            machine = make_pipeline(features, LogisticRegression(C=C, max_iter=300))
        machine.fit(X, y)
        right = [100.0 * float(machine.score(*rows)) for rows in others]
        yield C, int(machine.n_support_.sum()) if method == KERNEL else bases, *right


MACHINES: dict[str, Callable[[int, Split, Settings], Iterable[Point]]] = {
    **{name: partial(_shared, **about) for name, about in declared("blondel2017")["machines"].items()},
    **{method: partial(_peer, method=method) for method in (LINEAR, KERNEL, NYSTROEM)},
    ONE_BY_ONE: _one_by_one,
}
"""Generators of intermediate machines by name; the seed determines split and start."""


def validated(own: Settings, data: str, method: str, seed: int, sizes: Iterable[int] = (0,)) -> Rows:
    """Fit a method to a split: rows of "test".

    Selects the intermediate machine with the highest validation accuracy within the allowed number of bases,
    ties by the fewest bases; 0 allows any number.
    """
    yield classes_of(data)
    begin = time.process_time()
    points = list(MACHINES[method](seed, split_of(data, seed), settings_of(own, data)))
    seconds = time.process_time() - begin
    for size in sizes:
        allowed = [point for point in points if not size or point[1] <= size]
        best = max(allowed, key=lambda point: (point[2], -point[1]), default=[None] * 4)
        at = dict(zip(("strength", "used", "validation", "score"), best, strict=True))
        yield "test", {"data": data, "method": method, "seed": seed, "bases": size, **at, "seconds": seconds}


def scores(tables: Tables, data: str, column: str = "score", **where: Any) -> pd.DataFrame:
    """Return a column of the table "test" by the seed of the split and the method."""
    return pivot(tables, "test", column, data=data, **where)


def gaps(table: pd.DataFrame, first: str, second: str) -> pd.Series:
    """Return the difference of two columns for rows with both."""
    both = table.reindex(columns=[first, second]).dropna()
    return both[first] - both[second]


# --------------------------------------------------------------------------------------------------- figure 2

SELECTIONS: dict[str, str] = declared("blondel2017_fig2")["selections"]
EIGEN, REFINED, RANDOM_REFINED, START, DATA, RANDOM = SELECTIONS
EARLY, LATE = "early", "late"


def fig2(own: Settings, data: str, seed: int) -> Rows:
    """Select bases by every method at every state of one run, under ℓ1/ℓ∞."""
    yield classes_of(data)
    train, *_ = problems(split_of(data, seed), loss="logistic", penalty="l1_linf", rank=2 * own["iterations"])
    train = train.at(lambda_sparse=own["share"] * largest_strength(train))
    rng = np.random.default_rng([seed, 1])
    for step, (at, _) in enumerate(added(train, _solver(own, bases=1), rng, own["iterations"] - 1)):
        gradient = BasisGradient(train.design, train.slope(train.predict(at)), True)
        best = float(select(gradient, 1.0, "exact", 1, rng)[1][0])
        stage = EARLY if step < own["early"] else LATE
        place = {"panel": data, "seed": seed, "iteration": step + 1, "stage": stage}
        for method, how in SELECTIONS.items():
            value = float(select(gradient, 1.0, how, 1, rng)[1][0])
            yield "ratios", {**place, "method": method, "y": value / best}


def _judge_fig2(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for name, stage in product(names_of(tables, settings), (EARLY, LATE, "all")):
        rows = frame(tables, "ratios", panel=name, **({} if stage == "all" else {"stage": stage}))
        if rows.empty or rows["method"].nunique() < len(SELECTIONS):
            continue
        case, medians = f"{name}, {stage}", rows.groupby("method", sort=False)["y"].median()
        at = medians[REFINED]
        yield "nearly", case, (at >= settings["nearly"], {"medians": listed(medians.items(), "{} {:.3f}")})
        for key, other, least in (
            ("over_random", RANDOM_REFINED, 0.0),
            ("over_start", START, 0.0),
            ("data", DATA, settings["far"]),
        ):
            lead = at - medians[other]
            holds = None if abs(lead) <= settings["same"] else lead > least
            yield key, case, (holds, {"at": at, "other": other, "median": medians[other]})


# --------------------------------------------------------------------------------------------------- figure 3

REFITTED = [f"{title}, {OUTPUT}" for title in PENALTIES]
# Minimum number of bases from which the groups are ahead, as printed.
FROM = {VOWEL_TEST: 20, VOWEL_TRAIN: 20, LETTER: 75}


def sizes_of_fig3(method: str, own: Settings) -> Sequence[int]:
    """Return the numbers of bases of the points of a method."""
    return (0,) if method in (KERNEL, LINEAR) else range(own["bases"], own["units"] + 1, own["bases"])


def fig3(own: Settings, data: str, method: str, seed: int) -> Rows:
    """Fit a penalty, or a baseline, at every number of bases."""
    return validated(own, data, method, seed, sizes_of_fig3(method, settings_of(own, data)))


def _judge_fig3(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for name in names_of(tables, settings):
        sizes = sizes_of_fig3(REFITTED[0], settings_of(settings, name))
        # By split and number of bases.
        rows = frame(tables, "test", data=name).reindex(columns=["seed", "bases", "method", "score", "used"])
        by_split = rows.pivot_table("score", ["seed", "bases"], "method")
        first = FROM.get(name, 0)

        def lead(method: str, other: str, least: int = 0, by_split: pd.DataFrame = by_split) -> pd.Series:
            """Return the mean lead of a method over all numbers of bases, per split."""
            gap = gaps(by_split, method, other).unstack()
            return gap.loc[:, gap.columns >= least].dropna().mean(axis=1)

        titles = {machine: f"{name}, {machine.split(',')[0]}" for machine in REFITTED}
        for machine in REFITTED[1:] if first else ():
            yield "groups", titles[machine], margin(lead(machine, REFITTED[0], first))
        means = by_split.groupby(level="bases").mean().reindex(index=sizes, columns=REFITTED)
        spreads = (means.max(axis=1) - means.min(axis=1))[means.notna().all(axis=1)]
        if name in (SEGMENT, SATIMAGE) and len(spreads):
            yield "similar", name, majority(spreads <= settings["same"], most=spreads.max())
        for machine, title in titles.items():
            yield "nystroem", title, margin(lead(machine, NYSTROEM), settings["much"])
        kernel = rows[rows["method"] == KERNEL]
        if kernel.empty:
            continue
        goal, vectors = kernel["score"].mean(), kernel["used"].mean()
        bases = means.index[means.max(axis=1) >= goal - settings["same"]].min()
        few = not bases < 100 if name == LETTER else bases <= settings["few"] * vectors
        known = name in (*FROM, SATIMAGE)
        words = {
            "odd": "" if known else "Not covered by the paper. ",
            "bases": "more than the maximum number of" if np.isnan(bases) else bases,
        }
        yield "kernel", name, (few if known else None, {**words, "goal": goal, "vectors": vectors})


# --------------------------------------------------------------------------------------------------- figure 4

DRAWN = "drawn ratings"
MEASURES = ("RMSE", "nDCG@1", "nDCG@5")
FM, PN, BIASES = "one output, FM", "one output, PN", "biases alone"
RATERS: dict[str, dict[str, Any]] = declared("blondel2017")["raters"]


def fig4(own: Settings, data: str, method: str, seed: int) -> Rows:
    """Fit ratings, as numbers or levels: rows of "test" and "lines" with `MEASURES`."""
    rater, (X, y) = RATERS[method], rows_of(SETS, data, own["drawn"])
    # Users and items are one-hot, users first.
    user = sp.csr_array(X).indices.reshape(-1, 2).min(axis=1)
    yield use(data, X, y, users=len(np.unique(user)))
    n, levels, has_levels = y.size, np.unique(y), rater.get("levels", True)
    train, chosen, test = np.split(np.random.default_rng([seed, 0]).permutation(n), [n // 2, n // 2 + n // 4])
    on_chosen, on_test = (Design(X[rows]) for rows in (chosen, test))
    problem = Problem.build(
        X[train],
        np.where(y[train, None] <= levels[:-1], 1.0, -1.0) if has_levels else y[train],
        loss="logistic" if has_levels else "squared",
        penalty=rater["penalty"],
        model=get_model("shared_basis", {"kernel": rater.get("kernel", "anova")}),
        rank=own["units"],
        fit_linear=True,
        fit_intercept=True,
    )

    def predicted(design: Design, end: Parameters) -> Any:
        f = problem.model.predict(design, end)
        if not has_levels:
            return f
        at_most: Any = problem.loss.probability(f)
        return Target(y[:0], "ordinal", levels).probabilities(at_most) @ levels

    def score(end: Parameters) -> float:
        return -rmse(y[chosen], predicted(on_chosen, end))

    def course(at: Problem, strengths: Iterable[float], epochs: int) -> Iterator[tuple[Any, ...]]:
        steps = path(at, strengths, _solver(own), np.random.default_rng([seed, 1]), epochs)
        return ((score(step[-1]), *step) for step in steps)

    # With λ = 1,000 there is no basis, only biases.
    grid = own["ridges_of_levels" if has_levels else "ridges"]
    ends = {ridge: next(course(problem.at(lambda_w=ridge), [1e3], 1)) for ridge in grid}
    ridge = max(ends, key=lambda ridge: ends[ridge][0])
    at, way = problem.at(lambda_w=ridge), [ends[ridge]]
    if not rater.get("alone"):
        top = largest_strength(at)
        way += course(at, [share * top for share in own["shares"]], epochs_of(own))
    for size in range(own["bases"], own["units"] + 1, own["bases"]):
        allowed = (step for step in way if step[2] <= size)
        _, strength, bases, end = max(allowed, key=lambda step: (step[0], -step[2]))
        ours, truth = predicted(on_test, end), y[test]
        measured = [rmse(truth, ours), *(ndcg(truth, ours, at, user[test]) for at in (1, 5))]
        values = dict(zip(MEASURES, measured, strict=True))
        about = {"used": bases, "strength": strength, "lambda_w": ridge, **values}
        yield "test", {"data": data, "method": method, "seed": seed, "bases": size, **about}
        for measure, value in values.items():
            panel = measure if len(own["data"]) < 2 else f"{data}: {measure}"
            yield "lines", {"panel": panel, "method": method, "seed": seed, "x": size, "y": value}


def ends_of_fig4(tables: Tables) -> Iterator[Row]:
    """Yield means over the splits at the largest number of bases."""
    known = frame(tables, "test").reindex(columns=["data", "method", "bases", "used", *MEASURES])
    for (data, method), rows in known.groupby(["data", "method"], sort=False):
        rows = rows[rows["bases"] == rows["bases"].max()]
        values = rows[[*MEASURES, "used"]]
        place = {"data": data, "method": method, "splits": len(rows)}
        yield {**place, **values.mean(), **values.std().add_suffix(" std")}


def _judge_fig4(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for key, others, measures in (("single", (FM, PN), MEASURES), ("baselines", (BIASES,), MEASURES[1:])):
        for name, measure, method, other in product(
            names_of(tables, settings), measures, [f"{title}, several outputs" for title in GROUPS], others
        ):
            table = scores(tables, name, measure, bases=settings["units"])
            first, second = (other, method) if measure == "RMSE" else (method, other)
            against = other.removeprefix("one output, ")
            case = f"{name}, {measure}, {method.split(',')[0]} against {against}"
            yield key, case, margin(gaps(table, first, second), unit="")


# --------------------------------------------------------------------------------------------------- figure 5

REFITS = {OUTPUT: "output", BOTH: "full"}
OBJECTIVE, ACCURACY = "objective, relative difference", "accuracy"


def fig5(own: Settings, data: str, seed: int) -> Rows:
    """Refit the output layer, or both layers, basis by basis: objectives and accuracies."""
    yield classes_of(data)
    train, _, test = problems(split_of(data, seed), loss="logistic", penalty="l1_l2", rank=own["steps"])
    train = train.at(lambda_sparse=own["strength"] / len(train.y))
    points: list[Row] = []
    for method, refit in REFITS.items():
        course = added(train, _solver(own, refit, bases=1), np.random.default_rng([seed, 1]), own["steps"])
        for step, (end, _) in islice(enumerate(course), 1, None):
            values = {OBJECTIVE: train.objective(end), ACCURACY: accuracy(test, end)}
            points.append({"method": method, "seed": seed, "x": step, **values})
    lowest = min(point[OBJECTIVE] for point in points)
    for point in points:
        values = {OBJECTIVE: point.pop(OBJECTIVE) / lowest - 1.0, ACCURACY: point.pop(ACCURACY)}
        yield from (("lines", {"panel": f"{data}: {name}", **point, "y": y}) for name, y in values.items())


def _judge_fig5(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for name in names_of(tables, settings):
        objective, accuracy = (
            pivot(tables, "lines", "y", ["seed", "x"], panel=f"{name}: {quantity}").pipe(gaps, BOTH, OUTPUT)
            for quantity in (OBJECTIVE, ACCURACY)
        )
        if n := len(objective):
            behind = sum(objective > -settings["same"])
            yield "objective", name, (behind > 0, {"n": n, "behind": behind})
            yield "accuracy", name, margin(accuracy.groupby(level="seed").mean())


# --------------------------------------------------------------------------------------------- tables 2 and 4


def cells(tables: Tables, printed: Mapping[tuple[str, str], Row]) -> Iterator[Row]:
    """Yield means over the splits, with the printed numbers of a data set and a method."""
    rows = frame(tables, "test").reindex(columns=["data", "method", "score", "used"]).dropna()
    for (data, method), part in rows.groupby(["data", "method"], sort=False):
        (mean, bases), (std, bases_std), n = part.iloc[:, 2:].mean(), part.iloc[:, 2:].std(), len(part)
        own = {"accuracy": mean, "std": std, "error": std / n**0.5, "bases": bases, "bases_std": bases_std}
        value, printed_bases = map(printed.get((data, method), {}).get, ("accuracy", "bases"))
        near = None if value is None or n < 2 else bool(abs(value - mean) <= 2.0 * std + 1e-9)
        about = {"splits": n, "printed": value, "printed_bases": printed_bases, "within": near}
        yield {"data": data, "method": method, **own, **about}


def within(tables: Tables, name: str) -> Said | None:
    """Return a sentence on the printed accuracies within two standard deviations of ours."""
    rows = [row for row in rows_where(tables, "cells", data=name) if row["printed"] is not None]
    known = [row for row in rows if row["within"] is not None]
    if not known:
        return (None, "One split has no standard deviation.") if rows else None
    outside = [row for row in known if not row["within"]]
    form = "{method}: {accuracy:.1f} ± {std:.1f}, printed {printed:.2f}"
    each = ", ".join(form.format_map(row) for row in outside) or "none"
    return not outside, {"near": len(known) - len(outside), "n": len(known), "outside": each}


def _judge_table2(tables: Tables, settings: Settings) -> Iterator[Finding]:
    names = names_of(tables, settings)
    right = {name: scores(tables, name) for name in names}
    for name, table in right.items():
        yield "printed", name, within(tables, name)
        # Data sets with more than ten classes.
        for title in GROUPS if name in (VOWEL_TEST, VOWEL_TRAIN, LETTER) else ():
            before, after = (gaps(table, f"{title}, {layer}", f"{L1}, {layer}") for layer in LAYERS)
            yield "groups", f"{name}, {title}", margin(before)
            if len(before) and len(after):
                first, second = before.mean(), after.mean()
                closer = None if len(before) < 3 or first <= 0.0 else second < first
                yield "catches_up", f"{name}, {title}", (closer, {"first": first, "second": second})
        if name in (VOWEL_TEST, VOWEL_TRAIN):
            leads = gaps(table, f"ℓ₁/ℓ₂, {BOTH}", f"{L1}, {BOTH}")
            yield "still_better", name, margin(leads, settings["much"])
        bases = scores(tables, name, "used")
        for title in PENALTIES:
            case, leads = f"{name}, {title}", gaps(table, f"{title}, {OUTPUT}", ONE_BY_ONE)
            yield "one_by_one", case, margin(leads, settings["much"])
            layers = [f"{title}, {layer}" for layer in LAYERS]
            ours, theirs = (
                bases.reindex(columns=machines).stack().mean()
                for machines in (layers, [f"{title}, {RANDOM_START}"])
            )
            if ours > 0 and theirs > 0:
                numbers = {"ours": ours, "theirs": theirs}
                yield "sparser", case, (ours <= settings["sparser"] * theirs, numbers)
    for title, layer in product(PENALTIES, LAYERS):
        machine, other = f"{title}, {layer}", f"{title}, {RANDOM_START}"
        leads = {name: gaps(right[name], machine, other) for name in names}
        each = {name: said for name, lead in leads.items() if (said := margin(lead))}
        if not each:
            continue
        # Several readings of a data set of the paper count as one.
        readings: dict[str, list[Verdict]] = {name.partition(" (")[0]: [] for name in COMPARED}
        for name, (holds, _) in each.items():
            readings.setdefault(name.partition(" (")[0], []).append(holds)
        unsettled = all(holds == "not settled" for holds, _ in each.values())
        wins = (agreed(known) == "holds" if known else None for known in readings.values())
        parts = [f"{name}: {words[0].lower()}{words[1:-1]}" for name, (_, words) in each.items()]
        parts += [f"{name}: absent" for name, known in readings.items() if not known]
        holds, numbers = majority(wins, each="; ".join(parts))
        yield "random", machine, (None if unsettled else holds, numbers)


def _judge_table4(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for name in names_of(tables, settings):
        yield "printed", name, within(tables, name)
        right, seconds = scores(tables, name), scores(tables, name, "seconds").mean()
        for layer, title in product(LAYERS, PENALTIES):
            logistic = f"{title}, {layer}"
            hinge, case = f"{logistic}, squared hinge", f"{name}, {logistic}"
            leads = gaps(right, hinge, logistic)
            lead, error = leads.mean(), leads.sem()
            comparable = abs(lead) <= max(settings["same"], error)
            few = f"{len(leads)} splits are too few to estimate the spread."
            said = (comparable, {"lead": lead, "error": error}) if len(leads) >= 3 else (None, few)
            if len(leads):
                yield "comparable", case, said
            if {hinge, logistic} <= set(seconds.index):
                ours, theirs = seconds[hinge], seconds[logistic]
                numbers = {"ours": ours, "theirs": theirs, "ratio": theirs / ours}
                yield "faster", case, (settings["faster"] * ours <= theirs, numbers)


def _table(n: int, judging: Judge) -> Artefact:
    name = f"blondel2017_table{n}"
    printed = {(row["data"], row["method"]): row for row in declared(name)["printed"]}
    return figure(name, validated, judging, cells=partial(cells, printed=printed))


ARTEFACTS = (
    figure("blondel2017_fig2", fig2, _judge_fig2),
    figure("blondel2017_fig3", fig3, _judge_fig3),
    figure("blondel2017_fig4", fig4, _judge_fig4, ends=ends_of_fig4),
    figure("blondel2017_fig5", fig5, _judge_fig5),
    _table(2, _judge_table2),
    _table(4, _judge_table4),
)
