"""Choose strengths by cross-validation along warm-started paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from fmviz.engine.fit import Budget
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
"""The λ_w tried on linear fits, as multiples of `References.lambda_w`."""
SHRINKAGE_SHARES = (0.02, 0.2)
"""The λ_p tried, each with a path over λ, as multiples of `References.lambda_p`."""
_PATIENCE = 5
# Strengths around the best trial are varied by this factor as long as the loss decreases.
_FACTOR = 10.0**0.5
_ROUNDS = 2
# The lower limit, as a fraction of the smallest strength tried before.
_FURTHER = 0.01
# The maximum increase of a strength: without any signal, every larger one may predict better.
_LARGER = 1e4
# The number of parts of a single held-out set for its standard error.
_PIECES = 5
_LOST = 0.05
# The path of the next λ_p starts this many strengths before the best one of the previous path, from its fit.
_OVERLAP = 4
# λ_w is no longer lowered after linear fits have become worse this many times in a row.
_LINEAR_PATIENCE = 2
# The smallest relative decrease of a loss that counts as an improvement.
_GAIN = 1e-4
# Fits are compared by their predictions, which converge long before the smallest weights.
_BUDGET = Budget(epochs=100, tol=1e-3, fall=1e-4, report_every=None, certify_every=None)
# The number of rows from which a single held-out part suffices.
_MANY_ROWS = 5_000
_FOLDS = 5

MOST_ROWS = 200_000
"""The maximum number of rows of a training and a held-out part together."""


@dataclass(frozen=True)
class Trial:
    """A pair of λ_p and λ, tried on every fold.

    Attributes
    ----------
    lambda_w, lambda_p, lambda_sparse : float
        The strengths.
    losses : tuple of float
        The mean loss on the held-out rows of every fold, or of fifths of a single held-out part.
    interactions, pairs : tuple of int
        The numbers of feature pairs, and of group pairs, used by the fit of every fold.
    """

    lambda_w: float
    lambda_p: float
    lambda_sparse: float
    losses: tuple[float, ...]
    interactions: tuple[int, ...]
    pairs: tuple[int, ...]

    @property
    def used_interactions(self) -> float:
        """The mean number of used feature pairs."""
        return float(np.mean(self.interactions))

    @property
    def loss(self) -> float:
        """The mean of the losses."""
        return float(np.mean(self.losses))

    @property
    def standard_error(self) -> float:
        """The standard error of the mean loss; NaN for a single loss."""
        k = len(self.losses)
        return float(np.std(self.losses, ddof=1) / np.sqrt(k)) if k > 1 else float("nan")

    @property
    def message(self) -> str:
        """A sentence that describes the trial."""
        shrinkage = f"λ_p = {typeset(self.lambda_p)}, " if self.lambda_p else ""
        return (
            f"{shrinkage}λ = {typeset(self.lambda_sparse)}: validation loss {self.loss:.5g}, "
            f"{counted(round(self.used_interactions), 'interaction')}."
        )

    def record(self) -> dict[str, float]:
        """Return the scalars as a row of `Validation.frame`."""
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
        The parameters of the fit of `best` to the training rows of the first fold.
    init_scale : float
        The standard deviation of the random starts.
    """

    trials: list[Trial]
    best: Trial
    start: Parameters
    init_scale: float

    @property
    def message(self) -> str:
        """One or two sentences that describe the choice."""
        best, tried = self.best, [trial.lambda_sparse for trial in self.trials]
        shrinkage = f", λ_p = {typeset(best.lambda_p)}" if best.lambda_p else ""
        least = min(self.trials, key=lambda trial: trial.loss)
        how = "the best" if best is least else "the sparsest within one standard error of the best"
        at_edge = best.lambda_sparse == min(tried) and best is least
        edge = " An even smaller λ may predict better: this is the smallest one tried." if at_edge else ""
        return (
            f"Chosen on held-out rows: λ = {typeset(best.lambda_sparse)}{shrinkage} "
            f"and λ_w = {typeset(best.lambda_w)}, {how} of {len(tried)} fits with λ from "
            f"{typeset(max(tried))} to {typeset(min(tried))}.{edge}"
        )

    @property
    def sparsest(self) -> Trial:
        """The trial with the fewest pairs (at least one) within one standard error of the lowest loss.

        If there is little noise and the standard error is small, up to a twentieth of the gain of the pairs
        may be lost instead.
        """
        least = min(self.trials, key=lambda trial: trial.loss)
        fewest = min(self.trials, key=lambda trial: sum(trial.interactions))
        slack = max(np.nan_to_num(least.standard_error), _LOST * (fewest.loss - least.loss))
        near = [trial for trial in self.trials if trial.loss <= least.loss + slack and all(trial.pairs)]
        return min(near or [least], key=lambda trial: (sum(trial.pairs), sum(trial.interactions), trial.loss))

    @property
    def frame(self) -> pd.DataFrame:
        """A table with one row per trial."""
        return pd.DataFrame.from_records([trial.record() for trial in self.trials])


