"""Figures of Blondel, Ishihata, Fujino & Ueda (2016)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fmviz.engine.design import Design, augmented
from fmviz.engine.fit import Budget, Fit
from fmviz.engine.interactions.weights import to_expansion
from fmviz.engine.models import Lifted, PolynomialNetwork
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.lab.papers import Row, Tables
from fmviz.lab.runner import load_dataset
from fmviz.metrics import rmse
from papers.base import declared, figure, rows_of
from papers.courses import descend, in_words, median_times, sooner
from papers.judging import Finding, agreed, balance, frame, listed, majority, names_of, pivot
from papers.reproduction import Reproduction, Rows, Settings, use

SETS = declared("blondel2016")["sets"]
MOVIELENS, ABALONE, DIABETES = SETS
DRAWN = "drawn ratings"
KERNELS = {"anova": "A²", "polynomial": "H²"}
_BARE: Mapping[str, Any] = {"penalty": "l2", "fit_linear": False, "fit_intercept": False}


def halves(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ⌊share·n⌋ training rows and the test rows, in random order."""
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
    data = load_dataset(**SETS[DIABETES])
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


def fig1(own: Settings, seed: int, features: str, target: str, kernel: str) -> Rows:
    """Fit with fitted and fixed λ from the same start, and with fitted λ from the solutions of fixed λ.

    The objective is that of the paper, a sum over rows; runs from the common P are traced.
    """
    X, y = rows_of_fig1(features, target, seed)
    yield use(f"diabetes, {SCALES[features]}", *rows_of_fig1(features, "raw", 0))
    labels = {"panel": panel_of_fig1(kernel, features, target), "seed": seed}
    descent = partial(
        descend, solver=SOLVERS[kernel], seed=seed, own=own, value=lambda at: y.size * at.objective
    )
    problems = {method: problem_of_fig1(X, y, kernel, method, own) for method in COEFFICIENTS}
    starts = {m: p.start(own["init_sd"], np.random.default_rng([seed, 1])) for m, p in problems.items()}
    runs = {method: descent(problem, starts[method]) for method, problem in problems.items()}
    ends = {method: last.parameters for method, (_, last) in runs.items()}
    fixed = (ends[method] for method in ("ones", "signs"))
    later = (Parameters(at.P, at.w, at.intercept, coefficients=at.multipliers) for at in fixed)
    again = [descent(problems["fitted"], start)[0][-1]["objective"] for start in later]
    for method, label in COEFFICIENTS.items() if seed < own["traced"] else ():
        yield from (("trace", {**labels, "method": label, **row}) for row in runs[method][0])
    objectives = {label: runs[method][0][-1]["objective"] for method, label in COEFFICIENTS.items()}
    columns = int(np.count_nonzero(ends["fitted"].multipliers))
    about = {"kernel": KERNELS[kernel], **objectives, AFTER: min(again), "columns in use": columns}
    yield "ends", {**labels, **about}


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
                numbers = {"gap": gaps.median(), "columns": ends["columns in use"].median()}
                yield key, case, balance(gaps, settings["same"], **numbers)
            gap[kernel] = ((ends[ones] - ends[fitted]) / ends[ones]).median()
        if len(gap) == len(KERNELS):
            anova, homogeneous = gap["anova"], gap["polynomial"]
            large = homogeneous >= settings["large"] and anova < 0.5 * homogeneous
            said = large, {"anova": anova, "homogeneous": homogeneous}
            yield "sizes", f"{SCALES[features]}, {TARGETS[target]}", said


# --------------------------------------------------------------------------------------------------- figure 2

TEXT_LIKE = "text-like, in place of E2006-tfidf"
LIFTED, DIRECT, LBFGS, SGD = "Lifted (CD)", "Direct (CD)", "Direct (L-BFGS)", "Direct (SGD)"
FITTED = "Direct (CD), λ fitted"
# N of E2006-tfidf, for which β = 100 was chosen.
_PUBLISHED_ROWS = 16_087


