"""Fit many experiments (seeds × strengths × methods) on all cores."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from joblib import cpu_count

from fmviz.engine.errors import finite_number
from fmviz.lab.background.workers import checked_jobs, stream
from fmviz.lab.experiment import Experiment
from fmviz.lab.failure import NO_MEMORY, in_words
from fmviz.lab.runner import Run

FAILED = "failed"
Fitted = TypeVar("Fitted")


@dataclass(frozen=True, eq=False)
class SweepRow:
    """The end of one fit of a sweep: numbers, no arrays.

    Attributes
    ----------
    index : int
        The place of the experiment in the sweep.
    experiment : Experiment
        Its settings.
    status : str
        How the fit ended: a `fmviz.engine.snapshot.Reason`, or "failed" where there is no fit.
    message : str
        The same in a sentence.
    values : mapping of str to float
        What `fmviz.engine.snapshot.Snapshot.record` tells of the end, metrics included; empty after a
        failure.
    details : str
        The traceback of a failure that is a defect.
    """

    index: int
    experiment: Experiment
    status: str
    message: str
    values: Mapping[str, float] = field(default_factory=dict)
    details: str = ""

    def record(self) -> dict[str, Any]:
        """Return settings, results and end, flat: one row of a table.

        ``loss`` is the loss function's name; its mean on the training rows is ``train_loss``.
        """
        return {
            "index": self.index,
            **self.experiment.to_dict(),
            **{name: value for name, value in self.values.items() if name != "loss"},
            "status": self.status,
            "message": self.message,
        }


def sweep(
    experiments: Iterable[Experiment],
    *,
    n_jobs: int = -1,
    seconds: float | None = None,
    backend: str | None = "loky",
) -> Generator[SweepRow]:
    """Fit many experiments and yield the end of each as soon as it is there.

    Every fit has one thread, so that as many run beside each other as there are workers, and equals the same
    fit made alone, bit for bit. The kernels are compiled before the workers start, which load them once.
    A fit that fails becomes a row that says why; the others go on. Closing the generator (or Ctrl-C) ends the
    workers.

    Parameters
    ----------
    experiments : iterable of Experiment
        What to fit; read to the end at once.
    n_jobs : int
        Worker processes; -1 for one a core. 1 fits in this process.
    seconds : float, optional
        The most solver seconds of a fit, besides its own limit of epochs.
    backend : str, optional
        A backend of joblib, for instance "dask"; None takes the one that an enclosing
        `joblib.parallel_config` chose.

    Returns
    -------
    generator of SweepRow
        In the order of completion; ``row.index`` is the place in `experiments`.

    Raises
    ------
    ValueError
        If something is not an experiment, or `n_jobs` or `seconds` is out of range.

    Examples
    --------
    >>> import fmviz
    >>> experiments = [fmviz.Experiment(seed=seed, max_epochs=5) for seed in range(2)]
    >>> sorted(row.index for row in fmviz.sweep(experiments, n_jobs=1))
    [0, 1]
    """
    todo = list(experiments)
    for item in todo:
        if not isinstance(item, Experiment):
            raise ValueError(f"A sweep takes experiments, not {item!r}; make it an fmviz.Experiment first.")
    checked_jobs(n_jobs)
    if seconds is not None:
        finite_number("seconds", seconds, low=0)
    return _rows(todo, cpu_count() if n_jobs == -1 else n_jobs, seconds, backend)


def _rows(
    experiments: list[Experiment], n_jobs: int, seconds: float | None, backend: str | None
) -> Generator[SweepRow]:
    if n_jobs > 1:
        compile_kernels(experiments)
    fit, items = partial(_fit, seconds=seconds), list(enumerate(experiments))
    for _, row in stream(fit, items, _lost, n_jobs=n_jobs, backend=backend):
        yield row


def _fit(item: tuple[int, Experiment], seconds: float | None) -> SweepRow:
    """Fit in a worker; what goes wrong is returned, not raised."""
    end, message, details = attempt(lambda: Run.prepare(item[1]).end(seconds))
    if end is None:
        return SweepRow(*item, FAILED, message, details=details)
    assert end.status is not None, "the last snapshot says how the run ended"
    return SweepRow(*item, str(end.status.reason), end.status.message, end.record())


def attempt(fit: Callable[[], Fitted]) -> tuple[Fitted | None, str, str]:
    """Return what `fit` returns, or None, a sentence, and the traceback of what should not have happened."""
    try:
        return fit(), "", ""
    except Exception as error:
        return None, *in_words(error)


LOST = f"The fit's process was ended from outside. {NO_MEMORY}"


def _lost(item: tuple[int, Experiment]) -> SweepRow:
    return SweepRow(*item, FAILED, LOST)


def compile_kernels(experiments: Iterable[Experiment]) -> None:
    """Ready the kernels of all experiments, so that the workers find them in the cache."""
    seen = set()
    for experiment in experiments:
        # Numbers are arguments of kernels; words and switches decide which kernels there are.
        kind = frozenset(
            (name, value) for name, value in experiment.to_dict().items() if isinstance(value, (str, bool))
        )
        if kind not in seen:
            seen.add(kind)
            # What fails here fails again in a worker, which tells.
            with suppress(Exception):
                Run.prepare(replace(experiment, max_epochs=1)).end()
