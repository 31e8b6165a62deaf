"""Column effects of a machine: samples if possible, the number of relevant pairs, and the chance level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fmviz.engine.fit import Budget, Fit, never
from fmviz.engine.parameters import Parameters
from fmviz.engine.problem import Problem
from fmviz.engine.sampling.posterior import Posterior
from fmviz.engine.target import Target
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.chance import SIGNS, Beyond, beyond_chance
from fmviz.lab.interpretation.effects import Effects, as_posterior
from fmviz.lab.interpretation.wording import Wording, number
from fmviz.lab.runner import Run
from fmviz.lab.search.averaged import LOG_ODDS, Average, Message, average_beside
from fmviz.metrics import METRICS, Predictions, measured
from fmviz.typography import counted

# The number of columns whose pairs are tested, those with the largest effects alone.
_MOST_TESTED = 60


@dataclass(frozen=True, eq=False)
class ByColumns:
    """Column effects of a machine.

    Attributes
    ----------
    effects : Effects
        Main effects and pairs, from samples if they predict better, else from the fit.
    message : str
        A sentence on the choice between samples and fit.
    errors : tuple of dict
        The errors of baselines and of the machine on held-out rows, as rows of a table.
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
    def compared(self) -> str:
        """The first error of the machine and of the baselines; empty without held-out rows."""
        if not self.errors:
            return ""
        rows, metric, *_ = self.errors[0]
        each = [f"{number(row[metric])} for {row[rows]}" for row in reversed(self.errors)]
        return f"{metric} {rows}: {'; '.join(each)}."

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


def alone(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return f of a model of the columns without pairs, on the training rows and on the held-out rows."""
    design, y, loss = run.problem.design, run.problem.target, run.problem.loss
    # A linear model with ½‖w‖² beside the sum of the losses.
    problem = Problem.build(design, y, loss=loss, rank=0, lambda_w=0.5 / y.values.size)
    end = Fit.of(problem, budget=Budget(300, tol=1e-6, report_every=None)).end()
    train, *held_out = (problem.model.scores(design, end.parameters) for design in run.designs)
    return train, held_out[0] if held_out else np.empty(0)


def baselines(run: Run, machine: Posterior, linear: np.ndarray) -> tuple[dict[str, Any], ...]:
    """Return the errors on held-out rows of a constant, of columns without pairs, and of the machine."""
    if run.validation is None:
        return ()
    (design, y), loss = run.validation, run.problem.loss
    constant = "the most frequent class" if machine.binary else "the mean"
    known = {
        constant: np.full(y.size, loss.score(run.problem.y.mean())),
        "columns without pairs": linear,
        "this model" if len(machine.P) == 1 else "the average of samples": machine.scores(design.matrix),
    }
    groups, target, rows = run.row_groups[1], Target.of(y), []
    of = "" if groups is None else f" of {len(np.unique(groups)):,} {run.dataset.group}"
    for name, f in known.items():
        row: dict[str, Any] = {f"on {y.size:,} held-out rows{of}": name}
        for metric, value in measured(target.kind, Predictions(target, f, loss=loss)).items():
            scale, title = METRICS[metric].within(run.dataset.unit)
            title += run.dataset.contrast if metric == "auc" else ""
            row[title] = scale * value
        rows.append(row)
    return tuple(rows)


def read_by_columns(
    run: Run, parameters: Parameters, should_stop: Callable[[], bool] = never
) -> Iterator[Message | Average | ByColumns]:
    """Compute the column effects of samples, or of a single-output fit that predicts better."""
    machine, message = as_posterior(parameters, run.problem.loss.task == "binary"), ""
    average = yield from average_beside(run, parameters, should_stop)
    if average is not None:
        message = average.message
        machine = machine if average.worse else average.posterior
    yield read(run, machine, message)


def read(
    run: Run, machine: Posterior, message: str = "", total: tuple[Run, Posterior] | None = None
) -> ByColumns:
    """Return the column effects of a machine, its errors on held-out rows, and the pairs beyond chance.

    Effects and pairs are those of a run on all rows and its machine, if it is given as `total`.
    """
    train, held_out = alone(run)
    errors = baselines(run, machine, held_out)
    if total is not None:
        run, machine = total
        train, _ = alone(run)
    effects = effects_of(run, machine)
    columns = sorted(effects.mains["column"].head(_MOST_TESTED))
    codes = {column: effects.codes(column) for column in columns}
    residuals = -run.problem.slope(train)
    beyond = beyond_chance(codes, residuals, run.row_groups[0], run.experiment.seed)
    return ByColumns(effects, message, errors, beyond, len(columns))
