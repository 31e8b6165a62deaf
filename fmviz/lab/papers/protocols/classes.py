"""Machines of several classes, chosen on validation rows while they grow: the protocol of blondel2017."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from statistics import fmean, stdev

import numpy as np

from fmviz.lab.papers.base import Published
from fmviz.lab.papers.protocols.benchmarks import available
from fmviz.lab.papers.protocols.class_machines import (
    METHODS,
    PLANTED,
    PRINTED_SETS,
    SETS,
    WINE,
    Grid,
    Point,
    Trial,
    split_of,
)
from fmviz.lab.papers.protocols.trials import each, ready
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Cases, Said, listed, verdict

SAME, MUCH = 1.0, 1.0
"""Points of accuracy up to which two are comparable, and from which on one is substantially better."""


def here(repro: Reproduction) -> list[str]:
    """Return the data sets of ``settings["data"]`` that are here, or stand-ins, and note them as in use."""
    found = available(repro, {name: name_of for name, (name_of, _) in SETS.items()}, (WINE, PLANTED))
    for name in found:
        split = split_of(name, 0)
        X, y = (np.concatenate([part[k] for part in split[:3]]) for k in (0, 1))
        repro.use(name, X, y, classes=len(split.labels))
    return found


def validated(
    repro: Reproduction, methods: Sequence[str], sizes: Callable[[str, Grid], Sequence[int]]
) -> Iterator[str]:
    """Fit all methods to all data sets and splits, and fill the table "test".

    Of the machines on the way that have no more bases than allowed the one with the most right validation
    rows counts, of those the one with the fewest bases.

    Parameters
    ----------
    repro : Reproduction
        Its settings have ``data``, ``splits``, and those of `Grid`.
    methods : sequence of str
        Keys of `METHODS`.
    sizes : callable
        ``sizes(method, grid)`` returns how many bases are allowed, in turn; 0 for as many as there are.
    """
    found = here(repro)
    grids = {name: Grid.of(repro.settings, name) for name in found}
    trials = [
        Trial(name, method, seed)
        for seed, name, method in product(range(repro.settings["splits"]), found, methods)
    ]
    repro.total += len(trials)
    work = partial(_fitted, grids=grids)
    small = {name: replace(grid, units=2, shares=(0.5,)) for name, grid in grids.items()}
    yield from ready(repro, partial(_fitted, grids=small), trials, lambda trial: (trial.method, trial.data))
    told = {name: asdict(grid) for name, grid in grids.items()}
    for trial, way in each(repro, work, trials, ("points", "seconds"), "classes", told):
        points = [Point(*one) for one in way["points"] or ()]
        for size in sizes(trial.method, grids[trial.data]):
            allowed = [one for one in points if not size or one.bases <= size]
            best = max(allowed, key=lambda one: (one.validation, -one.bases), default=None)
            repro.row(
                "test",
                data=trial.data,
                method=trial.method,
                bases=size,
                seed=trial.seed,
                score=best and best.test,
                validation=best and best.validation,
                used=best and best.bases,
                strength=best and best.strength,
                seconds=way["seconds"],
                failure=way.get("failure"),
            )
        yield f"{trial.data}, split {trial.seed + 1}: {trial.method}"


def _fitted(trial: Trial, grids: Mapping[str, Grid]) -> Row:
    begin = time.process_time()
    points = list(METHODS[trial.method](trial, split_of(trial.data, trial.seed), grids[trial.data]))
    return {"points": [list(one) for one in points], "seconds": time.process_time() - begin}


def scores(
    tables: Tables, data: str, method: str, column: str = "score", bases: int | None = None
) -> dict[int, float]:
    """Return a column of the table "test" by the seed of the split; of all rows, or of those of one size."""
    own = {} if bases is None else {"bases": bases}
    rows = rows_where(tables, "test", data=data, method=method, **own)
    return {row["seed"]: row[column] for row in rows if row[column] is not None}


Printed = Mapping[str, Sequence[Sequence[float]]]
"""Of every method the accuracies and bases on `PRINTED_SETS`; [] where there is none."""


def printed_on(printed: Printed, method: str, data: str) -> Sequence[float]:
    """Return the accuracy and the bases that are printed for a data set, as far as they are."""
    column = data.split(" ")[0]
    return printed.get(method, [[]] * 4)[PRINTED_SETS.index(column)] if column in PRINTED_SETS else ()


def cells(repro: Reproduction, methods: Sequence[str], printed: Printed) -> None:
    """Fill the table "cells": means over the splits, with what is printed."""
    for row in repro.tables["data"]:
        for method in methods:
            found = list(scores(repro.tables, row["data"], method).values())
            used = list(scores(repro.tables, row["data"], method, "used").values())
            if not found:
                continue
            std = stdev(found) if len(found) > 1 else None
            value, bases = (*printed_on(printed, method, row["data"]), None, None)[:2]
            repro.row(
                "cells",
                data=row["data"],
                method=method,
                accuracy=fmean(found),
                std=std,
                error=None if std is None else standard_error(found),
                bases=fmean(used),
                bases_std=stdev(used) if len(used) > 1 else None,
                splits=len(found),
                printed=value,
                printed_bases=bases,
                within=None
                if value is None or std is None
                else bool(abs(value - fmean(found)) <= 2.0 * std + 1e-9),
            )


def published_cells(printed: Printed, source: str) -> Iterator[Published]:
    """Yield the printed accuracies and counts of bases, each tolerated within two standard deviations."""
    for method in printed:
        for data in SETS:
            for column, value in zip(("accuracy", "bases"), printed_on(printed, method, data), strict=False):
                where = {"data": data, "method": method}
                spread = "std" if column == "accuracy" else "bases_std"
                yield Published("cells", where, column, value, source, spread=spread)


def as_printed(tables: Tables, settings: Settings) -> Iterator[tuple[str, list[Row]]]:
    """Yield the cells of every data set for which something is printed."""
    for name in names(tables, settings):
        yield name, [row for row in rows_where(tables, "cells", data=name) if row["printed"] is not None]


def within(found: Sequence[Row]) -> Said:
    """Say which printed accuracies lie within two standard deviations of ours."""
    known = [row for row in found if row["within"] is not None]
    if not known:
        return "not settled", "One split has no standard deviation."
    outside = [row for row in known if not row["within"]]
    form = "{}: {:.1f} ± {:.1f}, printed {:.2f}"
    told = listed(((row["method"], row["accuracy"], row["std"], row["printed"]) for row in outside), form)
    words = f"{len(known) - len(outside)} of {len(known)} lie within mean ± 2 standard deviations"
    return verdict(not outside), f"{words}. Outside: {told or 'none'}."


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean."""
    return stdev(values) / len(values) ** 0.5


