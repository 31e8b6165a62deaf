"""``fmviz paper``: make a figure or table of a paper again, and tell what its statements come to."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmviz.cli._terminal import Progress

if TYPE_CHECKING:
    from fmviz.lab.papers import Artefact, Result

HELP = "make a figure or table of a paper again"

# Longer tables stand in the JSON file alone.
_MOST_ROWS = 24


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "name",
        metavar="NAME|list",
        help="an artefact, such as fig2 or blondel2016_fig1; list for what there is",
    )
    parser.add_argument(
        "--budget",
        choices=("quick", "full"),
        default="quick",
        help="minutes, or what the paper did (default: quick)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="a folder for NAME.json, NAME.md and NAME.html, the figure",
    )
    parser.add_argument("--jobs", type=int, default=-1, help="worker processes (default: one a core)")


def run(arguments: argparse.Namespace) -> int:
    """Run an artefact, print tables and checks as Markdown, and write the files."""
    from fmviz.lab.papers import ARTEFACTS, find
    from fmviz.lab.workers import checked_jobs

    if arguments.name == "list":
        for one in ARTEFACTS.values():
            print(f"{one.name}  {one.title} ({one.paper.split(',')[0]} et al.)")
        return 0
    try:
        artefact = find(arguments.name)
        checked_jobs(arguments.jobs)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
    result = _run(artefact, arguments.budget, arguments.jobs)
    text = report(artefact, result)
    if arguments.output is not None:
        _write(artefact, result, text, arguments.output)
    print(text)
    return 0


def _run(artefact: Artefact, budget: str, n_jobs: int) -> Result:
    """Run to the end, or until Ctrl-C, after which what there is counts."""
    progress, result = Progress(every=0), None
    try:
        for result in artefact.run(budget, n_jobs=n_jobs):
            progress.tell(f"{result.done}/{result.total} {result.message}")
    except KeyboardInterrupt:
        if result is None:
            raise
        result = replace(result, state="stopped")
    progress.clear()
    assert result is not None, "every run ends with a result"
    return result


def _write(artefact: Artefact, result: Result, text: str, folder: Path) -> None:
    from fmviz.figures import papers

    stem = folder / artefact.name
    stem.with_suffix(".json").write_text(json.dumps(result.to_dict(), indent=1), encoding="utf-8")
    stem.with_suffix(".md").write_text(text, encoding="utf-8")
    kind, options = artefact.picture.kind, artefact.picture.options
    page = papers.standalone(artefact.title, kind, result.tables, **options)
    stem.with_suffix(".html").write_text(page, encoding="utf-8")
    print(f"Written: {stem}.json, {stem}.md, {stem}.html", file=sys.stderr)


def report(artefact: Artefact, result: Result) -> str:
    """Return a result as Markdown: checks, published numbers, tables, differences."""
    said = {one.key: one for one in artefact.statements}
    lines = [
        f"# {artefact.title}",
        "",
        f"{artefact.paper}.",
        "",
        f"Budget: {result.budget}, {result.state} after {result.seconds:.0f} s.",
        "",
        "## Statements",
        "",
    ]
    for key, one in said.items():
        lines += [f"**{one.text}** ({one.where})", ""]
        lines += [
            f"- {check.verdict.upper()} – {check.case}: {check.measured}"
            for check in result.checks
            if check.statement == key
        ]
        lines.append("")
    if compared := artefact.compared(result.tables):
        lines += ["## Published numbers", "", *table(compared), ""]
    for name, rows in result.tables.items():
        lines += [f"## Table: {name}", ""]
        lines += table(rows) if len(rows) <= _MOST_ROWS else [f"{len(rows):,} rows."]
        lines.append("")
    lines += ["## What differs from the paper", "", *(f"- {text}" for text in result.differences), ""]
    settings = ", ".join(f"{name} = {value}" for name, value in result.settings.items())
    versions = ", ".join(f"{name} {value}" for name, value in result.versions.items())
    data = ", ".join(f"{name} {value}" for name, value in result.data.items())
    lines += [f"Settings: {settings}.", "", f"Versions: {versions}. Data: {data}."]
    return "\n".join(lines)


def table(rows: Any) -> list[str]:
    """Return rows as a Markdown table."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    body = ["| " + " | ".join(_cell(row.get(name)) for name in columns) + " |" for row in rows]
    return ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), *body]


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
