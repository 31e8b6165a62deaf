"""Machines on a shared basis against the figures of blondel2017.

    python -m bench.shared_basis tables [--splits 20] [--refit full] [--sets vowel_462,segment]
    python -m bench.shared_basis selection
    python -m bench.shared_basis gaps
    python -m bench.shared_basis cost

vowel and segment are read from FMVIZ_DATA. Every split takes 50 % of the rows to train, 25 % to choose λ and
the number of bases, and 25 % to test; features are brought to [−1, 1] by the rows to train, with a dummy
feature of 1. The letter-shaped data of `cost` are drawn: 7,500 + 2,500 rows of 16 whole numbers from 0 to 15,
and 26 classes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

from fmviz.engine.certificate import certify, least_certificate
from fmviz.engine.design import augmented
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.models import get_model
from fmviz.engine.problem import Problem
from fmviz.engine.shared_basis.bounds import largest_norm
from fmviz.engine.shared_basis.gradients import BasisGradient, activations, feature_products
from fmviz.engine.shared_basis.output_layer import OutputLayer, whitened
from fmviz.engine.shared_basis.path import accuracy_on, best_of, validated_path
from fmviz.engine.shared_basis.selection import select
from fmviz.engine.shared_basis.strength import largest_strength
from fmviz.engine.solvers import get_solver
from fmviz.engine.target import Target
from fmviz.lab.datasets._tables import local_file

from .data import ml100k_like

PENALTIES = ("l1", "l1_l2", "l1_linf")
SHARES = (1e-2, 3e-3, 1e-3, 3e-4)
# Accuracies of Tables 2 and 4, with the number of bases.
PRINTED = {
    ("segment", "full", "logistic"): ((96.71, 41), (96.71, 40), (96.71, 24)),
    ("vowel", "full", "logistic"): ((87.83, 12), (89.57, 15), (86.96, 15)),
    ("segment", "output", "logistic"): ((97.05, 20), (96.36, 21), (96.19, 16)),
    ("vowel", "output", "logistic"): ((80.00, 21), (85.22, 15), (86.96, 41)),
    ("segment", "full", "squared_hinge"): ((96.01, 21), (96.01, 15), (95.84, 16)),
    ("vowel", "full", "squared_hinge"): ((87.83, 8), (86.96, 8), (85.22, 18)),
    ("segment", "output", "squared_hinge"): ((95.67, 21), (95.67, 25), (97.05, 28)),
    ("vowel", "output", "squared_hinge"): ((79.13, 25), (85.22, 19), (86.09, 33)),
}


def _file(folder: str, name: str) -> Any:
    path = local_file(folder, name)
    if path is None:
        raise SystemExit(f"Set FMVIZ_DATA to a folder that holds {folder}/{name}.")
    return path


def segment() -> tuple[np.ndarray, np.ndarray]:
    """Return the 2,310 rows of image segmentation."""
    table = np.loadtxt(_file("segment", "segment.dat"))
    return table[:, :-1], table[:, -1]


def vowel(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the 528 rows of the speakers to train on, or the 462 of those to test on."""
    lines = _file("vowel", "vowel.arff").read_text().lower().split("@data")[1].split()
    rows = [line.split(",") for line in lines if line.startswith(part)]
    return np.array([row[3:13] for row in rows], dtype=float), np.array([row[13] for row in rows])


SETS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "vowel_462": lambda: vowel("test"),
    "vowel_528": lambda: vowel("train"),
    "segment": segment,
}


def problems(X: np.ndarray, y: np.ndarray, seed: int, **about: Any) -> list[Problem]:
    """Return the problems of the rows to train, to validate and to test."""
    rows, rest = train_test_split(np.arange(len(y)), test_size=0.5, random_state=seed, stratify=y)
    validation, test = train_test_split(rest, test_size=0.5, random_state=seed, stratify=y[rest])
    Z = augmented(MinMaxScaler((-1, 1)).fit(X[rows]).transform(X))
    labels = np.unique(y, return_inverse=True)
    target = Target(labels[1].astype(float), "class", labels[0])
    given = {"model": "shared_basis", "fit_linear": False, "fit_intercept": False, "rank": 50} | about
    return [
        Problem.build(Z[part], Target(target.values[part], "class", target.labels), **given)
        for part in (rows, validation, test)
    ]


