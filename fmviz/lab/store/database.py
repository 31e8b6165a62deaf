"""The SQLite file of the run store: its schema, connections and transactions."""

from __future__ import annotations

import errno
import os
import random
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

T = TypeVar("T")

LAYOUT = 3
"""The version of `SCHEMA`, stored in the file."""
SCHEMA = (
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        created REAL NOT NULL,
        updated REAL NOT NULL,
        status TEXT NOT NULL,
        message TEXT NOT NULL DEFAULT '',
        details TEXT NOT NULL DEFAULT '',
        origin TEXT NOT NULL DEFAULT '',
        title TEXT NOT NULL DEFAULT '',
        experiment TEXT NOT NULL,
        digest TEXT NOT NULL,
        dataset TEXT NOT NULL,
        model TEXT NOT NULL,
        regularizer TEXT NOT NULL,
        solver TEXT NOT NULL,
        seed INTEGER NOT NULL,
        data_hash TEXT NOT NULL DEFAULT '',
        versions TEXT NOT NULL DEFAULT '{}',
        epoch INTEGER NOT NULL DEFAULT 0,
        seconds REAL NOT NULL DEFAULT 0,
        last TEXT NOT NULL DEFAULT '{}',
        spark TEXT NOT NULL DEFAULT '[]',
        owner TEXT NOT NULL DEFAULT '',
        sweep TEXT,
        deleted REAL
    )
    """,
    "CREATE INDEX runs_created ON runs (created)",
    "CREATE INDEX runs_digest ON runs (digest)",
    "CREATE INDEX runs_sweep ON runs (sweep)",
    """
    CREATE TABLE traces (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        records BLOB NOT NULL,
        PRIMARY KEY (run, first)
    )
    """,
    """
    CREATE TABLE parameters (
        run TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        epoch INTEGER NOT NULL,
        data BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE checkpoints (
        run TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        epoch INTEGER NOT NULL,
        data BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE sweeps (
        id TEXT PRIMARY KEY,
        created REAL NOT NULL,
        title TEXT NOT NULL DEFAULT '',
        declaration TEXT NOT NULL
    )
    """,
)
TABLES = {"runs", "traces", "parameters", "checkpoints", "sweeps"}
"""The tables that identify a run store."""

# SQLite waits for locks, but not while another process enables or recovers the write-ahead log.
WAIT_SECONDS = 60.0
_WAYS = {
    sqlite3.SQLITE_FULL: "Free disk space",
    sqlite3.SQLITE_BUSY: "Another program has locked it: end that program, or wait",
    sqlite3.SQLITE_READONLY: "Make the disk and the file writable",
}


class StoreError(RuntimeError):
    """The run store is unusable; the message contains the reason and a remedy."""


class Database:
    """An SQLite file with a write-ahead log.

    Readers never wait for writers. Writers of all processes take turns: a transaction acquires the lock at
    its start. Thread-safe, and safe after a fork.

    Parameters
    ----------
    path : Path
        The file; created, with its directory, if missing.

    Raises
    ------
    StoreError
        If the file cannot be opened, is not an SQLite file, or has another layout. `write` and `read` raise
        it if the file is damaged or locked, or the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._reading = threading.RLock()
        self._process = os.getpid()
        self._opened: dict[str, sqlite3.Connection] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                _check(path)
            _keep_private(path)
            self._patiently(self._lay_out)
        except (OSError, sqlite3.Error) as error:
            full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
            full |= getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
            way = (
                "Free disk space, or choose another file with FMVIZ_STORE or --store"
                if full
                else "Choose another file with FMVIZ_STORE or --store, or move this one away"
            )
            raise StoreError(f"The run store {path} cannot be opened ({error}). {way}.") from error

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Enter an exclusive write transaction; the outermost one commits, or rolls back on an error."""
        with self._lock, self._in_words():
            connection = self._connection("writing")
            if connection.in_transaction:
                yield connection
                return
            self._patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # SQLite may have rolled back already, for instance on a full disk.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def read(self, sql: str, values: Any = ()) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        with self._reading, self._in_words():
            return self._connection("reading").execute(sql, values).fetchall()

    def undamaged(self, sql: str) -> Iterator[sqlite3.Row]:
        """Yield the rows of a query up to the first unreadable one."""
        with self._reading, suppress(sqlite3.DatabaseError):
            yield from self._connection("reading").execute(sql)

    def copy_to(self, path: Path) -> None:
        """Copy all tables to another file by SQLite's backup, even during writes."""
        with self._in_words(), closing(self._open()) as source, closing(sqlite3.connect(path)) as target:
            source.backup(target)

    def close(self) -> None:
        """Close the file; it is reopened on use."""
        with self._lock, self._reading:
            for connection in self._opened.values():
                connection.close()
            self._opened.clear()

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Convert errors of the file to StoreError; errors of a statement pass."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.IntegrityError | sqlite3.DataError | sqlite3.ProgrammingError):
                raise
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            way = _WAYS.get(code, "`fmviz doctor` examines it, `fmviz runs salvage NEW` saves the rest")
            raise StoreError(
                f"The run store {self.path} cannot be used ({error}). {way}; or choose another file with "
                "FMVIZ_STORE or --store."
            ) from error

    def _connection(self, purpose: str) -> sqlite3.Connection:
        if self._process != os.getpid():
            # After a fork, the parent's connections must be neither used nor closed.
            self._process, self._opened = os.getpid(), {}
        if purpose not in self._opened:
            self._opened[purpose] = self._patiently(self._open)
        return self._opened[purpose]

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.row_factory = sqlite3.Row
            # Invalid text is shown as broken instead of hiding all other rows.
            connection.text_factory = lambda data: data.decode(errors="replace")
            connection.execute("PRAGMA foreign_keys = ON")
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            # With the write-ahead log, a killed process loses no committed transaction.
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _lay_out(self) -> None:
        """Create the tables of a new file; raise StoreError for another layout."""
        connection = self._connection("writing")
        if self._version(connection) == LAYOUT:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = self._version(connection)
            if version < LAYOUT and not _tables(connection):
                for statement in SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {LAYOUT}")
            elif version != LAYOUT:
                writer = "an earlier" if version < LAYOUT else "a later"
                raise StoreError(
                    f"The run store {self.path} was written by {writer} version of fmviz (layout {version}, "
                    f"this version reads {LAYOUT}): use that version, or another file with FMVIZ_STORE or "
                    "--store."
                )
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    @staticmethod
    def _version(connection: sqlite3.Connection) -> int:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])

    @staticmethod
    def _patiently(action: Callable[[], T]) -> T:
        """Call `action`, with retries while another process locks the file."""
        give_up = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (
                    sqlite3.SQLITE_BUSY,
                    sqlite3.SQLITE_LOCKED,
                )
                if not busy or time.monotonic() > give_up:
                    raise
                time.sleep(random.uniform(0.002, 0.02))