def text_like(n: int, terms: int, per_row: int, rng: np.random.Generator) -> tuple[sp.csr_array, np.ndarray]:
    """Return rows of unit length over Zipf-distributed terms, and a target of pairs of frequent ones.

    Parameters
    ----------
    n, terms, per_row : int
        Numbers of rows, columns, and words per row, including repetitions.
    rng : numpy Generator
        The random generator.

    Returns
    -------
    X : (n, terms) csr_array
        (1 + log count)·log(n / rows with the term), scaled to length 1.
    y : (n,) ndarray
        The target, of mean 0.
    """
    law = 1.0 / np.arange(1, terms + 1)
    counts = sp.csr_array(
        (
            np.ones(n * per_row),
            rng.choice(terms, n * per_row, p=law / law.sum()),
            np.arange(n + 1) * per_row,
        ),
        shape=(n, terms),
    )
    counts.sum_duplicates()
    rarity = np.log(n / np.maximum(1, np.bincount(counts.indices, minlength=terms)))
    counts.data = (1.0 + np.log(counts.data)) * rarity[counts.indices]
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1))).ravel()
    X = sp.csr_array(sp.diags_array(1.0 / norms) @ counts)
    frequent = X[:, 5:25].toarray()
    y = 100.0 * (frequent[:, ::2] * frequent[:, 1::2]).sum(axis=1)
    return X, y - y.mean() + 0.1 * rng.normal(size=n)


def rows_of_fig2(settings: Settings) -> tuple[Any, np.ndarray]:
    """Return text-like rows with a dummy feature, and targets like those of E2006."""
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


def fig2(own: Settings, line: tuple[str, str, str]) -> Rows:
    """Run the lifted or the direct approach on high-dimensional data; SGD with every initial step."""
    kernel, method, solver = line
    X, y = rows_of_fig2(own)
    yield use(TEXT_LIKE, X, y, nonzero=int(X.nnz))
    starts, seed = starts_of_fig2(Design(X), y, kernel, own), own["seed"]
    # In units of the lifted start, for comparable lines.
    scale = 1.0 / starts[LIFTED][0].objective(starts[LIFTED][1])
    for eta0 in own["eta0"] if method == SGD else [None]:
        place, parameters = starts.get(method, starts[DIRECT]), {} if eta0 is None else {"eta0": eta0}
        course, last = descend(*place, solver, seed, own, lambda at: scale * at.objective, parameters)
        labels = {
            "panel": KERNELS[kernel],
            "seed": seed,
            "method": f"{SGD}, η₀ = {eta0:g}" if eta0 else method,
        }
        yield from (("trace", {**labels, **row}) for row in course)
        about = {"objective": course[-1]["objective"], "seconds": last.seconds, "epochs": last.epoch}
        yield (
            "ends",
            {**labels, **about, "columns in use": int(np.count_nonzero(last.parameters.multipliers))},
        )


def _judge_fig2(tables: Tables, settings: Settings) -> Iterator[Finding]:
    steps = [f"{SGD}, η₀ = {eta0:g}" for eta0 in settings["eta0"]]
    first, epochs = (median_times(tables, "A²", (LIFTED, DIRECT, LBFGS), of) for of in ("seconds", "epoch"))
    second = median_times(tables, "H²", (LIFTED, LBFGS, *steps))
    if not first.empty:
        pair = [LIFTED, DIRECT]
        ratios = first[pair].max(axis=1) / first[pair].min(axis=1)
        counted = in_words(epochs, pair, "epochs")[:-1]
        numbers = {"times": in_words(first, pair)[:-1], "epochs": f"{counted[0].lower()}{counted[1:]}"}
        yield "anova_similar", "A²", (agreed(ratios <= settings["similar"]), numbers)
    yield "anova_lbfgs", "A²", sooner(first, (LIFTED, DIRECT), (LBFGS,))
    yield "homogeneous_lbfgs", "H²", sooner(second, (LIFTED,), (LBFGS,))
    yield "homogeneous_sgd", "H²", sooner(second, (LIFTED,), steps)


# -------------------------------------------------------------------------------------------- figures 3 and 4


