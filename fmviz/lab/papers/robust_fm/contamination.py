"""Wrong rows from none to four in ten, under every loss and every norm of Z."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import product
from statistics import fmean

from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.benchmarks import available
from fmviz.lab.papers.protocols.outliers import (
    CAPPED,
    LARGE,
    LOSSES,
    NORMS,
    PLANTED,
    SETS,
    TRACE,
    Study,
    Trial,
    machines,
    planted,
)
from fmviz.lab.papers.protocols.trials import each, ready
from fmviz.lab.papers.reproduction import Reproduction, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Said, by_majority, listed, over, verdict
from fmviz.lab.runner import load_dataset

# From how many times the error of a machine without the wrong rows on they do harm.
HARMED = 1.25
# From so many percent on there are outliers to speak of.
_MANY = 20


def _run(repro: Reproduction) -> Iterator[str]:
    found = available(repro, SETS, (PLANTED,))
    study = Study.of(repro.settings)
    for name in found:
        if name == PLANTED:
            data = planted(0, 0, n=study.rows, d=study.features)
            repro.use(name, data.X, data.y)
        else:
            dataset = load_dataset(SETS[name])
            repro.use(name, dataset.X, dataset.y)
    trials = [
        Trial(name, percent, seed)
        for name, percent in product(found, repro.settings["percent"])
        for seed in range(repro.settings["seeds_large" if name in LARGE else "seeds"])
    ]
    repro.total += len(trials)
    work = partial(machines, study=study)
    small = partial(machines, study=Study(60, 4, study.strengths[:1], 1, 10, 1, 2))
    yield from ready(repro, small, trials, lambda trial: trial.data == PLANTED)
    for trial, made in each(repro, work, trials, ("rows",), "contamination", asdict(study)):
        if made.get("failure"):
            repro.note(f"{trial.data}, {trial.percent} %, seed {trial.seed}: {made['failure']}")
        for row in made["rows"] or ():
            place = {"panel": f"{trial.data}, {row['norm']}", "method": row["loss"]}
            repro.row("test", data=trial.data, percent=trial.percent, seed=trial.seed, **place, **row)
        yield f"{trial.data}, {trial.percent} % wrong, seed {trial.seed}"


def _scores(tables: Tables, data: str, loss: str, norm: str) -> dict[tuple[int, int], float]:
    """Return the scores of a machine by percent and seed."""
    rows = rows_where(tables, "test", data=data, loss=loss, norm=norm)
    return {(row["percent"], row["seed"]): row["score"] for row in rows}


def _means(tables: Tables, data: str, loss: str, norm: str) -> list[tuple[int, float]]:
    scores = _scores(tables, data, loss, norm)
    percents = sorted({percent for percent, _ in scores})
    return [(one, fmean(score for (at, _), score in scores.items() if at == one)) for one in percents]


def _courses(loss: str, tables: Tables, settings: Settings) -> Iterator[tuple[str, list[tuple[int, float]]]]:
    for data, norm in product(_names(tables), NORMS):
        means = _means(tables, data, loss, norm)
        yield f"{data}, {norm}", means if len(means) > 1 else []


def _harmed(means: list[tuple[int, float]]) -> tuple[bool, str]:
    (_, clean), (most, last) = means[0], means[-1]
    told = listed(((f"{percent} %:", f"{score:.3g}") for percent, score in means))
    return (
        last > HARMED * clean,
        f"{told}; at {most} % {last / (clean or 1e-300):.1f} times that of clean rows.",
    )


def _immune(means: list[tuple[int, float]]) -> Said:
    harmed, words = _harmed(means)
    return verdict(not harmed), words


def _suffers(means: list[tuple[int, float]]) -> Said:
    harmed, words = _harmed(means)
    return verdict(harmed), words


def _names(tables: Tables) -> list[str]:
    return list(dict.fromkeys(row["data"] for row in tables.get("test", ()))) or [PLANTED]


Pairs = list[tuple[float, float]]


def _paired(tables: Tables, data: str, one: tuple[str, str], other: tuple[str, str], least: int) -> Pairs:
    ours, theirs = (_scores(tables, data, *key) for key in (one, other))
    return [(ours[at], theirs[at]) for at in ours if at in theirs and at[0] >= least]


def _against_squared(tables: Tables, settings: Settings) -> Iterator[tuple[str, Pairs]]:
    for data, norm in product(_names(tables), NORMS):
        yield f"{data}, {norm}", _paired(tables, data, ("capped", norm), ("squared", norm), _MANY)


def _norms(tables: Tables, settings: Settings) -> Iterator[tuple[str, Pairs]]:
    for loss in LOSSES:
        yield f"{loss} loss", _paired(tables, PLANTED, (loss, CAPPED), (loss, TRACE), 0)


def _lower(pairs: Pairs) -> Said:
    wins = sum(ours < theirs for ours, theirs in pairs)
    ours, theirs = (fmean(side) for side in zip(*pairs, strict=True))
    return by_majority(wins, len(pairs)), (
        f"Lower in {wins} of {len(pairs)} cases; {ours:.3g} on average, against {theirs:.3g}."
    )


ARTEFACT = figure(
    __name__,
    _run,
    {
        "immune": over(partial(_courses, "capped"), _immune),
        "absolute": over(partial(_courses, "absolute"), _suffers),
        "squared": over(_against_squared, _lower),
        "norm": over(_norms, _lower),
    },
    harmed=HARMED,
)
