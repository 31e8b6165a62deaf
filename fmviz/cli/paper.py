"""``fmviz paper``: print the shipped reproduction of a figure or table, and checks of its statements."""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmviz.cli._terminal import declare, text_table, to_stderr
from fmviz.typography import cell

if TYPE_CHECKING:
    from fmviz.lab.papers import Result

HELP = "print the reproduction of a figure or table of a paper"

# Longer tables are only in the JSON file.
_MOST_ROWS = 80


add = partial(
    declare,
    {
        "": {
            "name": {
                "metavar": "NAME|list",
                "help": "an artefact, such as fig2 or blondel2016_fig1; list prints all. In a checkout, "
                "`python -m papers NAME` computes it",
            },
            "--output": {
                "type": Path,
                "metavar": "DIR",
                "help": "a folder for NAME.json, NAME.md and NAME.html, the figure",
            },
        }
    },
)


def run(arguments: argparse.Namespace) -> int:
    """Print the checks and tables of a shipped result as Markdown, with the command that reproduces it."""
    from fmviz.lab.papers import full_name, shipped_result, summaries

    if arguments.name == "list":
        rows = [
            {
                "artefact": name,
                "title": summary.title,
                "computed": time.strftime("%Y-%m-%d", time.localtime(summary.created)),
                "budget": summary.budget,
                "checks": ", ".join(f"{count} {verdict}" for verdict, count in summary.verdicts.items()),
            }
            for name, summary in summaries().items()
        ]
        print(text_table(rows))
        return 0
    result = shipped_result(full_name(arguments.name, summaries()))
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
        write(result, arguments.output)
    print(report(result))
    return 0


def write(result: Result, folder: Path) -> None:
    """Write a result to NAME.json, NAME.md and NAME.html, the figure."""
    import plotly.graph_objects as go

    stem = folder / result.artefact
    stem.with_suffix(".json").write_text(json.dumps(result.to_dict(), indent=1), encoding="utf-8")
    stem.with_suffix(".md").write_text(report(result), encoding="utf-8")
    figure = go.Figure(result.picture).update_layout(title=result.title, margin_t=90)
    figure.write_html(stem.with_suffix(".html"), include_plotlyjs=True, div_id="figure")
    to_stderr(f"Written: {stem}.json, {stem}.md, {stem}.html")


def report(result: Result) -> str:
    """Return a result as Markdown: checks, published numbers, tables, differences."""
    budget = f"Budget: {result.budget}, {result.state} after {result.seconds:.0f} s."
    command = f"From a checkout of fmviz: `{result.command}`."
    lines = [f"# {result.title}", "", f"{result.paper}.", "", f"{budget} {command}", "", "## Statements", ""]
    for statement in result.statements:
        checks = [check for check in result.checks if check.statement == statement.key]
        shown = (f"- {check.verdict.upper()} – {check.case}: {check.measured}" for check in checks)
        lines += [f"**{statement.text}** ({statement.where})", "", *shown, ""]
    if result.compared:
        lines += ["## Published numbers", "", *table(result.compared), ""]
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
