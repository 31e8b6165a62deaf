"""The schema of the run store: one tuple of statements for each version, applied in turn."""

from __future__ import annotations

_FIRST = (
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

_RESULTS = (
    """
    CREATE TABLE results (
        artefact TEXT NOT NULL,
        budget TEXT NOT NULL,
        created REAL NOT NULL,
        seconds REAL NOT NULL,
        verdicts TEXT NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (artefact, budget)
    )
    """,
)

# A table of pieces of reproductions, which are now kept in a folder; where it is, it is left alone.
_PIECES: tuple[str, ...] = ()

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _RESULTS, _PIECES)
"""A released step is never edited: a change of the layout is one more tuple of statements."""

TABLES = {"runs", "traces", "parameters", "checkpoints", "sweeps"}
"""The tables of the first version, by which a run store is known."""
