"""Runs a declared sweep: cost estimated, results stored, on this machine's cores or a Dask cluster."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from joblib import cpu_count

from fmviz.engine.drive import Budget, never
from fmviz.lab.background.workers import stream
from fmviz.lab.experiment import Experiment
from fmviz.lab.runner import Run, load_dataset
from fmviz.lab.runs.provenance import data_hash, versions
from fmviz.lab.search.sweep import (
    FAILED,
    LOST,
    attempt,
    compile_kernels,
)
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.store import Growth, RunStore, StoredRun
from fmviz.lab.store.database import insert
from fmviz.lab.values import plain

__all__ = ["Cost", "Fitted", "carry_out", "cost", "results"]

# A stored trace has at most about so many records; evaluating every epoch would cost more than the fits.
_TRACE_RECORDS = 100
_PILOT_SECONDS = 2.0


@dataclass(frozen=True)
class Cost:
    """What a sweep will cost, as far as a pilot tells.

    Attributes
    ----------
    fits : int
        Cells of the sweep.
    stored : int
        How many of them the store has already.
    seconds : float
        Estimated seconds of fitting with all workers at work, as if every fit took as long as the pilot of
        its data set and method. One that did not converge in its time is taken to go on to the last epoch.
    workers : int
        Fits at a time.
    notes : tuple of str
        A sentence for every pilot that failed.
    """

    fits: int
    stored: int
    seconds: float
    workers: int
    notes: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Return the cost in words."""
        fits = f"{self.fits:,} fit" + ("" if self.fits == 1 else "s")
        known = f", of which {self.stored:,} are in the store already" if self.stored else ""
        if self.stored == self.fits:
            return f"{fits}, all of which are in the store already."
        span = self.seconds
        time_words = f"{span / 3600:.1f} hours" if span >= 5400 else f"{span / 60:.1f} minutes"
        if span < 90:
            time_words = f"{span:.0f} seconds" if span >= 1.5 else "a second"
        return f"{fits}{known}; about {time_words} of fitting with {self.workers} at a time."


@dataclass(frozen=True, eq=False)
class Fitted:
    """A cell of a sweep that has its result.

    Attributes
    ----------
    index : int
        The place among `SweepPlan.cells`.
    run : StoredRun
        The result, as stored.
    fresh : bool
        False where the store had it before.
    """

    index: int
    run: StoredRun
    fresh: bool


