"""Reproduce a figure or table of a paper, and check the paper's statements about it.

    python -m papers fig2                              # of atarashi2021; seconds
    python -m papers blondel2016_fig1 --budget full    # the protocol of the paper

The checks and tables are printed, and written to NAME.json, NAME.md and NAME.html (the figure). Repeat a
command that was stopped to resume it: completed trials are in papers/pieces until the run is complete.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from fmviz.cli._terminal import Progress, to_stderr
from fmviz.cli.paper import report, write
from fmviz.lab.papers import Result, full_name
from fmviz.typography import duration
from papers import ARTEFACTS, BUDGETS, Artefact
from papers.base import FOLDER

RESULTS = FOLDER / "results"


def reproduced(artefact: Artefact, budget: str, n_jobs: int = -1, output: Path = RESULTS) -> Result:
    """Run an artefact, write the result, and remove the pieces of a complete run."""
    output.mkdir(parents=True, exist_ok=True)
    pieces = artefact.pieces(budget)
    to_stderr(f"{artefact.title}: {duration(60.0 * artefact.minutes[budget])} on two cores.")
    with Progress(60.0) as progress:
        result = artefact.run(budget, n_jobs=n_jobs, folder=pieces, report=progress.tell)
    write(result, output)
    if result.state == "complete":
        shutil.rmtree(pieces.parent, ignore_errors=True)
    return result


def main(arguments: list[str] | None = None) -> int:
    """Reproduce the named artefact; return 130 after Ctrl-C, 2 if an argument is not allowed."""
    parser = argparse.ArgumentParser(
        "python -m papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(ARTEFACTS)}")
    parser.add_argument(
        "--budget",
        choices=BUDGETS,
        default=BUDGETS[0],
        help="a run of minutes, or the protocol of the paper (default: quick)",
    )
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR", help="default: papers/results")
    parser.add_argument("--jobs", type=int, default=-1, help="worker processes (default: one per core)")
    given = parser.parse_args(arguments)
    try:
        artefact = ARTEFACTS[full_name(given.name, ARTEFACTS)]
        result = reproduced(artefact, given.budget, given.jobs, given.output)
    except (OSError, ValueError) as error:
        to_stderr(error)
        return 2
    print(report(result))
    if result.state == "stopped":
        to_stderr("Stopped. Repeat the command to resume.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