def insert(connection: sqlite3.Connection, table: str, **values: Any) -> None:
    """Insert a row into a table of the store."""
    places = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", tuple(values.values()))


def _check(path: Path) -> None:
    """Raise if a file is neither a run store nor empty, without modifying it."""
    path = path.resolve()
    log = path.with_name(f"{path.name}-wal")
    if not path.is_file():
        raise OSError("it is not a file")
    tables: set[str] = set()
    try:
        # Without its log: neither locks nor files are written.
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            tables = _tables(connection)
    except sqlite3.DatabaseError:
        if not log.exists():
            raise
    if not tables and log.exists():
        # The tables may exist only in the log, and opening the log would modify it.
        with TemporaryDirectory() as folder, suppress(FileNotFoundError):
            copy = Path(folder, "copy")
            shutil.copyfile(log, f"{copy}-wal")
            shutil.copyfile(path, copy)
            with closing(sqlite3.connect(copy)) as connection:
                tables = _tables(connection)
    # A damaged store may lack tables, and other programs may have a table named runs.
    if tables and len(tables & TABLES) <= len(TABLES) / 2:
        raise OSError("it is a database of another program")


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _keep_private(path: Path) -> None:
    """Create a private file, or make a world-readable one private.

    Group permissions are kept as intentional; SQLite gives its log the same permissions.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))
        if path.stat().st_mode & 0o007:
            path.chmod(0o600)