def tables(splits: int, refit: str, loss: str, sets: list[str]) -> None:
    """Print cells of Tables 2 and 4."""
    solver = get_solver("conditional_gradient", {"refit": refit, "bases": 5, "accuracy": 1e-5})
    for name in sets:
        X, y = SETS[name]()
        for place, penalty in enumerate(PENALTIES):
            found, bases, begin = [], [], time.process_time()
            for seed in range(splits):
                train, validation, test = problems(X, y, seed, loss=loss, penalty=penalty)
                top = largest_strength(train)
                steps = validated_path(
                    train,
                    accuracy_on(validation),
                    [share * top for share in SHARES],
                    solver,
                    np.random.default_rng(seed),
                    most_epochs=12,
                )
                best = best_of(steps)
                found.append(100.0 * accuracy_on(test)(best.parameters))
                bases.append(best.n_bases)
            mean, std = float(np.mean(found)), float(np.std(found, ddof=1))
            printed = PRINTED[name.split("_")[0], refit, loss][place]
            print(
                f"{name:10} {refit} {loss} {penalty:8} {mean:.1f} ± {std:.1f} "
                f"(error {std / splits**0.5:.2f}), "
                f"{np.mean(bases):.0f} bases; printed {printed[0]} ({printed[1]}); "
                f"{(time.process_time() - begin) / splits:.1f} s a split",
                flush=True,
            )


def selection(epochs: int = 40) -> None:
    """Print the medians of ν̂, early and late in a run under ℓ1/ℓ∞ (Fig. 2)."""
    methods = ("eigen", "refine", "random_refine", "l1", "data", "random")
    for name in ("vowel_528", "segment"):
        train, *_ = problems(*SETS[name](), 0, loss="logistic", penalty="l1_linf")
        train = train.at(lambda_sparse=1e-3 * largest_strength(train))
        method = get_solver("conditional_gradient", {"bases": 1, "accuracy": 1e-5}).on(train)
        rng = np.random.default_rng(0)
        method.start(train.start(0.0, rng), rng)
        products = feature_products(train.design)
        ratios: dict[str, list[float]] = {one: [] for one in methods}
        for _ in range(epochs):
            slopes = train.slope(train.predict(method.parameters()))
            gradient = BasisGradient(train.design, slopes, True, products)
            exact = select(gradient, 1.0, "exact", 1, rng)[1][0]
            for one in methods:
                ratios[one].append(float(select(gradient, 1.0, one, 1, rng)[1][0] / exact))
            method.epoch()
        for one in methods:
            early, late = np.median(ratios[one][:15]), np.median(ratios[one][15:])
            print(f"{name:10} {one:14} early {early:.3f} late {late:.3f} all {np.median(ratios[one]):.3f}")


def gaps() -> None:
    """Print certified gaps at 1e-2 of λ_max, and the bound of the criterion over what is found."""
    for name in SETS:
        X, y = SETS[name]()
        for penalty in PENALTIES:
            train = problems(X, y, 0, loss="logistic", penalty=penalty, rank=100)[0]
            train = train.at(lambda_sparse=1e-2 * largest_strength(train))
            solver = get_solver("conditional_gradient", {"refit": "full", "accuracy": 1e-7})
            begin = time.process_time()
            budget = Budget(epochs=15, tol=1e-6, report_every=None)
            *_, end = iterate(train, solver, budget, rng=np.random.default_rng(0))
            gradient = BasisGradient(train.design, train.slope(train.predict(end.parameters)), True)
            p = {"l1": np.inf, "l1_l2": 2.0, "l1_linf": 1.0}[penalty]
            found = select(gradient, p, "eigen", 1, np.random.default_rng(0))[1][0]
            bound = largest_norm(gradient, p)
            print(
                f"{name:10} {penalty:8} gap in [{least_certificate(train, end.parameters):.4f}, "
                f"{certify(train, end.parameters):.4f}], bound over found {bound.value / found:.4f} "
                f"({bound.kind}), {np.count_nonzero(end.parameters['V'].any(axis=1))} bases, "
                f"{time.process_time() - begin:.1f} s",
                flush=True,
            )


def letters(n: int = 10_000, d: int = 16, m: int = 26) -> tuple[np.ndarray, np.ndarray]:
    """Return data of the shape of letter: every class is three bells, cut to whole numbers from 0 to 15."""
    rng = np.random.default_rng(0)
    centres = 1.3 * rng.normal(size=(m, 3, d))
    mixed = rng.normal(size=(m, 3, d, d)) / np.sqrt(d)
    y, bell = rng.integers(0, m, n), rng.integers(0, 3, n)
    X = centres[y, bell] + np.einsum("nij,nj->ni", mixed[y, bell], rng.normal(size=(n, d)))
    return np.clip(np.round(7.5 + 2.2 * X), 0, 15), y


