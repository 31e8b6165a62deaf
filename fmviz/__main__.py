"""The command line: ``python -m fmviz COMMAND``; each command is a module of `fmviz.cli`."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from fmviz.cli import COMMANDS


def main(given: list[str] | None = None) -> int:
    """Parse the command line, do what it says, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="fmviz", description="Sparse factorization machines, seen and trained."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    modules = {name: import_module(f"fmviz.cli.{name}") for name in COMMANDS}
    for name, module in modules.items():
        module.add(commands.add_parser(name, help=module.HELP))
    arguments = parser.parse_args(given)
    return modules[arguments.command].run(arguments)


if __name__ == "__main__":
    sys.exit(main())