def cost(plan: SweepPlan, store: RunStore | None = None, *, n_jobs: int = -1) -> Cost:
    """Return what a sweep will cost, from short trial fits: one for every data set and method."""
    known = _known(plan.cells, store) if store is not None else {}
    todo = [cell for i, cell in enumerate(plan.cells) if i not in known]
    workers = cpu_count() if n_jobs == -1 else n_jobs
    groups: dict[Any, list[Experiment]] = {}
    for cell in todo:
        numbers = {"seed": 0, **dict.fromkeys(plan.grid)}
        groups.setdefault(tuple(sorted((cell.to_dict() | numbers).items(), key=str)), []).append(cell)
    total, notes = 0.0, []
    for cells in groups.values():
        pilot = cells[len(cells) // 2]
        seconds, sentence, _ = attempt(partial(_pilot, pilot))
        if seconds is None:
            notes.append(sentence)
        else:
            total += seconds * len(cells)
    return Cost(len(plan.cells), len(known), total / max(1, min(workers, len(todo))), workers, tuple(notes))


def _pilot(experiment: Experiment) -> float:
    """Return the seconds that a fit takes, by its first seconds: those of all its epochs if it goes on."""
    compile_kernels([experiment])
    begin = time.perf_counter()
    run = Run.prepare(experiment)
    prepared = time.perf_counter()
    end = run.end(_PILOT_SECONDS)
    spent = time.perf_counter() - prepared
    if end.status is not None and end.status.reason == "seconds" and end.epoch:
        spent *= experiment.max_epochs / end.epoch
    return prepared - begin + spent


def carry_out(
    plan: SweepPlan,
    store: RunStore,
    *,
    n_jobs: int = -1,
    dask: str | None = None,
    should_stop: Callable[[], bool] = never,
    sweep: str | None = None,
) -> Iterator[Fitted]:
    """Fit all cells of a plan into the store, and yield each as soon as it is there.

    Cells whose result is in the store, from the same data and the same version of fmviz, are taken from
    there: a sweep that was cut off goes on where it was. A fit that fails becomes a failed run; the others
    go on. Each fit has one thread, and equals the same fit made alone.

    Parameters
    ----------
    plan : SweepPlan
        What to fit.
    store : RunStore
        Where the results go; written by this process alone, whoever makes the fits.
    n_jobs : int
        Worker processes; -1 for one a core. Without effect on a cluster.
    dask : str, optional
        The address of a Dask scheduler, ``tcp://host:port``; its workers need fmviz installed. A worker
        that dies has its fits repeated by another.
    should_stop : callable
        Asked after every fit.
    sweep : str, optional
        The name of the sweep in the store; a new one without it.

    Yields
    ------
    Fitted
        Those of the store first, then in the order of completion.

    Raises
    ------
    ValueError
        If the Dask scheduler cannot be reached, or the package distributed is not installed.
    """
    sweep = sweep or secrets.token_urlsafe(6)
    with store.database.write() as connection:
        known_sweep = connection.execute("SELECT id FROM sweeps WHERE id = ?", (sweep,)).fetchone()
        if known_sweep is None:
            told = json.dumps(plan.to_dict())
            insert(connection, "sweeps", id=sweep, created=time.time(), title=plan.title, declaration=told)
    known = _known(plan.cells, store)
    for index, run in known.items():
        yield Fitted(index, run, fresh=False)
    todo = [i for i in range(len(plan.cells)) if i not in known]
    workers = cpu_count() if n_jobs == -1 else n_jobs
    cells = [plan.cells[i] for i in todo]
    if not cells or should_stop():
        return
    place: AbstractContextManager[None] = nullcontext() if dask is None else _cluster(dask)
    with place:
        if dask is None and workers > 1:
            compile_kernels(cells)
        backend = None if dask is not None else "loky"
        ends = stream(_fit, cells, _lost, n_jobs=workers if dask is None else -1, backend=backend)
        # Closed here and not by the collector of garbage: that ends the workers.
        with closing(ends):
            for i, end in ends:
                name = store.begin(cells[i], origin="sweep", sweep=sweep)
                store.grow(name, end)
                yield Fitted(todo[i], store.get(name), fresh=True)
                if should_stop():
                    return


def results(plan: SweepPlan, store: RunStore) -> dict[int, StoredRun]:
    """Return the results of a plan that the store has, by the place of their cell."""
    return _known(plan.cells, store)


def _known(cells: tuple[Experiment, ...], store: RunStore) -> dict[int, StoredRun]:
    """Return the cells with a result of the same data and version, by their place."""
    found = store.finished([cell.digest for cell in cells])
    known = {}
    for index, cell in enumerate(cells):
        run = found.get(cell.digest)
        if run is None or run.versions.get("fmviz") != versions()["fmviz"]:
            continue
        dataset, _, _ = attempt(partial(load_dataset, cell.dataset, **dict(cell.dataset_params)))
        if dataset is not None and data_hash(dataset) == run.data_hash:
            known[index] = run
    return known


def _fit(experiment: Experiment) -> Growth:
    """Fit in a worker; whatever goes wrong is told, not raised."""
    end, sentence, details = attempt(partial(_whole, experiment))
    return Growth(status=FAILED, message=sentence, details=details) if end is None else end


def _whole(experiment: Experiment) -> Growth:
    run = Run.prepare(experiment)
    every = max(1, -(-experiment.max_epochs // _TRACE_RECORDS))
    budget = Budget(experiment.max_epochs, None, experiment.tol, report_every=every, certify_every=10**9)
    records = []
    for snapshot in run.stream(budget, never):
        last = snapshot
        metrics = run.measure(snapshot.parameters) if snapshot.status is not None else {}
        records.append(replace(snapshot, metrics=metrics).record())
    assert last.status is not None, "the last snapshot says how the run ended"
    return Growth(
        plain(records, finite=False),
        [record["objective"] for record in records],
        str(last.status.reason),
        last.status.message,
        parameters=last.parameters,
        data_hash=data_hash(run.dataset),
    )


def _lost(experiment: Experiment) -> Growth:
    del experiment
    return Growth(status=FAILED, message=LOST)


@contextmanager
def _cluster(address: str) -> Iterator[None]:
    """Make joblib send its calls to a Dask cluster."""
    try:
        from distributed import Client
        from distributed.comm import parse_address, parse_host_port
        from distributed.comm.registry import get_backend
    except ImportError:
        raise ValueError(
            "A Dask cluster needs the package distributed; install it with `pip install fmviz[dask]`, or "
            "leave the scheduler out to use this machine's cores."
        ) from None
    from joblib import parallel_config

    try:
        # A client that is given what is no address cannot be closed.
        scheme, where = parse_address(address)
        get_backend(scheme)
        parse_host_port(where)
        client = Client(address, timeout="20s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ValueError(
            f"The Dask scheduler {address!r} cannot be reached ({error}). Start one with `dask scheduler`, "
            "and name the address that it prints, for instance tcp://127.0.0.1:8786."
        ) from None
    try:
        with client.as_current(), parallel_config("dask", client=client):
            yield
    finally:
        client.close()