def cost() -> None:
    """Print times against multinomial logistic regression, and of refits against single-output epochs."""
    X, y = letters()
    rows, test = slice(0, 7_500), slice(7_500, None)
    Z = StandardScaler().fit(X[rows]).transform(X)
    explicit = PolynomialFeatures(2).fit_transform(Z)
    explicit = StandardScaler().fit(explicit[rows]).transform(explicit)
    best, seconds = 0.0, 0.0
    for C in (0.01, 0.03, 0.1, 0.3):
        begin = time.process_time()
        peer = LogisticRegression(C=C, max_iter=1000).fit(explicit[rows], y[rows])
        took, score = time.process_time() - begin, peer.score(explicit[test], y[test])
        print(f"logistic regression C = {C}: {score:.4f} in {took:.2f} s")
        if score > best:
            best, seconds = score, took
    given = {
        "loss": "logistic",
        "penalty": "l1_l2",
        "model": "shared_basis",
        "rank": 150,
        "fit_linear": False,
    }
    train = Problem.build(augmented(Z[rows]), Target.of_labels(y[rows]), **given)
    check = Problem.build(augmented(Z[test]), Target.of_labels(y[test]), **given)
    score = accuracy_on(check)
    for bases in (10, 25, 50):
        for share in (3e-3, 1e-3):
            solver = get_solver("conditional_gradient", {"bases": bases, "accuracy": 1e-4})
            begin = time.process_time()
            method = solver.on(train.at(lambda_sparse=share * largest_strength(train)))
            rng = np.random.default_rng(0)
            method.start(train.start(0.0, rng), rng)
            told = []
            for _ in range(150 // bases + 1):
                method.epoch()
                here, took = method.parameters(), time.process_time() - begin
                told.append((took / seconds, score(here), np.count_nonzero(here["V"].any(axis=1))))
            enough = [one for one in told if one[1] >= best - 0.013]
            print(
                f"{bases} bases an epoch, λ = {share:g} λ_max: "
                + (f"reached {best - 0.013:.4f} in {enough[0][0]:.1f} times" if enough else "not reached")
                + f"; end {told[-1][1]:.4f} in {told[-1][0]:.1f} times, {told[-1][2]} bases",
                flush=True,
            )
    _refits()


def _refits() -> None:
    data = ml100k_like()
    levels = np.digitize(data.y, np.quantile(data.y, [0.2, 0.4, 0.6, 0.8]))
    signs = np.where(levels[:, None] <= np.arange(5), 1.0, -1.0)
    signs[:, 4] = np.where(levels == 2, 1.0, -1.0)
    shared = Problem.build(
        data.X,
        signs,
        loss="logistic",
        penalty="l1_l2",
        model=get_model("shared_basis", {"kernel": "anova"}),
        rank=30,
        lambda_sparse=1e-6,
        fit_linear=False,
        fit_intercept=False,
    )
    H = np.random.default_rng(0).normal(size=(shared.design.n_features, 30))
    layer = OutputLayer(shared, activations(shared.design, H / np.linalg.norm(H, axis=0), False))
    whitened(layer, np.zeros(layer.shape), 1e-1, 2)
    begin = time.process_time()
    steps = whitened(layer, np.zeros(layer.shape), 1e-8, 40).steps
    ours = (time.process_time() - begin) / steps
    single = data.problem("l2", loss="logistic")
    method = get_solver("cd").on(single)
    method.start(single.start(0.1, np.random.default_rng(0)), np.random.default_rng(0))
    method.epoch()
    begin = time.process_time()
    for _ in range(5):
        method.epoch()
    five = time.process_time() - begin
    print(
        f"a step of the refit {1e3 * ours:.1f} ms, five single-output epochs {1e3 * five:.1f} ms: "
        f"{ours / five:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("tables", "selection", "gaps", "cost"))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--refit", default="output", choices=("output", "full"))
    parser.add_argument("--loss", default="logistic", choices=("logistic", "squared_hinge"))
    parser.add_argument("--sets", default=",".join(SETS))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "tables":
        tables(given.splits, given.refit, given.loss, given.sets.split(","))
    else:
        {"selection": selection, "gaps": gaps, "cost": cost}[given.what]()


if __name__ == "__main__":
    main()
