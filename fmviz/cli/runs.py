"""``fmviz runs``: list, show, export, import, delete, back up and salvage stored runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmviz.cli._terminal import STORE, declare, open_store, print_json, text_table, to_stderr
from fmviz.typography import counted

if TYPE_CHECKING:
    from fmviz.lab.store import RunStore, StoredRun

HELP = "list, show, export, import, delete, back up and salvage stored runs"

# The printed columns of `runs_table`; --json has all.
_SHOWN = ("run", "status", "epochs", "objective", "interactions", "metric")
# The fields of a run in JSON, followed by its trace.
_RECORDED = (
    *("id", "created", "updated", "status", "message", "details", "origin", "title", "digest"),
    *("data_hash", "epoch", "seconds", "sweep", "settings", "versions", "last"),
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the actions with their arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, (_, words, arguments) in _ACTIONS.items():
        declare({"": {**arguments, **STORE}}, actions.add_parser(name, help=words, description=words))


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    store = open_store(arguments)
    try:
        return _ACTIONS[arguments.action][0](arguments, store)
    finally:
        store.close()


def _list(arguments: argparse.Namespace, store: RunStore) -> int:
    from fmviz.lab.store.table import runs_table

    if arguments.limit < 1:
        raise ValueError(f"--limit {arguments.limit} is too small; use a number from 1.")
    names = ("dataset", "model", "regularizer", "origin", "sweep", "text")
    filters: dict[str, Any] = {name: getattr(arguments, name) for name in names}
    # One more than shown, to detect further runs.
    matching = store.runs(**filters, limit=arguments.limit + 1)
    more, matching = len(matching) > arguments.limit, matching[: arguments.limit]
    rows: list[dict[str, Any]] = [
        {str(name): value for name, value in row.items()} for row in runs_table(matching).to_dict("records")
    ]
    if arguments.json:
        print_json([{**row, "when": row["when"].isoformat()} for row in rows])
        return 0
    if not rows:
        print(f"No runs match in {store.path}.")
        return 0
    for row in rows:
        when = datetime.fromtimestamp(row["when"].timestamp()).strftime("%Y-%m-%d %H:%M")
        # Floats if others in the column are missing.
        row.update({n: int(row[n]) for n in ("epochs", "interactions") if row[n] == row[n]}, when=when)
    print(text_table([{name: row[name] for name in ("id", "when", *_SHOWN)} for row in rows]))
    if more:
        to_stderr(f"There are more; --limit {2 * arguments.limit} shows up to this number.")
    return 0


def _show(arguments: argparse.Namespace, store: RunStore) -> int:
    from fmviz.lab.runs.program import program
    from fmviz.lab.store.table import title_of_run
    from fmviz.metrics import in_units

    run = store.get(arguments.id)
    if arguments.json:
        print_json({**{name: getattr(run, name) for name in _RECORDED}, "trace": store.trace(run.id)})
        return 0
    print(f"{title_of_run(run)}\n{run.id}, from {run.origin}. {run.message}")
    shown = ("objective", "used_features", "used_interactions", "certificate")
    figures = {
        **{name: run.last.get(name) for name in shown},
        **{"epochs": run.epoch, "seconds": run.seconds},
        **in_units(run.last),
    }
    print("\n" + text_table([{"result": name, "value": value} for name, value in figures.items()]))
    print("\n" + text_table([{"setting": name, "value": str(v)} for name, v in run.settings.items()]))
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    print(f"\nMade with {versions}; data {run.data_hash or 'not loaded'}.")
    if run.details:
        print("\n" + run.details)
    try:
        print("\nThe same in Python:\n\n" + program(run.experiment))
    except ValueError as error:
        print(f"\n{error}")
    return 0


def _export(arguments: argparse.Namespace, store: RunStore) -> int:
    from fmviz.lab.store.archive import export_runs

    named = _named(store, arguments.ids)
    size = arguments.file.write_bytes(export_runs(store, [run.id for run in named]))
    print(f"{counted(len(named), 'run')} written to {arguments.file} ({size / 1e3:,.0f} kB).")
    return 0


def _import(arguments: argparse.Namespace, store: RunStore) -> int:
    from fmviz.lab.files import read_input
    from fmviz.lab.store.archive import MOST_BYTES, import_runs

    new, known = import_runs(store, read_input(arguments.file, MOST_BYTES, "Export fewer runs at a time."))
    print(f"{counted(len(new), 'run')} imported, {known:,} already there.")
    return 0


def _delete(arguments: argparse.Namespace, store: RunStore) -> int:
    named = _named(store, arguments.ids)
    if going := [run.id for run in named if not run.ended]:
        raise ValueError(f"Run {going[0]} is still running; stop it first.")
    print(f"{counted(store.delete([run.id for run in named]), 'run')} deleted.")
    return 0


def _backup(arguments: argparse.Namespace, store: RunStore) -> int:
    from fmviz.lab.store.rescue import backup

    size = backup(store, arguments.file)
    print(f"{counted(store.count(), 'run')} copied to {arguments.file} ({size / 1e3:,.0f} kB).")
    return 0


def _salvage(arguments: argparse.Namespace, store: RunStore) -> int:
    from fmviz.lab.store.rescue import salvage

    n_saved, damaged = salvage(store, arguments.new)
    print(f"{counted(n_saved, 'run')} saved to {arguments.new}.")
    for run, parts in damaged.items():
        print(f"Damaged parts of run {run}, not saved: {', '.join(parts)}.")
    print(f"Use it with --store {arguments.new} or FMVIZ_STORE, or move it to {store.path}.")
    return 0


def _named(store: RunStore, ids: list[str]) -> list[StoredRun]:
    """Return the runs with these ids or id prefixes, without duplicates."""
    return list({run.id: run for run in map(store.get, ids)}.values())


_RUN: dict[str, Any] = {"metavar": "ID", "help": "a run id, or a prefix of it"}
_ACTIONS: dict[str, tuple[Callable[[argparse.Namespace, RunStore], int], str, dict[str, Any]]] = {
    "list": (
        _list,
        "list runs, newest first",
        {
            **{
                f"--{name}": {"action": "append", "default": [], "help": f"only this {name}; repeatable"}
                for name in ("dataset", "model", "regularizer", "origin")
            },
            "--sweep": {"help": "only runs of this sweep"},
            "--text": {"default": "", "help": "only runs whose title, settings or message contain this text"},
            "--limit": {"type": int, "default": 20, "help": "the maximum number (default: %(default)s)"},
            "--json": {"action": "store_true", "help": "for machines"},
        },
    ),
    "show": (
        _show,
        "show a run: settings, result, and the Python program that reproduces it",
        {"id": _RUN, "--json": {"action": "store_true", "help": "for machines"}},
    ),
    "export": (
        _export,
        "export runs, with traces and parameters, to a file",
        {"ids": {**_RUN, "nargs": "+"}, "file": {"type": Path, "metavar": "FILE"}},
    ),
    "import": (_import, "import the runs of an exported file", {"file": {"type": Path, "metavar": "FILE"}}),
    "delete": (_delete, "delete runs permanently", {"ids": {**_RUN, "nargs": "+"}}),
    "backup": (
        _backup,
        "copy the store to a new file, even while it is in use",
        {"file": {"type": Path, "metavar": "FILE"}},
    ),
    "salvage": (
        _salvage,
        "save the readable part of a damaged store to a new one",
        {"new": {"type": Path, "metavar": "NEW"}},
    ),
}
