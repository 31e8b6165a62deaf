"""Figures of Blondel, Ishihata, Fujino & Ueda (2016)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.design import Design, augmented
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.interactions.conversion import to_expansion
from fmviz.engine.models import Lifted, PolynomialNetwork
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.datasets.drawn import text_like
from fmviz.lab.papers.base import declared, figure, load, rows_of
from fmviz.lab.papers.courses import Line, descend, in_words, median_times, n_runs, race, sooner
from fmviz.lab.papers.reproduction import Reproduction, Settings
from fmviz.lab.papers.tables import Row, Tables, frame, names_of, pivot, rows_where
from fmviz.lab.papers.verdicts import Finding, agreed, by_balance, by_majority, listed

SETS = declared("blondel2016")["sets"]
MOVIELENS, ABALONE, DIABETES = SETS
DRAWN = "drawn ratings"
KERNELS = {"anova": "A²", "polynomial": "H²"}
_BARE: Mapping[str, Any] = {"penalty": "l2", "fit_linear": False, "fit_intercept": False}


def halves(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows for training, ⌊share·n⌋ of them, and those for testing, in random order."""
    order = np.random.default_rng([seed, 0]).permutation(n)
    cut = int(share * n)
    return order[:cut], order[cut:]


# --------------------------------------------------------------------------------------------------- figure 1

SOLVERS = {"anova": "cd", "polynomial": "lbfgs"}
COEFFICIENTS = {"fitted": "fit λ", "ones": "λ = 1", "signs": "λ = ±1"}
AFTER = "fit λ after λ = 1 or ±1"
SCALES = {"unit": "columns of length 1", "standard": "standardised"}
TARGETS = {"raw": "target as it is", "centred": "target centred"}


def panel_of_fig1(kernel: str, features: str, target: str) -> str:
    """Return the name of a panel."""
    return f"{KERNELS[kernel]}, {SCALES[features]}, {TARGETS[target]}"


