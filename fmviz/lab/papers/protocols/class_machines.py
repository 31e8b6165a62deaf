"""Machines of several classes, as blondel2017 compares them: their data, and all that is tried for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from fmviz.engine.design import Design, augmented
from fmviz.engine.penalties import OUTPUT_PENALTIES
from fmviz.engine.problem import Problem
from fmviz.engine.shared_basis.path import accuracy_on, largest_strength, validated_path
from fmviz.engine.solvers import Solver, get_solver
from fmviz.engine.target import Target
from fmviz.lab.papers.reproduction import Settings
from fmviz.lab.runner import load_dataset

SEGMENT, VOWEL_TEST, VOWEL_TRAIN, SATIMAGE, LETTER = (
    "segment",
    "vowel (462 rows)",
    "vowel (528 rows)",
    "satimage",
    "letter",
)
WINE, PLANTED = "wine", "planted classes"
SETS: dict[str, tuple[str, dict[str, Any]]] = {
    SEGMENT: ("segment", {}),
    VOWEL_TEST: ("vowel", {"part": "test"}),
    VOWEL_TRAIN: ("vowel", {"part": "train"}),
    SATIMAGE: ("satimage", {"part": "train"}),
    LETTER: ("letter", {"part": "train"}),
    WINE: ("wine", {}),
    PLANTED: ("planted_classes", {}),
}
"""Where the rows of a data set are, with what it is loaded with."""
PRINTED_SETS = (SEGMENT, "vowel", SATIMAGE, LETTER)
"""The columns of the printed tables."""
PENALTIES = {"ℓ₁": "l1", "ℓ₁/ℓ₂": "l1_l2", "ℓ₁/ℓ∞": "l1_linf"}
LINEAR, KERNEL, ONE_BY_ONE, NYSTROEM = "linear", "kernel SVM", "one-versus-rest", "Nyström"
_C = tuple(10.0**e for e in range(-2, 5))
ROUNDS = 300
"""Steps from a random start."""


# ------------------------------------------------------------------------------------------------------- data


class Rows(NamedTuple):
    """Some rows of a data set, with the places of their classes."""

    X: np.ndarray
    y: np.ndarray


class Split(NamedTuple):
    """Half of the rows to train, a quarter to choose by, and a quarter to test."""

    train: Rows
    validation: Rows
    test: Rows
    labels: np.ndarray


@lru_cache(maxsize=4)
def split_of(data: str, seed: int) -> Split:
    """Return a split of one of `SETS`, stratified, features brought to [−1, 1] by the rows to train."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import MinMaxScaler

    name, own = SETS[data]
    found = load_dataset(name, **own)
    X, y = np.asarray(found.X), found.y
    labels = np.arange(y.max() + 1.0)
    train, rest = train_test_split(np.arange(y.size), test_size=0.5, random_state=seed, stratify=y)
    chosen, test = train_test_split(rest, test_size=0.5, random_state=seed, stratify=y[rest])
    X = MinMaxScaler((-1.0, 1.0)).fit(X[train]).transform(X)
    first, second, third = (Rows(X[part], y[part]) for part in (train, chosen, test))
    return Split(first, second, third, labels)


# Linear weights and biases are those of the dummy feature.
_NETWORK: Mapping[str, Any] = {"model": "shared_basis", "fit_linear": False, "fit_intercept": False}


def problems(split: Split, **about: Any) -> tuple[Problem, Problem, Problem]:
    """Return the problems of the rows to train, to choose by and to test, with a dummy feature of 1."""
    given = {**_NETWORK, **about}

    def problem(rows: Rows) -> Problem:
        return Problem.build(augmented(rows.X), Target(rows.y, "class", split.labels), **given)

    return problem(split.train), problem(split.validation), problem(split.test)


# --------------------------------------------------------------------------------------------------- machines


@dataclass(frozen=True)
class Trial:
    """One method on one split of one data set.

    Attributes
    ----------
    data, method : str
        Keys of `SETS`, and of `METHODS`.
    seed : int
        Draws the split and the start.
    """

    data: str
    method: str
    seed: int


