"""Independent fits on all cores: kept as they finish, failures recorded."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from fmviz.lab.background.workers import stream
from fmviz.lab.papers.checkpoints import key_of, resumed
from fmviz.lab.papers.reproduction import Reproduction, Row
from fmviz.lab.search.sweep import LOST, attempt

Trial = TypeVar("Trial", bound=Any)


@dataclass(frozen=True)
class _Guarded:
    """Work in a worker, which must not raise."""

    work: Callable[[Any], Row]
    columns: Sequence[str]

    def __call__(self, trial: Any) -> Row:
        found, failure, _ = attempt(lambda: self.work(trial))
        return self.failed(failure) if found is None else found

    def failed(self, failure: str) -> Row:
        return {**dict.fromkeys(self.columns), "failure": failure}


def each(
    repro: Reproduction,
    work: Callable[[Trial], Row],
    trials: Sequence[Trial],
    columns: Sequence[str],
    *named: Any,
) -> Iterator[tuple[Trial, Row]]:
    """Do the work of all trials until it is to stop; a failure is a row of None that says why.

    Parameters
    ----------
    repro : Reproduction
        Counts what is done.
    work : callable
        ``work(trial)`` returns the columns of its row; importable by name.
    trials : sequence
        Frozen dataclasses; ``trial.data`` names the data in `Reproduction.data`.
    columns : sequence of str
        Those of a row that a failure has no values for.
    *named
        What tells the work from other work on the same trials in the checkpoints: its name, then settings.
    """
    guarded = _Guarded(work, columns)

    def key(trial: Trial) -> str:
        return key_of(named[0], asdict(trial), *named[1:], repro.data.get(trial.data))

    def made(rest: list[Trial]) -> Generator[tuple[int, Row]]:
        return stream(guarded, rest, lambda trial: guarded.failed(LOST), n_jobs=repro.n_jobs)

    with closing(resumed(repro.memory, trials, key, made)) as results:
        for index, found in results:
            repro.done += 1
            yield trials[index], found
            if repro.should_stop():
                return


def ready(
    repro: Reproduction,
    work: Callable[[Trial], Row],
    trials: Sequence[Trial],
    kind: Callable[[Trial], Hashable],
) -> Iterator[str]:
    """Do the work of one trial of each kind, so that workers find its kernels compiled."""
    if repro.n_jobs != 1:
        yield "Readying the kernels"
        for trial in {kind(trial): trial for trial in trials}.values():
            _Guarded(work, ())(trial)
