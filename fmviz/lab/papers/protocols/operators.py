"""Proximal operators on a random P: runs and checks of Figs. 1 and 2 of atarashi2021."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fmviz.engine.counting import used_mask
from fmviz.lab.interpretation.tiles import tile_edges
from fmviz.lab.operators import EXPONENTS, VARIANTS, pairs, sample, study
from fmviz.lab.papers.base import Check, Desk, Row, Statement, Tables, Verdict, rows_where, without_numbers
from fmviz.lab.papers.protocols.majority import by_majority

LABELS = {
    "l1": "L1",
    "l21": "L21",
    "ti": "TI by columns (Eq. 30)",
    "ti_rows": "TI by rows",
    "cs": "CS",
}
SETTINGS: dict[str, Any] = {
    "d": 200,
    "k": 30,
    "log2_lambda": list(EXPONENTS),
    "shown": [-7, -5, -3, -1, 1, 3],
    "tiles": 40,
}
BUDGETS: dict[str, dict[str, Any]] = {"quick": {"matrices": 5}, "full": {"matrices": 100}}
MINUTES = {"quick": 0.1, "full": 0.5}
DIFFERENCES = (
    "The paper draws one P; here the statements are put to several, drawn from as many seeds, and the curves "
    "are medians with the least and the greatest as bars.",
    "An interaction counts as used where its two rows share a column in which both are non-zero: exactly, "
    "where ⟨q_i, q_j⟩ ≠ 0 depends on rounding.",
    "Ours: the pictures of W = QQᵀ beneath the curves, for the first P. A cell is a tile of pairs, and its "
    "colour the share of them that is used.",
)
ALL_OR_NOTHING = Statement(
    "all_or_nothing",
    "Both L1 and L21 tended to produce completely dense (all-non-zeros) or all-zeros feature interaction "
    "matrices.",
    "3.1",
)

# Above none and below all by so much is neither dense nor all-zero.
_LEAST, _MOST = 0.01, 0.99
# A gradual course loses at most this share of the features from one λ to the next.
_STEP = 0.5


def run(desk: Desk) -> Iterator[str]:
    """Fill the tables "counts" and "W", for one P and method after the other."""
    settings = desk.settings
    d, methods, exponents = settings["d"], settings["methods"], settings["log2_lambda"]
    desk.total = settings["matrices"] * len(methods)
    for seed in range(settings["matrices"]):
        P = sample(d, settings["k"], "normal", seed)
        desk.use(f"P, seed {seed}", P)
        for name in methods:
            if desk.should_stop():
                return
            found = study(P, VARIANTS[name], exponents)
            for at, exponent in enumerate(exponents):
                desk.row(
                    "counts",
                    method=LABELS[name],
                    seed=seed,
                    log2_lambda=exponent,
                    interactions=found.interactions[at],
                    features=found.features[at],
                    share=found.interactions[at] / pairs(d),
                    certificate=found.certificates[at],
                )
            if seed == 0:
                for exponent in settings["shown"]:
                    _picture(desk, LABELS[name], exponent, found.Q[found.at(exponent)])
            desk.done += 1
            yield f"{LABELS[name]}: P {seed + 1} of {settings['matrices']}"


def _picture(desk: Desk, method: str, exponent: int, Q: np.ndarray) -> None:
    """Add QQᵀ, a row of tiles a row: the share of the pairs i ≠ j in a tile that are used."""
    edges = tile_edges(Q.shape[0], desk.settings["tiles"])
    used = np.add.reduceat(np.add.reduceat(used_mask(Q).astype(float), edges[:-1], 0), edges[:-1], 1)
    sizes = np.diff(edges)
    possible = np.outer(sizes, sizes) - np.diag(sizes)
    share = np.round(used / np.maximum(possible, 1), 3)
    for tile, row in enumerate(share):
        desk.row("W", method=method, log2_lambda=exponent, first=edges[tile], shares=row.tolist())


def _courses(tables: Tables, method: str) -> dict[int, list[Row]]:
    """Return the counts of every P, along λ."""
    found: dict[int, list[Row]] = {}
    for row in rows_where(tables, "counts", method=method):
        found.setdefault(row["seed"], []).append(row)
    return found


def _sparse(course: Sequence[Row]) -> int:
    return sum(_LEAST <= row["share"] <= _MOST for row in course)


def all_or_nothing(tables: Tables, names: Sequence[str]) -> Iterator[Check]:
    """Check that W is mostly dense or all zero: at three strengths in four, for every P together."""
    for method in (LABELS[name] for name in names):
        rows = rows_where(tables, "counts", method=method)
        if not rows:
            yield without_numbers("all_or_nothing", method)
            continue
        extreme = len(rows) - _sparse(rows)
        yield Check(
            "all_or_nothing",
            method,
            by_majority(extreme, len(rows)),
            f"At {extreme} of {len(rows)} pairs of a P and a λ more than {_MOST:.0%} or less than "
            f"{_LEAST:.0%} of the interactions are used, which makes {extreme / len(rows):.0%}.",
        )


def moderately_sparse(tables: Tables) -> Iterator[Check]:
    """Check that TI and CS are in between at more strengths than L1 and L21, for every P."""
    theirs = [_courses(tables, LABELS[name]) for name in ("l1", "l21")]
    for name in ("ti", "ti_rows", "cs"):
        ours = _courses(tables, LABELS[name])
        seeds = sorted(set(ours).intersection(*theirs))
        if not seeds:
            yield without_numbers("moderately_sparse", LABELS[name])
            continue
        mine = [_sparse(ours[seed]) for seed in seeds]
        others = [max(_sparse(courses[seed]) for courses in theirs) for seed in seeds]
        wins = sum(a > b for a, b in zip(mine, others, strict=True))
        yield Check(
            "moderately_sparse",
            LABELS[name],
            by_majority(wins, len(seeds)),
            f"It uses {_LEAST:.0%} to {_MOST:.0%} of the interactions at {_range(mine)} of "
            f"{len(ours[seeds[0]])} strengths, where the better of L1 and L21 does at {_range(others)}; "
            f"more for {wins} of {len(seeds)} P.",
        )


def keeps_all_features(tables: Tables, settings: Mapping[str, Any]) -> Iterator[Check]:
    """Check that TI uses all features at every strength, in both readings."""
    for name in ("ti", "ti_rows"):
        courses = _courses(tables, LABELS[name])
        if not courses:
            yield without_numbers("ti_features", LABELS[name])
            continue
        kept = [all(row["features"] == settings["d"] for row in course) for course in courses.values()]
        yield Check("ti_features", LABELS[name], _all(kept), _ends(courses))


def falls_gradually(tables: Tables, settings: Mapping[str, Any]) -> Iterator[Check]:
    """Check that CS never gains features, loses some, and never half of all at once."""
    courses = _courses(tables, LABELS["cs"])
    if not courses:
        yield without_numbers("cs_features", LABELS["cs"])
        return
    holds, largest = [], 0
    for course in courses.values():
        lost = [a["features"] - b["features"] for a, b in pairwise(course)]
        largest = max([largest, *lost])
        holds.append(min(lost, default=0) >= 0 and 0 < max(lost, default=0) <= _STEP * settings["d"])
    text = f"{_ends(courses)[:-1]}; at most {largest} are lost from one λ to the next."
    yield Check("cs_features", LABELS["cs"], _all(holds), text)


def _all(held: Sequence[bool]) -> Verdict:
    return "holds" if all(held) else "does not hold"


def _ends(courses: Mapping[int, Sequence[Row]]) -> str:
    first = [course[0]["features"] for course in courses.values()]
    last = [course[-1]["features"] for course in courses.values()]
    some = next(iter(courses.values()))
    return (
        f"Used features: {_range(first)} at λ = {2.0 ** some[0]['log2_lambda']:g}, {_range(last)} at "
        f"λ = {2.0 ** some[-1]['log2_lambda']:g}, on {len(courses)} P."
    )


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"
