"""Figure 3 of atarashi2021: which methods find the planted interactions, by the number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from fmviz.lab.papers.declared import figure
from fmviz.lab.papers.protocols.recovery import (
    ERROR,
    F1,
    FEATURES,
    FM_GRID,
    GRID,
    INTERACTIONS,
    METHODS,
    METRICS,
    PSSR,
    Study,
    planted,
    strengths,
)
from fmviz.lab.papers.reproduction import Reproduction, Row, Settings, Tables, rows_where
from fmviz.lab.papers.statements import Cases, Said, by_balance, by_majority, listed, over, verdict

OMEGA = [name for name, method in METHODS.items() if method.dense and name != "SLQR"]
_SAME = {ERROR: 0.005, F1: 0.005}


def _panel(setting: str, metric: str) -> str:
    return f"{setting}: {metric}"


def _studies(settings: Settings) -> list[Study]:
    """Return all studies, those of the most rows first: what is said of single numbers is said of them."""
    return [
        Study(
            setting,
            method,
            n,
            strengths(method, settings["grid"], settings["fm_grid"]),
            settings["validation"],
            settings["test"],
            settings["inits"],
            n / 50.0 * settings["dense_share" if METHODS[method].dense else "share"],
            settings["epochs"],
            settings["dense_tol" if METHODS[method].dense else "tol"],
        )
        for n in sorted(settings["n_samples"], reverse=True)
        for setting in settings["settings"]
        for method in settings["methods"]
    ]


def _run(repro: Reproduction) -> Iterator[str]:
    studies = _studies(repro.settings)
    repro.total = sum(study.n_fits for study in studies)
    for setting in repro.settings["settings"]:
        for n in repro.settings["n_samples"]:
            repro.use(f"{setting}, N = {n}, seed 0", *planted(setting, n, 0))
    for study in studies:
        found: list[Row] = []
        words = f"{study.setting}, N = {study.n_samples}: {study.method}"
        run = study.run(found, n_jobs=repro.n_jobs, should_stop=repro.should_stop, memory=repro.memory)
        for count in run:
            repro.done += count
            if repro.due():
                yield words
        if not found:
            return
        _tell(repro, study, found)
        yield words
        if repro.should_stop():
            return


def _tell(repro: Reproduction, study: Study, found: Sequence[Row]) -> None:
    labels = {"setting": study.setting, "n_samples": study.n_samples, "method": study.method}
    means: Row = {}
    for one in found:
        metric, tests = one["metric"], one["test"]
        scores = [test[METRICS[metric]] for test in tests]
        means[metric] = float(np.mean(scores))
        repro.row(
            "tuned",
            **labels,
            metric=metric,
            lambda_p=one["lambda_p"],
            lambda_sparse=one["lambda_sparse"],
            validation=one["validation"][metric],
            test=means[metric],
            seconds=float(np.mean([test["seconds"] for test in tests])),
            converged=float(np.mean([test["converged"] for test in tests])),
        )
        for number, score in enumerate(scores):
            repro.row(
                "test",
                data=_panel(study.setting, metric),
                method=study.method,
                bases=study.n_samples,
                seed=number,
                score=score,
            )
    repro.row("means", **labels, **means)


class Means:
    """The table "means" of one setting."""

    def __init__(self, tables: Tables, setting: str, settings: Settings) -> None:
        self.methods, self.sizes = settings["methods"], sorted(settings["n_samples"])
        # Two standard errors of a share of one in two.
        self.same = {**_SAME, PSSR: 1.0 / (settings["test"] * settings["inits"]) ** 0.5}
        rows = rows_where(tables, "means", setting=setting)
        self._rows = {(row["method"], row["n_samples"]): row for row in rows}

    @property
    def whole(self) -> bool:
        """Whether there are the numbers of all methods."""
        every = product(self.methods, self.sizes, METRICS)
        return set(self.methods) == set(METHODS) and all(
            self._rows.get((method, n), {}).get(metric) is not None for method, n, metric in every
        )

    def path(self, method: str, metric: str) -> list[float]:
        """Return the means of a method, at each N."""
        return [self._rows[method, n][metric] for n in self.sizes]

    def words(self, metric: str, methods: Sequence[str] = ()) -> str:
        """Return the means at the largest N."""
        told = listed(((m, self.path(m, metric)[-1]) for m in methods or self.methods), "{} {:.3f}")
        return f"{metric} at N = {self.sizes[-1]}: {told}."

    def lead(self, method: str, others: Sequence[str], metric: str) -> list[float]:
        """Return by how much a method is better than the best of others, at each N."""
        sign = -1.0 if metric == ERROR else 1.0
        columns = zip(*(self.path(one, metric) for one in (method, *others)), strict=True)
        return [sign * mine - max(sign * other for other in rest) for mine, *rest in columns]

    def others(self, *methods: str) -> list[str]:
        """Return all methods but these."""
        return [name for name in self.methods if name not in methods]


def _in(setting: str, *cases: str) -> Cases:
    """Return cases of a setting with all its means; one, of its own name, until they are there."""

    def found(tables: Tables, settings: Settings) -> Iterator[tuple[str, Any]]:
        means = Means(tables, setting, settings)
        if setting in settings["settings"] and means.whole:
            yield from ((case, (case, means)) for case in cases)
        else:
            yield setting, None

    return found


def _best(method: str, given: tuple[str, Means]) -> Said:
    metric, means = given
    gaps = means.lead(method, means.others(method), metric)
    held, wins, losses = by_balance(gaps, means.same[metric])
    return held, (
        f"{method} is ahead of all others at {wins} of {len(gaps)} N and behind one of them at {losses}. "
        f"{means.words(metric)}"
    )


def _grows(given: tuple[str, Means]) -> Said:
    metric, means = given
    path = means.path("TI", metric)
    rising = path[-1] > path[0] and all(b >= a - 0.02 for a, b in pairwise(path))
    told = listed(zip(path, means.sizes, strict=True), "{:.3f} at {}")
    return verdict(rising if len(path) > 1 else None), f"{metric} of TI: {told}."


def _only(given: tuple[str, Means]) -> Said:
    metric, means = given
    most = {other: max(means.path(other, metric)) for other in means.others("TI")}
    some = listed(((other, value) for other, value in most.items() if value > 0.0), "{} {:.3f}")
    words = f"Above 0 at some N: {some}." if some else "It is 0 for all others at every N."
    return verdict(not some), words


def _lower(given: tuple[str, Means]) -> Said:
    method, means = given
    rivals = ["CS", "L21", "L1", "FM"]
    gaps = means.lead(method, rivals, ERROR)
    held, wins, _ = by_balance(gaps, means.same[ERROR])
    words = means.words(ERROR, [method, *rivals])
    return held, f"It is lower than all four at {wins} of {len(gaps)} N. {words}"


def _slqr(given: tuple[str, Means]) -> Said:
    metric, means = given
    if metric == F1:
        gaps = means.lead("SLQR", means.others("TI", "SLQR"), F1)
        held, wins, _ = by_balance(gaps, means.same[F1])
        rank = f"higher than that of all others at {wins}"
    else:
        columns = zip(*(means.path(one, ERROR) for one in ("SLQR", *means.others("SLQR"))), strict=True)
        gaps = [own - max(rest) for own, *rest in columns]
        wins = sum(gap > 0 for gap in gaps)
        held = by_majority(wins, len(gaps))
        rank = f"the highest of all at {wins}"
    return held, f"It is {rank} of {len(gaps)} N. {means.words(metric)}"


def _selects(given: tuple[str, Means]) -> Said:
    method, means = given
    at = means.path(method, PSSR)[-1]
    return verdict(at >= 0.5), f"PSSR is {at:.3f} at the largest N."


ARTEFACT = figure(
    __name__,
    _run,
    {
        "ti_best": over(_in(INTERACTIONS, *METRICS), partial(_best, "TI")),
        "ti_grows": over(_in(INTERACTIONS, F1, PSSR), _grows),
        "ti_alone": over(_in(INTERACTIONS, PSSR), _only),
        "dense": over(_in(INTERACTIONS, *OMEGA), _lower),
        "slqr": over(_in(INTERACTIONS, F1, ERROR), _slqr),
        "cs_best": over(_in(FEATURES, *METRICS), partial(_best, "CS")),
        "several": over(_in(FEATURES, "TI", "L21", "L1"), _selects),
    },
    settings={"grid": list(GRID), "fm_grid": list(FM_GRID)},
)
