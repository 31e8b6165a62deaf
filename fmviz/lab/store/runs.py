"""The runs of the store: writing, reading, queries and deletion."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from fmviz.engine.checkpoint import Checkpoint
from fmviz.engine.parameters import Parameters
from fmviz.lab.experiment import Experiment, name_of
from fmviz.lab.files import default_path
from fmviz.lab.runs.provenance import versions
from fmviz.lab.store.database import Database, StoreError, insert
from fmviz.lab.store.packing import (
    Record,
    pack_parameters,
    pack_records,
    spark,
    unpack_parameters,
    unpack_records,
)
from fmviz.lab.store.stored_run import (
    BROKEN,
    COLUMNS,
    PAUSED,
    RUNNING,
    Growth,
    StoredRun,
    this_process,
)

MOST_TITLE = 200
"""The maximum length of a title, in characters."""
# Any number of items, passed as a JSON list.
_LISTED = "(SELECT value FROM json_each(?))"


class AtWorkError(ValueError):
    """Another process owns a run."""


class RunStore:
    """The runs in a file, safe for concurrent use by threads and processes.

    Parameters
    ----------
    path : path-like, optional
        The file, see `default_path`.

    Raises
    ------
    StoreError
        If the file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()
        self.database = Database(self.path)

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    # ------------------------------------------------------------------------------------------- writing

    def begin(
        self,
        experiment: Experiment,
        *,
        run: str | None = None,
        origin: str = "python",
        title: str = "",
        sweep: str | None = None,
    ) -> str:
        """Insert a new run; return its id, `run` if given."""
        run, now = run or new_id(), time.time()
        with self.database.write() as connection:
            insert(
                connection,
                "runs",
                id=run,
                created=now,
                updated=now,
                status=RUNNING,
                message="Training.",
                origin=origin,
                title=title,
                experiment=experiment.to_json(),
                digest=experiment.digest,
                dataset=experiment.dataset.name,
                model=experiment.model.name,
                regularizer=experiment.regularizer.name,
                solver=name_of(experiment.solver),
                seed=experiment.seed,
                versions=json.dumps(versions()),
                owner=this_process(),
                sweep=sweep,
            )
        return run

    def grow(self, run: str, growth: Growth) -> None:
        """Write an update of a run in one transaction; raises AtWorkError if another process owns it."""
        # Packed before acquiring the lock.
        records, checkpoint, status = growth.records, growth.checkpoint, growth.status
        chunk = pack_records(records) if records else None
        arrays = pack_parameters(growth.parameters) if growth.parameters is not None else None
        state = checkpoint.to_bytes() if checkpoint is not None else None
        last = records[-1] if records else None
        with self.database.write() as connection:
            if (row := connection.execute("SELECT epoch FROM runs WHERE id = ?", (run,)).fetchone()) is None:
                return  # Deleted meanwhile.
            self._check_owner(connection, run)
            connection.execute(
                "UPDATE runs SET updated = ?, status = ?, message = ?, details = ?, owner = ?, "
                "data_hash = COALESCE(?, data_hash) WHERE id = ?",
                (
                    *(time.time(), status, growth.message, growth.details),
                    *(this_process(), growth.data_hash, run),
                ),
            )
            if (experiment := growth.experiment) is not None:
                connection.execute(
                    "UPDATE runs SET experiment = ?, digest = ? WHERE id = ?",
                    (experiment.to_json(), experiment.digest, run),
                )
            if last is not None and chunk is not None:
                epoch = int(last.get("epoch", 0))
                connection.execute(
                    "INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?)",
                    (run, int(records[0].get("epoch", 0)), epoch, chunk),
                )
                connection.execute(
                    "UPDATE runs SET epoch = ?, seconds = ?, last = ?, spark = ? WHERE id = ?",
                    (
                        epoch,
                        float(last.get("seconds", 0.0)),
                        json.dumps(last),
                        json.dumps(spark(growth.objectives)),
                        run,
                    ),
                )
            for table, when, data in (
                ("parameters", last and last.get("epoch"), arrays),
                ("checkpoints", checkpoint and checkpoint.epoch, state),
            ):
                if data is not None:
                    connection.execute(
                        f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)",
                        (run, int(when or row["epoch"]), data),
                    )
            if state is None and status not in (RUNNING, PAUSED):
                connection.execute("DELETE FROM checkpoints WHERE run = ?", (run,))

    def own(self, run: str, updated: float | None) -> None:
        """Take ownership of an ended run before its first change.

        Parameters
        ----------
        run : str
            The id.
        updated : float or None
            `StoredRun.updated` when it was claimed; None if this process created it.

        Raises
        ------
        AtWorkError
            If another process has changed it since.
        """
        with self.database.write() as connection:
            self._check_owner(connection, run, updated)
            connection.execute(
                "UPDATE runs SET owner = ?, updated = ? WHERE id = ?", (this_process(), time.time(), run)
            )

    @staticmethod
    def _check_owner(connection: sqlite3.Connection, run: str, updated: float | None = None) -> None:
        """Raise AtWorkError if another process owns a run and has changed it since `updated`."""
        row = connection.execute("SELECT owner, updated FROM runs WHERE id = ?", (run,)).fetchone()
        if row is not None and row["owner"] != this_process() and row["updated"] != updated:
            raise AtWorkError(
                f"Another program has continued run {run} since it was opened here. Open it again to see its "
                "current state."
            )

    def claim(self, run: str) -> tuple[list[Record], Checkpoint | None]:
        """Take ownership of a run; return its trace up to its checkpoint, and the checkpoint.

        An ended run is not changed until `own`. Of an interrupted run, records beyond the checkpoint (all
        without a checkpoint) are removed and will be recomputed.

        Raises
        ------
        AtWorkError
            If another process is running it.
        """
        with self.database.write() as connection:
            # Under the lock: no other process can change it.
            stored = next(iter(self.get_many([run])), None)
            if stored is None or not stored.ended:
                state = "unknown" if stored is None else stored.status
                raise AtWorkError(f"Run {run} is {state}; only interrupted runs can be resumed.")
            checkpoint = self.checkpoint(run)
            if not stored.resumable:
                return self.trace(run), checkpoint
            reached = checkpoint.epoch if checkpoint is not None else -1
            trace = [record for record in self.trace(run) if record["epoch"] <= reached]
            connection.execute("DELETE FROM traces WHERE run = ?", (run,))
            if trace:
                insert(
                    connection,
                    "traces",
                    run=run,
                    first=trace[0]["epoch"],
                    last=trace[-1]["epoch"],
                    records=pack_records(trace),
                )
            last = trace[-1] if trace else {}
            connection.execute(
                "UPDATE runs SET owner = ?, updated = ?, status = ?, message = 'Training.', epoch = ?, "
                "seconds = ?, last = ? WHERE id = ?",
                (
                    this_process(),
                    time.time(),
                    RUNNING,
                    last.get("epoch", 0),
                    last.get("seconds", 0.0),
                    json.dumps(last),
                    run,
                ),
            )
        return trace, checkpoint

    def rename(self, run: str, title: str) -> None:
        """Set the title of a run; an empty title removes it."""
        with self.database.write() as connection:
            connection.execute("UPDATE runs SET title = ? WHERE id = ?", (title.strip()[:MOST_TITLE], run))

    def delete(self, runs: Collection[str]) -> int:
        """Delete ended runs; return their number."""
        ended = [(run.id,) for run in self.get_many(runs) if run.ended]
        with self.database.write() as connection:
            connection.executemany("DELETE FROM runs WHERE id = ?", ended)
        return len(ended)

    # ------------------------------------------------------------------------------------------- reading

    def runs(
        self,
        *,
        dataset: Collection[str] = (),
        model: Collection[str] = (),
        regularizer: Collection[str] = (),
        origin: Collection[str] = (),
        sweep: str | None = None,
        text: str = "",
        limit: int | None = None,
    ) -> list[StoredRun]:
        """Return runs, newest first.

        Parameters
        ----------
        dataset, model, regularizer, origin : collection of str
            The accepted values; all if empty.
        sweep : str, optional
            The id of a sweep.
        text : str
            Text in the title, the settings, the message or the id.
        limit : int, optional
            The maximum number of runs.
        """
        conditions, values = ["TRUE"], []
        filters = {"dataset": dataset, "model": model, "regularizer": regularizer, "origin": origin}
        filters["sweep"] = () if sweep is None else (sweep,)
        for name, wanted in filters.items():
            if wanted:
                conditions.append(f"{name} IN {_LISTED}")
                values.append(json.dumps(list(wanted)))
        if text:
            conditions.append("instr(lower(title || ' ' || experiment || ' ' || message || ' ' || id), ?)")
            values.append(text.lower())
        order = "ORDER BY created DESC, id" + (f" LIMIT {int(limit)}" if limit is not None else "")
        return self._select(" AND ".join(conditions), values, order)

    def get(self, run: str) -> StoredRun:
        """Return a run by its id or a unique prefix.

        Raises
        ------
        ValueError
            If no or more than one run matches.
        """
        matches = self.get_many([run])
        if not matches and run:
            alike = self._select("substr(id, 1, ?) = ?", (len(run), run), "LIMIT 2")
            # A damaged file may return others.
            matches = [other for other in alike if other.id.startswith(run)]
        if len(matches) != 1:
            count = "Several runs have ids that start" if matches else "No run has an id that starts"
            raise ValueError(f"{count} with {run!r}.")
        return matches[0]

    def get_many(self, runs: Collection[str]) -> list[StoredRun]:
        """Return the runs with these ids, in this order, without unknown ids."""
        names = list(dict.fromkeys(runs))
        stored = {run.id: run for run in self._select(f"id IN {_LISTED}", (json.dumps(names),))}
        return [stored[name] for name in names if name in stored]

    def finished(self, digests: Collection[str]) -> dict[str, StoredRun]:
        """Return the newest regularly ended run of every digest."""
        ended = "status IN ('converged', 'stalled', 'rank', 'epochs', 'diverged')"
        runs = self._select(
            f"digest IN {_LISTED} AND {ended}", (json.dumps(list(digests)),), "ORDER BY created"
        )
        return {run.digest: run for run in runs if run.status != BROKEN}

    def _select(self, condition: str, values: Sequence[Any] = (), order: str = "") -> list[StoredRun]:
        """Return the runs that meet a condition; row by row if the file is damaged."""
        sql = f"SELECT {COLUMNS} FROM runs WHERE {condition} {order}"
        try:
            return [StoredRun.of(row) for row in self.database.read(sql, values)]
        except StoreError:
            if not (rows := self.rows()):
                raise
        runs = [run for row, id in rows.items() for run in self.run_of_row(row, id, condition, values)]
        return sorted(runs, key=lambda run: -run.created)

    def run_of_row(
        self, row: int, id: str, condition: str = "TRUE", values: Sequence[Any] = ()
    ) -> list[StoredRun]:
        """Return the run of a row if it meets a condition; a broken run if the row is damaged."""
        sql = f"SELECT {COLUMNS} FROM runs WHERE {condition} AND rowid = ?"
        try:
            return [StoredRun.of(row) for row in self.database.read(sql, (*values, row))]
        except StoreError as error:
            return [StoredRun.broken(id, str(error.__cause__))]

    def rows(self) -> dict[int, str]:
        """Return the ids of all rows that can be located, including damaged ones."""
        # Index and rows are in different pages of the file; each is read up to its damage.
        ways = ("NOT INDEXED ORDER BY rowid DESC", "NOT INDEXED ORDER BY rowid", "")
        queries = (f"SELECT rowid, id FROM runs {way}" for way in ways)
        return {row["rowid"]: row["id"] for sql in queries for row in self.database.undamaged(sql)}

    def count(self) -> int:
        """Return the number of runs."""
        return int(self.database.read("SELECT COUNT(*) FROM runs")[0][0])

    def trace(self, run: str) -> list[Record]:
        """Return the records of a run, ordered by epoch."""
        rows = self.database.read("SELECT records FROM traces WHERE run = ? ORDER BY first", (run,))
        return [record for row in rows for record in unpack_records(row["records"])]

    def parameters(self, run: str) -> Parameters | None:
        """Return the last parameters of a run, or None."""
        rows = self.database.read("SELECT data FROM parameters WHERE run = ?", (run,))
        return unpack_parameters(rows[0]["data"]) if rows else None

    def checkpoint(self, run: str) -> Checkpoint | None:
        """Return the checkpoint of a run, or None."""
        rows = self.database.read("SELECT data FROM checkpoints WHERE run = ?", (run,))
        return Checkpoint.from_bytes(rows[0]["data"]) if rows else None


def new_id() -> str:
    """Return a unique id that does not look like a command-line option."""
    while (name := secrets.token_urlsafe(9)).startswith("-"):
        pass
    return name


_stores: dict[Path, RunStore] = {}
_opening = threading.Lock()


def store() -> RunStore:
    """Return the store at `default_path`, opened once per process; raises StoreError."""
    path = default_path()
    with _opening:
        if path not in _stores:
            _stores[path] = RunStore(path)
        return _stores[path]