def tuned(
    own: Settings,
    fit: Callable[..., float],
    place: Row,
    rows: tuple[Any, np.ndarray],
    grid: Sequence[float],
    highest: bool,
) -> Rows:
    """Choose β by cross-validation, then test: rows of "validation" and "test".

    The training rows are 75% of all, in ``own["folds"]`` folds, and ``own["folds_used"]`` of these are used.
    ``fit(own, X, y, train, test, beta, **place)`` fits on some rows and returns the score on others.
    """
    from sklearn.model_selection import KFold

    X, y = rows
    train, test = halves(y.size, 0.75, place["seed"])
    yield use(place["data"], X, y, n_train=train.size)
    folds = list(islice(KFold(own["folds"]).split(train), own["folds_used"]))
    means = pd.Series(index=grid, dtype=float)
    for beta in grid:
        means[beta] = np.mean(
            [fit(own, X, y, train[known], train[out], beta, **place) for known, out in folds]
        )
        yield "validation", {**place, "beta": beta, "score": means[beta]}
    if means.isna().all():
        raise ValueError(f"All β failed: {listed(((beta,) for beta in grid), '{:.3g}')}.")
    beta = means.idxmax() if highest else means.idxmin()
    yield "test", {**place, "beta": beta, "score": fit(own, X, y, train, test, beta, **place)}


def kinds(repro: Reproduction, methods: Iterable[str], stand_in: str, single: str = "") -> Iterator[Row]:
    """Yield methods with numbers of bases, and `single`, which has none, most costly first.

    This order balances the workers.
    """
    names, seeds = repro.available(stand_in), range(repro.settings["seeds"])
    sizes = product(sorted(repro.settings["bases"], reverse=True), methods)
    for (bases, method), data, seed in product([*([(0, single)] if single else []), *sizes], names, seeds):
        yield {"data": data, "method": method, "bases": bases, "seed": seed}


