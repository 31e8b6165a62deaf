"""Load a stored run with its data, and compute statistics of W in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from fmviz.engine.errors import StoppedError
from fmviz.engine.fit import never
from fmviz.engine.interactions.weights import PairWeights, pairs_of
from fmviz.engine.models import Model
from fmviz.engine.parameters import Parameters
from fmviz.lab.background.task import Make
from fmviz.lab.background.tasks import manager
from fmviz.lab.datasets import Dataset
from fmviz.lab.experiment import Experiment
from fmviz.lab.interpretation.attributes import Attributes
from fmviz.lab.interpretation.wording import Wording
from fmviz.lab.runner import Run, dataset_of
from fmviz.lab.search.findings import Findings, read_findings
from fmviz.lab.store import RunStore, StoredRun
from fmviz.lab.store.table import title_of_run
from fmviz.ui.watching import results_of

# Maximum number of columns whose pairs are ranked.
_MOST_COLUMNS = 150

_Found = TypeVar("_Found")


@dataclass(frozen=True, eq=False)
class Opened:
    """A stored run with its data, model and parameters.

    Attributes
    ----------
    run : StoredRun
        The stored run.
    experiment : Experiment
        The settings of the run.
    model : Model
        The model with its parameters; with several outputs, the model of the chosen output.
    parameters : Parameters
        The final parameters.
    attributes : Attributes
        The attributes of the data.
    wording : Wording
        Describes effects in words.
    pairs : PairWeights or None
        The pair weights.
    no_pairs : str
        Why there are no pair weights.
    full_dataset : Dataset
        The data with all outputs; `attributes` describe the chosen output.
    output : int
        The index of the chosen output.
    """

    run: StoredRun
    experiment: Experiment
    model: Model
    parameters: Parameters
    attributes: Attributes
    wording: Wording
    pairs: PairWeights | None
    no_pairs: str
    full_dataset: Dataset
    output: int

    @property
    def dataset(self) -> Dataset:
        """The data."""
        return self.attributes.dataset

    @property
    def by_columns(self) -> bool:
        """Whether column effects apply: second order, with separate outputs."""
        return self.model.plain and 1 < len(self.dataset.columns) <= _MOST_COLUMNS

    @property
    def key(self) -> str:
        """A cache key of this state of the run."""
        return f"{self.run.id}:{self.run.updated}:{self.output}"


@st.cache_resource(max_entries=4, show_spinner="Opening the run and its data.")
def opened(run: str, updated: float, path: str, _runs: RunStore, output: int = 0) -> Opened:
    """Open one output of a stored run; the other arguments are cache keys.

    Raises
    ------
    ValueError
        If there is nothing to read, with a sentence.
    """
    stored = _runs.get(run)
    experiment = stored.experiment
    parameters = _runs.parameters(stored.id)
    if parameters is None:
        raise ValueError(f"{title_of_run(stored)} ended before its first epoch and has no parameters.")
    if not parameters.finite():
        raise ValueError(
            f"{title_of_run(stored)} has diverged: its parameters are not finite. Train again with "
            "stronger penalties or another solver."
        )
    full_dataset = dataset_of(experiment)
    stored.check_data(parameters, full_dataset)
    output = min(output, experiment.model.n_outputs_of(parameters) - 1)
    model = experiment.model
    single, parameters = model.of_output(parameters, output)
    attributes = Attributes(full_dataset.of_output(output))
    pairs, why = None, ""
    try:
        pairs = pairs_of(single, parameters)
    except ValueError as error:
        why = str(error)
    # With classes fitted jointly, a single score is not a log-odds.
    compared = full_dataset.task == "class" and model.multi_output
    return Opened(
        stored,
        experiment,
        single,
        parameters,
        attributes,
        Wording(attributes, experiment.loss.name, compared),
        pairs,
        why,
        full_dataset,
        output,
    )


# ------------------------------------------------------------------------------------------- calculations


def calculated(
    reading: Opened, name: str, make: Callable[[Callable[[], None]], _Found], what: str
) -> _Found | None:
    """Return a calculation over all of W, or None while it runs in the background.

    Parameters
    ----------
    reading : Opened
        The run.
    name : str
        Identifies the result, including everything it depends on besides the run.
    make : callable
        Computes the result; takes a progress callback.
    what : str
        Description of the calculation for the user.
    """
    assert reading.pairs is not None

    def stream(should_stop: Callable[[], bool]) -> Iterator[_Found]:
        def between() -> None:
            if should_stop():
                raise StoppedError

        yield make(between)

    words = f"{what} P has {reading.pairs.rows.size:,} non-zero rows."
    results = in_background(reading, name, stream, words)
    return results[0] if results else None


def in_background(reading: Opened, name: str, make: Make, words: str) -> list[Any] | None:
    """Return the results about a run so far, None before the first; see `results_of`."""
    return results_of(f"{name}:{reading.key}", make, words, f"interactions_{name}")


def read_columns(reading: Opened, strengths: str) -> Findings | None:
    """Return the column effects of the machine that predicts best, or of the sparsest one as good."""
    make, name = _reading(reading, strengths), f"columns_{strengths}"
    results = in_background(reading, name, make, "Comparing candidates by folds.")
    return results[-1] if results else None


def _reading(reading: Opened, strengths: str) -> Callable[[Callable[[], bool]], Iterator[Any]]:
    return partial(_read, partial(read_findings, sparsest=strengths == "sparsest"), reading)


def _read(
    read: Callable[..., Iterator[Any]], reading: Opened, should_stop: Callable[[], bool]
) -> Iterator[Any]:
    run = Run.prepare(reading.experiment).of_output(reading.output)
    yield from read(run, reading.parameters, should_stop)


def latest_findings(reading: Opened, strengths: str = "best") -> Findings:
    """Return the newest findings; compute them if there are none."""
    task = manager().get(f"columns_{strengths}:{reading.key}")
    known = [] if task is None else [item for item in task.view().items if isinstance(item, Findings)]
    return known[-1] if known else [*_reading(reading, strengths)(never)][-1]
