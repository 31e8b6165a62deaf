"""``fmviz doctor``: whether this installation works."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from fmviz.cli._terminal import Progress, add_store, print_json, store_path, to_stderr

HELP = "tell versions and places, and test every operator and a fit"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="for machines")
    add_store(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print all findings; 1 if one of them is not as it must be."""
    from fmviz.lab.self_test import checkup

    findings, progress = [], Progress(every=0)
    part = ""
    for one in checkup(store_path(arguments)):
        progress.clear()
        findings.append(one)
        if not arguments.json:
            if one.part != part:
                print(("\n" if part else "") + one.part.capitalize())
                part = one.part
            print(f"  {'ok ' if one.fine else 'BAD'} {one.name:<18} {one.words}", flush=True)
        progress.tell("Looking on; kernels that are not in the cache are compiled.")
    progress.clear()
    bad = [one for one in findings if not one.fine]
    if arguments.json:
        told = {"fine": not bad, "findings": [asdict(one) for one in findings]}
        print_json(told)
    elif bad:
        names = ", ".join(f"{one.part}: {one.name}" for one in bad)
        to_stderr(f"\nNot as it must be: {names}.")
    else:
        print("\nEverything works.")
    return 1 if bad else 0