def mean_scores(
    tables: Tables, settings: Settings, methods: Sequence[str], sizes: Sequence[int]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the mean test scores of every data set by number of bases and method, once complete."""
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


def fit_fig3(  # noqa: PLR0913 (the settings of a trial)
    own: Settings,
    X: Any,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    beta: float,
    *,
    method: str,
    bases: int,
    seed: int,
    **_: Any,
) -> float:
    """Return the RMSE on the test rows after a fit on the training rows."""
    kernel, variant = RATERS[method]
    dummies, per_row = int(variant == AUGMENT), beta / train.size
    about: dict[str, Any] = {
        **_BARE,
        "model": Lifted(2, kernel),
        "rank": max(1, bases // 2),
        "lambda_p": per_row,
        # β/2 ‖w‖², as for the factors.
        "lambda_w": per_row / 2.0 if variant == LINEAR else 0.0,
        "fit_linear": variant != AUGMENT,
    }
    problem = Problem.build(augmented(X[train], dummies), y[train], **about)
    return rmse(y[test], _predicted(problem, augmented(X[test], dummies), seed, own))


def _predicted(problem: Problem, Z: Any, seed: int, own: Settings) -> np.ndarray:
    rng = np.random.default_rng([seed, 1])
    budget = Budget(own["epochs"], tol=own["tol"], report_every=None)
    last = Fit.of(problem, "cd", budget, init_scale=0.1, rng=rng).end()
    return problem.model.predict(Design(Z), last.parameters)


def fig3(own: Settings, **place: Any) -> Rows:
    """Predict ratings by A² or H², with a variant of first-order terms."""
    rows = rows_of(SETS, place["data"], own["drawn"])
    yield from tuned(own, fit_fig3, place, rows, own["betas"], highest=False)


def _judge_fig3(tables: Tables, settings: Settings) -> Iterator[Finding]:
    for name, means in mean_scores(tables, settings, list(RATERS), settings["bases"]):
        gaps = np.concatenate([means[m] - means[m.replace("H²", "A²")] for m in means if m.startswith("H²")])
        bases, method = means.stack().idxmin()
        best = {"method": method, "bases": bases, "lowest": means.at[bases, method]}
        numbers = {"mean": gaps.mean(), "least": gaps.min(), "most": gaps.max(), **best}
        yield "kernels", name, balance(gaps, settings["same"], **numbers)
        for title, (variant, words) in product(KERNELS.values(), READINGS.items()):
            excess = means[f"{title} ({AUGMENT})"] - means[f"{title} ({variant})"]
            each = listed(((gap, k) for k, gap in excess.items()), "{:+.4f} at {}")
            yield "augment", f"{name}, {title}, {words}", majority(excess <= settings["same"], gaps=each)


HOMOGENEOUS, ANOVA = "Proposed, H³ (lifted)", "Proposed, A³ (direct)"
NYSTROEM, RANDOM, KERNEL = "Nyström", "Random selection", "Kernel ridge"
REGRESSORS = (HOMOGENEOUS, ANOVA, NYSTROEM, RANDOM)
_CUBIC: Mapping[str, Any] = {"kernel": "polynomial", "degree": 3, "coef0": 1, "gamma": 1}


def fit_fig4(
    own: Settings, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray, beta: float, **place: Any
) -> float:
    """Return R² on the test rows after a fit on the training rows with a centred target."""
    mean = y[train].mean()
    predicted = predict_fig4(own, X[train], y[train] - mean, X[test], beta, **place)
    return float(1.0 - np.mean((y[test] - mean - predicted) ** 2) / np.var(y[test]))


def predict_fig4(
    own: Settings,
    X: np.ndarray,
    y: np.ndarray,
    Z: np.ndarray,
    beta: float,
    *,
    method: str,
    bases: int,
    seed: int,
    **_: Any,
) -> Any:
    """Return predictions for Z: by H³ with r = k/3, A³ with k columns, or a baseline."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    # Σ ½(f − y)² + β/2 ‖·‖² has the minimum of scikit-learn's Σ (f − y)² + α‖·‖² at α = β.
    ridge = Ridge(alpha=beta, fit_intercept=False, solver="svd")
    chosen = X[np.random.default_rng([seed, 1]).choice(len(X), min(bases, len(X)), replace=False)]
    peers: dict[str, Any] = {
        NYSTROEM: make_pipeline(Nystroem(**_CUBIC, n_components=bases, random_state=seed), ridge),
        RANDOM: make_pipeline(FunctionTransformer(lambda Z: (1.0 + Z @ chosen.T) ** 3), ridge),
        KERNEL: KernelRidge(alpha=beta, **_CUBIC),
    }
    if method in peers:
        return peers[method].fit(X, y).predict(Z)
    lifted = method == HOMOGENEOUS
    model: Any = Lifted(3) if lifted else PolynomialNetwork(3, "anova", "ones")
    rank, dummies = (max(1, bases // 3), 1) if lifted else (bases, 2)
    lambda_p = (3.0 * beta / (2.0 * y.size)) if lifted else beta / y.size
    problem = Problem.build(augmented(X, dummies), y, model=model, rank=rank, lambda_p=lambda_p, **_BARE)
    return _predicted(problem, augmented(Z, dummies), seed, own)


def fig4(own: Settings, **place: Any) -> Rows:
    """Run a regression with few bases, or kernel ridge regression."""
    grid = np.logspace(*own["grid"]).tolist()
    yield from tuned(own, fit_fig4, place, rows_of(SETS, place["data"]), grid, highest=True)


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
        words = listed(((gap, k) for k, gap in gaps.items()), "{:+.3f} at {}")
        yield "kernels", name, majority(gaps > 0, gaps=words)


ARTEFACTS = (
    figure("blondel2016_fig1", fig1, _judge_fig1),
    figure("blondel2016_fig2", fig2, _judge_fig2),
    figure("blondel2016_fig3", fig3, _judge_fig3, trials=partial(kinds, methods=RATERS, stand_in=DRAWN)),
    figure(
        "blondel2016_fig4",
        fig4,
        _judge_fig4,
        trials=partial(kinds, methods=REGRESSORS, stand_in=DIABETES, single=KERNEL),
    ),
)
