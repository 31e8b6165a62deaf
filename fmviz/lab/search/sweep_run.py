"""Sweeps on local cores or a Dask cluster, and tables of their results."""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd

from fmviz.engine.fit import Budget, never
from fmviz.engine.penalties import ALL_PENALTIES
from fmviz.estimators.cluster import connected
from fmviz.lab.background import workers
from fmviz.lab.experiment import Experiment
from fmviz.lab.failure import LOST, attempt
from fmviz.lab.runner import Run, dataset_of
from fmviz.lab.runs.provenance import data_hash, versions
from fmviz.lab.search.sweep_plan import SweepPlan
from fmviz.lab.store import Growth, RunStore, StoredRun
from fmviz.lab.store.database import insert
from fmviz.lab.values import plain
from fmviz.metrics import COLUMNS, listed

# Approximate limit on records per stored trace; evaluating every epoch would cost more than the fits.
_TRACE_RECORDS = 100
FAILED = "failed"


@dataclass(frozen=True, eq=False)
class Fitted:
    """A completed cell of a sweep.

    Attributes
    ----------
    index : int
        The index in `SweepPlan.cells`.
    run : StoredRun
        The stored result.
    fresh : bool
        Whether it is new, not from the store.
    """

    index: int
    run: StoredRun
    fresh: bool


def carry_out(
    plan: SweepPlan,
    store: RunStore,
    *,
    n_jobs: int = -1,
    dask: str | None = None,
    should_stop: Callable[[], bool] = never,
    sweep: str | None = None,
) -> Iterator[Fitted]:
    """Fit all cells of a plan, store them, and yield each on completion.

    Stored results of the same data and version of fmviz are reused: interrupted sweeps resume. A failed fit
    becomes a failed run; the others continue. Each fit has one thread, and equals the same fit run
    separately.

    Parameters
    ----------
    plan : SweepPlan
        The plan.
    store : RunStore
        The store of results, written only by this process.
    n_jobs : int
        Number of worker processes; -1 for one per core. Ignored on a cluster.
    dask : str, optional
        The address of a Dask scheduler, ``tcp://host:port``; its workers need fmviz. Fits of a dying worker
        are repeated by another.
    should_stop : callable
        Polled after every fit.
    sweep : str, optional
        The id of the sweep in the store; by default a new one.

    Yields
    ------
    Fitted
        Stored cells first, then new ones in the order of completion.

    Raises
    ------
    ValueError
        If the Dask scheduler cannot be reached, or the package distributed is not installed.
    """
    sweep = sweep or secrets.token_urlsafe(6)
    with store.database.write() as connection:
        if connection.execute("SELECT id FROM sweeps WHERE id = ?", (sweep,)).fetchone() is None:
            insert(
                connection,
                "sweeps",
                id=sweep,
                created=time.time(),
                title=plan.title,
                declaration=json.dumps(plan.to_dict()),
            )
    known = results(plan, store)
    for index, run in known.items():
        yield Fitted(index, run, fresh=False)
    todo = [i for i in range(len(plan.cells)) if i not in known]
    cells = [plan.cells[i] for i in todo]
    if not cells or should_stop():
        return
    chains = [partial(_fit, cell) for cell in cells]
    if dask is not None:
        ends = _on_cluster(dask, chains)
    else:
        if n_jobs != 1:
            compile_kernels(cells)
        ends = workers.carry_out(chains, should_stop, n_jobs=n_jobs, lost=_lost)
    # Closed here, not by garbage collection: closing stops the fits.
    with closing(ends):
        for i, end in ends:
            # One transaction: if the process is killed, a run is stored completely or not at all.
            with store.database.write():
                name = store.begin(cells[i], origin="sweep", sweep=sweep)
                store.grow(name, end)
            yield Fitted(todo[i], store.get(name), fresh=True)
            if should_stop():
                return


def results(plan: SweepPlan, store: RunStore) -> dict[int, StoredRun]:
    """Return the stored results of the same data and version of fmviz, by cell index."""
    stored = store.finished([cell.digest for cell in plan.cells])
    known = {}
    for index, cell in enumerate(plan.cells):
        run = stored.get(cell.digest)
        if run is None or run.versions.get("fmviz") != versions()["fmviz"]:
            continue
        dataset, _, _ = attempt(partial(dataset_of, cell))
        if dataset is not None and data_hash(dataset) == run.data_hash:
            known[index] = run
    return known


def _fit(experiment: Experiment, should_stop: Callable[[], bool] = never) -> Iterator[Growth]:
    """Yield the result of a cell; errors are results."""
    end, message, details = attempt(partial(_completed, experiment, should_stop))
    yield Growth(status=FAILED, message=message, details=details) if end is None else end