def rows_of_fig1(features: str, target: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows of a random split of 331 and 111."""
    data = load(SETS, DIABETES)
    n = data.y.size
    chosen = np.sort(halves(n, 0.75, seed)[0])
    # scikit-learn scales every column to length 1.
    X = data.X[chosen] / (np.sqrt(n) if features == "unit" else 1.0)
    y = data.y[chosen]
    return X, y - y.mean() if target == "centred" else y


def problem_of_fig1(X: np.ndarray, y: np.ndarray, kernel: str, method: str, settings: Settings) -> Problem:
    """Return the problem of a method, a key of `COEFFICIENTS`."""
    model = PolynomialNetwork(2, kernel, method)
    return Problem.build(X, y, model=model, rank=settings["k"], lambda_p=settings["beta"] / y.size, **_BARE)


def fig1(repro: Reproduction) -> Iterator[str]:
    """Fit with λ fitted and fixed from the same starts, and with λ fitted from where fixed ones ended."""
    settings = repro.settings
    cases = product(range(settings["seeds"]), settings["features"], settings["targets"], KERNELS)
    for case in repro.each(cases):
        panel = _compare(repro, *case)
        repro.done += 1
        yield f"{panel}: start {case[0] + 1} of {settings['seeds']}"


def _compare(repro: Reproduction, seed: int, features: str, target: str, kernel: str) -> str:
    """Minimise the objective of the paper, a sum over rows; what begins at the common P is traced."""
    settings, (X, y) = repro.settings, rows_of_fig1(features, target, seed)
    repro.use(f"diabetes, {SCALES[features]}", X, y)
    panel = panel_of_fig1(kernel, features, target)
    labels = {"panel": panel, "seed": seed}

    def fall(method: str, start: Parameters | None = None) -> tuple[float, Parameters]:
        problem = problem_of_fig1(X, y, kernel, method, settings)
        traced = start is None and seed < settings["traced"]
        start = start or problem.start(settings["init_sd"], np.random.default_rng([seed, 1]))
        course = descend(repro, problem, start, (SOLVERS[kernel], {}), settings["seconds"], seed, y.size)
        for last, row in course:  # noqa: B007
            if row is not None and traced:
                repro.row("trace", **labels, method=COEFFICIENTS[method], **row)
        return y.size * last.objective, last.parameters

    ends = {method: fall(method) for method in COEFFICIENTS}
    fixed = [ends[method][1] for method in ("ones", "signs")]
    starts = [Parameters(at.P, at.w, at.intercept, coefficients=at.multipliers) for at in fixed]
    again = min(fall("fitted", start)[0] for start in starts)
    repro.check()
    columns = int(np.count_nonzero(ends["fitted"][1].multipliers))
    objectives = {label: ends[method][0] for method, label in COEFFICIENTS.items()}
    own = {**objectives, AFTER: again, "columns in use": columns}
    repro.row("ends", **labels, kernel=KERNELS[kernel], **own)
    return panel


def _judge_fig1(tables: Tables, settings: Settings) -> Iterator[Finding]:
    fitted, ones, signs = COEFFICIENTS.values()
    for features, target in product(settings["features"], settings["targets"]):
        gap = {}
        for kernel in KERNELS:
            panel = panel_of_fig1(kernel, features, target)
            ends = frame(tables, "ends", panel=panel)
            if ends.empty:
                continue
            for key, case, low, high in (
                ("lower", f"{panel}, against {ones}", fitted, ones),
                ("lower", f"{panel}, against {signs}", fitted, signs),
                ("represents", panel, AFTER, ones),
            ):
                gaps = (ends[high] - ends[low]) / ends[high]
                said, wins, losses = by_balance(gaps, settings["same"])
                numbers = {"wins": wins, "losses": losses, "n": len(gaps), "gap": gaps.median()}
                yield key, case, (said, {**numbers, "columns": ends["columns in use"].median()})
            gap[kernel] = ((ends[ones] - ends[fitted]) / ends[ones]).median()
        if len(gap) == len(KERNELS):
            anova, homogeneous = gap["anova"], gap["polynomial"]
            large = homogeneous >= settings["large"] and anova < 0.5 * homogeneous
            numbers = {"anova": anova, "homogeneous": homogeneous}
            yield "sizes", f"{SCALES[features]}, {TARGETS[target]}", (large, numbers)


# --------------------------------------------------------------------------------------------------- figure 2

TEXT_LIKE = "text-like, in place of E2006-tfidf"
LIFTED, DIRECT, LBFGS, SGD = "Lifted (CD)", "Direct (CD)", "Direct (L-BFGS)", "Direct (SGD)"
FITTED = "Direct (CD), λ fitted"
# E2006-tfidf: N, for which β = 100 was chosen.
_PUBLISHED_ROWS = 16_087


def rows_of_fig2(settings: Settings) -> tuple[Any, np.ndarray]:
    """Return rows like those of a text, with a dummy feature, and targets like those of E2006."""
    rng = np.random.default_rng(settings["data_seed"])
    X, y = text_like(settings["rows"], settings["terms"], settings["words"], rng)
    # The volatilities of E2006 are logarithms, around −3.7.
    return augmented(X), -3.7 + 0.6 * y / y.std()


def starts_of_fig2(
    design: Design, y: np.ndarray, kernel: str, settings: Settings
) -> dict[str, tuple[Problem, Parameters]]:
    """Return the problems of one panel and their starts, all from one W: lifted, signs fixed, λ fitted."""
    common = {**_BARE, "lambda_p": settings["beta"] / _PUBLISHED_ROWS}
    lifted = Problem.build(design, y, model=Lifted(2, kernel), rank=settings["r"], **common)
    start = lifted.start(settings["init_sd"], np.random.default_rng(settings["seed"]))
    columns = to_expansion(lifted.model, start)
    # λ K(p, x) = ± K(√|λ| p, x) for homogeneous kernels of degree 2 (Lemma 4).
    size, signs = np.sqrt(np.abs(columns.multipliers)), np.sign(columns.multipliers)

    def direct(coefficients: str) -> Problem:
        model = PolynomialNetwork(2, kernel, coefficients)
        return Problem.build(design, y, model=model, rank=columns.P.shape[1], **common)

    return {
        LIFTED: (lifted, start),
        DIRECT: (direct("signs"), columns.replace(P=columns.P * size, coefficients=signs)),
        FITTED: (direct("fitted"), columns),
    }


def lines_of_fig2(panel: str, settings: Settings) -> list[Line]:
    """Return the lines of a panel."""
    lifted, lbfgs = Line(LIFTED, "cd"), Line(LBFGS, "lbfgs")
    if panel == "A²":
        return [lifted, Line(DIRECT, "cd"), lbfgs, Line(FITTED, "cd")]
    return [lifted, lbfgs, *(Line(f"{SGD}, η₀ = {x:g}", "sgd", ({"eta0": x},)) for x in settings["eta0"])]


def fig2(repro: Reproduction) -> Iterator[str]:
    """Race the lifted and the direct approach on high-dimensional data."""
    settings = repro.settings
    repro.total = sum(len(lines_of_fig2(panel, settings)) for panel in KERNELS.values())
    repro.check()
    yield "A²: reading the data"
    X, y = rows_of_fig2(settings)
    repro.use(TEXT_LIKE, X, y, nonzero=int(X.nnz))

    def ending(line: Line, own: Mapping[str, Any], course: Sequence[Row], last: Snapshot) -> Row:
        return {"epochs": last.epoch, "columns in use": int(np.count_nonzero(last.parameters.multipliers))}

    for kernel, panel in KERNELS.items():
        starts = starts_of_fig2(Design(X), y, kernel, settings)
        # All in units of the lifted start, so that lines can be compared.
        scale = 1.0 / starts[LIFTED][0].objective(starts[LIFTED][1])
        lines = lines_of_fig2(panel, settings)
        of_line = {line.label: starts.get(line.label, starts[DIRECT]) for line in lines}
        place = panel, settings["seed"], TEXT_LIKE
        yield from race(repro, *place, lines, of_line, ending, settings["seconds"], scale)


def _judge_fig2(tables: Tables, settings: Settings) -> Iterator[Finding]:
    def times(panel: str, column: str = "seconds") -> pd.DataFrame:
        lines = [line for line in lines_of_fig2(panel, settings) if line.label != FITTED]
        return median_times(tables, panel, n_runs(lines), column)

    first, second, epochs = times("A²"), times("H²"), times("A²", "epoch")
    if not first.empty:
        pair = [LIFTED, DIRECT]
        ratios = first[pair].max(axis=1) / first[pair].min(axis=1)
        counted = in_words(epochs, pair, "epochs")[:-1]
        numbers = {"times": in_words(first, pair)[:-1], "epochs": f"{counted[0].lower()}{counted[1:]}"}
        yield "anova_similar", "A²", (agreed(ratios <= settings["similar"]), numbers)
    yield "anova_lbfgs", "A²", sooner(first, (LIFTED, DIRECT), (LBFGS,))
    yield "homogeneous_lbfgs", "H²", sooner(second, (LIFTED,), (LBFGS,))
    steps = [name for name in second if name.startswith(SGD)]
    yield "homogeneous_sgd", "H²", sooner(second, (LIFTED,), steps)


# -------------------------------------------------------------------------------------------- figures 3 and 4

Kind = tuple[str, int]
"""A method and its size, the number of bases; 0 for one that has none."""


def tuned(
    repro: Reproduction,
    read: Callable[[str], tuple[Any, np.ndarray]],
    names: Sequence[str],
    kinds: Sequence[Kind],
    grid: Sequence[float],
    fit: Callable[..., float],
    best: Callable[..., Row],
) -> Iterator[str]:
    """Choose β by cross-validation for every data set, seed and kind, then test: "validation" and "test".

    The training rows are 75% of all, in ``settings["folds"]`` folds, of which ``settings["folds_used"]`` are
    looked at. ``fit(trial, train, test, settings)``, importable by name, fits on some rows and returns
    the score on others; `best` is `min` or `max`.
    """
    settings, n = repro.settings, {}
    for name in names:
        X, y = read(name)
        repro.use(name, X, y, n_train=int(0.75 * y.size))
        n[name] = y.size
    trials: list[Row] = [
        {"data": name, "method": method, "bases": bases, "seed": seed}
        for name, seed, (method, bases) in product(names, range(settings["seeds"]), kinds)
    ]
    # The most costly first, so that no worker is left alone with it.
    trials.sort(key=lambda trial: -trial["bases"] or -np.inf)
    repro.total += len(trials) * (len(grid) + 1)
    some = [{**trial, "beta": grid[0]} for trial in trials]
    work = partial(_score, fit, n, None)
    yield from repro.ready(work, some, lambda trial: (trial["data"], trial["method"]))

    def rows(table: str, todo: list[Row], *folds: int) -> Iterator[str]:
        for trial, row in repro.trials(table, partial(_score, fit, n, folds), todo, ("score",)):
            repro.row(table, **trial, **row)
            words = f"{trial['method']}, {trial['bases']} bases, β = {trial['beta']:.3g} ({table})"
            yield f"{trial['data']}: {words}"

    def chosen(trial: Row) -> Row:
        tried = [row for row in rows_where(repro.tables, "validation", **trial) if row["score"] is not None]
        if not tried:
            about = "{method} with {bases} bases on {data}".format_map(trial)
            raise ValueError(f"No β worked for {about}.")
        return {**trial, "beta": best(tried, key=lambda row: row["score"])["beta"]}

    for name in names:
        mine = [trial for trial in trials if trial["data"] == name]
        todo = [{**trial, "beta": beta} for trial in mine for beta in grid]
        yield from rows("validation", todo, settings["folds"], settings["folds_used"])
        yield from rows("test", [chosen(trial) for trial in mine])


def _score(
    fit: Callable[..., float], n: Mapping[str, int], folds: tuple[int, ...] | None, trial: Row, own: Settings
) -> Row:
    """Return the mean score over some of the folds of the training rows, or that on the test rows."""
    if folds is None:  # To ready the kernels.
        return {"score": fit(trial, np.arange(80), np.arange(20), own)}
    train, test = halves(n[trial["data"]], 0.75, trial["seed"])
    if not folds:
        return {"score": fit(trial, train, test, own)}
    parts = np.array_split(train, folds[0])
    others = [np.concatenate([*parts[:out], *parts[out + 1 :]]) for out in range(folds[1])]
    return {"score": float(np.mean([fit(trial, *rows, own) for rows in zip(others, parts, strict=False)]))}


def mean_scores(
    tables: Tables, settings: Settings, methods: Sequence[str], sizes: Sequence[int]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield for every data set the mean test scores by number of bases and method, once all are there."""
    for name in names_of(tables, settings):
        means = pivot(tables, "test", "score", "bases", data=name).reindex(columns=methods, index=sizes)
        if np.isfinite(means).all(axis=None):
            yield name, means


AUGMENT, LINEAR, FREE = "augment", "linear combination", "linear combination, w free"
READINGS = {LINEAR: "w shrunk as the factors", FREE: "w free"}
RATERS = {
    f"{KERNELS[kernel]} ({variant})": (kernel, variant)
    for kernel, variant in product(KERNELS, (AUGMENT, LINEAR, FREE))
}


ratings = lru_cache(maxsize=2)(partial(rows_of, SETS))
"""Returns users and items one-hot, and ratings; about so many where they are drawn."""


def fit_fig3(trial: Row, train: np.ndarray, test: np.ndarray, own: Settings) -> float:
    """Return the RMSE on the test rows after a fit on the training rows."""
    X, y = ratings(trial["data"], drawn=own["drawn"])
    kernel, variant = RATERS[trial["method"]]
    dummies, per_row = int(variant == AUGMENT), trial["beta"] / train.size
    about: dict[str, Any] = {
        **_BARE,
        "model": Lifted(2, kernel),
        "rank": max(1, trial["bases"] // 2),
        "lambda_p": per_row,
        # β/2 ‖w‖², as the factors have it.
        "lambda_w": per_row / 2.0 if variant == LINEAR else 0.0,
        "fit_linear": variant != AUGMENT,
    }
    problem = Problem.build(augmented(X[train], dummies), y[train], **about)
    predicted = _predicted(problem, augmented(X[test], dummies), trial["seed"], own)
    return float(np.sqrt(np.mean((predicted - y[test]) ** 2)))


def _predicted(problem: Problem, Z: Any, seed: int, own: Settings) -> np.ndarray:
    rng = np.random.default_rng([seed, 1])
    budget = Budget(own["epochs"], tol=own["tol"], report_every=None)
    *_, last = iterate(problem, "cd", budget, init_scale=0.1, rng=rng)
    return problem.model.predict(Design(Z), last.parameters)


def fig3(repro: Reproduction) -> Iterator[str]:
    """Predict ratings by A² and H², with every way of first-order terms."""
    settings = repro.settings
    read, names = partial(ratings, drawn=settings["drawn"]), repro.available(DRAWN)
    kinds = list(product(RATERS, settings["bases"]))
    yield from tuned(repro, read, names, kinds, settings["betas"], fit_fig3, min)


def _judge_fig3(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for name, means in mean_scores(tables, settings, list(RATERS), settings["bases"]):
        gaps = np.concatenate([means[m] - means[m.replace("H²", "A²")] for m in means if m.startswith("H²")])
        said, wins, losses = by_balance(gaps, settings["same"])
        bases, method = means.stack().idxmin()
        best = {"method": method, "bases": bases, "lowest": means.at[bases, method]}
        numbers = {"mean": gaps.mean(), "least": gaps.min(), "most": gaps.max(), **best}
        yield "kernels", name, (said, {"wins": wins, "losses": losses, "n": len(gaps), **numbers})
        for title, (variant, words) in product(KERNELS.values(), READINGS.items()):
            excess = means[f"{title} ({AUGMENT})"] - means[f"{title} ({variant})"]
            wins, n = sum(excess <= settings["same"]), len(excess)
            each = listed(((gap, k) for k, gap in excess.items()), "{:+.4f} at {}")
            said = by_majority(wins, n)
            yield "augment", f"{name}, {title}, {words}", (said, {"wins": wins, "n": n, "gaps": each})


HOMOGENEOUS, ANOVA = "Proposed, H³ (lifted)", "Proposed, A³ (direct)"
NYSTROEM, RANDOM, KERNEL = "Nyström", "Random selection", "Kernel ridge"
REGRESSORS = (HOMOGENEOUS, ANOVA, NYSTROEM, RANDOM)
_CUBIC: Mapping[str, Any] = {"kernel": "polynomial", "degree": 3, "coef0": 1, "gamma": 1}


def fit_fig4(trial: Row, train: np.ndarray, test: np.ndarray, own: Settings) -> float:
    """Return R² on the test rows, after a fit on the training rows with their mean taken off the target."""
    X, y = rows_of(SETS, trial["data"])
    mean = y[train].mean()
    predicted = predict_fig4(trial, X[train], y[train] - mean, X[test], own)
    return float(1.0 - np.mean((y[test] - mean - predicted) ** 2) / np.var(y[test]))


def predict_fig4(trial: Row, X: np.ndarray, y: np.ndarray, Z: np.ndarray, own: Settings) -> Any:
    """Return the predictions for Z: of H³ with r = k/3, of A³ with k columns, or of a peer."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge

    method, bases, seed, beta = (trial[name] for name in ("method", "bases", "seed", "beta"))
    # Σ ½(f − y)² + β/2 ‖·‖² has the minimum of scikit-learn's Σ (f − y)² + α‖·‖² at α = β.
    ridge = Ridge(alpha=beta, fit_intercept=False, solver="svd")
    if method == NYSTROEM:
        features = Nystroem(**_CUBIC, n_components=bases, random_state=seed).fit(X)
        return ridge.fit(features.transform(X), y).predict(features.transform(Z))
    if method == RANDOM:
        chosen = X[np.random.default_rng([seed, 1]).choice(X.shape[0], bases, replace=False)]
        return ridge.fit((1.0 + X @ chosen.T) ** 3, y).predict((1.0 + Z @ chosen.T) ** 3)
    if method == KERNEL:
        return KernelRidge(alpha=beta, **_CUBIC).fit(X, y).predict(Z)
    lifted = method == HOMOGENEOUS
    model: Any = Lifted(3) if lifted else PolynomialNetwork(3, "anova", "ones")
    rank, dummies = (max(1, bases // 3), 1) if lifted else (bases, 2)
    lambda_p = (3.0 * beta / (2.0 * y.size)) if lifted else beta / y.size
    problem = Problem.build(augmented(X, dummies), y, model=model, rank=rank, lambda_p=lambda_p, **_BARE)
    return _predicted(problem, augmented(Z, dummies), seed, own)


def fig4(repro: Reproduction) -> Iterator[str]:
    """Regress with few bases, beside kernel ridge regression."""
    settings = repro.settings
    grid = [float(beta) for beta in np.logspace(*settings["grid"])]
    kinds, names = [*product(REGRESSORS, settings["bases"]), (KERNEL, 0)], repro.available(DIABETES)
    yield from tuned(repro, partial(rows_of, SETS), names, kinds, grid, fit_fig4, max)


def _judge_fig4(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for name, means in mean_scores(tables, settings, REGRESSORS, settings["bases"]):
        kernel = pivot(tables, "test", "score", "bases", data=name, method=KERNEL)
        if kernel.dropna().empty:
            continue
        goal = kernel.at[0, KERNEL]
        enough = means >= goal - settings["same"]
        needed = enough.idxmax().where(enough.any(), np.inf)
        ours, others = needed[[HOMOGENEOUS, ANOVA]].min(), needed[[NYSTROEM, RANDOM]].min()
        each = listed((m, "not at all" if k == np.inf else int(k)) for m, k in needed.items())
        fewer = ours < np.inf and settings["fewer"] * ours <= others
        yield "few", name, (fewer, {"goal": goal, "needed": each})
        gaps = means[HOMOGENEOUS] - means[ANOVA]
        wins, n = sum(gaps > 0), len(gaps)
        words = listed(((gap, k) for k, gap in gaps.items()), "{:+.3f} at {}")
        yield "kernels", name, (by_majority(wins, n), {"wins": wins, "n": n, "gaps": words})


ARTEFACTS = (
    figure("blondel2016_fig1", fig1, _judge_fig1),
    figure("blondel2016_fig2", fig2, _judge_fig2),
    figure("blondel2016_fig3", fig3, _judge_fig3),
    figure("blondel2016_fig4", fig4, _judge_fig4),
)
