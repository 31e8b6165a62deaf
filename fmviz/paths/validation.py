"""Choose strengths by cross-validation along warm-started paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from fmviz.engine.drive import Budget
from fmviz.engine.outputs.drive import iterate
from fmviz.engine.outputs.side_by_side import AnyProblem, informed_start, linear_fit, references
from fmviz.engine.parameters import Parameters
from fmviz.engine.solvers import Solver
from fmviz.engine.starts.informed import informed_solver
from fmviz.engine.starts.strengths import N_STRENGTHS, linear_reference

from .path import path_solver

Step = TypeVar("Step")
End = TypeVar("End")
Folds = Sequence[tuple[np.ndarray, np.ndarray]]

LINEAR_SHARES = (50.0, 15.0, 5.0, 1.5, 0.5, 0.15, 0.05, 0.01)
"""The λ_w to try on linear fits, as shares of `References.lambda_w`."""
SHRINKAGE_SHARES = (0.02, 0.2)
"""The λ_p to try, each with a path over λ, as shares of `References.lambda_p`."""
_PATIENCE = 5
# Around the best trial strengths are changed by this factor, as often as any of them makes it better.
_FACTOR = 10.0**0.5
_ROUNDS = 3
_REFINED_PATIENCE = 1
# The path of the next λ_p starts so many strengths before the best of the previous path, from its fit there.
_OVERLAP = 4
# λ_w is no longer lowered once linear fits have become worse so many times in a row.
_LINEAR_PATIENCE = 2
# The least relative decrease of a loss that counts.
GAIN = 1e-4
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
        The mean loss on the held-out rows, for every fold.
    used_interactions : float
        The mean number of pairs that the fits use.
    """

    lambda_w: float
    lambda_p: float
    lambda_sparse: float
    losses: tuple[float, ...]
    used_interactions: float

    @property
    def loss(self) -> float:
        """The mean over the folds."""
        return float(np.mean(self.losses))

    @property
    def standard_error(self) -> float:
        """The standard error of the mean over the folds; NaN for one fold."""
        k = len(self.losses)
        return float(np.std(self.losses, ddof=1) / np.sqrt(k)) if k > 1 else float("nan")

    @property
    def message(self) -> str:
        """The trial in a sentence."""
        shrinkage = f"λ_p = {self.lambda_p:.3g}, " if self.lambda_p else ""
        return (
            f"{shrinkage}λ = {self.lambda_sparse:.3g}: validation loss {self.loss:.5g}, "
            f"{self.used_interactions:,.0f} interactions."
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
        """The choice as a sentence."""
        best, tried = self.best, [trial.lambda_sparse for trial in self.trials]
        shrinkage = f", λ_p = {best.lambda_p:.3g}" if best.lambda_p else ""
        return (
            f"Chosen on rows kept out of training: λ = {best.lambda_sparse:.3g}{shrinkage} "
            f"and λ_w = {best.lambda_w:.3g}, the best of {len(tried)} fits with λ from {max(tried):.3g} to "
            f"{min(tried):.3g}."
        )

    @property
    def frame(self) -> pd.DataFrame:
        """A table with a row for each trial."""
        return pd.DataFrame.from_records([trial.record() for trial in self.trials])


def default_folds(y: np.ndarray, stratified: bool, rng: np.random.Generator) -> list[tuple[Any, Any]]:
    """Return five folds for fewer than 5,000 rows, else a held-out quarter; stratified for classes."""
    from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

    seed = int(rng.integers(2**31))
    most = int(min(np.unique(y, return_counts=True)[1])) if stratified else y.size
    stratified = stratified and most >= 2
    if y.size >= _MANY_ROWS:
        split = (StratifiedShuffleSplit if stratified else ShuffleSplit)(1, test_size=0.25, random_state=seed)
    else:
        parts = max(2, min(_FOLDS, most if stratified else y.size))
        split = (StratifiedKFold if stratified else KFold)(parts, shuffle=True, random_state=seed)
    return list(split.split(np.zeros((y.size, 1)), y))


def choose_strengths(
    *given: Any, tell: Callable[[Trial], Any] = lambda trial: None, **more: Any
) -> Validation:
    """Run `search_strengths` and return its result; `tell` is called with every trial."""
    return finished(search_strengths(*given, **more), tell)


def search_strengths(
    problem: AnyProblem,
    folds: Folds,
    rng: np.random.Generator,
    *,
    solver: str | Solver = "auto",
    one_se: bool = False,
    count: int = N_STRENGTHS,
    patience: int = _PATIENCE,
    should_stop: Callable[[], bool] = lambda: False,
) -> Generator[Trial, None, Validation]:
    """Choose λ_w, λ_p and λ by the mean loss on held-out rows; yield every trial.

    λ_w is chosen first, by linear fits. Then, for each λ_p, a path over λ runs in all folds together: down
    from the λ_max of the data, each fit from the previous one, where solvers can escape P = 0 under the
    regularizer, and else up. It ends early where validation keeps getting worse, and that of the second λ_p
    starts a little before the best of the first.

    Parameters
    ----------
    problem : Problem or SideBySide
        The problem of all rows; its strengths are ignored. Several outputs share the chosen ones.
    folds : sequence of (int ndarray, int ndarray)
        Training rows and held-out rows.
    rng : numpy Generator
        Draws the starts.
    solver : str or Solver
        As for `iterate`.
    one_se : bool
        Whether to take the largest λ whose loss is within one standard error of the least, at the same λ_p.
    count : int
        The number of strengths λ of a path.
    patience : int
        The number of consecutive strengths with a worse validation loss that end a path.
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
    parts = [(problem.of_rows(train), problem.of_rows(held_out)) for train, held_out in folds]
    lambda_w = _linear_strength(problem, parts)
    problem = problem.at(lambda_w=lambda_w)
    parts = [(train.at(lambda_w=lambda_w), held_out) for train, held_out in parts]
    known = references(problem)
    strengths = known.grid(count) if problem.penalty.saddles else known.grid(count)[::-1]
    weakest = {"lambda_p": SHRINKAGE_SHARES[0] * known.lambda_p, "lambda_sparse": min(strengths)}
    method = informed_solver(path_solver(problem, solver), problem)
    starts = [informed_start(train.at(**weakest), known.init_scale, rng, shrunk=True) for train, _ in parts]
    trials: list[Trial] = []
    ends: dict[Trial, list[Parameters]] = {}
    for share in SHRINKAGE_SHARES:
        shrunk = [(train.at(lambda_p=share * known.lambda_p), held_out) for train, held_out in parts]
        recent: deque[tuple[Trial, list[Parameters]]] = deque(maxlen=patience + _OVERLAP + 1)
        for trial, fits in _path(shrunk, strengths, starts, method, rng, patience, should_stop):
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
    for trial, fits in _refined(parts, best, ends[best], method, rng, should_stop):
        trials.append(trial)
        ends[trial] = fits
        yield trial
    best = min(trials, key=lambda trial: trial.loss)
    if one_se and np.isfinite(best.standard_error):
        limit = best.loss + best.standard_error
        near = [t for t in trials if t.lambda_p == best.lambda_p and t.loss <= limit]
        best = max(near, key=lambda trial: trial.lambda_sparse)
    return Validation(trials, best, ends[best][0], known.init_scale)


def _refined(
    parts: list[tuple[AnyProblem, AnyProblem]],
    best: Trial,
    fits: list[Parameters],
    method: Solver,
    rng: np.random.Generator,
    should_stop: Callable[[], bool],
) -> Iterator[tuple[Trial, list[Parameters]]]:
    """Yield trials from the best one on, one strength at a time, as long as that predicts better.

    λ_w was chosen by linear fits, to which the pairs are noise: beside the pairs it may be far too large.
    """
    names = ("lambda_w", "lambda_p", "lambda_sparse")
    for _ in range(_ROUNDS):
        before = best
        for name in names:
            for factor in (1.0 / _FACTOR, _FACTOR):
                worse, start = 0, fits
                value = getattr(best, name)
                gained = False
                while value > 0.0 and worse < _REFINED_PATIENCE and not should_stop():
                    value *= factor
                    changed = {**{n: getattr(best, n) for n in names}, name: value}
                    trial, start = _trial(parts, changed, start, method, rng, should_stop)
                    yield trial, start
                    if trial.loss < best.loss * (1.0 - GAIN):
                        best, fits, worse, gained = trial, start, 0, True
                    else:
                        worse += 1
                if gained:
                    break
        if best is before:
            return


def _trial(
    parts: list[tuple[AnyProblem, AnyProblem]],
    strengths: dict[str, float],
    starts: list[Parameters],
    method: Solver,
    rng: np.random.Generator,
    should_stop: Callable[[], bool],
) -> tuple[Trial, list[Parameters]]:
    """Fit at some strengths on the training rows of all folds, and return the trial with the fits."""
    ends = []
    for (train, _), start in zip(parts, starts, strict=True):
        *_, end = iterate(train.at(**strengths), method, _BUDGET, should_stop, start=start, rng=rng)
        ends.append(end)
    fits = [end.parameters for end in ends]
    losses = tuple(held_out.risk(fit) for (_, held_out), fit in zip(parts, fits, strict=True))
    pairs = float(np.mean([end.used_interactions for end in ends]))
    return Trial(**strengths, losses=losses, used_interactions=pairs), fits


def finished(steps: Generator[Step, None, End], tell: Callable[[Step], Any] = lambda step: None) -> End:
    """Exhaust a generator and return its result; `tell` is called with every step."""
    try:
        while True:
            tell(next(steps))
    except StopIteration as end:
        result: End = end.value
        return result


def _linear_strength(problem: AnyProblem, parts: list[tuple[AnyProblem, AnyProblem]]) -> float:
    """Return the λ_w with the best linear fits on held-out rows."""
    # The reference depends on X alone.
    reference = linear_reference(problem.machines[0])
    if not problem.fit_linear or reference == 0.0:
        return problem.lambda_w
    fits: list[Parameters | None] = [None] * len(parts)
    best, least, worse = problem.lambda_w, float("inf"), 0
    for share in LINEAR_SHARES:
        fitted = [
            linear_fit(train.at(lambda_w=share * reference), rough=True, start=fit)
            for (train, _), fit in zip(parts, fits, strict=True)
        ]
        loss = float(np.mean([held_out.risk(fit) for (_, held_out), fit in zip(parts, fitted, strict=True)]))
        worse = 0 if loss < least else worse + 1
        if loss < least:
            best, least = share * reference, loss
        if worse == _LINEAR_PATIENCE:
            break
        fits = [*fitted]
    return best


def _path(
    parts: list[tuple[AnyProblem, AnyProblem]],
    strengths: Sequence[float],
    starts: list[Parameters],
    method: Solver,
    rng: np.random.Generator,
    patience: int,
    should_stop: Callable[[], bool],
) -> Iterator[tuple[Trial, list[Parameters]]]:
    """Yield the trials along the strengths, each with the fits to the training rows of all folds."""
    least, worse = float("inf"), 0
    for strength in strengths:
        if should_stop():
            return
        problem = parts[0][0]
        chosen = {"lambda_w": problem.lambda_w, "lambda_p": problem.lambda_p, "lambda_sparse": strength}
        trial, starts = _trial(parts, chosen, starts, method, rng, should_stop)
        yield trial, starts
        # Fits without a pair are all the same, and say nothing of what comes.
        if trial.used_interactions:
            worse = 0 if trial.loss < least * (1.0 - GAIN) else worse + 1
        least = min(least, trial.loss)
        if worse >= patience:
            return