def _completed(experiment: Experiment, should_stop: Callable[[], bool] = never) -> Growth:
    run = Run.prepare(experiment)
    every = max(1, -(-experiment.max_epochs // _TRACE_RECORDS))
    budget = Budget(experiment.max_epochs, None, experiment.tol, report_every=every, certify_every=10**9)
    records = []
    for snapshot in run.stream(budget, should_stop):
        last = snapshot
        metrics = run.measure(snapshot.parameters) if snapshot.status is not None else {}
        records.append(replace(snapshot, metrics=metrics).record())
    assert last.status is not None, "the last snapshot has a status"
    return Growth(
        plain(records, finite=False),
        [record["objective"] for record in records],
        str(last.status.reason),
        last.status.message,
        parameters=last.parameters,
        data_hash=data_hash(run.dataset),
    )


def _lost(_: int) -> Growth:
    return Growth(status=FAILED, message=LOST)


def compile_kernels(experiments: Iterable[Experiment]) -> None:
    """Compile the kernels of all experiments into the cache of the workers."""
    # Numbers are arguments of kernels; names and switches determine the kernels.
    kinds = {
        frozenset(
            (name, x) for name, x in experiment.to_dict().items() if isinstance(x, str | bool)
        ): experiment
        for experiment in experiments
    }
    for experiment in kinds.values():
        # Failures recur in a worker, which reports them.
        with suppress(Exception):
            Run.prepare(replace(experiment, max_epochs=1)).end()


def _on_cluster(address: str, chains: Sequence[workers.Chain]) -> Generator[tuple[int, Growth]]:
    """Carry out chains on a Dask cluster; yield (index of the chain, result)."""
    with connected(address) as client:
        from distributed import KilledWorker, as_completed

        futures = {client.submit(workers.completed, chain): index for index, chain in enumerate(chains)}
        for future in as_completed([*futures], loop=client.loop):
            index = futures.pop(future)
            try:
                results = future.result()
            except KilledWorker:
                results = [_lost(index)]
            for result in results:
                yield index, result


def method_name(method: dict[str, object]) -> str:
    """Return the label of a method of a plan: its regularizer and other settings."""
    others = [f"{name} {value}" for name, value in method.items() if name != "regularizer"]
    penalty = [ALL_PENALTIES[str(method["regularizer"])].label] if "regularizer" in method else []
    return ", ".join([*penalty, *others]) or "default"


def fits_table(plan: SweepPlan, fits: Iterable[tuple[int, StoredRun]]) -> pd.DataFrame:
    """Return one row per fit: data set, method, grid values, seed, status, counts, metrics.

    Parameters
    ----------
    plan : SweepPlan
        The sweep.
    fits : iterable of (int, StoredRun)
        Indices in `SweepPlan.cells`, and results.
    """
    rows = []
    for index, run in fits:
        cell = plan.cells[index].to_dict()
        # The settings of one method may include those of another.
        method = max(
            (m for m in plan.methods if all(plain(cell.get(n)) == plain(value) for n, value in m.items())),
            key=len,
            default={},
        )
        rows.append(
            {
                "run": run.id,
                "dataset": cell["dataset"],
                "method": method_name(dict(method)),
                "regularizer": cell["regularizer"],
                **{name: cell[name] for name in plan.grid},
                "seed": cell["seed"],
                "status": run.status,
                "objective": run.last.get("objective", math.nan),
                "used_interactions": run.last.get("used_interactions", math.nan),
                "used_features": run.last.get("used_features", math.nan),
                **listed(run.last),
            }
        )
    return pd.DataFrame(rows)


def main_metric(table: pd.DataFrame) -> str:
    """Return the primary metric of the fits, or "objective"."""
    return next(name for name in COLUMNS if name in table)


def means_table(table: pd.DataFrame, grid: Sequence[str], metric: str) -> pd.DataFrame:
    """Return mean and standard deviation over the seeds, one row per data set, method and grid point.

    Rows of a data set are sorted from best to worst, ties by the number of interactions.

    Parameters
    ----------
    table : DataFrame
        A table by `fits_table`; failed fits are ignored.
    grid : sequence of str
        The settings of the grid.
    metric : str
        The metric to average, besides the used interactions.

    Returns
    -------
    DataFrame
        The keys, ``fits``, ``mean`` and ``std`` of the metric, and ``interactions`` with
        ``interactions_std``; a deviation of a single fit is NaN.
    """
    keys = ["dataset", "method", "regularizer", *grid]
    means = (
        table.dropna(subset=[metric])
        .groupby(keys, sort=False, dropna=False)
        .agg(
            fits=(metric, "size"),
            mean=(metric, "mean"),
            std=(metric, "std"),
            interactions=("used_interactions", "mean"),
            interactions_std=("used_interactions", "std"),
        )
        .reset_index()
    )
    order = [True, COLUMNS[metric].better == "smaller", True]
    return means.sort_values(["dataset", "mean", "interactions"], ascending=order, ignore_index=True)
