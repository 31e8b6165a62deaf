"""Column effects of a machine: samples if possible, the number of relevant pairs, and the chance level."""

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
from fmviz.engine.target import Target
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.effects import Effects, as_posterior
from fmviz.lab.interpretation.wording import Wording, number
from fmviz.lab.runner import Run
from fmviz.lab.search.averaged import LOG_ODDS, Average, Message, average_beside, averaged, visits_of
from fmviz.metrics import METRICS, Predictions, measured
from fmviz.typography import counted

# Numbers of fits to shuffled targets, fewer for large data.
_FEWEST_SHUFFLES, _MOST_SHUFFLES, _MOST_VISITS = 2, 10, 3e9
_SECONDS = 8.0


@dataclass(frozen=True, eq=False)
class ByColumns:
    """Column effects of a machine.

    Attributes
    ----------
    effects : Effects
        Main effects and pairs, from samples if they predict better, else from the fit.
    message : str
        A sentence on the choice between samples and fit.
    n_pairs : int or None
        The smallest number of pairs that predict within one standard error of the best; None without held-out
        rows.
    errors : tuple of dict
        The errors of baselines and of the machine on held-out rows, as rows of a table.
    chance : float or None
        The size of the largest pair in fits to shuffled targets; None before the first fit.
    shuffles : int
        The number of these fits.
    """

    effects: Effects
    message: str = ""
    n_pairs: int | None = None
    errors: tuple[dict[str, Any], ...] = ()
    chance: float | None = None
    shuffles: int = 0

    @property
    def n_bytes(self) -> int:
        """The memory size in bytes."""
        return int(self.effects.posterior.P.nbytes)

    @property
    def counted(self) -> np.ndarray:
        """Mask of the pairs of columns, largest first, that prediction needs or that exceed chance."""
        sizes = self.effects.pairs["size"].to_numpy()
        return (np.arange(sizes.size) < (self.n_pairs or 0)) | (sizes > (self.chance or 0.0))

    @property
    def named(self) -> pd.DataFrame:
        """The relevant pairs of columns: those that predict as well as all, or that exceed chance."""
        pairs = self.effects.pairs
        return pairs[self.counted] if self.n_pairs is None else pairs.head(self.n_pairs)

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
        """Sentences on the number of relevant pairs and the chance level."""
        pairs = self.effects.pairs
        of_all = f"{counted(len(pairs), 'pair')} of columns"
        said = [f"There {'is' if len(pairs) == 1 else 'are'} {of_all}."]
        if self.n_pairs is not None:
            verb = "predicts" if self.n_pairs == 1 else "predict"
            largest = f"The largest {self.n_pairs:,} of {of_all} {verb}"
            first = largest if self.n_pairs else f"The columns alone, without {of_all}, predict"
            said = [f"{first} as well as all, within one standard error."]
        if self.chance is not None:
            larger = f"larger are {int((pairs['size'] > self.chance).sum()):,} of {len(pairs):,}"
            said.append(
                f"In {counted(self.shuffles, 'fit')} to shuffled targets the largest typical size of a pair "
                f"is {number(self.chance)} {self.effects.unit}; {larger}."
            )
        return said


def effects_of(run: Run, machine: Posterior) -> Effects:
    """Return the effects of samples, or of a fit as a single sample, in target units or log-odds."""
    wording = Wording(Attributes(run.dataset), run.experiment.loss.name)
    scale, unit = wording.scale, wording.unit
    if wording.log_odds:
        scale, unit = LOG_ODDS if len(machine.P) > 1 else 1.0, f"log-odds of {wording.positive}"
    # Successive samples are correlated: half of them suffice.
    return Effects(machine[::2], run.problem.design.matrix, run.dataset.columns, scale, unit)


def baselines(run: Run, machine: Posterior) -> tuple[dict[str, Any], ...]:
    """Return the errors of a constant, of columns without pairs, and of the machine on held-out rows."""
    if run.validation is None:
        return ()
    (design, y), loss, trained = run.validation, run.problem.loss, run.problem.target
    # A linear model with ½‖w‖² beside the sum of the losses.
    alone = Problem.build(run.problem.design, trained, loss=loss, rank=0, lambda_w=0.5 / trained.values.size)
    end = Fit.of(alone, budget=Budget(1_000, _SECONDS, 1e-6, report_every=None)).end()
    constant = "the most frequent class" if machine.binary else "the mean"
    known = {
        constant: np.full(y.size, loss.score(trained.values.mean())),
        "columns without pairs": alone.model.scores(design, end.parameters),
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
    """Compute the column effects of a single-output fit or its samples, whichever is better, and of chance.

    Each `ByColumns` replaces the previous one.
    """
    machine, message = as_posterior(parameters, run.problem.loss.task == "binary"), ""
    average = yield from average_beside(run, parameters, should_stop)
    if average is not None:
        message = average.message
        machine = average.posterior if average.score is None or average.better else machine
    reading = read_validated(run, machine, message)
    yield reading
    yield (yield from beside_chance(run, reading, should_stop))


def read_validated(run: Run, machine: Posterior, message: str = "") -> ByColumns:
    """Return the column effects of a machine, with errors and relevant pairs on held-out rows."""
    effects, held_out = effects_of(run, machine), run.validation
    loss = run.problem.loss if run.problem.loss.log_link else None
    n_pairs = held_out and effects.enough(held_out[0].matrix, held_out[1], run.row_groups[1], loss)
    return ByColumns(effects, message, n_pairs, baselines(run, machine))


def beside_chance(
    run: Run, reading: ByColumns, should_stop: Callable[[], bool] = never
) -> Generator[Message, None, ByColumns]:
    """Return the column effects with the largest pair among fits of the same kind to shuffled targets."""
    rng = np.random.default_rng([run.experiment.seed, 4])
    number = int(np.clip(_MOST_VISITS / visits_of(run.problem), _FEWEST_SHUFFLES, _MOST_SHUFFLES))
    for shuffles in range(1, number + 1):
        problem = run.problem.on_rows(run.problem.design, rng.permutation(run.problem.y))
        shuffled = replace(run, problem=problem, validation=None, begin=None)
        # Samples adapt to targets without a signal; a fit with fixed strengths would not.
        machine = yield from averaged(shuffled, should_stop)
        if should_stop():
            break
        if machine is None:
            machine = as_posterior(shuffled.end(_SECONDS).parameters, reading.effects.posterior.binary)
        size = float(effects_of(shuffled, machine).pairs["size"].max())
        reading = replace(reading, chance=max(size, reading.chance or 0.0), shuffles=shuffles)
    return reading