def default_folds(
    y: np.ndarray, stratified: bool, rng: np.random.Generator, row_groups: np.ndarray | None = None
) -> list[tuple[Any, Any]]:
    """Return five folds for fewer than 5,000 rows, otherwise a held-out quarter; stratified by class.

    Of more than 200,000 rows, so many are drawn at random. Rows of the same group stay on the same side of
    every fold; raises ValueError if there is only one group.
    """
    from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

    seed = int(rng.integers(2**31))
    if row_groups is not None:
        return _folds_of_groups(y, stratified, seed, row_groups)
    most = int(min(np.unique(y, return_counts=True)[1])) if stratified else y.size
    stratified = stratified and most >= 2
    if y.size >= _MANY_ROWS:
        n, divided = min(y.size, MOST_ROWS), StratifiedShuffleSplit if stratified else ShuffleSplit
        split = divided(1, test_size=-(-n // 4), train_size=n - -(-n // 4), random_state=seed)
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
    if not many:
        return folds
    train, held_out = folds[0]
    drawn = np.random.default_rng(seed).permutation(train)[: 3 * MOST_ROWS // 4]
    return [(np.sort(drawn), held_out[: MOST_ROWS // 4])]


def search_strengths(  # noqa: PLR0913 (keywords as those of the estimators)
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

    λ_w is chosen first, by linear fits. Then, for each λ_p, a warm-started path over λ is fitted in all
    folds: downward from the λ_max of the data if solvers can escape P = 0 with the regularizer, and otherwise
    upward. A path stops early if the validation loss keeps increasing, and the path of the second λ_p starts
    a little before the best λ of the first. Finally, all three strengths are varied around the best trial,
    one at a time by factors of √10, as long as the loss decreases.

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
        Whether to choose the fit with the fewest pairs within one standard error of the lowest loss.
    count : int
        The number of strengths λ of a path.
    patience : int
        The number of consecutive strengths with a higher validation loss after which a path stops; fits
        without any pair do not count.
    groups : sequence of str, optional
        The table column of every feature. If given, `one_se` counts pairs of columns.
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
        If the search is stopped before the first fit.
    """
    parts = parts_of(problem, folds)
    codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
    lambda_w = _linear_strength(problem, parts)
    problem = problem.at(lambda_w=lambda_w)
    parts = [(train.at(lambda_w=lambda_w), held_out) for train, held_out in parts]
    known, order = References(problem), onwards(problem)
    strengths = known.grid(count)[:: 1 if order == "down" else -1]
    weakest = {"lambda_p": SHRINKAGE_SHARES[0] * known.lambda_p, "lambda_sparse": min(strengths)}
    starts = [path_start(train.at(**weakest), known.init_scale, rng, shrunk=True) for train, _ in parts]
    attempt = partial(
        trials_along,
        order=order,
        budget=_BUDGET,
        method=informed_solver(path_solver(problem, solver), problem),
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
    chosen = search.sparsest if one_se else best
    return replace(search, best=chosen, start=ends[chosen][0])


def _refined(
    parts: Parts,
    best: Trial,
    fits: list[Parameters],
    least: dict[str, float],
    attempt: Attempt,
    should_stop: Callable[[], bool],
) -> Iterator[tuple[Trial, list[Parameters]]]:
    """Yield trials starting from the best one, varying one strength at a time, as long as the loss decreases.

    λ_w was chosen by linear fits, in which the pairs are noise: with pairs in the model, it may be far too
    large.
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
    """Return the problems of the training rows and the held-out rows of all folds."""
    pieces = _PIECES if len(folds) == 1 else 1
    return [
        (problem.of_rows(train), [problem.of_rows(piece) for piece in np.array_split(held_out, pieces)])
        for train, held_out in folds
    ]


def trials_along(  # noqa: PLR0913 (keywords as those of the estimators)
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
    """Fit a path over λ in all folds jointly; yield every trial with the fits to the training rows.

    Parameters
    ----------
    parts, starts
        The problems of every fold, and the starts of the first fits to their training rows.
    strengths, order, budget, should_stop
        As for `fmviz.paths.iterate_path`.
    method : Solver
        The solver.
    rng : numpy Generator
        The source of the solver's draws. Folds share it if `each` is ``map``; otherwise every fold has a
        separate generator, since folds may run in any order.
    codes : (d,) int ndarray, optional
        The group of every feature. If given, pairs of groups are also counted.
    measure : callable, optional
        The criterion to minimize, a function of held-out rows and parameters; by default the mean loss.
    each : callable
        Applies a function to the path of every fold, like ``map``, possibly in parallel.
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
    """Return the number of pairs of distinct feature groups that share a column of P."""
    shared = np.zeros((codes.max() + 1,) * 2, dtype=bool)
    for support in (parameters.P != 0).reshape(-1, *parameters.P.shape[-2:]):
        of_groups = np.zeros((len(shared), support.shape[1]))
        np.maximum.at(of_groups, codes, support.astype(float))
        shared |= of_groups @ of_groups.T > 0
    return int(np.triu(shared, 1).sum())


def finished(steps: Generator[Step, None, End], tell: Callable[[Step], Any] = lambda step: None) -> End:
    """Exhaust a generator and return its result, calling `tell` with every step."""
    try:
        while True:
            tell(next(steps))
    except StopIteration as end:
        result: End = end.value
        return result


def _linear_strength(problem: Problem, parts: Parts) -> float:
    """Return the λ_w whose linear fits have the lowest loss on held-out rows."""
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
    """Yield the trials along a path until `patience` consecutive ones have a higher loss."""
    least, worse = float("inf"), 0
    for trial, fits in trials:
        yield trial, fits
        # All fits without a pair are the same, and do not predict the rest of the path.
        if trial.used_interactions:
            worse = 0 if _improves(trial.loss, least) else worse + 1
        least = min(least, trial.loss)
        if worse >= patience:
            return


def _improves(loss: float, least: float) -> bool:
    """Return whether a loss (negative for a score) is sufficiently below the lowest so far."""
    return loss < least * (1.0 - _GAIN if least > 0.0 else 1.0 + _GAIN)