def by_margin(gaps: Sequence[float], least: float = 0.0, unit: str = " points") -> Said:
    """Say whether gaps, one a split, are above `least` in the mean: by more than their standard error."""
    if len(gaps) < 3:
        told = "One split tells" if len(gaps) == 1 else f"{len(gaps)} splits tell"
        return "not settled", f"{told} nothing of the spread."
    mean, error = fmean(gaps), standard_error(gaps)
    held = None if abs(mean - least) <= error else mean > least
    return verdict(held), f"Ahead by {mean:+.3g} ± {error:.2g}{unit}."


def gaps(tables: Tables, data: str, first: str, second: str, bases: int | None = None) -> list[float]:
    """Return by how much a method is ahead of another on every split."""
    mine, theirs = (scores(tables, data, one, bases=bases) for one in (first, second))
    return [mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())]


def pairs_of(first: Callable[[str], str], second: Callable[[str], str], titles: Iterable[str]) -> Cases:
    """Return the cases of all data sets and penalties: the gaps between two machines named by the penalty."""

    def cases(tables: Tables, settings: Settings) -> Iterator[tuple[str, list[float]]]:
        for name, title in product(names(tables, settings), titles):
            yield f"{name}, {title}", gaps(tables, name, first(title), second(title))

    return cases


def names(tables: Tables, settings: Settings) -> list[str]:
    """Return the data sets of a run, or before there are any those of its settings."""
    return list(dict.fromkeys(row["data"] for row in tables.get("data", ()))) or list(settings["data"])
