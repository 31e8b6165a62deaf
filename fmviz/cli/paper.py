"""``fmviz paper``: reproduce a figure or table of a paper, and check the paper's statements about it."""

from __future__ import annotations

import argparse
import json
import time
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmviz.cli._terminal import STORE, Progress, declare, open_store, text_table, to_stderr
from fmviz.typography import cell

if TYPE_CHECKING:
    from fmviz.lab.papers import Artefact, Result

HELP = "reproduce a figure or table of a paper"

# Longer tables are only in the JSON file.
_MOST_ROWS = 80


add = partial(
    declare,
    {
        "": {
            "name": {
                "metavar": "NAME|list",
                "help": "an artefact, such as fig2 or blondel2016_fig1; list prints all",
            },
            "--budget": {
                "choices": ("quick", "full"),
                "default": "quick",
                "help": "a run of minutes, or the protocol of the paper (default: quick)",
            },
            "--output": {
                "type": Path,
                "metavar": "DIR",
                "help": "a folder for NAME.json, NAME.md and NAME.html, the figure",
            },
            "--jobs": {"type": int, "default": -1, "help": "worker processes (default: one per core)"},
            **STORE,
        }
    },
)


def run(arguments: argparse.Namespace) -> int:
    """Run an artefact, print tables and checks as Markdown, write the files, and store the result.

    Returns 1 if the result cannot be stored, and 130 after Ctrl-C.
    """
    from fmviz.lab.papers import find
    from fmviz.lab.papers.results import run_and_keep

    if arguments.name == "list":
        return _list(arguments)
    artefact, budget = find(arguments.name), arguments.budget
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
    store = cache(partial(open_store, arguments))
    progress, result, trouble = Progress(60.0), None, ""
    try:
        for result in run_and_keep(artefact, budget, store, n_jobs=arguments.jobs):
            progress.tell(f"{result.done}/{result.total} {result.message}")
    except KeyboardInterrupt:
        if result is None:
            raise
        result = replace(result, state="stopped")
    except ValueError as error:
        if result is None or result.state != "complete":
            raise
        trouble = str(error)
    finally:
        progress.clear()
        if store.cache_info().currsize:
            store().close()
    assert result is not None, "every run ends with a result"
    text = report(artefact, result)
    try:
        if arguments.output is not None:
            _write(artefact, result, text, arguments.output)
    finally:
        print(text)
    if trouble:
        to_stderr(trouble)
    elif result.state == "stopped":
        to_stderr("Stopped. Repeat the command to resume.")
        return 130
    return int(bool(trouble))


def _list(arguments: argparse.Namespace) -> int:
    """Print all artefacts with their last results."""
    from fmviz.lab.papers import ARTEFACTS, BUDGETS
    from fmviz.lab.papers.results import last_results, newest, unfinished

    rows: list[dict[str, Any]] = []
    with closing(open_store(arguments)) as store:
        kept = last_results(store)
        for artefact in ARTEFACTS.values():
            last = newest(result for (name, _), result in kept.items() if name == artefact.name)
            row = {"artefact": artefact.name, "title": artefact.title, "last result": "", "checks": ""}
            parts = ((budget, unfinished(artefact, budget, store)) for budget in BUDGETS)
            row["unfinished"] = ", ".join(f"{budget}, {n:,} done" for budget, n in parts if n)
            if last is not None:
                when = time.strftime("%Y-%m-%d %H:%M", time.localtime(last.created))
                row["last result"] = f"{when}, {last.budget}" + (
                    ", shipped with fmviz" if last.shipped else ""
                )
                row["checks"] = ", ".join(f"{count} {verdict}" for verdict, count in last.verdicts.items())
            rows.append(row)
    print(text_table(rows))
    return 0


def _write(artefact: Artefact, result: Result, text: str, folder: Path) -> None:
    from fmviz.figures import papers

    stem = folder / artefact.name
    stem.with_suffix(".json").write_text(json.dumps(result.to_dict(), indent=1), encoding="utf-8")
    stem.with_suffix(".md").write_text(text, encoding="utf-8")
    page = papers.standalone(artefact.title, result.tables, **artefact.picture)
    stem.with_suffix(".html").write_text(page, encoding="utf-8")
    to_stderr(f"Written: {stem}.json, {stem}.md, {stem}.html")


def report(artefact: Artefact, result: Result) -> str:
    """Return a result as Markdown: checks, published numbers, tables, differences."""
    budget = f"Budget: {result.budget}, {result.state} after {result.seconds:.0f} s."
    lines = [f"# {artefact.title}", "", f"{artefact.paper}.", "", budget, "", "## Statements", ""]
    for statement in artefact.statements:
        checks = [check for check in result.checks if check.statement == statement.key]
        shown = (f"- {check.verdict.upper()} – {check.case}: {check.measured}" for check in checks)
        lines += [f"**{statement.text}** ({statement.where})", "", *shown, ""]
    if compared := artefact.compared(result.tables):
        lines += ["## Published numbers", "", *table(compared), ""]
    for name, rows in result.tables.items():
        short = table(rows) if len(rows) <= _MOST_ROWS else [f"{len(rows):,} rows."]
        lines += [f"## Table: {name}", "", *short, ""]
    lines += ["## Differences from the paper", "", *(f"- {text}" for text in result.differences), ""]
    settings = ", ".join(f"{name} = {value}" for name, value in result.settings.items())
    versions = ", ".join(f"{name} {value}" for name, value in result.versions.items())
    data = ", ".join(f"{name} {value}" for name, value in result.data.items())
    lines += [f"Settings: {settings}.", "", f"Versions: {versions}. Data: {data}."]
    return "\n".join(lines)


def table(rows: Any) -> list[str]:
    """Return rows as a Markdown table."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    body = ["| " + " | ".join(cell(row.get(name)) for name in columns) + " |" for row in rows]
    return ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), *body]
