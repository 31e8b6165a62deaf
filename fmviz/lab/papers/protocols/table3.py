"""The data and the fits of Table 3 of atarashi2021."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fmviz.engine.design import Design
from fmviz.engine.drive import Budget, iterate
from fmviz.engine.problem import Problem
from fmviz.engine.snapshot import Snapshot
from fmviz.lab.background.workers import stream
from fmviz.lab.catalog import dataset_spec
from fmviz.lab.datasets.drawn import rated_items
from fmviz.lab.papers.base import Desk, Row
from fmviz.lab.papers.checkpoints import key_of, resumed
from fmviz.lab.runner import load_dataset, roc_auc
from fmviz.lab.search.sweep import LOST, attempt
from fmviz.paths import search_lambda

ML100K, A9A, RCV1, FD, DRAWN = "ML100K", "a9a", "RCV1", "FD", "drawn ratings"
SETS = {ML100K: "movielens_100k", A9A: "a9a", RCV1: "rcv1", FD: "flight_delay"}
REGULARIZERS = {"TI": "ti", "CS": "cs", "L1": "l1", "L21": "l21", "FM": "l2"}
FM = "FM"
SPARSE = tuple(name for name in REGULARIZERS if name != FM)


class Rows(NamedTuple):
    """Some rows of a data set."""

    design: Design
    y: np.ndarray


class Parts(NamedTuple):
    """A data set in three, and whether its score, the AUC and not the RMSE, is to be high."""

    train: Rows
    validation: Rows
    test: Rows
    highest: bool


def wanted(desk: Desk) -> list[str]:
    """Return the data sets of ``settings["data"]`` that are here; drawn ratings where there are none."""
    names = []
    for name in desk.settings["data"]:
        reason = None if name == DRAWN else dataset_spec(SETS[name]).unavailable()
        if reason is None:
            names.append(name)
        else:
            desk.note(f"{name} is not here and left out. {reason}")
    if not names:
        desk.note("Drawn ratings stand in, since none of the data sets is here.")
    return names or [DRAWN]


def whole(data: str, drawn: int) -> tuple[Any, np.ndarray]:
    """Return all rows of ML100K, of a9a or of so many ratings, about, that are drawn."""
    if data == DRAWN:
        users, items = max(10, drawn // 106), max(10, drawn // 60)
        return rated_items(drawn, users, items, 4, np.random.default_rng(0))
    own: dict[str, Any] = {"side_features": True} if data == ML100K else {"part": "both"}
    found = load_dataset(SETS[data], **own)
    return found.X, found.y


@lru_cache(maxsize=2)
def parts(data: str, split_seed: int, drawn: int) -> Parts:
    """Return a data set, split as in Table 2 of the paper.

    Parameters
    ----------
    data : str
        A key of `SETS`, or `DRAWN`.
    split_seed : int
        Draws the rows.
    drawn : int
        How many ratings `DRAWN` has, about.
    """
    rng = np.random.default_rng([split_seed, 0])
    if data in (ML100K, DRAWN):
        X, y = whole(data, drawn)
        order = rng.permutation(y.size)
        cuts = [64 * y.size // 100, 80 * y.size // 100]
        first, second, third = (Rows(Design(X[one]), y[one]) for one in np.split(order, cuts))
        return Parts(first, second, third, highest=False)
    known, unseen = (load_dataset(SETS[data], part=part) for part in ("train", "test"))
    order = rng.permutation(known.y.size)
    # a9a and RCV1: 26,048 of 32,561 and 16,193 of 20,242.
    kept = np.split(order, [4 * known.y.size // 5])
    train, validation = (Rows(Design(known.X[one]), known.y[one]) for one in kept)
    return Parts(train, validation, Rows(Design(unseen.X), unseen.y), highest=True)


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


@dataclass(frozen=True)
class Trial:
    """One fit, or one search.

    Attributes
    ----------
    data, method : str
        Which data, and a key of `REGULARIZERS`.
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
        return {
            name: getattr(self, name)
            for name in ("data", "method", "seed", "lambda_w", "lambda_p", "lambda_sparse")
        }


def _problem(trial: Trial, protocol: Protocol) -> Problem:
    train = protocol.parts(trial.data).train
    return Problem.build(
        train.design,
        train.y,
        penalty=REGULARIZERS[trial.method],
        rank=protocol.rank,
        lambda_w=trial.lambda_w,
        lambda_p=trial.lambda_p,
        lambda_sparse=trial.lambda_sparse,
    )


def _score(problem: Problem, end: Snapshot, rows: Rows, highest: bool) -> float:
    f = problem.model.predict(rows.design, end.parameters)
    return roc_auc(rows.y, f) if highest else float(np.sqrt(np.mean((f - rows.y) ** 2)))


def _told(problem: Problem, end: Snapshot, split: Parts) -> Row:
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
    budget = Budget(protocol.epochs, tol=protocol.tol, report_every=None)
    rng = np.random.default_rng([trial.seed, 1])
    *_, end = iterate(problem, "auto", budget, init_scale=protocol.init_scale, rng=rng)
    return _told(problem, end, protocol.parts(trial.data))


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
            budget=Budget(protocol.epochs, tol=protocol.tol, report_every=None),
            init_scale=protocol.init_scale,
            random_state=[trial.seed, 1],
        )
    )
    last = probes[-1]
    found = {"lambda_sparse": last.lambda_sparse, "probes": len(probes), "message": last.message}
    if last.status != "found":
        return {**found, "score": None, "used": last.used_interactions}
    return {**_told(problem, last.snapshot, protocol.parts(trial.data)), **found}


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


def each(
    desk: Desk, work: Callable[[Trial, Protocol], Row], trials: Sequence[Trial], protocol: Protocol
) -> Iterator[tuple[Trial, Row]]:
    """Do the work of all trials, on all cores, until the desk stops; a failure is a row that says why."""
    guarded = _Guarded(work, protocol)

    def key(trial: Trial) -> str:
        return key_of(work.__name__, asdict(trial), asdict(protocol), desk.data.get(trial.data))

    def made(rest: list[Trial]) -> Generator[tuple[int, Row]]:
        return stream(guarded, rest, _lost, n_jobs=desk.n_jobs)

    with closing(resumed(desk.memory, trials, key, made)) as results:
        for index, found in results:
            desk.done += 1
            yield trials[index], found
            if desk.should_stop():
                return


@dataclass(frozen=True)
class _Guarded:
    """Work in a worker, which must not raise."""

    work: Callable[[Trial, Protocol], Row]
    protocol: Protocol

    def __call__(self, trial: Trial) -> Row:
        found, failure, _ = attempt(lambda: self.work(trial, self.protocol))
        return {**_NOTHING, "failure": failure} if found is None else found


_NOTHING: Row = {"validation": None, "score": None, "used": None}


def _lost(trial: Trial) -> Row:
    del trial
    return {**_NOTHING, "failure": LOST}


def ready(trials: Sequence[Trial], protocol: Protocol) -> None:
    """Fit every method for an epoch, so that the workers find its kernels compiled."""
    short = _Guarded(fit, replace(protocol, epochs=1))
    for trial in {trial.method: trial for trial in trials}.values():
        short(trial)
