"""Column effects of the machine that predicts best, and the pairs of columns beyond chance."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.fit import Budget, Fit, never
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.sampling.posterior import Posterior
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.chance import SIGNS, Beyond, beyond_chance
from fmviz.lab.interpretation.effects import Effects, as_posterior
from fmviz.lab.interpretation.wording import Wording
from fmviz.lab.runner import Run
from fmviz.lab.search.averaged import LOG_ODDS, Message
from fmviz.lab.search.contest import Contest, Name, contest_of
from fmviz.typography import counted

# The number of columns whose pairs are tested, those with the largest effects alone.
_MOST_TESTED = 60


@dataclass(frozen=True, eq=False)
class ByColumns:
    """Column effects of a machine.

    Attributes
    ----------
    effects : Effects
        Main effects and pairs of a machine.
    message : str
        Sentences on the machine.
    errors : tuple of dict
        The errors of the candidates on held-out rows, as rows of a table.
    beyond : tuple of Beyond
        The pairs of columns beyond chance.
    tested : int
        The number of columns whose pairs were tested.
    """

    effects: Effects
    message: str = ""
    errors: tuple[dict[str, Any], ...] = ()
    beyond: tuple[Beyond, ...] = ()
    tested: int = 0

    @property
    def n_bytes(self) -> int:
        """The memory size in bytes."""
        return int(self.effects.posterior.P.nbytes)

    @property
    def counted(self) -> np.ndarray:
        """Mask of the pairs of columns, largest first, that are beyond chance."""
        named = {(pair.first, pair.second) for pair in self.beyond}
        return np.array(
            [pair in named for pair in zip(*self.effects.pairs[["a", "b"]].to_numpy().T, strict=True)]
        )

    @property
    def named(self) -> pd.DataFrame:
        """The pairs of columns beyond chance, the one that explains most first."""
        pairs = self.effects.pairs.set_index(["a", "b"], drop=False)
        return pairs.loc[[(pair.first, pair.second) for pair in self.beyond]]

    @property
    def sentences(self) -> list[str]:
        """Sentences on the number of pairs beyond chance, and how it was found."""
        named, of_all = len(self.beyond), f"{counted(len(self.effects.pairs), 'pair')} of columns"
        stand = f"{named:,} of {of_all} {'stands' if named == 1 else 'stand'} out from chance."
        few = f" Only the {self.tested:,} columns with the largest effects were tested."
        few *= self.tested < len(self.effects.columns)
        return [
            stand if named else f"None of {of_all} stands out from chance.",
            f"Tested by the residuals of the columns alone, beside {SIGNS} sets of random signs, at 1 % for "
            f"all pairs together; pairs that repeat a stronger one do not count.{few}",
        ]


def effects_of(run: Run, machine: Posterior) -> Effects:
    """Return the effects of samples, or of a fit as a single sample, in target units or log-odds."""
    wording = Wording(Attributes(run.dataset), run.experiment.loss.name)
    scale, unit = wording.scale, wording.unit
    if wording.log_odds:
        scale, unit = LOG_ODDS if len(machine.P) > 1 else 1.0, f"log-odds of {wording.positive}"
    center = 0.0 if wording.scaling is None or wording.binary else wording.scaling.mean
    # Successive samples are correlated: half of them suffice.
    return Effects(machine[::2], run.problem.design.matrix, run.dataset.columns, scale, unit, center)


def read_by_columns(
    run: Run, parameters: Parameters, should_stop: Callable[[], bool] = never, sparsest: bool = False
) -> Iterator[Message | ByColumns]:
    """Hold the contest of a run, and yield the column effects of the machine that describes them best."""
    contest = yield from contest_of(run, should_stop)
    chosen: Name = "pairs"
    if contest is not None:
        chosen = contest.sparsest if sparsest else contest.best
    by = (
        None if should_stop() else (yield from described(contest, chosen, run, parameters, None, should_stop))
    )
    if by is not None:
        yield by


def described(
    contest: Contest | None,
    chosen: Name,
    run: Run,
    parameters: Parameters,
    posterior: Posterior | None = None,
    should_stop: Callable[[], bool] = never,
) -> Generator[Message, None, ByColumns | None]:
    """Return the column effects after a contest, of sparse pairs or of samples; None if stopped.

    `posterior` are the samples of the chosen candidate, if known. Without a contest, the effects are those of
    the run.
    """
    machine: Posterior | None
    binary = run.problem.loss.task == "binary"
    if contest is None:
        return read(run, as_posterior(parameters, binary), _alone(run))
    name, message = contest.described(chosen), contest.message(chosen)
    if name == "pairs":
        machine = as_posterior(contest.embedded(parameters, run), binary)
    else:
        known = posterior if name == chosen else None
        machine = known or (yield from contest.machine(name, should_stop))
    if name != chosen:
        message += f" Effects are those of {contest.labels[name]}, which has intervals."
    columns = yield from contest.machine("columns", should_stop)
    if machine is None or columns is None:
        return None
    side = contest.run
    alone = columns.scores(side.problem.design.matrix)
    by = read(side, machine, LOG_ODDS * alone if columns.binary else alone)
    return replace(by, message=message, errors=contest.errors)


def _alone(run: Run) -> np.ndarray:
    """Return f of a linear model with ½‖w‖² beside the sum of the losses, on the training rows."""
    design, y, loss = run.problem.design, run.problem.target, run.problem.loss
    problem = Problem.build(design, y, loss=loss, rank=0, lambda_w=0.5 / y.values.size)
    end = Fit.of(problem, budget=Budget(300, tol=1e-6, report_every=None)).end()
    return problem.model.scores(design, end.parameters)


def read(run: Run, machine: Posterior, alone: np.ndarray) -> ByColumns:
    """Return the column effects of a machine, and the pairs beyond chance.

    `alone` are the predictions of the columns alone for the training rows, shape (N,).
    """
    effects = effects_of(run, machine)
    columns = sorted(effects.mains["column"].head(_MOST_TESTED))
    codes = {column: effects.codes(column) for column in columns}
    residuals = -run.problem.slope(alone)
    beyond = beyond_chance(codes, residuals, run.row_groups[0], run.experiment.seed)
    return ByColumns(effects, beyond=beyond, tested=len(columns))
