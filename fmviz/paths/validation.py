"""Choose strengths by cross-validation along warm-started paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from fmviz.engine.drive import Budget
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.informed import informed_solver, path_start
from fmviz.engine.starts.strengths import N_STRENGTHS, References, linear_reference
from fmviz.engine.starts.zero_threshold import linear_fit
from fmviz.typography import counted, typeset

from .path import Order, iterate_path, onwards, path_solver

Step = TypeVar("Step")
End = TypeVar("End")
Folds = Sequence[tuple[np.ndarray, np.ndarray]]
Parts = Sequence[tuple[Problem, Sequence[Problem]]]
Attempt = Callable[[Parts, Sequence[float], list[Parameters]], Iterator[tuple["Trial", list[Parameters]]]]
Measure = Callable[[Problem, Parameters], float]
Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

LINEAR_SHARES = (50.0, 15.0, 5.0, 1.5, 0.5, 0.15, 0.05, 0.01)
"""The λ_w to try on linear fits, as shares of `References.lambda_w`."""
SHRINKAGE_SHARES = (0.02, 0.2)
"""The λ_p to try, each with a path over λ, as shares of `References.lambda_p`."""
_PATIENCE = 5
# Around the best trial strengths are changed by this factor, as often as any of them makes it better.
_FACTOR = 10.0**0.5
_ROUNDS = 2
# Down to this share of the smallest strength tried before.
_FURTHER = 0.01
# A strength rises so much at the most: without any signal every larger one may predict better.
_LARGER = 1e4
# A single held-out part is divided by so many for a standard error.
_PIECES = 5
_LOST = 0.05
# The path of the next λ_p starts so many strengths before the best of the previous path, from its fit there.
_OVERLAP = 4
# λ_w is no longer lowered once linear fits have become worse so many times in a row.
_LINEAR_PATIENCE = 2
# The least relative decrease of a loss that counts.
_GAIN = 1e-4
# Fits are compared by their predictions, which converge long before the last weights do.
_BUDGET = Budget(epochs=100, tol=1e-3, fall=1e-4, report_every=None, certify_every=None)
# The number of rows from which a single held-out part is enough.
_MANY_ROWS = 5_000
_FOLDS = 5


@dataclass(frozen=True)
class Trial:
    """One pair of λ_p and λ, tried on every fold.

    Attributes
    ----------
    lambda_w, lambda_p, lambda_sparse : float
        The strengths.
    losses : tuple of float
        The mean loss on the held-out rows, for every fold, or for fifths of a single held-out part.
    interactions, pairs : tuple of int
        The number of pairs of features that the fit of every fold uses, and of pairs of their groups.
    """

    lambda_w: float
    lambda_p: float
    lambda_sparse: float
    losses: tuple[float, ...]
    interactions: tuple[int, ...]
    pairs: tuple[int, ...]

    @property
    def used_interactions(self) -> float:
        """The mean number of pairs of features that the fits use."""
        return float(np.mean(self.interactions))

    @property
    def loss(self) -> float:
        """The mean of the losses."""
        return float(np.mean(self.losses))

    @property
    def standard_error(self) -> float:
        """The standard error of the mean of the losses; NaN for a single one."""
        k = len(self.losses)
        return float(np.std(self.losses, ddof=1) / np.sqrt(k)) if k > 1 else float("nan")

    @property
    def message(self) -> str:
        """The trial in a sentence."""
        shrinkage = f"λ_p = {typeset(self.lambda_p)}, " if self.lambda_p else ""
        return (
            f"{shrinkage}λ = {typeset(self.lambda_sparse)}: validation loss {self.loss:.5g}, "
            f"{counted(round(self.used_interactions), 'interaction')}."
        )

    def record(self) -> dict[str, float]:
        """Return the scalars: one row of `Validation.frame`."""
        return {
            "lambda_w": self.lambda_w,
            "lambda_p": self.lambda_p,
            "lambda_sparse": self.lambda_sparse,
            "validation_loss": self.loss,
            "standard_error": self.standard_error,
            "used_interactions": self.used_interactions,
        }


@dataclass(frozen=True, eq=False)
class Validation:
    """The result of a search for strengths.

    Attributes
    ----------
    trials : list of Trial
        All trials, in order.
    best : Trial
        The chosen trial.
    start : Parameters
        The fit of `best` on the training rows of the first fold.
    init_scale : float
        The size of the random starts.
    """

    trials: list[Trial]
    best: Trial
    start: Parameters
    init_scale: float

    @property
    def message(self) -> str:
        """The choice in a sentence or two."""
        best, tried = self.best, [trial.lambda_sparse for trial in self.trials]
        shrinkage = f", λ_p = {typeset(best.lambda_p)}" if best.lambda_p else ""
        least = min(self.trials, key=lambda trial: trial.loss)
        how = "the best" if best is least else "the sparsest within one standard error of the best"
        at_edge = best.lambda_sparse == min(tried) and best is least
        edge = " Smaller λ may predict better still: this is the smallest that was tried." if at_edge else ""
        return (
            f"Chosen on rows kept out of training: λ = {typeset(best.lambda_sparse)}{shrinkage} "
            f"and λ_w = {typeset(best.lambda_w)}, {how} of {len(tried)} fits with λ from "
            f"{typeset(max(tried))} to {typeset(min(tried))}.{edge}"
        )

    @property
    def sparsest(self) -> Trial:
        """The trial of fewest pairs, but some, whose loss is within one standard error of the least.

        Where there is hardly any noise, that is little: a twentieth of what pairs gain may be lost, too.
        """
        least = min(self.trials, key=lambda trial: trial.loss)
        fewest = min(self.trials, key=lambda trial: sum(trial.interactions))
        slack = max(np.nan_to_num(least.standard_error), _LOST * (fewest.loss - least.loss))
        near = [trial for trial in self.trials if trial.loss <= least.loss + slack and all(trial.pairs)]
        return min(near or [least], key=lambda trial: (sum(trial.pairs), sum(trial.interactions), trial.loss))

    @property
    def frame(self) -> pd.DataFrame:
        """A table with a row for each trial."""
        return pd.DataFrame.from_records([trial.record() for trial in self.trials])


def default_folds(
    y: np.ndarray, stratified: bool, rng: np.random.Generator, row_groups: np.ndarray | None = None
) -> list[tuple[Any, Any]]:
    """Return five folds for fewer than 5,000 rows, else a held-out quarter; stratified for classes.

    Rows of one group are on one side of every fold; raises ValueError if all are of one.
    """
    from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

    seed = int(rng.integers(2**31))
    if row_groups is not None:
        return _folds_of_groups(y, stratified, seed, row_groups)
    most = int(min(np.unique(y, return_counts=True)[1])) if stratified else y.size
    stratified = stratified and most >= 2
    if y.size >= _MANY_ROWS:
        split = (StratifiedShuffleSplit if stratified else ShuffleSplit)(1, test_size=0.25, random_state=seed)
    else:
        parts = max(2, min(_FOLDS, most if stratified else y.size))
        split = (StratifiedKFold if stratified else KFold)(parts, shuffle=True, random_state=seed)
    return list(split.split(np.zeros((y.size, 1)), y))


def _folds_of_groups(
    y: np.ndarray, stratified: bool, seed: int, row_groups: np.ndarray
) -> list[tuple[Any, Any]]:
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    many = y.size >= _MANY_ROWS
    parts = min(4 if many else _FOLDS, len(np.unique(row_groups)))
    if parts < 2:
        raise ValueError(
            "The rows to train on are of a single group, and validation needs two. Keep fewer rows out, or "
            "choose another group column."
        )
    divided = (StratifiedGroupKFold if stratified else GroupKFold)(parts, shuffle=True, random_state=seed)
    # A part that is cut into pieces is in the order of its groups, which are in none.
    place = np.random.default_rng(seed).permutation(row_groups.max() + 1)
    folds = [
        (train, part[np.argsort(place[row_groups[part]], kind="stable")])
        for train, part in divided.split(np.zeros((y.size, 1)), y, row_groups)
    ]
    return folds[:1] if many else folds


def search_strengths(
    problem: Problem,
    folds: Folds,
    rng: np.random.Generator,
    *,
    solver: str | Solver = "auto",
    one_se: bool = False,
    count: int = N_STRENGTHS,
    patience: int = _PATIENCE,
    groups: Sequence[str] | None = None,
    measure: Measure | None = None,
    each: Each = map,
    should_stop: Callable[[], bool] = lambda: False,
) -> Generator[Trial, None, Validation]:
    """Choose λ_w, λ_p and λ by the mean loss on held-out rows; yield every trial.

    λ_w is chosen first, by linear fits. Then, for each λ_p, a path over λ runs in all folds together: down
    from the λ_max of the data, each fit from the previous one, where solvers can escape P = 0 under the
    regularizer, and else up. It ends early where validation keeps getting worse, and that of the second λ_p
    starts a little before the best of the first. Last, all three are changed around the best trial, one at a
    time by steps of √10, as long as that predicts better.

    Parameters
    ----------
    problem : Problem
        The problem of all rows; its strengths are ignored. Several outputs share the chosen ones.
    folds : sequence of (int ndarray, int ndarray)
        Training rows and held-out rows.
    rng : numpy Generator
        Draws the starts.
    solver : str or Solver
        As for `iterate`.
    one_se : bool
        Whether to take the fit of fewest pairs whose loss is within one standard error of the least.
    count : int
        The number of strengths λ of a path.
    patience : int
        The number of consecutive strengths with a worse validation loss that end a path; fits without any
        pair do not count.
    groups : sequence of str, optional
        The column of a table behind every feature. Then pairs of columns are counted for `one_se`.
    measure, each
        As for `trials_along`.
    should_stop : callable
        Called between fits; a stopped search chooses among its trials so far.

    Returns
    -------
    Validation

    Raises
    ------
    ValueError
        If it is stopped before the first fit.
    """
    parts = parts_of(problem, folds)
    codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
    lambda_w = _linear_strength(problem, parts)
    problem = problem.at(lambda_w=lambda_w)
    parts = [(train.at(lambda_w=lambda_w), held_out) for train, held_out in parts]
    known, order = References(problem), onwards(problem)
    strengths = known.grid(count)[:: 1 if order == "down" else -1]
    weakest = {"lambda_p": SHRINKAGE_SHARES[0] * known.lambda_p, "lambda_sparse": min(strengths)}
    method = informed_solver(path_solver(problem, solver), problem)
    starts = [path_start(train.at(**weakest), known.init_scale, rng, shrunk=True) for train, _ in parts]
    attempt = partial(
        trials_along,
        order=order,
        budget=_BUDGET,
        method=method,
        rng=rng,
        codes=codes,
        measure=measure,
        each=each,
        should_stop=should_stop,
    )
    trials: list[Trial] = []
    ends: dict[Trial, list[Parameters]] = {}
    for share in SHRINKAGE_SHARES:
        shrunk = [(train.at(lambda_p=share * known.lambda_p), held_out) for train, held_out in parts]
        recent: deque[tuple[Trial, list[Parameters]]] = deque(maxlen=patience + _OVERLAP + 1)
        for trial, fits in until_worse(attempt(shrunk, strengths, starts), patience):
            recent.append((trial, fits))
            trials.append(trial)
            ends[trial] = fits
            yield trial
        if recent:
            losses = [trial.loss for trial, _ in recent]
            before, starts = recent[max(0, int(np.argmin(losses)) - _OVERLAP)]
            strengths = strengths[strengths.index(before.lambda_sparse) :]
    if not trials:
        raise ValueError("Stopped before the first fit.")
    best = min(trials, key=lambda trial: trial.loss)
    least = {
        "lambda_w": min(best.lambda_w, LINEAR_SHARES[-1] * known.lambda_w),
        "lambda_p": SHRINKAGE_SHARES[0] * known.lambda_p,
        "lambda_sparse": min(trial.lambda_sparse for trial in trials),
    }
    for trial, fits in _refined(parts, best, ends[best], least, attempt, should_stop):
        trials.append(trial)
        ends[trial] = fits
        yield trial
    best = min(trials, key=lambda trial: trial.loss)
    search = Validation(trials, best, ends[best][0], known.init_scale)
    if one_se:
        best = search.sparsest
        return Validation(trials, best, ends[best][0], known.init_scale)
    return search


def _refined(
    parts: Parts,
    best: Trial,
    fits: list[Parameters],
    least: dict[str, float],
    attempt: Attempt,
    should_stop: Callable[[], bool],
) -> Iterator[tuple[Trial, list[Parameters]]]:
    """Yield trials from the best one on, one strength at a time, as long as that predicts better.

    λ_w was chosen by linear fits, to which the pairs are noise: beside the pairs it may be far too large.
    """
    start = best
    for _ in range(_ROUNDS):
        before = best
        for name, smallest in least.items():
            for factor in (1.0 / _FACTOR, _FACTOR):
                around, better = best, True
                while better and not should_stop():
                    value = factor * getattr(best, name)
                    if not _FURTHER * smallest < value <= _LARGER * getattr(start, name):
                        break
                    strengths = {n: getattr(best, n) for n in least} | {name: value}
                    strength = strengths.pop("lambda_sparse")
                    moved = [(train.at(**strengths), held_out) for train, held_out in parts]
                    if (result := next(attempt(moved, [strength], fits), None)) is None:
                        return
                    yield result
                    trial, ends = result
                    better = _improves(trial.loss, best.loss)
                    if better:
                        best, fits = trial, ends
                if best is not around:
                    break
        if best is before:
            return


def parts_of(problem: Problem, folds: Folds) -> Parts:
    """Return the problems of the training rows and of the held-out rows of all folds."""
    pieces = _PIECES if len(folds) == 1 else 1
    return [
        (problem.of_rows(train), [problem.of_rows(piece) for piece in np.array_split(held_out, pieces)])
        for train, held_out in folds
    ]


def trials_along(
    parts: Parts,
    strengths: Sequence[float],
    starts: Sequence[Parameters],
    *,
    order: Order,
    budget: Budget,
    method: Solver,
    rng: np.random.Generator,
    codes: np.ndarray | None = None,
    measure: Measure | None = None,
    each: Each = map,
    should_stop: Callable[[], bool],
) -> Iterator[tuple[Trial, list[Parameters]]]:
    """Follow a path over λ in all folds together; yield every trial with the fits to the training rows.

    Parameters
    ----------
    parts, starts
        The problems of every fold, and where the first fit to its training rows starts.
    strengths, order, budget, should_stop
        As for `fmviz.paths.iterate_path`.
    method : Solver
        The solver.
    rng : numpy Generator
        The source of the solver's draws. Folds share it where `each` is ``map``; otherwise every fold has a
        generator of its own, since they need not be fitted in order.
    codes : (d,) int ndarray, optional
        The group of every feature. Then pairs of groups are counted, too.
    measure : callable, optional
        What is least for the best parameters, given held-out rows and parameters; by default the mean loss.
    each : callable
        Like ``map``, calls a function with every fold's path, in parallel if it likes.
    """
    draws = [rng] * len(parts) if each is map else rng.spawn(len(parts))
    paths = [
        iterate_path(
            train,
            strengths,
            orders=(order,),
            start=start,
            solver=method,
            budget=budget,
            random_state=draw,
            should_stop=should_stop,
        )
        for (train, _), start, draw in zip(parts, starts, draws, strict=True)
    ]
    while not should_stop() and None not in (points := [*each(lambda path: next(path, None), paths)]):
        fits = [point.snapshot.parameters for point in points]
        losses = [
            piece.risk(fit) if measure is None else measure(piece, fit)
            for (_, pieces), fit in zip(parts, fits, strict=True)
            for piece in pieces
        ]
        features = tuple(point.snapshot.used_interactions for point in points)
        pairs = features if codes is None else tuple(_pairs_of_groups(fit, codes) for fit in fits)
        problem, strength = parts[0][0], points[0].lambda_sparse
        yield Trial(problem.lambda_w, problem.lambda_p, strength, tuple(losses), features, pairs), fits


def _pairs_of_groups(parameters: Parameters, codes: np.ndarray) -> int:
    """Return the number of pairs of different groups of features that share a column of P."""
    used = (parameters.P != 0).reshape(-1, *parameters.P.shape[-2:])
    shared = np.zeros((codes.max() + 1,) * 2, dtype=bool)
    for support in used:
        of_groups = np.zeros((len(shared), support.shape[1]))
        np.maximum.at(of_groups, codes, support.astype(float))
        shared |= of_groups @ of_groups.T > 0
    return int(np.triu(shared, 1).sum())


def finished(steps: Generator[Step, None, End], tell: Callable[[Step], Any] = lambda step: None) -> End:
    """Exhaust a generator and return its result; `tell` is called with every step."""
    try:
        while True:
            tell(next(steps))
    except StopIteration as end:
        result: End = end.value
        return result


def _linear_strength(problem: Problem, parts: Parts) -> float:
    """Return the λ_w with the best linear fits on held-out rows."""
    reference = linear_reference(problem)
    if not problem.fit_linear or reference == 0.0:
        return problem.lambda_w
    fits: list[Parameters | None] = [None] * len(parts)
    best, least, worse = problem.lambda_w, float("inf"), 0
    for share in LINEAR_SHARES:
        fitted = [
            linear_fit(train.at(lambda_w=share * reference), rough=True, start=fit)
            for (train, _), fit in zip(parts, fits, strict=True)
        ]
        each = zip(parts, fitted, strict=True)
        loss = float(np.mean([piece.risk(fit) for (_, pieces), fit in each for piece in pieces]))
        worse = 0 if loss < least else worse + 1
        if loss < least:
            best, least = share * reference, loss
        if worse == _LINEAR_PATIENCE:
            break
        fits = [*fitted]
    return best


def until_worse(
    trials: Iterable[tuple[Trial, list[Parameters]]], patience: int
) -> Iterator[tuple[Trial, list[Parameters]]]:
    """Yield the trials along a path, up to so many consecutive ones with a worse loss."""
    least, worse = float("inf"), 0
    for trial, fits in trials:
        yield trial, fits
        # Fits without a pair are all the same, and say nothing of what comes.
        if trial.used_interactions:
            worse = 0 if _improves(trial.loss, least) else worse + 1
        least = min(least, trial.loss)
        if worse >= patience:
            return


def _improves(loss: float, least: float) -> bool:
    """Return whether a loss, negative for a score, is less than the least so far by a share that counts."""
    return loss < least * (1.0 - _GAIN if least > 0.0 else 1.0 + _GAIN)
