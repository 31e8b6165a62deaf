"""Machines on a shared basis: certified gaps, and what they cost.

    python -m bench.shared_basis gaps
    python -m bench.shared_basis cost

Accuracies and selections are those of ``fmviz paper blondel2017_table2`` and ``blondel2017_fig2``, whose data
and splits `gaps` takes. The letter-shaped data of `cost` are drawn: 7,500 + 2,500 rows of 16 whole numbers
from 0 to 15, and 26 classes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from fmviz.engine.certificates.stationarity import certificates
from fmviz.engine.design import augmented
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.models import get_model
from fmviz.engine.problem import Problem
from fmviz.engine.shared_basis.bounds import largest_norm
from fmviz.engine.shared_basis.gradients import BasisGradient, activations
from fmviz.engine.shared_basis.output_layer import OutputLayer, whitened
from fmviz.engine.shared_basis.path import accuracy_on
from fmviz.engine.shared_basis.selection import select
from fmviz.engine.shared_basis.strength import largest_strength
from fmviz.engine.solvers import get_solver
from fmviz.engine.target import Target
from fmviz.lab.papers.blondel2017 import (
    PENALTIES,
    SEGMENT,
    VOWEL_TEST,
    VOWEL_TRAIN,
    problems,
    split_of,
)

from .data import ml100k_like

# λ over λ_max, of which held-out rows choose with the number of epochs, and new bases of an epoch.
SHARES, BASES = (5e-3, 3e-3, 2e-3, 1e-3), 50
# By how much ours may be behind the peer's accuracy, and how many times its time it may take.
BEHIND, TIMES = 0.013, 6.0


def gaps() -> None:
    """Print certified gaps at 1e-2 of λ_max, and the bound of the criterion over what is found."""
    for name, penalty in product((VOWEL_TEST, VOWEL_TRAIN, SEGMENT), PENALTIES.values()):
        train = problems(split_of(name, 0), loss="logistic", penalty=penalty, rank=100)[0]
        train = train.at(lambda_sparse=1e-2 * largest_strength(train))
        solver = get_solver("conditional_gradient", {"refit": "full", "accuracy": 1e-7})
        begin = time.process_time()
        budget = Budget(epochs=15, tol=1e-6, report_every=None)
        *_, end = iterate(train, solver, budget, rng=np.random.default_rng(0))
        gradient = BasisGradient(train.design, train.slope(train.predict(end.parameters)), True)
        p = {"l1": np.inf, "l1_l2": 2.0, "l1_linf": 1.0}[penalty]
        found = select(gradient, p, "eigen", 1, np.random.default_rng(0))[1][0]
        bound = largest_norm(gradient, p)
        upper, lower = certificates(train, end.parameters)
        print(
            f"{name:16} {penalty:8} gap in [{lower:.4f}, {upper:.4f}], "
            f"bound over found {bound.value / found:.4f} "
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


class Letters(NamedTuple):
    """A part of the rows to fit, with other rows to see how well that went."""

    X: np.ndarray
    y: np.ndarray
    X_other: np.ndarray
    y_other: np.ndarray


def _peer(rows: Letters, C: float) -> tuple[float, float]:
    """Return the accuracy of logistic regression on squares and products, and its seconds."""
    products = PolynomialFeatures(2).fit(rows.X)
    scale = StandardScaler().fit(products.transform(rows.X))
    X, X_other = (scale.transform(products.transform(one)) for one in (rows.X, rows.X_other))
    begin = time.process_time()
    fitted = LogisticRegression(C=C, max_iter=1000).fit(X, rows.y)
    took = time.process_time() - begin
    return float(fitted.score(X_other, rows.y_other)), took


def _ours(rows: Letters, share: float, epochs: int) -> Iterator[tuple[float, float, int]]:
    """Yield epoch by epoch the accuracy, the seconds until then, and the bases."""
    given: dict[str, Any] = {"loss": "logistic", "penalty": "l1_l2", "model": "shared_basis", "rank": 150}
    target, other = Target.of_labels(rows.y), Target.of_labels(rows.y_other)
    train = Problem.build(augmented(rows.X), target, fit_linear=False, **given)
    score = accuracy_on(Problem.build(augmented(rows.X_other), other, fit_linear=False, **given))
    begin = time.process_time()
    solver = get_solver("conditional_gradient", {"bases": BASES, "accuracy": 1e-4})
    method = solver.on(train.at(lambda_sparse=share * largest_strength(train)))
    rng = np.random.default_rng(0)
    method.start(train.start(0.0, rng), rng)
    took = time.process_time() - begin
    for _ in range(epochs):
        begin = time.process_time()
        method.epoch()
        here = method.parameters()
        took += time.process_time() - begin
        yield score(here), took, int(np.count_nonzero(here["V"].any(axis=1)))
    method.close()


def cost() -> None:
    """Print times against multinomial logistic regression, and of refits against single-output epochs."""
    X, y = letters()
    X = StandardScaler().fit(X[:7_500]).transform(X)
    choose = Letters(X[:6_000], y[:6_000], X[6_000:7_500], y[6_000:7_500])
    final = Letters(X[:7_500], y[:7_500], X[7_500:], y[7_500:])
    peers = {C: _peer(final, C) for C in (0.01, 0.03, 0.1, 0.3)}
    for C, (score, took) in peers.items():
        print(f"logistic regression C = {C}: {score:.4f} in {took:.2f} s")
    # The best on the test rows themselves: no setting of the peer does better.
    C = max(peers, key=lambda one: peers[one])
    limit = TIMES * _peer(choose, C)[1]
    # Kernels are compiled, or read, before a clock runs.
    next(_ours(choose, 0.5, 1))
    tried = []
    for share in SHARES:
        for epoch, (score, took, bases) in enumerate(_ours(choose, share, 6), start=1):
            if took <= limit:
                tried.append((score, share, epoch))
            print(
                f"held out: λ = {share:g} λ_max, epoch {epoch}: {score:.4f} in "
                f"{took / limit * TIMES:.1f} times, {bases} bases",
                flush=True,
            )
    _, share, epochs = max(tried)
    *_, (score, took, bases) = _ours(final, share, epochs)
    best, seconds = peers[C]
    print(
        f"chosen: λ = {share:g} λ_max, {epochs} epochs: test {score:.4f} ({best - BEHIND:.4f} wanted) in "
        f"{took / seconds:.1f} times, {bases} bases",
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
    parser.add_argument("what", choices=("gaps", "cost"))
    warnings.simplefilter("ignore")
    {"gaps": gaps, "cost": cost}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