@dataclass(frozen=True)
class Grid:
    """What is tried for every machine.

    Attributes
    ----------
    shares : tuple of float
        λ over the λ from which on there is no basis.
    units : int
        Bases at most.
    bases : int
        New ones of an epoch.
    accuracy : float
        Of the refits.
    """

    shares: tuple[float, ...]
    units: int
    bases: int
    accuracy: float

    @classmethod
    def of(cls, settings: Settings, data: str) -> Grid:
        """Read the settings of an artefact; letter has more bases."""
        units = settings["units_letter" if data == LETTER else "units"]
        return cls(tuple(settings["shares"]), units, settings["bases"], settings["accuracy"])


class Point(NamedTuple):
    """A machine on the way: its λ and its bases, and how many of the rows in 100 it gets right."""

    strength: float
    bases: int
    validation: float
    test: float


Machine = Callable[[Trial, Split, Grid], Iterable[Point]]


@dataclass(frozen=True)
class Shared:
    """A machine on a shared basis.

    Attributes
    ----------
    penalty, loss : str
        Of the output layer.
    refit : {"output", "full"}
        What moves after a selection.
    way : {"ours", "published", "random"}
        Conditional gradient with our refits, or with selection, refits and tolerance as published; or
        projected gradient from random bases.
    """

    penalty: str
    refit: str = "output"
    loss: str = "logistic"
    way: str = "ours"

    def solver(self, grid: Grid) -> Solver:
        """Return what fits it."""
        if self.way == "random":
            return get_solver("projected_gradient", {"steps": ROUNDS})
        own: dict[str, Any] = {"bases": grid.bases, "accuracy": grid.accuracy}
        if self.way == "published":
            own = {"bases": 1, "accuracy": 1e-3, "selection": "refine", "inner": "fista"}
        return get_solver("conditional_gradient", {"refit": self.refit, **own})

    def __call__(self, trial: Trial, split: Split, grid: Grid) -> Iterator[Point]:
        """Yield the machines of every λ, epoch by epoch."""
        build = partial(problems, split, loss=self.loss, rank=grid.units)
        train, *others = build(penalty=self.penalty)
        # ‖V‖² has no threshold of its own.
        smooth = OUTPUT_PENALTIES[self.penalty].smooth
        top = largest_strength(build(penalty="l1_l2")[0] if smooth else train)
        on_validation, on_test = map(accuracy_on, others)
        rng = np.random.default_rng([trial.seed, 1])
        epochs = 1 if self.way == "random" else grid.units if self.way == "published" else _epochs(grid)
        strengths = [share * top for share in grid.shares]
        for step in validated_path(train, on_validation, strengths, self.solver(grid), rng, epochs):
            yield Point(step.strength, step.n_bases, 100.0 * step.score, 100.0 * on_test(step.parameters))


