"""Machines tuned on validation rows, and searched for a number of interactions: Table 3 of atarashi2021."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from fmviz.engine.drive import Budget, iterate
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.papers.protocols.benchmarks import Parts, Rows, parts, wanted
from fmviz.lab.papers.protocols.recovery import METHODS
from fmviz.lab.papers.protocols.trials import each, ready
from fmviz.lab.papers.reproduction import Reproduction, Row, rows_where
from fmviz.lab.runner import quality
from fmviz.paths import search_lambda

LIMITED, FREE = "table3a", "table3b"
SPARSE, FM = ("TI", "CS", "L1", "L21"), "FM"


@dataclass(frozen=True)
class Protocol:
    """What all fits of a run have in common.

    Attributes
    ----------
    split_seed, drawn : int
        See `parts`.
    rank, init_scale : int, float
        Columns of P, and the standard deviation of their start.
    epochs, tol : int, float
        When a fit ends.
    target, accept, narrowest : int, (int, int), float
        See `fmviz.paths.search_lambda`.
    """

    split_seed: int
    drawn: int
    rank: int
    init_scale: float
    epochs: int
    tol: float
    target: int
    accept: tuple[int, int]
    narrowest: float

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Protocol:
        """Read the settings of the artefact."""
        own = {name: settings[name] for name in cls.__dataclass_fields__}
        return cls(**{**own, "accept": tuple(settings["accept"])})

    def parts(self, data: str) -> Parts:
        """Return the rows of a data set."""
        return parts(data, self.split_seed, self.drawn)

    @property
    def budget(self) -> Budget:
        """When a fit ends."""
        return Budget(self.epochs, tol=self.tol, report_every=None)


@dataclass(frozen=True)
class Trial:
    """One fit, or one search.

    Attributes
    ----------
    data, method : str
        Which data, and a key of `METHODS`.
    seed : int
        Draws the start.
    lambda_w, lambda_p, lambda_sparse : float
        The strengths; of a search without the last.
    bracket : tuple of float
        Where a search begins.
    """

    data: str
    method: str
    seed: int
    lambda_w: float
    lambda_p: float
    lambda_sparse: float = 0.0
    bracket: tuple[float, ...] = field(default=(), compare=False)

    @property
    def row(self) -> Row:
        """The columns that name the trial."""
        return {name: value for name, value in asdict(self).items() if name != "bracket"}


def _problem(trial: Trial, protocol: Protocol) -> Problem:
    train = protocol.parts(trial.data).train
    return Problem.build(
        train.design,
        train.y,
        penalty=METHODS[trial.method].regularizer,
        rank=protocol.rank,
        lambda_w=trial.lambda_w,
        lambda_p=trial.lambda_p,
        lambda_sparse=trial.lambda_sparse,
    )


def _score(problem: Problem, end: Snapshot, rows: Rows, highest: bool) -> float:
    f = problem.model.predict(rows.design, end.parameters)
    return quality(rows.y, f)["auc" if highest else "rmse"]


def _scored(problem: Problem, end: Snapshot, split: Parts) -> Row:
    assert end.status is not None, "the last snapshot says how the run ended"
    return {
        "validation": _score(problem, end, split.validation, split.highest),
        "score": _score(problem, end, split.test, split.highest),
        "used": end.used_interactions,
        "epochs": end.epoch,
        "seconds": end.seconds,
        "status": str(end.status.reason),
    }


def fit(trial: Trial, protocol: Protocol) -> Row:
    """Return the scores of one fit on the training rows, and how many interactions it uses."""
    problem = _problem(trial, protocol)
    rng = np.random.default_rng([trial.seed, 1])
    *_, end = iterate(problem, "auto", protocol.budget, init_scale=protocol.init_scale, rng=rng)
    return _scored(problem, end, protocol.parts(trial.data))


def search(trial: Trial, protocol: Protocol) -> Row:
    """Return the same of the fit at which a search for λ ends; without a score where it finds nothing."""
    problem = _problem(trial, protocol)
    probes = list(
        search_lambda(
            problem,
            protocol.target,
            protocol.accept,
            grid=trial.bracket,
            narrowest=protocol.narrowest,
            budget=protocol.budget,
            init_scale=protocol.init_scale,
            random_state=[trial.seed, 1],
        )
    )
    last = probes[-1]
    found = {"lambda_sparse": last.lambda_sparse, "probes": len(probes), "message": last.message}
    if last.status != "found":
        return {**found, "score": None, "used": last.used_interactions}
    return {**_scored(problem, last.snapshot, protocol.parts(trial.data)), **found}


def bracket(used: Mapping[float, int], accept: tuple[int, int]) -> tuple[float, ...]:
    """Return the strengths between which a search begins, from the largest down.

    The first one with too many interactions, and the one before; or the first one whose number is accepted,
    alone. Empty where there is neither, or the largest strength already has too many.
    """
    before: tuple[float, ...] = ()
    for strength in sorted(used, reverse=True):
        if used[strength] > accept[1]:
            return (*before, strength) if before else ()
        if used[strength] >= accept[0]:
            return (strength,)
        before = (strength,)
    return ()


def run(repro: Reproduction) -> Iterator[str]:
    """Tune FM, then fit and search for the others; all tables of the paper."""
    settings, protocol = repro.settings, Protocol.of(repro.settings)
    names = wanted(repro)
    pairs = [(w, p) for w in settings["lambda_w"] for p in settings["lambda_p"]]
    seeds, tuning = range(settings["seeds"]), range(min(settings["tuning_seeds"], settings["seeds"]))
    sparse = len(SPARSE) * len(seeds)
    rest = len(seeds) - len(tuning)
    repro.total = len(names) * (len(pairs) * len(tuning) + rest + sparse * (len(settings["grid"]) + 1))
    for name in names:
        yield f"Loading {name}"
        split = protocol.parts(name)
        _describe(repro, name, split)
        first = [Trial(name, FM, seed, w, p) for seed in tuning for w, p in pairs]
        short = partial(fit, protocol=replace(protocol, epochs=1))
        kinds = [replace(first[0], method=method) for method in (FM, *SPARSE)]
        yield from ready(repro, short, kinds, lambda trial: trial.method)
        yield from _rows(repro, "fm", first, protocol)
        if repro.should_stop():
            return
        chosen = _best(repro.tables["fm"], name, FM, split.highest)
        at_best = {key: chosen[key] for key in ("lambda_w", "lambda_p")}
        yield from _rows(repro, "fm", [Trial(name, FM, s, **at_best) for s in seeds[len(tuning) :]], protocol)
        if repro.should_stop():
            return
        at_best["lambda_p"] /= 10.0
        todo = [
            Trial(name, method, seed, **at_best, lambda_sparse=strength)
            for method in SPARSE
            for strength in settings["grid"]
            for seed in seeds
        ]
        yield from _rows(repro, "grid", todo, protocol)
        if repro.should_stop():
            return
        todo = [Trial(name, method, seed, **at_best) for method in SPARSE for seed in seeds]
        yield from _searches(repro, todo, protocol)
        if repro.should_stop():
            return
        _conclude(repro, name, split.highest)
        yield f"{name} is done"


def _describe(repro: Reproduction, name: str, split: Parts) -> None:
    train = split.train
    live = int(np.count_nonzero(np.diff(train.design.columns.indptr)))
    repro.use(
        name,
        train.design.matrix,
        train.y,
        validation=split.validation.y.size,
        test=split.test.y.size,
        features_in_training=live,
        score="AUC" if split.highest else "RMSE",
    )


def _rows(repro: Reproduction, table: str, trials: Sequence[Trial], protocol: Protocol) -> Iterator[str]:
    for trial, found in _each(repro, fit, trials, protocol):
        repro.row(table, **{**trial.row, **found})
        yield f"{trial.data}: {trial.method}, λ = {trial.lambda_sparse:g}, start {trial.seed}"


def _each(
    repro: Reproduction, work: Callable[..., Row], trials: Sequence[Trial], protocol: Protocol
) -> Iterator[tuple[Trial, Row]]:
    columns = ("validation", "score", "used")
    own = partial(work, protocol=protocol)
    return each(repro, own, trials, columns, work.__name__, asdict(protocol))


def _searches(repro: Reproduction, trials: Sequence[Trial], protocol: Protocol) -> Iterator[str]:
    """Search from where the fits of the grid begin to use too many; tables "search"."""
    todo = []
    for trial in trials:
        mine = rows_where(repro.tables, "grid", data=trial.data, method=trial.method, seed=trial.seed)
        used = {row["lambda_sparse"]: row["used"] for row in mine if row["used"] is not None}
        if begin := bracket(used, protocol.accept):
            todo.append(replace(trial, bracket=begin))
            continue
        repro.done += 1
        words = "The grid holds no two strengths between which the wanted number could lie."
        repro.row("search", **{**trial.row, "score": None, "used": None, "probes": 0, "message": words})
    for trial, found in _each(repro, search, todo, protocol):
        repro.row("search", **{**trial.row, **found})
        yield f"{trial.data}: {trial.method}, search, start {trial.seed}"


def _best(rows: Sequence[Row], data: str, method: str, highest: bool) -> Row:
    """Return the first row at the strengths that have the best mean validation score.

    Raises
    ------
    ValueError
        If no strengths worked for all starts.
    """
    groups: dict[tuple[float, ...], list[Row]] = {}
    for row in rows:
        if row["data"] == data and row["method"] == method:
            key = (row["lambda_w"], row["lambda_p"], row["lambda_sparse"])
            groups.setdefault(key, []).append(row)
    usable = [group for group in groups.values() if all(row["validation"] is not None for row in group)]
    if not usable:
        raise ValueError(f"No strengths worked for {method} on {data}.")

    def mean(group: list[Row]) -> float:
        return float(np.mean([row["validation"] for row in group]))

    return (max if highest else min)(usable, key=mean)[0]


def _conclude(repro: Reproduction, name: str, highest: bool) -> None:
    """Fill the tables of the paper: means over the starts."""
    for method in SPARSE:
        rows = rows_where(repro.tables, "search", data=name, method=method)
        # As in the paper, a method that misses the range is given no score.
        _mean(repro, LIMITED, name, method, rows, all(row["score"] is not None for row in rows))
    for method in (*SPARSE, FM):
        table = "fm" if method == FM else "grid"
        at = _best(repro.tables[table], name, method, highest)
        strengths = {key: at[key] for key in ("lambda_w", "lambda_p", "lambda_sparse")}
        _mean(
            repro, FREE, name, method, rows_where(repro.tables, table, data=name, method=method, **strengths)
        )


def _mean(
    repro: Reproduction, table: str, name: str, method: str, rows: Sequence[Row], reached: bool = True
) -> None:
    def told(column: str, how: Any) -> float | None:
        return float(how([row[column] for row in rows])) if reached else None

    repro.row(
        table,
        data=name,
        method=method,
        score=told("score", np.mean),
        spread=told("score", np.std),
        used=told("used", np.mean),
        lambda_sparse=told("lambda_sparse", np.mean),
        starts=len(rows),
        reached=sum(row["score"] is not None for row in rows),
    )
