"""Figure 2 of blondel2017: how near the selected bases come to the best one, under ℓ1/ℓ∞."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from statistics import median

import numpy as np

from fmviz.engine.shared_basis.gradients import BasisGradient, feature_products
from fmviz.engine.shared_basis.path import largest_strength
from fmviz.engine.shared_basis.selection import select
from fmviz.engine.solvers import get_solver
from fmviz.lab.papers.checkpoints import key_of
from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.class_machines import problems, split_of
from fmviz.lab.papers.protocols.classes import here, names
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Said, listed, over, verdict

EIGEN, REFINED, RANDOM_REFINED, START, DATA, RANDOM = (
    "eigen-steps",
    "ℓ₁ + refine",
    "random + refine",
    "ℓ₁",
    "best data",
    "random",
)
METHODS = {
    EIGEN: "eigen",
    REFINED: "refine",
    RANDOM_REFINED: "random_refine",
    START: "l1",
    DATA: "data",
    RANDOM: "random",
}
EARLY, LATE = "early", "late"
# What nearly the maximum means, which medians are equal, and how far behind is not competitive.
_NEARLY, _SAME, _FAR = 0.95, 0.005, 0.05
Medians = dict[str, float]


def _run(repro: Reproduction) -> Iterator[str]:
    cases = list(product(here(repro), range(repro.settings["splits"])))
    for name, seed in repro.each(cases):
        yield f"{name}, split {seed + 1}"
        steps = partial(_selections, repro, name, seed)
        yield from repro.once(key_of(name, seed, repro.data[name]), steps)
        if repro.should_stop():
            return
        repro.done += 1


def _selections(repro: Reproduction, name: str, seed: int) -> Iterator[str]:
    """Add ν̂ of every method at every state of one run."""
    settings = repro.settings
    train, *_ = problems(
        split_of(name, seed), loss="logistic", penalty="l1_linf", rank=2 * settings["iterations"]
    )
    train = train.at(lambda_sparse=settings["share"] * largest_strength(train))
    solver = get_solver("conditional_gradient", {"bases": 1, "accuracy": settings["accuracy"]})
    run, rng = solver.on(train), np.random.default_rng([seed, 1])
    run.start(train.start(0.0, rng), rng)
    products = feature_products(train.design)
    for iteration in range(1, settings["iterations"] + 1):
        slopes = train.slope(train.predict(run.parameters()))
        gradient = BasisGradient(train.design, slopes, True, products)
        best = float(select(gradient, 1.0, "exact", 1, rng)[1][0])
        stage = EARLY if iteration <= settings["early"] else LATE
        for method, how in METHODS.items():
            found = float(select(gradient, 1.0, how, 1, rng)[1][0])
            repro.row(
                "ratios",
                panel=name,
                seed=seed,
                iteration=iteration,
                stage=stage,
                method=method,
                y=found / best,
            )
        run.epoch()
        if repro.should_stop():
            return
        if repro.due():
            yield f"{name}, split {seed + 1}: basis {iteration}"
    run.close()


def _stages(tables: Tables, settings: Settings) -> Iterator[tuple[str, Medians]]:
    """Yield the medians of ν̂ of a data set, early, late and in all."""
    for name, stage in product(names(tables, settings), (EARLY, LATE, "all")):
        rows = rows_where(tables, "ratios", panel=name)
        found = {
            method: [row["y"] for row in rows if row["method"] == method and stage in (row["stage"], "all")]
            for method in METHODS
        }
        medians = {method: median(ys) for method, ys in found.items() if ys}
        yield f"{name}, {stage}", medians if len(medians) == len(METHODS) else {}


def _told(medians: Medians) -> str:
    return f"Medians: {listed(medians.items(), '{} {:.3f}')}."


def _nearly(medians: Medians) -> Said:
    return verdict(medians[REFINED] >= _NEARLY), _told(medians)


def _over(other: str, least: float) -> Callable[[Medians], Said]:
    def say(medians: Medians) -> Said:
        lead = medians[REFINED] - medians[other]
        held = None if abs(lead) <= _SAME else lead > least
        return verdict(held), f"ℓ₁ + refine is at {medians[REFINED]:.3f}, {other} at {medians[other]:.3f}."

    return say


ARTEFACT = figure(
    __name__,
    _run,
    {
        "nearly": over(_stages, _nearly),
        "over_random": over(_stages, _over(RANDOM_REFINED, 0.0)),
        "over_start": over(_stages, _over(START, 0.0)),
        "data": over(_stages, _over(DATA, _FAR)),
    },
    share=1e-3,
    early=15,
    nearly=_NEARLY,
    same=_SAME,
    far=_FAR,
)
