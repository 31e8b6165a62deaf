"""Proximal operators on a random P: runs and checks of Figs. 1 and 2 of atarashi2021."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from fmviz.engine.counting import used_mask
from fmviz.engine.interactions.pairs import tile_edges
from fmviz.lab.operators import VARIANTS, pairs, sample, study
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Cases, Said, by_majority, over, verdict

LABELS = {
    "l1": "L1",
    "l21": "L21",
    "ti": "TI by columns (Eq. 30)",
    "ti_rows": "TI by rows",
    "cs": "CS",
}
# Above none and below all by so much is neither dense nor all-zero.
_LEAST, _MOST = 0.01, 0.99
# A gradual course loses at most this share of the features from one λ to the next.
_STEP = 0.5
Courses = dict[int, list[Row]]
"""The counts of every P, along λ."""


def run(repro: Reproduction) -> Iterator[str]:
    """Fill the tables "counts" and "W", for one P and method after the other."""
    settings = repro.settings
    d, exponents = settings["d"], settings["log2_lambda"]
    for seed, name in repro.each(product(range(settings["matrices"]), settings["methods"])):
        P = sample(d, settings["k"], "normal", seed)
        repro.use(f"P, seed {seed}", P)
        found = study(P, VARIANTS[name], exponents)
        for at, exponent in enumerate(exponents):
            repro.row(
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
                _picture(repro, LABELS[name], exponent, found.Q[found.at(exponent)])
        repro.done += 1
        yield f"{LABELS[name]}: P {seed + 1} of {settings['matrices']}"


def _picture(repro: Reproduction, method: str, exponent: int, Q: np.ndarray) -> None:
    """Add QQᵀ, a row of tiles a row: the share of the pairs i ≠ j in a tile that are used."""
    edges = tile_edges(Q.shape[0], repro.settings["tiles"])
    used = np.add.reduceat(np.add.reduceat(used_mask(Q).astype(float), edges[:-1], 0), edges[:-1], 1)
    sizes = np.diff(edges)
    possible = np.outer(sizes, sizes) - np.diag(sizes)
    share = np.round(used / np.maximum(possible, 1), 3)
    for tile, row in enumerate(share):
        repro.row("W", method=method, log2_lambda=exponent, first=edges[tile], shares=row.tolist())


def _courses(tables: Tables, name: str) -> Courses:
    found: Courses = {}
    for row in rows_where(tables, "counts", method=LABELS[name]):
        found.setdefault(row["seed"], []).append(row)
    return found


def _of(names: Sequence[str]) -> Cases:
    def cases(tables: Tables, settings: Settings) -> Iterator[tuple[str, Any]]:
        for name in names:
            courses = _courses(tables, name)
            yield LABELS[name], courses and (courses, settings)

    return cases


def _sparse(course: Iterable[Row]) -> int:
    return sum(_LEAST <= row["share"] <= _MOST for row in course)


def _extremes(given: tuple[Courses, Settings]) -> Said:
    rows = [row for course in given[0].values() for row in course]
    extreme = len(rows) - _sparse(rows)
    return by_majority(extreme, len(rows)), (
        f"At {extreme} of {len(rows)} pairs of a P and a λ more than {_MOST:.0%} or less than {_LEAST:.0%} "
        f"of the interactions are used, which makes {extreme / len(rows):.0%}."
    )


def _beside_the_others(tables: Tables, settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield for TI and CS how often they are in between, and how often the better of L1 and L21 is."""
    theirs = [_courses(tables, name) for name in ("l1", "l21")]
    for name in ("ti", "ti_rows", "cs"):
        ours = _courses(tables, name)
        seeds = sorted(set(ours).intersection(*theirs))
        mine = [_sparse(ours[seed]) for seed in seeds]
        others = [max(_sparse(courses[seed]) for courses in theirs) for seed in seeds]
        yield LABELS[name], seeds and (mine, others, len(ours[seeds[0]]))


def _moderately_sparse(given: tuple[list[int], list[int], int]) -> Said:
    mine, others, strengths = given
    wins = sum(a > b for a, b in zip(mine, others, strict=True))
    return by_majority(wins, len(mine)), (
        f"It uses {_LEAST:.0%} to {_MOST:.0%} of the interactions at {_range(mine)} of {strengths} "
        f"strengths, where the better of L1 and L21 does at {_range(others)}; more for {wins} of "
        f"{len(mine)} P."
    )


def _keeps_all(given: tuple[Courses, Settings]) -> Said:
    courses, settings = given
    kept = [row["features"] == settings["d"] for course in courses.values() for row in course]
    return verdict(all(kept)), _ends(courses)


def _falls_gradually(given: tuple[Courses, Settings]) -> Said:
    """Say whether features are never gained, some are lost, and never half of all at once."""
    courses, settings = given
    lost = [
        [a["features"] - b["features"] for a, b in pairwise(course)] or [0] for course in courses.values()
    ]
    largest = max(map(max, lost))
    holds = all(min(steps) >= 0 and 0 < max(steps) <= _STEP * settings["d"] for steps in lost)
    text = f"{_ends(courses)[:-1]}; at most {max(0, largest)} are lost from one λ to the next."
    return verdict(holds), text


def _ends(courses: Mapping[int, Sequence[Row]]) -> str:
    def at(place: int) -> str:
        rows = [course[place] for course in courses.values()]
        return f"{_range([row['features'] for row in rows])} at λ = {2.0 ** rows[0]['log2_lambda']:g}"

    return f"Used features: {at(0)}, {at(-1)}, on {len(courses)} P."


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


all_or_nothing = over(_of(("l1", "l21")), _extremes)
moderately_sparse = over(_beside_the_others, _moderately_sparse)
keeps_all_features = over(_of(("ti", "ti_rows")), _keeps_all)
falls_gradually = over(_of(("cs",)), _falls_gradually)