def _epochs(grid: Grid) -> int:
    """Return how often bases are added: a few times more than it takes to have all, as some are dropped."""
    return -(-grid.units // grid.bases) + 2


def _one_by_one(trial: Trial, split: Split, grid: Grid) -> Iterator[Point]:
    """Yield a polynomial network a class, each against the rest under ℓ1, all at one share of their λ_max."""
    others = [augmented(rows.X) for rows in (split.validation, split.test)]
    courses = [
        _course(augmented(split.train.X), np.where(split.train.y == label, 1.0, -1.0), others, trial, grid)
        for label in split.labels
    ]
    for at, share in enumerate(grid.shares):
        for epoch in range(max(len(one[at]) for one in courses)):
            ends = [one[at][min(epoch, len(one[at]) - 1)] for one in courses]
            right = [
                100.0 * float(np.mean(np.column_stack([end[1][k] for end in ends]).argmax(axis=1) == rows.y))
                for k, rows in enumerate((split.validation, split.test))
            ]
            yield Point(share, sum(end[0] for end in ends), *right)


Course = list[tuple[int, list[np.ndarray]]]
"""For every epoch the bases, and the predictions for other rows."""


def _course(
    X: np.ndarray, signs: np.ndarray, others: Sequence[np.ndarray], trial: Trial, grid: Grid
) -> list[Course]:
    """Return for every share the course of the network of one class."""
    problem = Problem.build(X, signs, loss="logistic", penalty="l1", rank=grid.units, **_NETWORK)
    top, designs = largest_strength(problem), [Design(other) for other in others]

    def nothing(_: Any) -> float:
        return 0.0

    found: list[Course] = []
    for share in grid.shares:
        solver = Shared("l1").solver(grid)
        rng = np.random.default_rng([trial.seed, 1])
        steps = validated_path(problem, nothing, [share * top], solver, rng, _epochs(grid))
        found.append(
            [
                (step.n_bases, [problem.model.predict(design, step.parameters) for design in designs])
                for step in steps
            ]
        )
    return found


def _tuned(build: Callable[[float], Any], split: Split, bases: Callable[[Any], int]) -> Iterator[Point]:
    """Yield a classifier of scikit-learn for every C."""
    for C in _C:
        machine = build(C).fit(split.train.X, split.train.y)
        right = [100.0 * float(machine.score(*rows)) for rows in (split.validation, split.test)]
        yield Point(C, bases(machine), *right)


def _linear(trial: Trial, split: Split, grid: Grid) -> Iterator[Point]:
    from sklearn.linear_model import LogisticRegression

    return _tuned(lambda C: LogisticRegression(C=C, max_iter=1000), split, lambda _: 0)


def _kernel(trial: Trial, split: Split, grid: Grid) -> Iterator[Point]:
    """Yield support vector machines with the kernel (⟨x, x'⟩ + 1)²."""
    from sklearn.svm import SVC

    def build(C: float) -> Any:
        return SVC(C=C, kernel="poly", degree=2, gamma=1.0, coef0=1.0)

    return _tuned(build, split, lambda machine: int(machine.n_support_.sum()))


def _nystroem(trial: Trial, split: Split, grid: Grid) -> Iterator[Point]:
    """Yield logistic regressions on features of the same kernel, for several numbers of bases."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    def build(C: float, bases: int) -> Any:
        features = Nystroem(
            kernel="poly", degree=2, gamma=1.0, coef0=1.0, n_components=bases, random_state=trial.seed
        )
        return make_pipeline(features, LogisticRegression(C=C, max_iter=300))

    for bases in range(grid.bases, min(grid.units, split.train.y.size) + 1, grid.bases):
        yield from _tuned(partial(build, bases=bases), split, lambda _, bases=bases: bases)  # type: ignore[misc]


def output_layer(title: str, loss: str = "logistic") -> str:
    """Return the name of a machine of which the output layer alone is refitted."""
    return f"{title}, output layer{_LOSSES[loss]}"


def both_layers(title: str, loss: str = "logistic") -> str:
    """Return the name of a machine of which both layers are refitted."""
    return f"{title}, both layers{_LOSSES[loss]}"


def published(title: str) -> str:
    """Return the name of a machine that is fitted as the paper says."""
    return f"{title}, output layer, published refits"


def random_start(title: str) -> str:
    """Return the name of a machine that moves from random bases."""
    return f"{title}, random start"


_LOSSES = {"logistic": "", "squared_hinge": ", squared hinge"}
METHODS: dict[str, Machine] = {
    **{
        name(title, loss): Shared(penalty, refit, loss)
        for title, penalty in PENALTIES.items()
        for loss in _LOSSES
        for name, refit in ((output_layer, "output"), (both_layers, "full"))
    },
    **{published(title): Shared(penalty, way="published") for title, penalty in PENALTIES.items()},
    **{
        random_start(title): Shared(penalty, way="random")
        for title, penalty in {**PENALTIES, "ℓ₂²": "l2"}.items()
    },
    LINEAR: _linear,
    KERNEL: _kernel,
    ONE_BY_ONE: _one_by_one,
    NYSTROEM: _nystroem,
}
"""The machines by their names."""
